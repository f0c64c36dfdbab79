//! The HostMemoryAllocator extension, which allocates host memory for fast transfers.

use std::ffi::{c_int, c_void};
use std::ptr;

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_HostMemoryAllocator, PJRT_HostMemoryAllocator_Allocate_Args,
    PJRT_HostMemoryAllocator_Extension, SizedStruct,
};

use crate::abi::args::{View, handle, input, output};
use crate::abi::client_state::ClientState;
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::core::panic_guard;
use crate::error::{Error, Result};

/// Allocates host memory for fast transfers to devices (`PJRT_HostMemoryAllocator_Extension`). See the
/// [example](crate::ext#example).
///
/// Without this extension, hosts allocate ordinary memory.
pub trait HostMemoryAllocator: PjrtClient {
    /// An allocation, which is freed on drop. Its address must not change until then.
    type HostMemory: AsMut<[u8]> + Send + 'static;

    /// Allocates at least `size` bytes, on a NUMA node if the host specifies one.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory.
    fn allocate_host_memory(&self, size: usize, numa_node: Option<usize>) -> Result<Self::HostMemory>;
}

pub(super) fn link<C: HostMemoryAllocator>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_HostMemoryAllocator_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_HostMemoryAllocator_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_HostMemoryAllocator,
            next,
        },
        allocate: Some(shim(allocate::<C>)),
    })
}

/// Allocates memory, which the deleter frees.
fn allocate<C: HostMemoryAllocator>(args: View<'_, PJRT_HostMemoryAllocator_Allocate_Args>) -> Result<()> {
    output!(args.ptr = ptr::null_mut());
    output!(args.deleter = Some(free::<C>));
    output!(args.deleter_arg = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let (size, node): (usize, c_int) = (input!(args.size), input!(args.numa_node));
    let memory = client.client.allocate_host_memory(size, usize::try_from(node).ok())?;
    let holder = Box::into_raw(Box::new(memory));
    // SAFETY: the memory was boxed above, and there is no other pointer to it.
    let bytes = unsafe { &mut *holder }.as_mut();
    if bytes.len() < size {
        let given = bytes.len();
        // SAFETY: as above; the bytes are not used afterwards.
        drop(unsafe { Box::from_raw(holder) });
        return Err(Error::internal(format!(
            "HostMemoryAllocator::allocate_host_memory returned {given} bytes; expected at least {size}"
        )));
    }
    output!(args.ptr = bytes.as_mut_ptr());
    output!(args.deleter_arg = holder.cast());
    Ok(())
}

/// Frees memory of `allocate`.
///
/// # Safety
///
/// `memory` is null or the `deleter_arg` of `allocate` for the same client type, and is not used afterwards.
unsafe extern "C" fn free<C: HostMemoryAllocator>(_: *mut c_void, memory: *mut c_void) {
    if !memory.is_null() {
        // SAFETY: this function's contract: it is the pointer of a box.
        let memory = unsafe { Box::from_raw(memory.cast::<C::HostMemory>()) };
        // A panic cannot be returned to the host; the panic hook has printed it.
        let _ = panic_guard::catch(|| {
            drop(memory);
            Ok(())
        });
    }
}
