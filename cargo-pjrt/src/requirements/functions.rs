//! The functions of the table, and the hosts that call them.
//!
//! JAX and PyTorch/XLA were traced while they ran their own tests, and their bindings were read for what the tests do not
//! reach. The calls of the other hosts are those in their sources.

use super::profile::Profile;

/// A function of the table, and the hosts that call it.
#[derive(Debug)]
pub struct Function {
    /// The name, without the prefix `PJRT_`.
    pub name: &'static str,
    /// A letter for each host, in the order of [`Profile::ALL`].
    callers: &'static str,
    /// The feature of a host that calls the function, and what an error does to the host; empty if the function is one of
    /// those that every program needs.
    pub remark: &'static str,
}

/// A way in which a host calls a function, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// The host cannot run a program without the function.
    Required,
    /// The host calls the function for one of its features, or tolerates a plugin that returns UNIMPLEMENTED.
    Optional,
    /// The host does not call the function.
    Never,
}

impl Function {
    /// Returns how a host calls the function.
    #[must_use]
    pub fn called_by(&self, host: Profile) -> Calls {
        match self.callers.as_bytes()[host as usize] {
            b'+' => Calls::Required,
            b'o' => Calls::Optional,
            _ => Calls::Never,
        }
    }
}

impl Profile {
    /// Returns the names of the functions without which the host cannot run a program, without the prefix
    /// `PJRT_`.
    pub fn functions(self) -> impl Iterator<Item = &'static str> {
        FUNCTIONS
            .iter()
            .filter(move |function| function.called_by(self) == Calls::Required)
            .map(|function| function.name)
    }

    /// Returns the hosts that call a function of the table, whether they require it or not.
    pub(crate) fn that_call(function: &str) -> Vec<Self> {
        let name = function.trim_start_matches("PJRT_");
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let calls = |host: &Self| function.is_some_and(|function| function.called_by(*host) != Calls::Never);
        Self::ALL.into_iter().filter(calls).collect()
    }
}

/// Creates a row. The letters stand for JAX, PyTorch/XLA, GoMLX, ZML and the crate `pjrt`: `+` if the host requires the
/// function, `o` if it calls the function for one of its features, and `-` if it never calls it.
const fn function(name: &'static str, callers: &'static str, remark: &'static str) -> Function {
    Function { name, callers, remark }
}

