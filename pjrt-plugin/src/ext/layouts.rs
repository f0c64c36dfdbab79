//! The Layouts extension: how the elements of buffers, parameters and outputs follow each other.
//!
//! Without it hosts find out the layouts of parameters and outputs by converting the optimized program to HLO, which takes
//! them longer than most programs take to compile.

use pjrt_sys::{PJRT_Extension_Base, PJRT_Extension_Type_Layouts, PJRT_Layouts_Extension, SizedStruct};

use crate::abi::args::{handle, input, output, output_slice, slice};
use crate::abi::buffer::BufferHandle;
use crate::abi::c_arrays::{delete_serialized, serialized};
use crate::abi::client_state::ClientState;
use crate::abi::executable::ExecutableState;
use crate::abi::guard::shims;
use crate::abi::handle;
use crate::abi::topology::TopologyHandle;
use crate::client::PjrtClient;
use crate::layout::Layout;

/// The extension in front of a chain.
pub(super) fn link<C: PjrtClient>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_Layouts_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Layouts_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Layouts,
            next,
        },
        PJRT_Layouts_MemoryLayout_Destroy: Some(memory_layout_destroy::<C>),
        PJRT_Layouts_MemoryLayout_Serialize: Some(memory_layout_serialize::<C>),
        PJRT_Layouts_PJRT_Client_GetDefaultLayout: Some(client_get_default_layout::<C>),
        PJRT_Layouts_PJRT_Buffer_MemoryLayout: Some(buffer_memory_layout::<C>),
        PJRT_Layouts_PJRT_Topology_GetDefaultLayout: Some(topology_get_default_layout::<C>),
        PJRT_Layouts_PJRT_Executable_GetOutputLayouts: Some(executable_get_output_layouts::<C>),
        PJRT_Layouts_PJRT_Executable_GetParameterLayouts: Some(executable_get_parameter_layouts::<C>),
    })
}

shims! {
    /// Frees a layout that the host owns.
    memory_layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args) |args, C| {
        // SAFETY: the host gives the layout up, which came from one of the functions below.
        drop(unsafe { handle::from_raw::<Layout>(input!(args.layout), "layout") }?);
        Ok(())
    }

    /// XLA's text of a layout, such as `{1,0}`.
    memory_layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args) |args, C| {
        let layout = handle!(args.layout: Layout)?;
        let (bytes, size, holder) = serialized(layout.to_string().into_bytes());
        output!(args.serialized_bytes = bytes);
        output!(args.serialized_bytes_size = size);
        output!(args.serialized_layout = holder);
        output!(args.serialized_layout_deleter = Some(delete_serialized));
        Ok(())
    }

    /// The layout of an array for which the host asks for none.
    client_get_default_layout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args) |args, C| {
        handle!(args.client: ClientState<C>)?;
        let dims = slice!(args.dims as i64, num_dims)?;
        output!(args.layout = handle::into_raw(Layout::row_major(dims.len())));
        Ok(())
    }

    /// The same before there is a client.
    topology_get_default_layout(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args) |args, C| {
        handle!(args.topology_description: TopologyHandle)?;
        let dims = slice!(args.dims as i64, num_dims)?;
        output!(args.layout = handle::into_raw(Layout::row_major(dims.len())));
        Ok(())
    }

    /// The layout of a buffer.
    buffer_memory_layout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args) |args, C| {
        let buffer = handle!(args.buffer: BufferHandle<C>)?;
        output!(args.layout = handle::into_raw(Layout::row_major(buffer.shape.dims().len())));
        Ok(())
    }

    /// The layouts of a program's outputs, which the program keeps.
    executable_get_output_layouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args) |args, C| {
        let executable = handle!(args.executable: ExecutableState<C>)?;
        output_slice!(args.layouts, num_outputs = &executable.outputs.layouts().pointers());
        Ok(())
    }

    /// The layouts of a program's parameters, which the program keeps.
    executable_get_parameter_layouts(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args) |args, C| {
        let executable = handle!(args.executable: ExecutableState<C>)?;
        output_slice!(args.layouts, num_parameters = &executable.parameters.layouts().pointers());
        Ok(())
    }
}
