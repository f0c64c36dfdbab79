//! Conversion between the element types of PJRT and those of the kernels.

use pjrt_plugin::ElementType;
use refcpu_kernels::DType;

/// Returns the PJRT type for a type of the kernels.
pub(crate) const fn to_pjrt(dtype: DType) -> ElementType {
    match dtype {
        DType::Pred => ElementType::Pred,
        DType::S2 => ElementType::S2,
        DType::S4 => ElementType::S4,
        DType::S8 => ElementType::S8,
        DType::S16 => ElementType::S16,
        DType::S32 => ElementType::S32,
        DType::S64 => ElementType::S64,
        DType::U2 => ElementType::U2,
        DType::U4 => ElementType::U4,
        DType::U8 => ElementType::U8,
        DType::U16 => ElementType::U16,
        DType::U32 => ElementType::U32,
        DType::U64 => ElementType::U64,
        DType::F4E2M1FN => ElementType::F4E2M1FN,
        DType::F6E2M3FN => ElementType::F6E2M3FN,
        DType::F6E3M2FN => ElementType::F6E3M2FN,
        DType::F8E3M4 => ElementType::F8E3M4,
        DType::F8E4M3 => ElementType::F8E4M3,
        DType::F8E4M3FN => ElementType::F8E4M3FN,
        DType::F8E4M3B11FNUZ => ElementType::F8E4M3B11FNUZ,
        DType::F8E4M3FNUZ => ElementType::F8E4M3FNUZ,
        DType::F8E5M2 => ElementType::F8E5M2,
        DType::F8E5M2FNUZ => ElementType::F8E5M2FNUZ,
        DType::F8E8M0FNU => ElementType::F8E8M0FNU,
        DType::F16 => ElementType::F16,
        DType::BF16 => ElementType::BF16,
        DType::F32 => ElementType::F32,
        DType::F64 => ElementType::F64,
        DType::C64 => ElementType::C64,
        DType::C128 => ElementType::C128,
    }
}

/// Returns the type of the kernels for a PJRT type, or `None` for tokens and 1-bit integers, which have no kernels.
pub(crate) fn from_pjrt(element_type: ElementType) -> Option<DType> {
    DType::ALL.iter().copied().find(|d| to_pjrt(*d) == element_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_takes_as_many_bytes_here_as_in_host_memory() {
        for dtype in DType::ALL {
            assert_eq!(to_pjrt(*dtype).byte_size(), dtype.size(), "{dtype:?}");
            assert_eq!(from_pjrt(to_pjrt(*dtype)), Some(*dtype));
        }
    }

    #[test]
    fn every_pjrt_type_with_data_has_kernels_or_is_known_not_to() {
        for t in ElementType::ALL {
            let without = matches!(t, ElementType::Token | ElementType::S1 | ElementType::U1);
            assert_eq!(from_pjrt(*t).is_none(), without, "{t:?}");
        }
    }
}
