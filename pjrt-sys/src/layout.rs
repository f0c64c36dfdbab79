//! The layout of the interface's structs as data: what each field's end is, so that a plugin can tell which fields a
//! host of another version has.

/// Where one field of a struct lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLayout {
    /// The field's name in the C header.
    pub name: &'static str,
    /// Its Rust type in this crate.
    pub ty: &'static str,
    /// Its first byte, counted from the start of the struct.
    pub offset: usize,
    /// The byte after its last: the smallest `struct_size` with which a struct has this field.
    pub end: usize,
}

/// How one struct or union of the interface lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructLayout {
    /// The name in the C header.
    pub name: &'static str,
    /// `size_of` the struct, tail padding included.
    pub size: usize,
    /// The end of its last field: the C header's `X_STRUCT_SIZE`.
    pub struct_size: usize,
    /// The fields, in order.
    pub fields: &'static [FieldLayout],
}

impl StructLayout {
    /// The field of this name, if the struct has it.
    pub fn field(&self, name: &str) -> Option<&'static FieldLayout> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A struct that begins with its own size (extension structs through their base).
///
/// The size says which version of the struct its writer was compiled with; fields that end after it do not exist
/// (see [`field_end`](crate::field_end)).
///
/// # Safety
///
/// The type is `repr(C)`, its first `size_of::<usize>()` bytes are a `usize` that holds the size, and all its bytes
/// zero is a valid value.
pub unsafe trait SizedStruct: Copy {
    /// The name in the C header.
    const NAME: &'static str;
    /// What a writer compiled with this version puts into `struct_size`: the end of the last field (which can be less than
    /// `size_of`, because tail padding does not count).
    const STRUCT_SIZE: usize;
    /// The layout as data.
    const LAYOUT: &'static StructLayout;

    /// A struct that is all zero except for its size, ready for a caller to fill in.
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

/// Expands the generated list of structs into [`field_end`](crate::field_end), [`STRUCTS`](crate::STRUCTS), the
/// [`SizedStruct`] implementations and the assertions that rustc's layout is clang's.
macro_rules! struct_table {
    ($($kind:ident $name:ident [size $size:literal, align $align:literal, end $end:literal] {
        $($field:ident @ $offset:literal : $ty:ty,)*
    })*) => {
        /// For every field of every struct, the smallest `struct_size` that holds it.
        ///
        /// One module per struct, one constant per field: a host that passes `PJRT_ExecuteOptions` has the field
        /// `call_location` if `struct_size >= field_end::PJRT_ExecuteOptions::call_location`.
        #[allow(non_snake_case, non_upper_case_globals, reason = "modules and constants are named as the structs and fields are")]
        pub mod field_end {
            $(
                #[doc = concat!("Ends of the fields of [`", stringify!($name), "`](crate::", stringify!($name), ").")]
                pub mod $name {
                    #[allow(unused_imports, reason = "a struct may have fields of basic types only")]
                    use crate::bindings::*;
                    $(
                        #[doc = concat!("The smallest `struct_size` with which the struct has `", stringify!($field), "`.")]
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
        // SAFETY: the struct is generated as `repr(C)`; the generator calls a struct sized when its first field is
        // `struct_size: usize` or a `PJRT_Extension_Base`, which starts with one; integers, raw pointers, `Option`s of
        // functions, `bool`s and structs and unions of them are valid when zero, and the interface has no other fields.
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

/// The largest of some field ends.
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
