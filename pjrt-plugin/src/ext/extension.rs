//! The extensions of a client, found by the traits that it implements.

use std::marker::PhantomData;
use std::ptr;

use pjrt_sys::PJRT_Extension_Base;

use super::*;
use crate::client::PjrtClient;

/// Calls a macro with the extensions that a client can implement.
///
/// `__for_each_extension!([my_macro] arguments)` becomes `my_macro! { arguments; ... }` with a constant, a module and a
/// trait for each extension.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_extension {
    ([$($then:tt)*] $($arguments:tt)*) => {
        $($then)*! {
            $($arguments)*;
            CALLBACKS callbacks Callbacks,
            CROSS_HOST_TRANSFERS cross_host CrossHostTransfers,
            CUSTOM_PARTITIONERS custom_partitioner CustomPartitioners,
            EXECUTABLE_METADATA executable_metadata ExecutableMetadata,
            FFI ffi Ffi,
            HOST_MEMORY_ALLOCATOR host_memory_allocator HostMemoryAllocator,
            PHASE_COMPILE phase_compile PhaseCompile,
            PROFILER profiler Profiler,
            RAW_BUFFERS raw_buffers RawBuffers,
            SHARDINGS shardings Shardings,
            VENDOR vendor VendorExtension,
        }
    };
}

/// An extension that a client implements.
///
/// It has a constant for each extension. Where `C` is a concrete type, the constant is `Some` if `C` implements the
/// extension's trait, because an inherent constant takes precedence over that of [`NotImplemented`].
pub struct Extension<C> {
    /// Creates the extension's struct, which lives as long as the process, and prepends it to a linked list.
    link: fn(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base,
    client: PhantomData<fn(C)>,
}

macro_rules! constants {
    (; $($name:ident $module:ident $extension:ident,)*) => {
        $(
            impl<C: $extension> Extension<C> {
                #[doc = concat!("The extension of [`", stringify!($extension), "`].")]
                pub const $name: Option<Self> = Some(Self { link: $module::link::<C>, client: PhantomData });
            }
        )*

        /// The constants of [`Extension`] for a client that does not implement the traits.
        pub trait NotImplemented: Sized {
            $(
                #[doc = concat!("No extension of [`", stringify!($extension), "`].")]
                const $name: Option<Self> = None;
            )*
        }
    };
}
__for_each_extension!([constants]);

impl<C> NotImplemented for Extension<C> {}

/// Expands to an array with an `Option<Extension<C>>` for each extension. The client must be a concrete type.
#[doc(hidden)]
#[macro_export]
macro_rules! __extensions {
    ($client:ty; $($name:ident $module:ident $extension:ident,)*) => {{
        use $crate::__private::NotImplemented as _;
        [$($crate::__private::Extension::<$client>::$name),*]
    }};
}

/// Creates a client's linked list of extensions: those of every plugin, and those that the client implements. Returns its
/// head.
pub(super) fn chain<C: PjrtClient>(extensions: &[Option<Extension<C>>]) -> *mut PJRT_Extension_Base {
    let always = memory_descriptions::link::<C>(layouts::link::<C>(ptr::null_mut()));
    extensions.iter().flatten().fold(always, |next, extension| (extension.link)(next))
}
