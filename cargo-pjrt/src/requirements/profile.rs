//! The functions that each host requires of a plugin.

use std::fmt;
use std::str::FromStr;

/// A host of plugins. Its calls were traced; see the documentation of the conformance kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// JAX, with jaxlib 0.4.35 or newer.
    Jax,
    /// PyTorch/XLA 2.9.
    TorchXla,
    /// GoMLX, through go-xla.
    Gomlx,
    /// ZML.
    Zml,
}

impl Profile {
    /// All hosts.
    pub const ALL: [Self; 4] = [Self::Jax, Self::TorchXla, Self::Gomlx, Self::Zml];

    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jax => "jax",
            Self::TorchXla => "torch_xla",
            Self::Gomlx => "gomlx",
            Self::Zml => "zml",
        }
    }

    /// Returns the names of the functions without which the host cannot run a program, without the prefix
    /// `PJRT_`.
    #[must_use]
    pub fn functions(self) -> &'static [&'static str] {
        match self {
            Self::Jax => JAX,
            Self::TorchXla => TORCH_XLA,
            Self::Gomlx => GOMLX,
            Self::Zml => ZML,
        }
    }

    /// Returns the hosts that call a function of the table.
    pub(crate) fn that_call(function: &str) -> Vec<Self> {
        let name = function.trim_start_matches("PJRT_");
        Self::ALL.into_iter().filter(|profile| profile.functions().contains(&name)).collect()
    }

    /// Returns the name of the host and the version that was examined.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Jax => "JAX 0.10.2 (C API 0.112)",
            Self::TorchXla => "PyTorch/XLA 2.9 (C API 0.75)",
            Self::Gomlx => "GoMLX with go-xla 0.3 (C API 0.104)",
            Self::Zml => "ZML of mid-2026",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|profile| profile.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no profile {name:?}; the profiles are {names}")
        })
    }
}

/// The functions that JAX 0.10.2 calls from start to exit, without those whose failure it tolerates.
const JAX: &[&str] = &[
    "Error_Destroy",
    "Error_Message",
    "Error_GetCode",
    "Plugin_Initialize",
    "Plugin_Attributes",
    "Event_Destroy",
    "Event_IsReady",
    "Event_Error",
    "Event_OnReady",
    "Client_Create",
    "Client_Destroy",
    "Client_PlatformName",
    "Client_ProcessIndex",
    "Client_PlatformVersion",
    "Client_Devices",
    "Client_AddressableDevices",
    "Client_LookupDevice",
    "Client_AddressableMemories",
    "Client_Compile",
    "Client_BufferFromHostBuffer",
    "DeviceDescription_Id",
    "DeviceDescription_ProcessIndex",
    "DeviceDescription_Attributes",
    "DeviceDescription_Kind",
    "DeviceDescription_DebugString",
    "DeviceDescription_ToString",
    "Device_GetDescription",
    "Device_IsAddressable",
    "Device_LocalHardwareId",
    "Device_AddressableMemories",
    "Device_DefaultMemory",
    "Memory_Id",
    "Memory_Kind",
    "Memory_DebugString",
    "Memory_ToString",
    "Memory_AddressableByDevices",
    "Executable_Destroy",
    "Executable_Name",
    "Executable_NumOutputs",
    "LoadedExecutable_Destroy",
    "LoadedExecutable_GetExecutable",
    "LoadedExecutable_AddressableDevices",
    "LoadedExecutable_Execute",
    "LoadedExecutable_GetDeviceAssignment",
    "Buffer_Destroy",
    "Buffer_ElementType",
    "Buffer_Dimensions",
    "Buffer_Device",
    "Buffer_Memory",
    "Buffer_Delete",
    "Buffer_IsDeleted",
    "Buffer_CopyToMemory",
    "Buffer_ToHostBuffer",
    "Buffer_IsOnCpu",
    "Buffer_ReadyEvent",
    "Error_ForEachPayload",
];

