//! The layouts of the structs as data. The ends of the fields determine which fields a struct of a different version has.

/// The layout of a field of a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLayout {
    /// The name of the field in the C header.
    pub name: &'static str,
    /// The Rust type of the field in this crate.
    pub ty: &'static str,
    /// The offset of the field from the start of the struct, in bytes.
    pub offset: usize,
    /// The offset of the end of the field, in bytes: the smallest `struct_size` of a struct that has the field.
    pub end: usize,
}

/// The layout of a struct or union of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructLayout {
    /// The name in the C header.
    pub name: &'static str,
    /// The size of the struct in bytes, including tail padding.
    pub size: usize,
    /// The offset of the end of the last field, in bytes: the C header's `X_STRUCT_SIZE`.
    pub struct_size: usize,
    /// The fields, in order.
    pub fields: &'static [FieldLayout],
}

impl StructLayout {
    /// Returns the field with a name, or `None` if the struct does not have it.
    pub fn field(&self, name: &str) -> Option<&'static FieldLayout> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A struct that begins with its own size. (Structs of extensions begin with a base that does.)
///
/// The size identifies the version of the struct with which its writer was compiled. Fields that end after that size do not
/// exist; see [`field_end`](crate::field_end).
///
/// # Safety
///
/// The type is `repr(C)`, its first `size_of::<usize>()` bytes are a `usize` that contains the size, and zero in all bytes
/// is a valid value.
pub unsafe trait SizedStruct: Copy {
    /// The name in the C header.
    const NAME: &'static str;
    /// The `struct_size` of this version: the end of the last field. It can be less than `size_of`, because it excludes tail
    /// padding.
    const STRUCT_SIZE: usize;
    /// The layout as data.
    const LAYOUT: &'static StructLayout;

