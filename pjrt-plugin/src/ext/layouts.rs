//! The Layouts extension, which returns the layouts of buffers, parameters and outputs.
//!
//! Without it, hosts determine the layouts of parameters and outputs by converting the optimized program to HLO, which takes
//! longer than the compilation of most programs.

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_Layouts, PJRT_Layouts_Extension,
    PJRT_Layouts_MemoryLayout_Destroy_Args, PJRT_Layouts_MemoryLayout_Serialize_Args,
    PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args,
    PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args,
    PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args,
    SizedStruct,
};

use crate::abi::args::{View, handle, input, output, output_slice, slice};
use crate::abi::buffer::BufferHandle;
use crate::abi::c_arrays::{delete_serialized, serialized};
use crate::abi::client_state::ClientState;
use crate::abi::executable::ExecutableState;
use crate::abi::guard::shim;
use crate::abi::handle;
use crate::abi::topology::TopologyHandle;
use crate::client::PjrtClient;
use crate::error::Result;
use crate::layout::Layout;

/// Prepends the extension to a linked list.
pub(super) fn link<C: PjrtClient>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_Layouts_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Layouts_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Layouts,
            next,
        },
        PJRT_Layouts_MemoryLayout_Destroy: Some(shim(memory_layout_destroy::<C>)),
        PJRT_Layouts_MemoryLayout_Serialize: Some(shim(memory_layout_serialize::<C>)),
        PJRT_Layouts_PJRT_Client_GetDefaultLayout: Some(shim(client_get_default_layout::<C>)),
        PJRT_Layouts_PJRT_Buffer_MemoryLayout: Some(shim(buffer_memory_layout::<C>)),
        PJRT_Layouts_PJRT_Topology_GetDefaultLayout: Some(shim(topology_get_default_layout::<C>)),
        PJRT_Layouts_PJRT_Executable_GetOutputLayouts: Some(shim(executable_get_output_layouts::<C>)),
        PJRT_Layouts_PJRT_Executable_GetParameterLayouts: Some(shim(executable_get_parameter_layouts::<C>)),
    })
}

/// Frees a layout that the host owns.
fn memory_layout_destroy<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_MemoryLayout_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the layout, which came from one of the functions below.
    drop(unsafe { handle::from_raw::<Layout>(input!(args.layout), "layout") }?);
    Ok(())
}

/// Serializes a layout in XLA's syntax, such as `{1,0}`.
fn memory_layout_serialize<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_MemoryLayout_Serialize_Args>,
) -> Result<()> {
    let layout = handle!(args.layout: Layout)?;
    let (bytes, size, holder) = serialized(layout.to_string().into_bytes());
    output!(args.serialized_bytes = bytes);
    output!(args.serialized_bytes_size = size);
    output!(args.serialized_layout = holder);
    output!(args.serialized_layout_deleter = Some(delete_serialized));
    Ok(())
}

/// Returns the layout of an array for which the host requests none.
fn client_get_default_layout<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args>,
) -> Result<()> {
    handle!(args.client: ClientState<C>)?;
    let dims = slice!(args.dims as i64, num_dims)?;
    output!(args.layout = handle::into_raw(Layout::row_major(dims.len())));
    Ok(())
}

/// Returns the layout of an array for which the host requests none, without a client.
fn topology_get_default_layout<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args>,
) -> Result<()> {
    handle!(args.topology_description: TopologyHandle)?;
    let dims = slice!(args.dims as i64, num_dims)?;
    output!(args.layout = handle::into_raw(Layout::row_major(dims.len())));
    Ok(())
}

/// Returns the layout of a buffer.
fn buffer_memory_layout<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>,
) -> Result<()> {
    let buffer = handle!(args.buffer: BufferHandle<C>)?;
    output!(args.layout = handle::into_raw(Layout::row_major(buffer.shape.dims().len())));
    Ok(())
}

/// Returns the layouts of a program's outputs, which the program owns.
fn executable_get_output_layouts<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output_slice!(args.layouts, num_outputs = &executable.outputs.layouts().pointers());
    Ok(())
}

/// Returns the layouts of a program's parameters, which the program owns.
fn executable_get_parameter_layouts<C: PjrtClient>(
    args: View<'_, PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    output_slice!(args.layouts, num_parameters = &executable.parameters.layouts().pointers());
    Ok(())
}
