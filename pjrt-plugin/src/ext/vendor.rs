//! Extensions of a vendor's own, which only the vendor's hosts know.

use std::sync::Arc;

use pjrt_sys::PJRT_Extension_Type;
pub use pjrt_sys::{PJRT_Buffer, PJRT_Client, PJRT_Error, PJRT_Executable, PJRT_Extension_Base};

use crate::abi::buffer::BufferHandle;
use crate::abi::client_state::ClientState;
use crate::abi::error::outcome_to_raw;
use crate::abi::executable::ExecutableState;
use crate::abi::handle;
use crate::client::PjrtClient;
use crate::core::panic_guard;
use crate::error::Result;

/// The numbers below are left to XLA, which gives them out one after the other.
pub const FIRST_TYPE: u32 = 1 << 16;

/// An extension that XLA does not know: a struct of functions that the vendor's own host looks for.
///
/// The functions are `unsafe extern "C"`, written by the vendor:
/// [`guarded`] turns what goes wrong in one into an error of the C API, panics too, and [`client`], [`storage`] and
/// [`executable`] lead from the host's handles to the author's own objects.
pub trait VendorExtension: PjrtClient {
    /// The functions, in a struct with `#[repr(C)]`. The host finds them right behind a `PJRT_Extension_Base`.
    type Functions: Copy + Send + Sync + 'static;

    /// The number by which the host finds the extension, from [`FIRST_TYPE`] on. A lower one does not compile.
    const TYPE: u32;

    /// The functions.
    const FUNCTIONS: Self::Functions;
}

/// What the host finds.
#[repr(C)]
struct Whole<F> {
    base: PJRT_Extension_Base,
    functions: F,
}

pub(super) fn link<C: VendorExtension>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    const { assert!(C::TYPE >= FIRST_TYPE, "the numbers below FIRST_TYPE are XLA's") };
    super::leak(Whole {
        base: PJRT_Extension_Base {
            struct_size: size_of::<Whole<C::Functions>>(),
            type_: PJRT_Extension_Type(C::TYPE),
            next,
        },
        functions: C::FUNCTIONS,
    })
}

/// Runs the body of a function of the extension; what it returns is null or an error, which names the function. A panic is an
/// error, too.
pub fn guarded(function: &'static str, body: impl FnOnce() -> Result<()>) -> *mut PJRT_Error {
    outcome_to_raw(panic_guard::catch(body).map_err(|error| error.in_function(function)))
}

/// The author's client behind a handle of the host.
///
/// # Errors
///
/// INVALID_ARGUMENT for a null pointer; in debug builds for any that is no client.
///
/// # Safety
///
/// `client` is null or a client of this plugin, which lives for `'a`.
pub unsafe fn client<'a, C: PjrtClient>(client: *const PJRT_Client) -> Result<&'a C> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<ClientState<C>>(client, "client") }.map(|state| &state.client)
}

/// The author's compiled program behind a handle of the host.
///
/// # Errors
///
/// As for [`client`].
///
/// # Safety
///
/// `executable` is null or an executable of this plugin, which lives for `'a`.
pub unsafe fn executable<'a, C: PjrtClient>(
    executable: *const PJRT_Executable,
) -> Result<&'a Arc<C::Executable>> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<ExecutableState<C>>(executable, "executable") }.map(|state| &state.executable)
}

/// The author's storage behind a buffer of the host, waiting until there is some.
///
/// # Errors
///
/// INVALID_ARGUMENT as for [`client`], and for a buffer that is deleted or donated; the error of a buffer that has one.
///
/// # Safety
///
/// `buffer` is null or a buffer of this plugin, which lives during the call.
pub unsafe fn storage<C: PjrtClient>(buffer: *const PJRT_Buffer) -> Result<Arc<C::Buffer>> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<BufferHandle<C>>(buffer, "buffer") }?.state.wait_for_storage()
}
