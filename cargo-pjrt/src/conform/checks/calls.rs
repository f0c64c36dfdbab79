//! A valid call of each function, for rules that apply to all functions.

use crate::conform::harness::{Context, add_program, any_error, compile_add, upload_four};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Client, Code, CopyLayout, ElementType, Error, Event, HostMemory, Layout, Plugin, Program, Topology,
    TransferManager, ViewMemory,
};

/// Calls one function of a plugin, and the functions that this call depends on.
pub(super) type Call = fn(&Objects<'_>) -> Result<(), Error>;

/// The objects that calls use.
pub(super) struct Objects<'a> {
    pub(super) plugin: Plugin,
    pub(super) client: &'a Client,
    pub(super) context: &'a Context,
}

/// The functions, the calls of them, and the sizes of their structs in older versions.
pub(super) const CALLS: &[(&str, Call, &[usize])] = &[
    ("PJRT_Error_Message", fail, &[]),
    ("PJRT_Error_GetCode", fail, &[]),
    ("PJRT_Error_Destroy", fail, &[]),
    ("PJRT_Error_ForEachPayload", fail, &[]),
    ("PJRT_Plugin_Initialize", |o| o.plugin.initialize(), &[]),
    ("PJRT_Plugin_Attributes", |o| o.plugin.attributes().map(drop), &[]),
    ("PJRT_Event_Destroy", |o| upload_four(o.client, &[1.0; 4])?.ready().map(drop), &[]),
    ("PJRT_Event_IsReady", |o| upload_four(o.client, &[1.0; 4])?.ready()?.is_ready().map(drop), &[]),
    (
        "PJRT_Event_Error",
        |o| {
            let e = upload_four(o.client, &[1.0; 4])?.ready()?;
            e.wait()?;
            e.error()
        },
        &[],
    ),
    ("PJRT_Event_Await", |o| upload_four(o.client, &[1.0; 4])?.ready()?.wait(), &[]),
    ("PJRT_Event_OnReady", |o| upload_four(o.client, &[1.0; 4])?.ready()?.on_ready().map(drop), &[]),
    ("PJRT_Event_Create", |o| Event::create(o.plugin).map(drop), &[]),
    ("PJRT_Event_Set", |o| Event::create(o.plugin)?.set(Code::OK, ""), &[]),
    ("PJRT_Client_Create", |o| o.context.client().map(drop), &[72]),
    ("PJRT_Client_Destroy", |o| o.context.client().map(drop), &[]),
    ("PJRT_Client_PlatformName", |o| o.client.platform_name().map(drop), &[]),
    ("PJRT_Client_PlatformVersion", |o| o.client.platform_version().map(drop), &[]),
    ("PJRT_Client_ProcessIndex", |o| o.client.process_index().map(drop), &[]),
    ("PJRT_Client_Devices", |o| o.client.devices().map(drop), &[]),
    ("PJRT_Client_AddressableDevices", |o| o.client.addressable_devices().map(drop), &[]),
    ("PJRT_Client_AddressableMemories", |o| o.client.memories().map(drop), &[]),
    (
        "PJRT_Client_LookupDevice",
        |o| o.client.lookup_device(o.client.device()?.description()?.id()?).map(drop),
        &[],
    ),
    ("PJRT_Client_DefaultDeviceAssignment", |o| o.client.default_assignment(1, 1, 1).map(drop), &[]),
    ("PJRT_Client_TopologyDescription", |o| o.client.topology().map(drop), &[]),
    ("PJRT_Client_Compile", |o| compile_add(o.client).map(drop), &[]),
    ("PJRT_Client_BufferFromHostBuffer", |o| upload_four(o.client, &[1.0; 4]).map(drop), &[]),
    (
        "PJRT_Client_CreateViewOfDeviceBuffer",
        |o| o.client.view(&ViewMemory::new(&[0; 16]), ElementType::F32, &[4], o.client.device()?).map(drop),
        &[104],
    ),
    (
        "PJRT_Client_CreateErrorBuffer",
        |o| {
            o.client
                .error_buffer(
                    (Code::INTERNAL, "x"),
                    ElementType::F32,
                    &[4],
                    o.client.device()?.default_memory()?,
                )
                .map(drop)
        },
        &[96, 112],
    ),
    (
        "PJRT_Client_CreateUninitializedBuffer",
        |o| o.client.uninitialized(ElementType::F32, &[4], o.client.device()?.default_memory()?).map(drop),
        &[],
    ),
    (
        "PJRT_Client_CreateAliasBuffer",
        |o| {
            let (_alias, handle) =
                o.client.alias(ElementType::F32, &[4], o.client.device()?.default_memory()?)?;
            o.client.fulfill(handle, Err((Code::ABORTED, "x")))
        },
        &[],
    ),
    ("PJRT_Client_UpdateGlobalProcessInfo", |o| o.client.update_process_info(0), &[]),
    ("PJRT_DeviceDescription_Id", |o| o.client.device()?.description()?.id().map(drop), &[]),
    (
        "PJRT_DeviceDescription_ProcessIndex",
        |o| o.client.device()?.description()?.process_index().map(drop),
        &[],
    ),
    ("PJRT_DeviceDescription_Attributes", |o| o.client.device()?.description()?.attributes().map(drop), &[]),
    ("PJRT_DeviceDescription_Kind", |o| o.client.device()?.description()?.kind().map(drop), &[]),
    (
        "PJRT_DeviceDescription_DebugString",
        |o| o.client.device()?.description()?.debug_string().map(drop),
        &[],
    ),
    ("PJRT_DeviceDescription_ToString", |o| o.client.device()?.description()?.to_text().map(drop), &[]),
    ("PJRT_Device_GetDescription", |o| o.client.device()?.description().map(drop), &[]),
    ("PJRT_Device_IsAddressable", |o| o.client.device()?.is_addressable().map(drop), &[]),
    ("PJRT_Device_LocalHardwareId", |o| o.client.device()?.local_hardware_id().map(drop), &[]),
    ("PJRT_Device_AddressableMemories", |o| o.client.device()?.memories().map(drop), &[]),
    ("PJRT_Device_DefaultMemory", |o| o.client.device()?.default_memory().map(drop), &[]),
    ("PJRT_Device_MemoryStats", |o| o.client.device()?.memory_stats().map(drop), &[185]),
    ("PJRT_Device_ClearMemoryStats", |o| o.client.device()?.clear_memory_stats(), &[]),
    ("PJRT_Device_PoisonExecution", |o| o.client.device()?.poison_execution(77, "x").map(drop), &[49]),
    ("PJRT_Device_GetAttributes", |o| o.client.device()?.attributes().map(drop), &[]),
    ("PJRT_Memory_Id", |o| o.client.device()?.default_memory()?.id().map(drop), &[]),
    ("PJRT_Memory_Kind", |o| o.client.device()?.default_memory()?.kind().map(drop), &[]),
    ("PJRT_Memory_Kind_Id", |o| o.client.device()?.default_memory()?.kind_id().map(drop), &[]),
    ("PJRT_Memory_AddressableByDevices", |o| o.client.device()?.default_memory()?.devices().map(drop), &[]),
    ("PJRT_Executable_Destroy", |o| compile_add(o.client)?.executable().map(drop), &[]),
    ("PJRT_Executable_Name", |o| compile_add(o.client)?.executable()?.name().map(drop), &[]),
    ("PJRT_Executable_NumOutputs", |o| compile_add(o.client)?.executable()?.num_outputs().map(drop), &[]),
    (
        "PJRT_Executable_GetCostAnalysis",
        |o| compile_add(o.client)?.executable()?.cost_analysis().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_GetCompiledMemoryStats",
        |o| compile_add(o.client)?.executable()?.memory_stats().map(drop),
        &[104, 112, 120],
    ),
    (
        "PJRT_Executable_OutputElementTypes",
        |o| compile_add(o.client)?.executable()?.output_types().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_OutputDimensions",
        |o| compile_add(o.client)?.executable()?.output_dims().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_OutputMemoryKinds",
        |o| compile_add(o.client)?.executable()?.output_memory_kinds().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_OptimizedProgram",
        |o| compile_add(o.client)?.executable()?.optimized_program().map(drop),
        &[],
    ),
    ("PJRT_Executable_Serialize", |o| compile_add(o.client)?.executable()?.serialize().map(drop), &[]),
    ("PJRT_Executable_Fingerprint", |o| compile_add(o.client)?.executable()?.fingerprint().map(drop), &[]),
    (
        "PJRT_Executable_DeserializeAndLoad",
        |o| o.client.deserialize(&compile_add(o.client)?.executable()?.serialize()?.bytes).map(drop),
        &[48, 64],
    ),
    ("PJRT_LoadedExecutable_Destroy", |o| compile_add(o.client).map(drop), &[]),
    ("PJRT_LoadedExecutable_GetExecutable", |o| compile_add(o.client)?.executable().map(drop), &[]),
    ("PJRT_LoadedExecutable_AddressableDevices", |o| compile_add(o.client)?.devices().map(drop), &[]),
    (
        "PJRT_LoadedExecutable_GetDeviceAssignment",
        |o| compile_add(o.client)?.device_assignment().map(drop),
        &[],
    ),
    (
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
        |o| compile_add(o.client)?.logical_ids().map(drop),
        &[],
    ),
    ("PJRT_LoadedExecutable_Delete", |o| compile_add(o.client)?.delete(), &[]),
    ("PJRT_LoadedExecutable_IsDeleted", |o| compile_add(o.client)?.is_deleted().map(drop), &[]),
    (
        "PJRT_LoadedExecutable_Execute",
        |o| {
            let x = upload_four(o.client, &[1.0; 4])?;
            compile_add(o.client)?.run(&[&x, &x]).map(drop)
        },
        &[],
    ),
    (
        "PJRT_Compile",
        |o| {
            o.client
                .compile_ahead(
                    &o.client.topology()?,
                    &Program::mlir(&add_program("4x")),
                    &CompileOptions::default().encode(),
                )
                .map(drop)
        },
        &[],
    ),
    ("PJRT_Buffer_Destroy", |o| upload_four(o.client, &[1.0; 4]).map(drop), &[]),
    ("PJRT_Buffer_ElementType", |o| upload_four(o.client, &[1.0; 4])?.element_type().map(drop), &[]),
    ("PJRT_Buffer_Dimensions", |o| upload_four(o.client, &[1.0; 4])?.dims().map(drop), &[]),
    ("PJRT_Buffer_UnpaddedDimensions", |o| upload_four(o.client, &[1.0; 4])?.unpadded_dims().map(drop), &[]),
    (
        "PJRT_Buffer_DynamicDimensionIndices",
        |o| upload_four(o.client, &[1.0; 4])?.dynamic_dims().map(drop),
        &[],
    ),
    ("PJRT_Buffer_GetMemoryLayout", |o| upload_four(o.client, &[1.0; 4])?.memory_layout().map(drop), &[]),
    (
        "PJRT_Buffer_OnDeviceSizeInBytes",
        |o| upload_four(o.client, &[1.0; 4])?.on_device_size().map(drop),
        &[],
    ),
    ("PJRT_Buffer_Device", |o| upload_four(o.client, &[1.0; 4])?.device().map(drop), &[]),
    ("PJRT_Buffer_Memory", |o| upload_four(o.client, &[1.0; 4])?.memory().map(drop), &[]),
    ("PJRT_Buffer_Delete", |o| upload_four(o.client, &[1.0; 4])?.delete(), &[]),
    ("PJRT_Buffer_IsDeleted", |o| upload_four(o.client, &[1.0; 4])?.is_deleted().map(drop), &[]),
    (
        "PJRT_Buffer_ToHostBuffer",
        |o| upload_four(o.client, &[1.0; 4])?.read_into(16, &CopyLayout::Unsaid).map(drop),
        &[],
    ),
    ("PJRT_Buffer_CopyRawToHost", |o| upload_four(o.client, &[1.0; 4])?.read_raw(0, 16)?.map(drop), &[]),
    (
        "PJRT_Buffer_CopyToMemory",
        |o| upload_four(o.client, &[1.0; 4])?.copy_to_memory(o.client.device()?.default_memory()?).map(drop),
        &[],
    ),
    ("PJRT_Buffer_IsOnCpu", |o| upload_four(o.client, &[1.0; 4])?.is_on_cpu().map(drop), &[]),
    ("PJRT_Buffer_ReadyEvent", |o| upload_four(o.client, &[1.0; 4])?.ready().map(drop), &[]),
    ("PJRT_Buffer_UnsafePointer", |o| upload_four(o.client, &[1.0; 4])?.unsafe_pointer().map(drop), &[]),
    (
        "PJRT_Client_LookupAddressableDevice",
        |o| o.client.lookup_addressable_device(o.client.device()?.local_hardware_id()?).map(drop),
        &[],
    ),
    (
        "PJRT_Client_Load",
        |o| {
            let (program, options) = (add_program("4x"), CompileOptions::default().encode());
            let topology = o.client.topology()?;
            o.client.load(&o.client.compile_ahead(&topology, &Program::mlir(&program), &options)?).map(drop)
        },
        &[],
    ),
    ("PJRT_Client_DmaMap", |o| o.client.map_and_unmap(&HostMemory::new(&[0; 4096], 0)), &[]),
    ("PJRT_Client_DmaUnmap", |o| o.client.map_and_unmap(&HostMemory::new(&[0; 4096], 0)), &[]),
    ("PJRT_Client_CreateBuffersForAsyncHostToDevice", |o| manager(o.client).map(drop), &[]),
    ("PJRT_Device_CreateAsyncTrackingEvent", |o| o.client.device()?.track("a check"), &[]),
    ("PJRT_Memory_DebugString", |o| o.client.device()?.default_memory()?.debug_string().map(drop), &[]),
    ("PJRT_Memory_ToString", |o| o.client.device()?.default_memory()?.to_text().map(drop), &[]),
    ("PJRT_ExecuteContext_Create", |o| o.plugin.create_and_destroy_context(), &[]),
    ("PJRT_ExecuteContext_Destroy", |o| o.plugin.create_and_destroy_context(), &[]),
    (
        "PJRT_AsyncHostToDeviceTransferManager_BufferCount",
        |o| manager(o.client)?.buffer_count().map(drop),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_BufferSize",
        |o| manager(o.client)?.buffer_size(0).map(drop),
        &[],
    ),
    ("PJRT_AsyncHostToDeviceTransferManager_Device", |o| manager(o.client)?.device().map(drop), &[]),
    (
        "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer",
        |o| manager(o.client)?.retrieve(0).map(drop),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_TransferData",
        |o| manager(o.client)?.write(0, &[1; 16], 0, true)?.wait(),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral",
        |o| manager(o.client)?.write_array(0, &[1; 16], ElementType::F32, &[4], &Layout::dense(1))?.wait(),
        &[],
    ),
    ("PJRT_Executable_NumReplicas", |o| compile_add(o.client)?.executable()?.num_replicas().map(drop), &[]),
    (
        "PJRT_Executable_NumPartitions",
        |o| compile_add(o.client)?.executable()?.num_partitions().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_SizeOfGeneratedCodeInBytes",
        |o| compile_add(o.client)?.executable()?.code_size().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_ParameterMemoryKinds",
        |o| compile_add(o.client)?.executable()?.parameter_memory_kinds().map(drop),
        &[],
    ),
    (
        "PJRT_Executable_GetCompileOptions",
        |o| compile_add(o.client)?.executable()?.compile_options().map(drop),
        &[],
    ),
    ("PJRT_LoadedExecutable_Fingerprint", |o| compile_add(o.client)?.fingerprint().map(drop), &[]),
    (
        "PJRT_Buffer_CopyRawToHostFuture",
        |o| upload_four(o.client, &[1.0; 4])?.read_raw_later(0, 16)?.finish().map(drop),
        &[],
    ),
    (
        "PJRT_Buffer_Bitcast",
        |o| upload_four(o.client, &[1.0; 4])?.bitcast(ElementType::S32, &[4]).map(drop),
        &[],
    ),
    (
        "PJRT_Buffer_IncreaseExternalReferenceCount",
        |o| {
            let x = upload_four(o.client, &[1.0; 4])?;
            x.hold()?;
            x.release()
        },
        &[],
    ),
    (
        "PJRT_Buffer_DecreaseExternalReferenceCount",
        |o| {
            let x = upload_four(o.client, &[1.0; 4])?;
            x.hold()?;
            x.release()
        },
        &[],
    ),
    (
        "PJRT_Buffer_OpaqueDeviceMemoryDataPointer",
        |o| {
            let x = upload_four(o.client, &[1.0; 4])?;
            x.hold()?;
            x.opaque_pointer()?;
            x.release()
        },
        &[],
    ),
    (
        "PJRT_Buffer_DonateWithControlDependency",
        |o| {
            let (_new, dependency) = upload_four(o.client, &[1.0; 4])?.donate()?;
            dependency.finish(Ok(()));
            Ok(())
        },
        &[],
    ),
    ("PJRT_TopologyDescription_PlatformName", |o| o.client.topology()?.platform_name().map(drop), &[]),
    ("PJRT_TopologyDescription_PlatformVersion", |o| o.client.topology()?.platform_version().map(drop), &[]),
    ("PJRT_TopologyDescription_GetDeviceDescriptions", |o| o.client.topology()?.devices().map(drop), &[]),
    ("PJRT_TopologyDescription_Serialize", |o| o.client.topology()?.serialize().map(drop), &[]),
    (
        "PJRT_TopologyDescription_Deserialize",
        |o| Topology::deserialize(o.plugin, &o.client.topology()?.serialize()?.0).map(drop),
        &[],
    ),
    ("PJRT_TopologyDescription_Attributes", |o| o.client.topology()?.attributes().map(drop), &[]),
    (
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",
        |o| {
            let kind = o.client.device()?.default_memory()?.kind_id()?;
            o.client.topology()?.canonical_shape(kind, ElementType::F32, &[4]).map(drop)
        },
        &[],
    ),
    (
        "PJRT_TopologyDescription_Destroy",
        |o| Topology::deserialize(o.plugin, &o.client.topology()?.serialize()?.0).map(drop),
        &[],
    ),
    (
        "PJRT_Client_FulfillAliasBuffer",
        |o| {
            let memory = o.client.device()?.default_memory()?;
            let (_alias, handle) = o.client.alias(ElementType::F32, &[4], memory)?;
            o.client.fulfill(handle, Err((Code::ABORTED, "x")))
        },
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError",
        |o| {
            let manager = manager(o.client)?;
            let _buffer = manager.retrieve(0)?;
            manager.fail(0, Code::ABORTED, "x")
        },
        &[],
    ),
    ("PJRT_AsyncHostToDeviceTransferManager_AddMetadata", |o| manager(o.client)?.add_no_metadata(), &[]),
    ("PJRT_AsyncHostToDeviceTransferManager_Destroy", |o| manager(o.client).map(drop), &[]),
    (
        "PJRT_Buffer_CopyToDevice",
        |o| {
            let devices = o.client.addressable_devices()?;
            let last = devices.last().copied().map_or_else(|| o.client.device(), Ok)?;
            upload_four(o.client, &[1.0; 4])?.copy_to_device(last).map(drop)
        },
        &[],
    ),
    (
        "PJRT_TopologyDescription_GetMemorySpaceKindIds",
        |o| o.client.topology()?.memory_kind_ids().map(drop),
        &[],
    ),
    ("PJRT_TopologyDescription_Fingerprint", |o| o.client.topology()?.fingerprint().map(drop), &[]),
];

/// Calls a function that fails, and reads and destroys its error.
fn fail(o: &Objects<'_>) -> Result<(), Error> {
    drop(any_error(o.client));
    Ok(())
}

fn manager(client: &Client) -> Result<TransferManager, Error> {
    client.transfer_manager(&[(ElementType::F32, vec![4])], client.device()?.default_memory()?)
}