/// The functions, in the order of the table.
#[rustfmt::skip]
pub const FUNCTIONS: [Function; 138] = [
    function("Error_Destroy", "+++++", ""),
    function("Error_Message", "+++++", ""),
    function("Error_GetCode", "+++++", "an error ends the host"),
    function("Plugin_Initialize", "+++++", ""),
    function("Plugin_Attributes", "+++++", "JAX aborts on an error"),
    function("Event_Destroy", "+++++", "JAX aborts on an error"),
    function("Event_IsReady", "+o-++", ""),
    function("Event_Error", "+o--+", ""),
    function("Event_Await", "--+o+", "TensorFlow"),
    function("Event_OnReady", "++-++", ""),
    function("Client_Create", "+++++", ""),
    function("Client_Destroy", "+o+o+", "JAX aborts on an error"),
    function("Client_PlatformName", "+++++", "JAX aborts on an error"),
    function("Client_ProcessIndex", "+o+-o", "JAX with several processes, which aborts on an error"),
    function("Client_PlatformVersion", "+++-o", "JAX aborts on an error"),
    function("Client_Devices", "+++oo", "JAX aborts on an error"),
    function("Client_AddressableDevices", "+++++", "JAX aborts on an error"),
    function("Client_LookupDevice", "+---o", ""),
    function("Client_LookupAddressableDevice", "oo--o", "import of DLPack arrays"),
    function("Client_AddressableMemories", "++-+o", "JAX aborts on an error"),
    function("Client_Compile", "+++++", ""),
    function("Client_DefaultDeviceAssignment", "--+-o", ""),
    function("Client_BufferFromHostBuffer", "+++++", ""),
    function("DeviceDescription_Id", "++-+o", "JAX aborts on an error"),
    function("DeviceDescription_ProcessIndex", "+o+oo", "JAX aborts on an error"),
    function("DeviceDescription_Attributes", "++-oo", "JAX aborts on an error"),
    function("DeviceDescription_Kind", "+o-+o", "JAX aborts on an error"),
    function("DeviceDescription_DebugString", "+o++o", "JAX aborts on an error"),
    function("DeviceDescription_ToString", "+o-+o", "JAX aborts on an error"),
    function("Device_GetDescription", "++++o", "JAX aborts on an error"),
    function("Device_IsAddressable", "+++-o", "JAX aborts on an error"),
    function("Device_LocalHardwareId", "+o+oo", "JAX aborts on an error"),
    function("Device_AddressableMemories", "++-oo", ""),
    function("Device_DefaultMemory", "++-+o", ""),
    function("Device_MemoryStats", "oo-oo", "JAX tolerates an error"),
    function("Memory_Id", "+--oo", ""),
    function("Memory_Kind", "+--+o", "JAX aborts on an error"),
    function("Memory_DebugString", "+--oo", "JAX: `str(memory)`"),
    function("Memory_ToString", "+--oo", "JAX: `repr(memory)`"),
    function("Memory_AddressableByDevices", "++-+o", "JAX aborts on an error"),
    function("Executable_Destroy", "+o+o+", "JAX aborts on an error"),
    function("Executable_Name", "+-+-o", "JAX aborts on an error"),
    function("Executable_NumReplicas", "o---o", "JAX tolerates an error"),
    function("Executable_NumPartitions", "o---o", "JAX tolerates an error"),
    function("Executable_NumOutputs", "+++o+", ""),
    function("Executable_SizeOfGeneratedCodeInBytes", "o---o", "JAX: memory profiles"),
    function("Executable_GetCostAnalysis", "o---o", "JAX: `cost_analysis()`"),
    function("Executable_OutputMemoryKinds", "o---o", "JAX tolerates an error"),
    function("Executable_OptimizedProgram", "o+--o", "JAX tolerates an error, PyTorch/XLA does not"),
    function("Executable_Serialize", "oo-oo", ""),
    function("LoadedExecutable_Destroy", "+o+++", "JAX aborts on an error"),
    function("LoadedExecutable_GetExecutable", "+++o+", "JAX aborts on an error"),
    function("LoadedExecutable_AddressableDevices", "++-oo", "JAX aborts on an error"),
    function("LoadedExecutable_Delete", "----o", "XLA's client"),
    function("LoadedExecutable_IsDeleted", "----o", "XLA's client"),
    function("LoadedExecutable_Execute", "+++++", ""),
    function("Executable_DeserializeAndLoad", "oo-oo", "JAX: compile cache, `serialize_executable`"),
    function("LoadedExecutable_Fingerprint", "----o", "hosts before 0.35"),
    function("Buffer_Destroy", "+++++", "JAX aborts on an error"),
    function("Buffer_ElementType", "+++o+", "JAX aborts on an error"),
    function("Buffer_Dimensions", "+++o+", "JAX aborts on an error"),
    function("Buffer_UnpaddedDimensions", "-+--o", ""),
    function("Buffer_DynamicDimensionIndices", "o+--o", "JAX tolerates an error"),
    function("Buffer_GetMemoryLayout", "----+", "hosts before 0.55; JAX 0.4.30 aborts on an error"),
    function("Buffer_OnDeviceSizeInBytes", "o---o", "JAX: `on_device_size_in_bytes`"),
    function("Buffer_Device", "+++-o", "JAX aborts on an error"),
    function("Buffer_Memory", "+--oo", ""),
    function("Buffer_Delete", "+---o", "JAX aborts on an error"),
    function("Buffer_IsDeleted", "++--o", "JAX aborts on an error"),
    function("Buffer_CopyToDevice", "--o-o", "hosts before 0.32"),
    function("Buffer_ToHostBuffer", "+++++", ""),
    function("Buffer_IsOnCpu", "+---o", "JAX aborts on an error"),
    function("Buffer_ReadyEvent", "+o-++", "JAX aborts on an error"),
    function("Buffer_UnsafePointer", "ooo-o", ""),
    function("Buffer_IncreaseExternalReferenceCount", "oo--o", "JAX: arrays shared with NumPy or DLPack"),
    function("Buffer_DecreaseExternalReferenceCount", "oo--o", "JAX: arrays shared with NumPy or DLPack"),
    function("Buffer_OpaqueDeviceMemoryDataPointer", "oo-+o", "JAX: arrays shared with NumPy or DLPack"),
    function("CopyToDeviceStream_Destroy", "o---o", "JAX: callbacks that return arrays"),
    function("CopyToDeviceStream_AddChunk", "o---o", "JAX: callbacks that return arrays"),
    function("CopyToDeviceStream_TotalBytes", "o---o", "JAX: callbacks that return arrays"),
    function("CopyToDeviceStream_GranuleSize", "o---o", "JAX: callbacks that return arrays"),
    function("CopyToDeviceStream_CurrentBytes", "o---o", "JAX: callbacks that return arrays"),
    function("TopologyDescription_Create", "o---o", "JAX: `jax.experimental.topologies`"),
    function("TopologyDescription_Destroy", "o---o", "JAX: `jax.experimental.topologies`"),
    function("TopologyDescription_PlatformName", "oo--o", "JAX aborts on an error"),
    function("TopologyDescription_PlatformVersion", "oo--o", "JAX aborts on an error"),
    function("TopologyDescription_GetDeviceDescriptions", "o---o", "JAX: `jax.experimental.topologies`, which aborts on an error"),
    function("TopologyDescription_Serialize", "oo--o", "JAX: compile cache"),
    function("TopologyDescription_Attributes", "oo--o", "JAX aborts on an error"),
    function("Compile", "o---o", "JAX: compilation for a topology"),
    function("Executable_OutputElementTypes", "o---o", "JAX: programs from its compile cache"),
    function("Executable_OutputDimensions", "o---o", "JAX: programs from its compile cache"),
    function("Buffer_CopyToMemory", "+o-oo", ""),
    function("Client_CreateViewOfDeviceBuffer", "ooooo", "import of DLPack arrays; GoMLX: shared buffers"),
    function("Executable_Fingerprint", "o---o", "JAX tolerates an error"),
    function("Client_TopologyDescription", "oo--o", "JAX tolerates an error"),
    function("Executable_GetCompiledMemoryStats", "oo+-o", "JAX tolerates an error"),
    function("Memory_Kind_Id", "oo--o", "from 0.48 on; JAX aborts on an error"),
    function("ExecuteContext_Create", "o---o", "with the FFI extension"),
    function("ExecuteContext_Destroy", "o---o", "with the FFI extension"),
    function("Buffer_CopyRawToHost", "-----", "XLA's client"),
    function("AsyncHostToDeviceTransferManager_Destroy", "---+-", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_TransferData", "---+-", "XLA's client: chunked transfers"),
    function("Client_CreateBuffersForAsyncHostToDevice", "---+-", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_RetrieveBuffer", "---+-", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_Device", "-----", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_BufferCount", "-----", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_BufferSize", "-----", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_SetBufferError", "-----", "XLA's client: chunked transfers"),
    function("AsyncHostToDeviceTransferManager_AddMetadata", "-----", "XLA's client"),
    function("Client_DmaMap", "o--o-", "staging memory for transfers"),
    function("Client_DmaUnmap", "o--o-", "staging memory for transfers"),
    function("Client_CreateUninitializedBuffer", "---+-", "XLA's client, from 0.69 on"),
    function("Client_UpdateGlobalProcessInfo", "o----", "JAX with several processes, which aborts on an error"),
    function("TopologyDescription_Deserialize", "-----", "XLA's client"),
    function("Client_CreateAliasBuffer", "-----", "XLA's client, from 0.76 on"),
    function("Client_FulfillAliasBuffer", "-----", "XLA's client, from 0.76 on"),
    function("LoadedExecutable_GetDeviceAssignment", "+----", "JAX aborts on an error"),
    function("Client_CreateErrorBuffer", "-----", "XLA's client, from 0.82 on"),
    function("AsyncHostToDeviceTransferManager_TransferLiteral", "-----", "XLA's client"),
    function("Buffer_CopyRawToHostFuture", "-----", "XLA's client, from 0.84 on"),
    function("Device_PoisonExecution", "o----", "JAX: `poison_execution`"),
    function("Device_CreateAsyncTrackingEvent", "-----", "XLA's client, from 0.86 on; aborts on an error"),
    function("AsyncTrackingEvent_Destroy", "-----", "XLA's client, if an event exists"),
    function("Executable_GetCompileOptions", "-----", "XLA's client, from 0.87 on"),
    function("Buffer_DonateWithControlDependency", "-----", "XLA's client, from 0.88 on"),
    function("Event_Create", "-----", "transfers between hosts"),
    function("Event_Set", "-----", "transfers between hosts"),
    function("Device_GetAttributes", "o----", "JAX aborts on an error"),
    function("Client_Load", "o----", "JAX: programs compiled for a topology"),
    function("LoadedExecutable_AddressableDeviceLogicalIds", "o----", "JAX aborts on an error"),
    function("Buffer_Bitcast", "--o--", ""),
    function("Error_ForEachPayload", "+----", "since JAX 0.9; an error ends the host"),
    function("TopologyDescription_Fingerprint", "o----", "JAX: `fingerprint` of a topology"),
    function("Executable_ParameterMemoryKinds", "-----", "XLA's client, from 0.102 on"),
    function("Device_ClearMemoryStats", "-----", "XLA's client"),
    function("TopologyDescription_MakeCanonicalShapeForMemorySpace", "-----", "XLA's client"),
    function("TopologyDescription_GetMemorySpaceKindIds", "-----", "XLA's client"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_those_of_the_table() {
        for (function, slot) in FUNCTIONS.iter().zip(pjrt_sys::SLOTS) {
            assert_eq!(format!("PJRT_{}", function.name), slot.name);
        }
        assert_eq!(FUNCTIONS.len(), pjrt_sys::SLOTS.len());
    }

    #[test]
    fn every_function_has_a_letter_for_each_host() {
        for function in &FUNCTIONS {
            let known = function.callers.bytes().all(|letter| b"+o-".contains(&letter));
            assert!(known && function.callers.len() == Profile::ALL.len(), "{}", function.name);
        }
        for (index, host) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(host as usize, index, "the letters are in the order of the hosts");
        }
    }

    #[test]
    fn optional_functions_have_callers_and_are_not_required() {
        assert_eq!(
            Profile::that_call("PJRT_Executable_Serialize"),
            [Profile::Jax, Profile::TorchXla, Profile::Zml, Profile::PjrtRs]
        );
        assert!(Profile::Jax.functions().all(|function| function != "Executable_Serialize"));
        assert!(Profile::Jax.functions().any(|function| function == "Buffer_ToHostBuffer"));
        assert!(Profile::that_call("PJRT_Device_ClearMemoryStats").is_empty());
    }
}