/// The functions that PyTorch/XLA 2.9 calls while it trains, without those whose failure it tolerates.
const TORCH_XLA: &[&str] = &[
    "Error_Destroy",
    "Error_Message",
    "Error_GetCode",
    "Plugin_Initialize",
    "Plugin_Attributes",
    "Event_Destroy",
    "Event_OnReady",
    "Client_Create",
    "Client_PlatformName",
    "Client_PlatformVersion",
    "Client_Devices",
    "Client_AddressableDevices",
    "Client_AddressableMemories",
    "Client_Compile",
    "Client_BufferFromHostBuffer",
    "DeviceDescription_Id",
    "DeviceDescription_Attributes",
    "Device_GetDescription",
    "Device_IsAddressable",
    "Device_AddressableMemories",
    "Device_DefaultMemory",
    "Memory_AddressableByDevices",
    "LoadedExecutable_GetExecutable",
    "LoadedExecutable_AddressableDevices",
    "LoadedExecutable_Execute",
    "Executable_OptimizedProgram",
    "Executable_NumOutputs",
    "Buffer_Destroy",
    "Buffer_ElementType",
    "Buffer_Dimensions",
    "Buffer_UnpaddedDimensions",
    "Buffer_DynamicDimensionIndices",
    "Buffer_Device",
    "Buffer_IsDeleted",
    "Buffer_ToHostBuffer",
];

/// The functions that the tests of go-xla and GoMLX call, without those called only for the platform "CPU".
const GOMLX: &[&str] = &[
    "Error_Destroy",
    "Error_Message",
    "Error_GetCode",
    "Plugin_Initialize",
    "Plugin_Attributes",
    "Event_Destroy",
    "Event_Await",
    "Client_Create",
    "Client_Destroy",
    "Client_PlatformName",
    "Client_PlatformVersion",
    "Client_ProcessIndex",
    "Client_Devices",
    "Client_AddressableDevices",
    "Client_DefaultDeviceAssignment",
    "Client_Compile",
    "Client_BufferFromHostBuffer",
    "Device_GetDescription",
    "Device_IsAddressable",
    "Device_LocalHardwareId",
    "DeviceDescription_DebugString",
    "DeviceDescription_ProcessIndex",
    "LoadedExecutable_GetExecutable",
    "LoadedExecutable_Execute",
    "LoadedExecutable_Destroy",
    "Executable_Name",
    "Executable_NumOutputs",
    "Executable_GetCompiledMemoryStats",
    "Executable_Destroy",
    "Buffer_ToHostBuffer",
    "Buffer_Dimensions",
    "Buffer_ElementType",
    "Buffer_Device",
    "Buffer_Destroy",
];

/// The functions that ZML's bindings call to load weights and run a model.
const ZML: &[&str] = &[
    "Error_Destroy",
    "Error_Message",
    "Error_GetCode",
    "Plugin_Initialize",
    "Plugin_Attributes",
    "Event_Destroy",
    "Event_IsReady",
    "Event_OnReady",
    "Client_Create",
    "Client_PlatformName",
    "Client_AddressableDevices",
    "Client_AddressableMemories",
    "Client_Compile",
    "Client_BufferFromHostBuffer",
    "Client_CreateUninitializedBuffer",
    "Client_CreateBuffersForAsyncHostToDevice",
    "AsyncHostToDeviceTransferManager_Destroy",
    "AsyncHostToDeviceTransferManager_RetrieveBuffer",
    "AsyncHostToDeviceTransferManager_TransferData",
    "Device_GetDescription",
    "Device_DefaultMemory",
    "DeviceDescription_Id",
    "DeviceDescription_Kind",
    "DeviceDescription_DebugString",
    "DeviceDescription_ToString",
    "Memory_Kind",
    "Memory_AddressableByDevices",
    "LoadedExecutable_GetExecutable",
    "LoadedExecutable_Execute",
    "LoadedExecutable_Destroy",
    "Executable_Destroy",
    "Executable_NumOutputs",
    "Executable_Serialize",
    "Executable_DeserializeAndLoad",
    "Buffer_Destroy",
    "Buffer_ElementType",
    "Buffer_Dimensions",
    "Buffer_OpaqueDeviceMemoryDataPointer",
    "Buffer_ReadyEvent",
    "Buffer_ToHostBuffer",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_name_functions_that_exist() {
        for profile in Profile::ALL {
            for function in profile.functions() {
                let known = pjrt_sys::SLOTS.iter().any(|slot| slot.name == format!("PJRT_{function}"));
                assert!(known, "{profile}: {function}");
            }
        }
    }
}
