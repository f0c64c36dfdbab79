//! Element types and errors of IREE as those of PJRT.

use pjrt_plugin::{ElementType, Error, ErrorCode, Result};

/// The element types of arrays in memory. IREE's integers have no sign: its operations have. Its complex numbers are not used.
const ELEMENT_TYPES: &[(ElementType, iree_runtime::ElementType)] = &[
    (ElementType::Pred, iree_runtime::ElementType::Bool),
    (ElementType::S8, iree_runtime::ElementType::I8),
    (ElementType::S16, iree_runtime::ElementType::I16),
    (ElementType::S32, iree_runtime::ElementType::I32),
    (ElementType::S64, iree_runtime::ElementType::I64),
    (ElementType::U8, iree_runtime::ElementType::I8),
    (ElementType::U16, iree_runtime::ElementType::I16),
    (ElementType::U32, iree_runtime::ElementType::I32),
    (ElementType::U64, iree_runtime::ElementType::I64),
    (ElementType::F16, iree_runtime::ElementType::F16),
    (ElementType::BF16, iree_runtime::ElementType::BF16),
    (ElementType::F32, iree_runtime::ElementType::F32),
    (ElementType::F64, iree_runtime::ElementType::F64),
    (ElementType::C64, iree_runtime::ElementType::F32),
    (ElementType::C128, iree_runtime::ElementType::F64),
    (ElementType::F8E5M2, iree_runtime::ElementType::F8E5M2),
    (ElementType::F8E4M3FN, iree_runtime::ElementType::F8E4M3FN),
    (ElementType::F8E5M2FNUZ, iree_runtime::ElementType::F8E5M2FNUZ),
    (ElementType::F8E4M3FNUZ, iree_runtime::ElementType::F8E4M3FNUZ),
    (ElementType::F8E8M0FNU, iree_runtime::ElementType::F8E8M0FNU),
];

/// Returns IREE's name of an element type; that of the parts, for complex numbers.
///
/// # Errors
///
/// Returns UNIMPLEMENTED if IREE's arrays cannot have such elements.
pub(crate) fn element_type(ty: ElementType) -> Result<iree_runtime::ElementType> {
    let found = ELEMENT_TYPES.iter().find(|(of_host, _)| *of_host == ty);
    found.map(|(_, of_iree)| *of_iree).ok_or_else(|| {
        let known: Vec<String> = ELEMENT_TYPES.iter().map(|(ty, _)| ty.to_string()).collect();
        let known = known.join(", ");
        Error::unimplemented(format!("IREE has no arrays of the element type {ty}; it has those of {known}"))
    })
}

/// Returns the sizes of IREE's array: complex numbers have a dimension for their parts. The SDK has checked the signs.
pub(crate) fn dimensions(ty: ElementType, dims: &[i64]) -> Vec<usize> {
    let parts: &[i64] = if matches!(ty, ElementType::C64 | ElementType::C128) { &[2] } else { &[] };
    dims.iter().chain(parts).map(|dim| usize::try_from(*dim).unwrap_or(0)).collect()
}

/// Converts an error of the runtime. The numbers of the codes are the same.
pub(crate) fn error(error: iree_runtime::Error) -> Error {
    let message = error.message();
    let code = match error.code() {
        iree_runtime::Code::Incompatible => ErrorCode::FailedPrecondition,
        code => ErrorCode::from_number(code as u32),
    };
    // The messages of IREE begin with the code.
    let message = message.split_once("; ").map_or(message, |(_, message)| message);
    Error::new(code, format!("IREE: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_preserved() {
        let exhausted =
            iree_runtime::Error::new(iree_runtime::Code::ResourceExhausted, "RESOURCE_EXHAUSTED; full");
        let converted = error(exhausted);
        assert_eq!((converted.code(), converted.message()), (ErrorCode::ResourceExhausted, "IREE: full"));
    }

    #[test]
    fn elements_without_an_equivalent_are_refused_by_name() {
        assert_eq!(element_type(ElementType::U16).unwrap(), iree_runtime::ElementType::I16);
        let error = element_type(ElementType::S4).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        assert!(error.message().contains("element type s4"), "{error}");
    }
}
