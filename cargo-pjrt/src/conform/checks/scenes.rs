//! A valid call of each function, for rules that apply to all functions.

use crate::compile_options::CompileOptions;
use crate::conform::{Context, add_program, compile_add, upload_four};
use crate::host::{
    Client, Code, CopyLayout, ElementType, Error, Event, HostMemory, Plugin, Program, Topology,
    TransferManager, ViewMemory,
};

/// Calls one function of a plugin, and the functions that this call depends on.
pub(super) type Scene = fn(&Scenery<'_>) -> Result<(), Error>;

/// The objects that scenes use.
pub(super) struct Scenery<'a> {
    pub(super) plugin: Plugin,
    pub(super) client: &'a Client,
    pub(super) context: &'a Context,
}

macro_rules! scene {
    (|$scenery:ident| $body:expr) => {
        |$scenery: &Scenery<'_>| {
            $body;
            Ok(())
        }
    };
}

/// The functions, the scenes that call them, and the sizes of their structs in older versions.
pub(super) const SCENES: &[(&str, Scene, &[usize])] = &[
    ("PJRT_Error_Message", scene!(|s| s.client.lookup_device(-9).err()), &[]),
    ("PJRT_Error_GetCode", scene!(|s| s.client.lookup_device(-9).err()), &[]),
    ("PJRT_Error_Destroy", scene!(|s| s.client.lookup_device(-9).err()), &[]),
    ("PJRT_Error_ForEachPayload", scene!(|s| s.client.lookup_device(-9).err()), &[]),
    ("PJRT_Plugin_Initialize", scene!(|s| s.plugin.initialize()?), &[]),
    ("PJRT_Plugin_Attributes", scene!(|s| s.plugin.attributes()?), &[]),
    ("PJRT_Event_Destroy", scene!(|s| drop(upload_four(s.client, &[1.0; 4])?.ready()?)), &[]),
    ("PJRT_Event_IsReady", scene!(|s| upload_four(s.client, &[1.0; 4])?.ready()?.is_ready()?), &[]),
    (
        "PJRT_Event_Error",
        scene!(|s| {
            let e = upload_four(s.client, &[1.0; 4])?.ready()?;
            e.wait()?;
            e.error()?
        }),
        &[],
    ),
    ("PJRT_Event_Await", scene!(|s| upload_four(s.client, &[1.0; 4])?.ready()?.wait()?), &[]),
    ("PJRT_Event_OnReady", scene!(|s| upload_four(s.client, &[1.0; 4])?.ready()?.on_ready()?), &[]),
    ("PJRT_Event_Create", scene!(|s| drop(Event::create(s.plugin)?)), &[]),
    ("PJRT_Event_Set", scene!(|s| Event::create(s.plugin)?.set(Code::OK, "")?), &[]),
    ("PJRT_Client_Create", scene!(|s| drop(s.context.client()?)), &[72]),
    ("PJRT_Client_Destroy", scene!(|s| drop(s.context.client()?)), &[]),
    ("PJRT_Client_PlatformName", scene!(|s| s.client.platform_name()?), &[]),
    ("PJRT_Client_PlatformVersion", scene!(|s| s.client.platform_version()?), &[]),
    ("PJRT_Client_ProcessIndex", scene!(|s| s.client.process_index()?), &[]),
    ("PJRT_Client_Devices", scene!(|s| s.client.devices()?), &[]),
    ("PJRT_Client_AddressableDevices", scene!(|s| s.client.addressable_devices()?), &[]),
    ("PJRT_Client_AddressableMemories", scene!(|s| s.client.memories()?), &[]),
    (
        "PJRT_Client_LookupDevice",
        scene!(|s| s.client.lookup_device(s.client.device()?.description()?.id()?)?),
        &[],
    ),
    ("PJRT_Client_DefaultDeviceAssignment", scene!(|s| s.client.default_assignment(1, 1, 1)?), &[]),
    ("PJRT_Client_TopologyDescription", scene!(|s| s.client.topology()?), &[]),
    ("PJRT_Client_Compile", scene!(|s| compile_add(s.client)?), &[]),
    ("PJRT_Client_BufferFromHostBuffer", scene!(|s| upload_four(s.client, &[1.0; 4])?), &[]),
    (
        "PJRT_Client_CreateViewOfDeviceBuffer",
        scene!(|s| s.client.view(&ViewMemory::new(&[0; 16]), ElementType::F32, &[4], s.client.device()?)?),
        &[104],
    ),
    (
        "PJRT_Client_CreateErrorBuffer",
        scene!(|s| s.client.error_buffer(
            (Code::INTERNAL, "x"),
            ElementType::F32,
            &[4],
            s.client.device()?.default_memory()?
        )?),
        &[96, 112],
    ),
    (
        "PJRT_Client_CreateUninitializedBuffer",
        scene!(|s| s.client.uninitialized(ElementType::F32, &[4], s.client.device()?.default_memory()?)?),
        &[],
    ),
    (
        "PJRT_Client_CreateAliasBuffer",
        scene!(|s| {
            let (_alias, handle) =
                s.client.alias(ElementType::F32, &[4], s.client.device()?.default_memory()?)?;
            s.client.fulfil(handle, Err((Code::ABORTED, "x")))?
        }),
        &[],
    ),
    ("PJRT_Client_UpdateGlobalProcessInfo", scene!(|s| s.client.update_process_info(0)?), &[]),
    ("PJRT_DeviceDescription_Id", scene!(|s| s.client.device()?.description()?.id()?), &[]),
    (
        "PJRT_DeviceDescription_ProcessIndex",
        scene!(|s| s.client.device()?.description()?.process_index()?),
        &[],
    ),
    ("PJRT_DeviceDescription_Attributes", scene!(|s| s.client.device()?.description()?.attributes()?), &[]),
    ("PJRT_DeviceDescription_Kind", scene!(|s| s.client.device()?.description()?.kind()?), &[]),
    (
        "PJRT_DeviceDescription_DebugString",
        scene!(|s| s.client.device()?.description()?.debug_string()?),
        &[],
    ),
    ("PJRT_DeviceDescription_ToString", scene!(|s| s.client.device()?.description()?.to_text()?), &[]),
    ("PJRT_Device_GetDescription", scene!(|s| s.client.device()?.description()?), &[]),
    ("PJRT_Device_IsAddressable", scene!(|s| s.client.device()?.is_addressable()?), &[]),
    ("PJRT_Device_LocalHardwareId", scene!(|s| s.client.device()?.local_hardware_id()?), &[]),
    ("PJRT_Device_AddressableMemories", scene!(|s| s.client.device()?.memories()?), &[]),
    ("PJRT_Device_DefaultMemory", scene!(|s| s.client.device()?.default_memory()?), &[]),
    ("PJRT_Device_MemoryStats", scene!(|s| s.client.device()?.memory_stats()?), &[185]),
    ("PJRT_Device_ClearMemoryStats", scene!(|s| s.client.device()?.clear_memory_stats()?), &[]),
    ("PJRT_Device_PoisonExecution", scene!(|s| s.client.device()?.poison_execution(77, "x")?), &[49]),
    ("PJRT_Device_GetAttributes", scene!(|s| s.client.device()?.attributes()?), &[]),
    ("PJRT_Memory_Id", scene!(|s| s.client.device()?.default_memory()?.id()?), &[]),
    ("PJRT_Memory_Kind", scene!(|s| s.client.device()?.default_memory()?.kind()?), &[]),
    ("PJRT_Memory_Kind_Id", scene!(|s| s.client.device()?.default_memory()?.kind_id()?), &[]),
    ("PJRT_Memory_AddressableByDevices", scene!(|s| s.client.device()?.default_memory()?.devices()?), &[]),
    ("PJRT_Executable_Destroy", scene!(|s| drop(compile_add(s.client)?.executable()?)), &[]),
    ("PJRT_Executable_Name", scene!(|s| compile_add(s.client)?.executable()?.name()?), &[]),
    ("PJRT_Executable_NumOutputs", scene!(|s| compile_add(s.client)?.executable()?.num_outputs()?), &[]),
    (
        "PJRT_Executable_GetCostAnalysis",
        scene!(|s| compile_add(s.client)?.executable()?.cost_analysis()?),
        &[],
    ),
    (
        "PJRT_Executable_GetCompiledMemoryStats",
        scene!(|s| compile_add(s.client)?.executable()?.memory_stats()?),
        &[104, 112, 120],
    ),
    (
        "PJRT_Executable_OutputElementTypes",
        scene!(|s| compile_add(s.client)?.executable()?.output_types()?),
        &[],
    ),
    (
        "PJRT_Executable_OutputDimensions",
        scene!(|s| compile_add(s.client)?.executable()?.output_dims()?),
        &[],
    ),
    (
        "PJRT_Executable_OutputMemoryKinds",
        scene!(|s| compile_add(s.client)?.executable()?.output_memory_kinds()?),
        &[],
    ),
    (
        "PJRT_Executable_OptimizedProgram",
        scene!(|s| compile_add(s.client)?.executable()?.optimized_program()?),
        &[],
    ),
    ("PJRT_Executable_Serialize", scene!(|s| compile_add(s.client)?.executable()?.serialize()?), &[]),
    ("PJRT_Executable_Fingerprint", scene!(|s| compile_add(s.client)?.executable()?.fingerprint()?), &[]),
    (
        "PJRT_Executable_DeserializeAndLoad",
        scene!(|s| s.client.deserialize(&compile_add(s.client)?.executable()?.serialize()?.bytes)?),
        &[48, 64],
    ),
    ("PJRT_LoadedExecutable_Destroy", scene!(|s| drop(compile_add(s.client)?)), &[]),
    ("PJRT_LoadedExecutable_GetExecutable", scene!(|s| compile_add(s.client)?.executable()?), &[]),
    ("PJRT_LoadedExecutable_AddressableDevices", scene!(|s| drop(compile_add(s.client)?.devices()?)), &[]),
    (
        "PJRT_LoadedExecutable_GetDeviceAssignment",
        scene!(|s| compile_add(s.client)?.device_assignment()?),
        &[],
    ),
    (
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
        scene!(|s| compile_add(s.client)?.logical_ids()?),
        &[],
    ),
    ("PJRT_LoadedExecutable_Delete", scene!(|s| compile_add(s.client)?.delete()?), &[]),
    ("PJRT_LoadedExecutable_IsDeleted", scene!(|s| compile_add(s.client)?.is_deleted()?), &[]),
    (
        "PJRT_LoadedExecutable_Execute",
        scene!(|s| {
            let x = upload_four(s.client, &[1.0; 4])?;
            compile_add(s.client)?.run(&[&x, &x])?
        }),
        &[],
    ),
    (
        "PJRT_Compile",
        scene!(|s| s.client.compile_ahead(
            &s.client.topology()?,
            &Program::mlir(&add_program("4x")),
            &CompileOptions::default().encode()
        )?),
        &[],
    ),
    ("PJRT_Buffer_Destroy", scene!(|s| drop(upload_four(s.client, &[1.0; 4])?)), &[]),
    ("PJRT_Buffer_ElementType", scene!(|s| upload_four(s.client, &[1.0; 4])?.element_type()?), &[]),
    ("PJRT_Buffer_Dimensions", scene!(|s| upload_four(s.client, &[1.0; 4])?.dims()?), &[]),
    ("PJRT_Buffer_UnpaddedDimensions", scene!(|s| upload_four(s.client, &[1.0; 4])?.unpadded_dims()?), &[]),
    (
        "PJRT_Buffer_DynamicDimensionIndices",
        scene!(|s| upload_four(s.client, &[1.0; 4])?.dynamic_dims()?),
        &[],
    ),
    ("PJRT_Buffer_GetMemoryLayout", scene!(|s| upload_four(s.client, &[1.0; 4])?.memory_layout()?), &[]),
    ("PJRT_Buffer_OnDeviceSizeInBytes", scene!(|s| upload_four(s.client, &[1.0; 4])?.on_device_size()?), &[]),
    ("PJRT_Buffer_Device", scene!(|s| upload_four(s.client, &[1.0; 4])?.device().map(drop)?), &[]),
    ("PJRT_Buffer_Memory", scene!(|s| upload_four(s.client, &[1.0; 4])?.memory().map(drop)?), &[]),
    ("PJRT_Buffer_Delete", scene!(|s| upload_four(s.client, &[1.0; 4])?.delete()?), &[]),
    ("PJRT_Buffer_IsDeleted", scene!(|s| upload_four(s.client, &[1.0; 4])?.is_deleted()?), &[]),
    (
        "PJRT_Buffer_ToHostBuffer",
        scene!(|s| upload_four(s.client, &[1.0; 4])?.read_into(16, &CopyLayout::Unsaid)?),
        &[],
    ),
    ("PJRT_Buffer_CopyRawToHost", scene!(|s| upload_four(s.client, &[1.0; 4])?.read_raw(0, 16)??), &[]),
    (
        "PJRT_Buffer_CopyToMemory",
        scene!(|s| upload_four(s.client, &[1.0; 4])?.copy_to_memory(s.client.device()?.default_memory()?)?),
        &[],
    ),
    ("PJRT_Buffer_IsOnCpu", scene!(|s| upload_four(s.client, &[1.0; 4])?.is_on_cpu()?), &[]),
    ("PJRT_Buffer_ReadyEvent", scene!(|s| upload_four(s.client, &[1.0; 4])?.ready()?), &[]),
    ("PJRT_Buffer_UnsafePointer", scene!(|s| upload_four(s.client, &[1.0; 4])?.unsafe_pointer()?), &[]),
    (
        "PJRT_Client_LookupAddressableDevice",
        scene!(|s| s.client.lookup_addressable_device(s.client.device()?.local_hardware_id()?)?),
        &[],
    ),
    (
        "PJRT_Client_Load",
        scene!(|s| {
            let (program, options) = (add_program("4x"), CompileOptions::default().encode());
            let topology = s.client.topology()?;
            s.client.load(&s.client.compile_ahead(&topology, &Program::mlir(&program), &options)?)?
        }),
        &[],
    ),
    ("PJRT_Client_DmaMap", scene!(|s| s.client.map_and_unmap(&HostMemory::new(&[0; 4096], 0))?), &[]),
    ("PJRT_Client_DmaUnmap", scene!(|s| s.client.map_and_unmap(&HostMemory::new(&[0; 4096], 0))?), &[]),
    ("PJRT_Client_CreateBuffersForAsyncHostToDevice", scene!(|s| manager(s.client)?), &[]),
    ("PJRT_Device_CreateAsyncTrackingEvent", scene!(|s| s.client.device()?.track("a check")?), &[]),
    ("PJRT_Memory_DebugString", scene!(|s| s.client.device()?.default_memory()?.debug_string()?), &[]),
    ("PJRT_Memory_ToString", scene!(|s| s.client.device()?.default_memory()?.to_text()?), &[]),
    ("PJRT_ExecuteContext_Create", scene!(|s| s.plugin.create_and_destroy_context()?), &[]),
    ("PJRT_ExecuteContext_Destroy", scene!(|s| s.plugin.create_and_destroy_context()?), &[]),
    (
        "PJRT_AsyncHostToDeviceTransferManager_BufferCount",
        scene!(|s| manager(s.client)?.buffer_count()?),
        &[],
    ),
    ("PJRT_AsyncHostToDeviceTransferManager_BufferSize", scene!(|s| manager(s.client)?.buffer_size(0)?), &[]),
    ("PJRT_AsyncHostToDeviceTransferManager_Device", scene!(|s| manager(s.client)?.device().map(drop)?), &[]),
    (
        "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer",
        scene!(|s| manager(s.client)?.retrieve(0)?),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_TransferData",
        scene!(|s| manager(s.client)?.write(0, &[1; 16], 0, true)?.wait()?),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral",
        scene!(|s| manager(s.client)?.write_array(0, &[1; 16], ElementType::F32, &[4])?.wait()?),
        &[],
    ),
    ("PJRT_Executable_NumReplicas", scene!(|s| compile_add(s.client)?.executable()?.num_replicas()?), &[]),
    (
        "PJRT_Executable_NumPartitions",
        scene!(|s| compile_add(s.client)?.executable()?.num_partitions()?),
        &[],
    ),
    (
        "PJRT_Executable_SizeOfGeneratedCodeInBytes",
        scene!(|s| compile_add(s.client)?.executable()?.code_size()?),
        &[],
    ),
    (
        "PJRT_Executable_ParameterMemoryKinds",
        scene!(|s| compile_add(s.client)?.executable()?.parameter_memory_kinds()?),
        &[],
    ),
    (
        "PJRT_Executable_GetCompileOptions",
        scene!(|s| compile_add(s.client)?.executable()?.compile_options()?),
        &[],
    ),
    ("PJRT_LoadedExecutable_Fingerprint", scene!(|s| compile_add(s.client)?.fingerprint()?), &[]),
    (
        "PJRT_Buffer_CopyRawToHostFuture",
        scene!(|s| upload_four(s.client, &[1.0; 4])?.read_raw_later(0, 16)?.finish()?),
        &[],
    ),
    (
        "PJRT_Buffer_Bitcast",
        scene!(|s| upload_four(s.client, &[1.0; 4])?.bitcast(ElementType::S32, &[4])?),
        &[],
    ),
    (
        "PJRT_Buffer_IncreaseExternalReferenceCount",
        scene!(|s| {
            let x = upload_four(s.client, &[1.0; 4])?;
            x.hold()?;
            x.release()?
        }),
        &[],
    ),
    (
        "PJRT_Buffer_DecreaseExternalReferenceCount",
        scene!(|s| {
            let x = upload_four(s.client, &[1.0; 4])?;
            x.hold()?;
            x.release()?
        }),
        &[],
    ),
    (
        "PJRT_Buffer_OpaqueDeviceMemoryDataPointer",
        scene!(|s| {
            let x = upload_four(s.client, &[1.0; 4])?;
            x.hold()?;
            x.opaque_pointer()?;
            x.release()?
        }),
        &[],
    ),
    (
        "PJRT_Buffer_DonateWithControlDependency",
        scene!(|s| {
            let (_new, dependency) = upload_four(s.client, &[1.0; 4])?.donate()?;
            dependency.finish(Ok(()))
        }),
        &[],
    ),
    ("PJRT_TopologyDescription_PlatformName", scene!(|s| s.client.topology()?.platform_name()?), &[]),
    ("PJRT_TopologyDescription_PlatformVersion", scene!(|s| s.client.topology()?.platform_version()?), &[]),
    (
        "PJRT_TopologyDescription_GetDeviceDescriptions",
        scene!(|s| s.client.topology()?.devices().map(drop)?),
        &[],
    ),
    ("PJRT_TopologyDescription_Serialize", scene!(|s| s.client.topology()?.serialize()?), &[]),
    (
        "PJRT_TopologyDescription_Deserialize",
        scene!(|s| Topology::deserialize(s.plugin, &s.client.topology()?.serialize()?.0)?),
        &[],
    ),
    ("PJRT_TopologyDescription_Attributes", scene!(|s| s.client.topology()?.attributes()?), &[]),
    (
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",
        scene!(|s| {
            let kind = s.client.device()?.default_memory()?.kind_id()?;
            s.client.topology()?.canonical_shape(kind, ElementType::F32, &[4])?
        }),
        &[],
    ),
    (
        "PJRT_TopologyDescription_Destroy",
        scene!(|s| Topology::deserialize(s.plugin, &s.client.topology()?.serialize()?.0)?),
        &[],
    ),
    (
        "PJRT_Client_FulfillAliasBuffer",
        scene!(|s| {
            let memory = s.client.device()?.default_memory()?;
            let (_alias, handle) = s.client.alias(ElementType::F32, &[4], memory)?;
            s.client.fulfil(handle, Err((Code::ABORTED, "x")))?
        }),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_SetBufferError",
        scene!(|s| {
            let manager = manager(s.client)?;
            let _buffer = manager.retrieve(0)?;
            manager.fail(0, Code::ABORTED, "x")?
        }),
        &[],
    ),
    (
        "PJRT_AsyncHostToDeviceTransferManager_AddMetadata",
        scene!(|s| manager(s.client)?.add_no_metadata()?),
        &[],
    ),
    ("PJRT_AsyncHostToDeviceTransferManager_Destroy", scene!(|s| drop(manager(s.client)?)), &[]),
    (
        "PJRT_Buffer_CopyToDevice",
        scene!(|s| {
            let devices = s.client.addressable_devices()?;
            let last = devices.last().copied().map_or_else(|| s.client.device(), Ok)?;
            upload_four(s.client, &[1.0; 4])?.copy_to_device(last)?
        }),
        &[],
    ),
    (
        "PJRT_TopologyDescription_GetMemorySpaceKindIds",
        scene!(|s| s.client.topology()?.memory_kind_ids()?),
        &[],
    ),
    ("PJRT_TopologyDescription_Fingerprint", scene!(|s| s.client.topology()?.fingerprint()?), &[]),
];

fn manager(client: &Client) -> Result<TransferManager, Error> {
    client.transfer_manager(&[(ElementType::F32, vec![4])], client.device()?.default_memory()?)
}
