//! Extensions of a vendor, which only the vendor's hosts know. See the [example](crate::ext#example).

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

/// The smallest number of a vendor's extension. XLA assigns the numbers below it.
pub const FIRST_TYPE: u32 = 1 << 16;

/// An extension of a vendor: a struct of functions that the vendor's host looks for. See the [example](crate::ext#example).
///
/// The author writes the functions, which are `unsafe extern "C"`. [`guarded`] converts their errors and panics to errors of
/// the C API. [`client`], [`storage`] and [`executable`] convert the host's handles to the author's objects.
pub trait VendorExtension: PjrtClient {
    /// The struct of the functions, with `#[repr(C)]`. The host finds it directly after a `PJRT_Extension_Base`.
    type Functions: Copy + Send + Sync + 'static;

    /// The number by which the host finds the extension. It must be at least [`FIRST_TYPE`], which is checked at compile
    /// time.
    const TYPE: u32;

    /// The functions.
    const FUNCTIONS: Self::Functions;
}

/// The struct of the extension that the host finds.
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

/// Runs the body of a function of the extension. Returns null or an error, which names the function. A panic is converted to
/// an error.
pub fn guarded(function: &'static str, body: impl FnOnce() -> Result<()>) -> *mut PJRT_Error {
    outcome_to_raw(panic_guard::catch(body).map_err(|error| error.in_function(function)))
}

/// Returns the author's client for a handle of the host.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the pointer is null, and in debug builds if it is not a live client.
///
/// # Safety
///
/// `client` is null or a client of this plugin that lives for `'a`.
pub unsafe fn client<'a, C: PjrtClient>(client: *const PJRT_Client) -> Result<&'a C> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<ClientState<C>>(client, "client") }.map(|state| &state.client)
}

/// Returns the author's compiled program for a handle of the host.
///
/// # Errors
///
/// Returns the same errors as [`client`].
///
/// # Safety
///
/// `executable` is null or an executable of this plugin that lives for `'a`.
pub unsafe fn executable<'a, C: PjrtClient>(
    executable: *const PJRT_Executable,
) -> Result<&'a Arc<C::Executable>> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<ExecutableState<C>>(executable, "executable") }.map(|state| &state.executable)
}

/// Waits until a buffer of the host has storage, and returns the author's storage.
///
/// # Errors
///
/// Returns the same errors as [`client`], INVALID_ARGUMENT if the buffer is deleted or donated, or the error of the buffer.
///
/// # Safety
///
/// `buffer` is null or a buffer of this plugin that lives during the call.
pub unsafe fn storage<C: PjrtClient>(buffer: *const PJRT_Buffer) -> Result<Arc<C::Buffer>> {
    // SAFETY: this function's contract.
    unsafe { handle::borrow::<BufferHandle<C>>(buffer, "buffer") }?.state.wait_for_storage()
}