    /// Returns a struct in which all bytes are zero except for its size.
    fn zeroed() -> Self {
        let mut value = core::mem::MaybeUninit::<Self>::zeroed();
        // SAFETY: the first bytes of every implementor are a `usize`, `value` is aligned for `Self`, which is aligned at
        // least as its first field, and all-zero bytes with any size are a valid value (the trait's contract).
        unsafe {
            value.as_mut_ptr().cast::<usize>().write(Self::STRUCT_SIZE);
            value.assume_init()
        }
    }
}

/// Expands the generated list of structs to [`field_end`](crate::field_end), [`STRUCTS`](crate::STRUCTS), the
/// implementations of [`SizedStruct`], and assertions that rustc and clang agree on the layouts.
macro_rules! struct_table {
    ($($kind:ident $name:ident [size $size:literal, align $align:literal, end $end:literal] {
        $($field:ident @ $offset:literal : $ty:ty,)*
    })*) => {
        /// For every field of every struct, the smallest `struct_size` that includes it.
        ///
        /// There is one module per struct with one constant per field. A `PJRT_ExecuteOptions` of a host has the field
        /// `call_location` if `struct_size >= field_end::PJRT_ExecuteOptions::call_location`.
        #[allow(non_snake_case, non_upper_case_globals, reason = "modules and constants are named as the structs and fields are")]
        pub mod field_end {
            $(
                #[doc = concat!("The ends of the fields of [`", stringify!($name), "`](crate::", stringify!($name), ").")]
                pub mod $name {
                    #[allow(unused_imports, reason = "a struct may have fields of basic types only")]
                    use crate::bindings::*;
                    $(
                        #[doc = concat!("The smallest `struct_size` of a struct with the field `", stringify!($field), "`.")]
                        pub const $field: usize =
                            ::core::mem::offset_of!(crate::bindings::$name, $field) + ::core::mem::size_of::<$ty>();
                    )*
                }
            )*
        }

        /// Every struct and union of the interface that has fields, in the order of the headers.
        pub static STRUCTS: &[$crate::layout::StructLayout] = &[
            $($crate::layout::struct_table!(@layout $name $end [$($field: $ty),*]),)*
        ];

        $($crate::layout::struct_table!(@$kind $name $end [$($field: $ty),*]);)*

        #[cfg(target_pointer_width = "64")]
        const _: () = {
            $(
                ::static_assertions::const_assert_eq!(::core::mem::size_of::<$name>(), $size);
                ::static_assertions::const_assert_eq!(::core::mem::align_of::<$name>(), $align);
                $(::static_assertions::const_assert_eq!(::core::mem::offset_of!($name, $field), $offset);)*
            )*
        };
    };
    (@layout $name:ident $end:literal [$($field:ident: $ty:ty),*]) => {
        $crate::layout::StructLayout {
            name: stringify!($name),
            size: ::core::mem::size_of::<$name>(),
            struct_size: $crate::layout::last_end(&[$($crate::field_end::$name::$field),*]),
            fields: &[$(
                $crate::layout::FieldLayout {
                    name: stringify!($field),
                    ty: stringify!($ty),
                    offset: ::core::mem::offset_of!($name, $field),
                    end: $crate::field_end::$name::$field,
                },
            )*],
        }
    };
    (@sized $name:ident $end:literal [$($field:ident: $ty:ty),*]) => {
        // SAFETY: the struct is generated as `repr(C)`. The generator marks a struct as sized if its first field is
        // `struct_size: usize` or a `PJRT_Extension_Base`, which begins with it. Zero is a valid value of integers, raw
        // pointers, `Option`s of functions, `bool`s, and structs and unions of them, and there are no other fields.
        unsafe impl $crate::layout::SizedStruct for $name {
            const NAME: &'static str = stringify!($name);
            const STRUCT_SIZE: usize = Self::LAYOUT.struct_size;
            const LAYOUT: &'static $crate::layout::StructLayout =
                &$crate::layout::struct_table!(@layout $name $end [$($field: $ty),*]);
        }
        #[cfg(target_pointer_width = "64")]
        ::static_assertions::const_assert_eq!(<$name as $crate::layout::SizedStruct>::STRUCT_SIZE, $end);
    };
    (@plain $name:ident $end:literal [$($field:ident: $ty:ty),*]) => {};
}
pub(crate) use struct_table;

/// Returns the largest of the ends of fields.
pub(crate) const fn last_end(ends: &[usize]) -> usize {
    let mut last = 0;
    let mut index = 0;
    while index < ends.len() {
        if ends[index] > last {
            last = ends[index];
        }
        index += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn struct_sizes_are_those_that_current_hosts_send() {
        let expected = [
            (PJRT_Client_Create_Args::STRUCT_SIZE, 88),
            (PJRT_ExecuteOptions::STRUCT_SIZE, 160),
            (PJRT_Device_MemoryStats_Args::STRUCT_SIZE, 201),
            (PJRT_Executable_GetCompiledMemoryStats_Args::STRUCT_SIZE, 144),
            (PJRT_Executable_DeserializeAndLoad_Args::STRUCT_SIZE, 72),
            (PJRT_Client_CreateErrorBuffer_Args::STRUCT_SIZE, 120),
            (PJRT_Device_PoisonExecution_Args::STRUCT_SIZE, 72),
            (PJRT_Client_CreateViewOfDeviceBuffer_Args::STRUCT_SIZE, 112),
            (PJRT_Plugin_Attributes_Args::STRUCT_SIZE, 32),
            (PJRT_Buffer_MemoryLayout::STRUCT_SIZE, 76),
            (PJRT_ShapeSpec::STRUCT_SIZE, 36),
        ];
        for (actual, expected) in expected {
            assert_eq!(actual, expected);
        }
    }

    #[test]
    fn field_ends_are_the_sizes_of_the_versions_that_added_the_fields() {
        use field_end::PJRT_ExecuteOptions as options;
        assert_eq!(options::num_non_donatable_input_indices, 72);
        assert_eq!(options::context, 80);
        assert_eq!(options::call_location, 88);
        assert_eq!(options::incarnation_ids, 112);
        assert_eq!(options::multi_slice_config, 120);
        assert_eq!(options::use_major_to_minor_data_layout_for_callbacks, 121);
        assert_eq!(options::num_hlo_output_callbacks, 144);
        assert_eq!(options::num_custom_options, 160);
        assert_eq!(field_end::PJRT_Device_MemoryStats_Args::peak_pool_bytes_is_set, 185);
        assert_eq!(field_end::PJRT_Client_Create_Args::client, 72);
    }

    #[test]
    fn a_zeroed_struct_declares_the_end_of_its_last_field() {
        let args = PJRT_Device_MemoryStats_Args::zeroed();
        assert_eq!(args.struct_size, 201);
        assert!(args.device.is_null() && !args.peak_allocated_bytes_is_set);
    }

    #[test]
    fn fields_of_a_struct_ascend_without_overlap() {
        for layout in STRUCTS.iter().filter(|layout| !layout.name.ends_with("_Union")) {
            let mut end = 0;
            for field in layout.fields {
                assert!(field.offset >= end, "{}::{}", layout.name, field.name);
                end = field.end;
            }
            assert_eq!(end, layout.struct_size, "{}", layout.name);
            assert!(layout.struct_size <= layout.size, "{}", layout.name);
        }
    }
}
