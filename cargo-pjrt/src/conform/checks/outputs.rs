//! Checks that functions write all of their outputs, because hosts do not clear the structs that they pass.

use std::ops::Range;

use super::calls::{CALLS, Call, Objects};
use crate::conform::harness::{Check, Context, Finding, Source, Users, Verdict, ensure};
use pjrt_sys::{PJRT_API_MINOR, SLOTS, STRUCTS};
use pjrt_testing::host::{Code, Error, prefilled};

/// An output of a function, and the condition under which it has a meaning.
#[derive(Debug, Clone, Copy)]
struct Output {
    /// The field's name. `layout.type_` denotes a field of the nested struct `layout`.
    name: &'static str,
    /// The field that must be other than zero for this one to have a meaning: the number of elements, or a flag
    /// for this field.
    when: Option<&'static str>,
}

impl Output {
    /// Parses an entry of [`OUTPUTS`]: `name`, or `name if other`.
    fn parse(text: &'static str) -> Self {
        match text.split_once(" if ") {
            Some((name, when)) => Self { name, when: Some(when) },
            None => Self { name: text, when: None },
        }
    }

    /// Returns the range of the output's bytes in the struct of the function.
    fn range(self, function: &str) -> Option<Range<usize>> {
        range(function, self.name)
    }
}

/// Returns the range of a field's bytes in the struct of a function.
fn range(function: &str, name: &str) -> Option<Range<usize>> {
    let args = SLOTS.iter().find(|slot| slot.name == function)?.args;
    let (name, inner) = name.split_once('.').map_or((name, None), |(name, inner)| (name, Some(inner)));
    let field = args.field(name)?;
    match inner {
        None => Some(field.offset..field.end),
        Some(inner) => {
            let inner = STRUCTS.iter().find(|layout| layout.name == field.ty)?.field(inner)?;
            Some(field.offset + inner.offset..field.offset + inner.end)
        }
    }
}

/// The outputs of functions, without handles that only the plugin's own deleters and callbacks use.
/// The fault of a function's check leaves the first output unwritten.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("PJRT_Error_Message", &["message_size", "message if message_size"]),
    ("PJRT_Error_GetCode", &["code"]),
    ("PJRT_Plugin_Attributes", &["num_attributes", "attributes if num_attributes"]),
    ("PJRT_Event_IsReady", &["is_ready"]),
    ("PJRT_Event_Create", &["event"]),
    ("PJRT_Client_Create", &["client"]),
    ("PJRT_Client_PlatformName", &["platform_name_size", "platform_name if platform_name_size"]),
    ("PJRT_Client_ProcessIndex", &["process_index"]),
    ("PJRT_Client_PlatformVersion", &["platform_version_size", "platform_version if platform_version_size"]),
    ("PJRT_Client_TopologyDescription", &["topology"]),
    ("PJRT_Client_Devices", &["num_devices", "devices if num_devices"]),
    (
        "PJRT_Client_AddressableDevices",
        &["num_addressable_devices", "addressable_devices if num_addressable_devices"],
    ),
    ("PJRT_Client_LookupDevice", &["device"]),
    ("PJRT_Client_LookupAddressableDevice", &["addressable_device"]),
    (
        "PJRT_Client_AddressableMemories",
        &["num_addressable_memories", "addressable_memories if num_addressable_memories"],
    ),
    ("PJRT_Client_Compile", &["executable"]),
    ("PJRT_Client_Load", &["loaded_executable"]),
    ("PJRT_Client_CreateUninitializedBuffer", &["buffer"]),
    ("PJRT_Client_CreateErrorBuffer", &["buffer"]),
    ("PJRT_Client_CreateAliasBuffer", &["alias_buffer", "fulfill_alias_buffer_cb"]),
    ("PJRT_Client_BufferFromHostBuffer", &["buffer", "done_with_host_buffer"]),
    ("PJRT_Client_CreateViewOfDeviceBuffer", &["buffer"]),
    ("PJRT_Client_CreateBuffersForAsyncHostToDevice", &["transfer_manager"]),
    ("PJRT_DeviceDescription_Id", &["id"]),
    ("PJRT_DeviceDescription_ProcessIndex", &["process_index"]),
    ("PJRT_DeviceDescription_Attributes", &["num_attributes", "attributes if num_attributes"]),
    ("PJRT_DeviceDescription_Kind", &["device_kind_size", "device_kind if device_kind_size"]),
    ("PJRT_DeviceDescription_DebugString", &["debug_string_size", "debug_string if debug_string_size"]),
    ("PJRT_DeviceDescription_ToString", &["to_string_size", "to_string if to_string_size"]),
    ("PJRT_Device_GetDescription", &["device_description"]),
    ("PJRT_Device_IsAddressable", &["is_addressable"]),
    ("PJRT_Device_LocalHardwareId", &["local_hardware_id"]),
    ("PJRT_Device_AddressableMemories", &["num_memories", "memories if num_memories"]),
    ("PJRT_Device_DefaultMemory", &["memory"]),
    (
        "PJRT_Device_MemoryStats",
        &[
            "peak_bytes_in_use_is_set",
            "bytes_in_use",
            "peak_bytes_in_use if peak_bytes_in_use_is_set",
            "num_allocs_is_set",
            "num_allocs if num_allocs_is_set",
            "largest_alloc_size_is_set",
            "largest_alloc_size if largest_alloc_size_is_set",
            "bytes_limit_is_set",
            "bytes_limit if bytes_limit_is_set",
            "bytes_reserved_is_set",
            "bytes_reserved if bytes_reserved_is_set",
            "peak_bytes_reserved_is_set",
            "peak_bytes_reserved if peak_bytes_reserved_is_set",
            "bytes_reservable_limit_is_set",
            "bytes_reservable_limit if bytes_reservable_limit_is_set",
            "largest_free_block_bytes_is_set",
            "largest_free_block_bytes if largest_free_block_bytes_is_set",
            "pool_bytes_is_set",
            "pool_bytes if pool_bytes_is_set",
            "peak_pool_bytes_is_set",
            "peak_pool_bytes if peak_pool_bytes_is_set",
            "peak_allocated_bytes_is_set",
            "peak_allocated_bytes if peak_allocated_bytes_is_set",
        ],
    ),
    ("PJRT_Device_PoisonExecution", &["poisoned"]),
    ("PJRT_Device_GetAttributes", &["num_attributes", "attributes if num_attributes", "attributes_deleter"]),
    ("PJRT_Device_CreateAsyncTrackingEvent", &["event"]),
    ("PJRT_Memory_Id", &["id"]),
    ("PJRT_Memory_Kind", &["kind_size", "kind if kind_size"]),
    ("PJRT_Memory_Kind_Id", &["kind_id"]),
    ("PJRT_Memory_DebugString", &["debug_string_size", "debug_string if debug_string_size"]),
    ("PJRT_Memory_ToString", &["to_string_size", "to_string if to_string_size"]),
    ("PJRT_Memory_AddressableByDevices", &["num_devices", "devices if num_devices"]),
    ("PJRT_ExecuteContext_Create", &["context"]),
    ("PJRT_AsyncHostToDeviceTransferManager_TransferData", &["done_with_h2d_transfer"]),
    ("PJRT_AsyncHostToDeviceTransferManager_TransferLiteral", &["done_with_h2d_transfer"]),
    ("PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer", &["buffer_out"]),
    ("PJRT_AsyncHostToDeviceTransferManager_Device", &["device_out"]),
    ("PJRT_AsyncHostToDeviceTransferManager_BufferCount", &["buffer_count"]),
    ("PJRT_AsyncHostToDeviceTransferManager_BufferSize", &["buffer_size"]),
    ("PJRT_LoadedExecutable_GetExecutable", &["executable"]),
    (
        "PJRT_LoadedExecutable_GetDeviceAssignment",
        &[
            "serialized_bytes_size",
            "serialized_bytes if serialized_bytes_size",
            "serialized_device_assignment_deleter",
        ],
    ),
    (
        "PJRT_LoadedExecutable_AddressableDevices",
        &["num_addressable_devices", "addressable_devices if num_addressable_devices"],
    ),
    (
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds",
        &[
            "num_addressable_device_logical_ids",
            "addressable_device_logical_ids if num_addressable_device_logical_ids",
        ],
    ),
    ("PJRT_LoadedExecutable_IsDeleted", &["is_deleted"]),
    (
        "PJRT_LoadedExecutable_Fingerprint",
        &["executable_fingerprint_size", "executable_fingerprint if executable_fingerprint_size"],
    ),
    ("PJRT_Executable_Name", &["executable_name_size", "executable_name if executable_name_size"]),
    ("PJRT_Executable_NumReplicas", &["num_replicas"]),
    ("PJRT_Executable_NumPartitions", &["num_partitions"]),
    ("PJRT_Executable_NumOutputs", &["num_outputs"]),
    ("PJRT_Executable_SizeOfGeneratedCodeInBytes", &["size_in_bytes"]),
    (
        "PJRT_Executable_Fingerprint",
        &["executable_fingerprint_size", "executable_fingerprint if executable_fingerprint_size"],
    ),
    ("PJRT_Executable_GetCostAnalysis", &["num_properties", "properties if num_properties"]),
    (
        "PJRT_Executable_GetCompiledMemoryStats",
        &[
            "generated_code_size_in_bytes",
            "argument_size_in_bytes",
            "output_size_in_bytes",
            "alias_size_in_bytes",
            "temp_size_in_bytes",
            "host_generated_code_size_in_bytes",
            "host_argument_size_in_bytes",
            "host_output_size_in_bytes",
            "host_alias_size_in_bytes",
            "host_temp_size_in_bytes",
            "peak_memory_in_bytes",
            "total_size_in_bytes",
            "total_allocation_bytes",
            "indefinite_allocations",
            "peak_unpadded_heap_bytes",
        ],
    ),
    ("PJRT_Executable_OutputElementTypes", &["num_output_types", "output_types if num_output_types"]),
    ("PJRT_Executable_OutputDimensions", &["num_outputs", "dims if num_outputs", "dim_sizes if num_outputs"]),
    (
        "PJRT_Executable_ParameterMemoryKinds",
        &["num_parameters", "memory_kinds if num_parameters", "memory_kind_sizes if num_parameters"],
    ),
    (
        "PJRT_Executable_OutputMemoryKinds",
        &["num_outputs", "memory_kinds if num_outputs", "memory_kind_sizes if num_outputs"],
    ),
    (
        "PJRT_Executable_Serialize",
        &[
            "serialized_bytes_size",
            "serialized_bytes if serialized_bytes_size",
            "serialized_executable_deleter",
        ],
    ),
    (
        "PJRT_Executable_GetCompileOptions",
        &[
            "serialized_bytes_size",
            "serialized_bytes if serialized_bytes_size",
            "serialized_compile_options_deleter",
        ],
    ),
    ("PJRT_Executable_DeserializeAndLoad", &["loaded_executable"]),
    ("PJRT_Buffer_ElementType", &["type_"]),
    ("PJRT_Buffer_Dimensions", &["num_dims", "dims if num_dims"]),
    ("PJRT_Buffer_UnpaddedDimensions", &["num_dims", "unpadded_dims if num_dims"]),
    ("PJRT_Buffer_DynamicDimensionIndices", &["num_dynamic_dims", "dynamic_dim_indices if num_dynamic_dims"]),
    ("PJRT_Buffer_GetMemoryLayout", &["layout.type_"]),
    ("PJRT_Buffer_ToHostBuffer", &["event"]),
    ("PJRT_Buffer_OnDeviceSizeInBytes", &["on_device_size_in_bytes"]),
    ("PJRT_Buffer_IsDeleted", &["is_deleted"]),
    ("PJRT_Buffer_CopyRawToHost", &["event"]),
    ("PJRT_Buffer_CopyRawToHostFuture", &["future_ready_callback", "event"]),
    ("PJRT_Buffer_CopyToMemory", &["dst_buffer"]),
    ("PJRT_Buffer_Bitcast", &["out_buffer"]),
    ("PJRT_Buffer_IsOnCpu", &["is_on_cpu"]),
    ("PJRT_Buffer_Device", &["device"]),
    ("PJRT_Buffer_Memory", &["memory"]),
    ("PJRT_Buffer_ReadyEvent", &["event"]),
    ("PJRT_Buffer_UnsafePointer", &["buffer_pointer"]),
    ("PJRT_Buffer_OpaqueDeviceMemoryDataPointer", &["device_memory_ptr"]),
    ("PJRT_Buffer_DonateWithControlDependency", &["dependency_ready_callback", "out_buffer"]),
    (
        "PJRT_TopologyDescription_PlatformVersion",
        &["platform_version_size", "platform_version if platform_version_size"],
    ),
    ("PJRT_TopologyDescription_PlatformName", &["platform_name_size", "platform_name if platform_name_size"]),
    (
        "PJRT_TopologyDescription_GetDeviceDescriptions",
        &["num_descriptions", "descriptions if num_descriptions"],
    ),
    (
        "PJRT_TopologyDescription_Serialize",
        &[
            "serialized_bytes_size",
            "serialized_bytes if serialized_bytes_size",
            "serialized_topology_deleter",
        ],
    ),
    ("PJRT_TopologyDescription_Deserialize", &["topology"]),
    ("PJRT_TopologyDescription_Attributes", &["num_attributes", "attributes if num_attributes"]),
    (
        "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",
        &["serialized_shape_size", "serialized_shape if serialized_shape_size", "serialized_shape_deleter"],
    ),
    ("PJRT_Buffer_CopyToDevice", &["dst_buffer"]),
    (
        "PJRT_TopologyDescription_GetMemorySpaceKindIds",
        &["num_memory_space_kind_ids", "memory_space_kind_ids if num_memory_space_kind_ids"],
    ),
    ("PJRT_TopologyDescription_Fingerprint", &["fingerprint"]),
    ("PJRT_Compile", &["executable"]),
];

/// Returns a check for each function that has outputs.
pub(super) fn by_function() -> Vec<Check> {
    let of_function = |(function, outputs): &(&'static str, &'static [&'static str])| {
        let (function, outputs) = (*function, *outputs);
        let (_, call, older) = CALLS
            .iter()
            .find(|(name, ..)| *name == function)
            .expect("there is a call for each function with outputs");
        let (call, smallest) = (*call, older.first().copied());
        let names: Vec<&str> = outputs.iter().map(|output| Output::parse(output).name).collect();
        let first = names[0].split('.').next().unwrap_or_default();
        Check {
            name: format!("outputs/{function}"),
            rule: format!(
                "The caller of {function} does not clear its outputs: {} {} written, even if the value is zero, false or null.",
                names.join(", "),
                if names.len() == 1 { "is" } else { "are" }
            ).into(),
            source: Source::Header {
                place: function,
                text: "The fields are marked `out`: the function writes them. No sentence asks callers to clear them first.",
            },
            is_of_the_table: false,
            since: 0,
            needed_by: &[],
            users: Users::Callers(function),
            needed_since: 0,
            // Other checks cover the outputs in a struct that was cleared.
            fault: match names[0].contains('.') {
                true => format!("{function} unwritten {first}").into(),
                false => format!("{function} when {first}!=0 unwritten {first}").into(),
            },
            also: if function == "PJRT_Buffer_GetMemoryLayout" { &["buffer/memory_layout"] } else { &[] },
            run: Box::new(move |context| written(context, function, call, outputs, smallest)),
        }
    };
    OUTPUTS.iter().map(of_function).collect()
}

/// The patterns that outputs are filled with. A function may write the bytes of one pattern by chance, but
/// not those of all.
const PATTERNS: [u8; 4] = [0xA5, 0x5A, 0x3C, 0xC3];

fn written(
    context: &Context,
    function: &'static str,
    call: Call,
    outputs: &'static [&'static str],
    smallest: Option<usize>,
) -> Verdict {
    let client = context.client()?;
    let objects = Objects { plugin: context.plugin, client: &client, context };
    if let Err(error) = call(&objects) {
        return Err(match error.code {
            Code::UNIMPLEMENTED => error.into(),
            _ => Finding::NotApplicable(format!("the function fails even with a cleared struct: {error}")),
        });
    }
    // A plugin of an older version does not know the fields that were added later.
    let smallest = smallest.filter(|_| context.minor() < PJRT_API_MINOR);
    let known = |range: &Range<usize>| smallest.is_none_or(|smallest| range.end <= smallest);
    let mut left: Vec<(Output, Range<usize>)> = outputs
        .iter()
        .map(|text| Output::parse(text))
        .filter_map(|output| Some((output, output.range(function)?)))
        .filter(|(_, range)| known(range))
        .collect();
    let watched: Vec<_> = left
        .iter()
        .map(|(output, place)| (place.clone(), output.when.and_then(|when| range(function, when))))
        .collect();
    let mut kept = vec![Vec::new(); left.len()];
    let mut outcome: Result<(), Error> = Ok(());
    for (round, pattern) in PATTERNS.into_iter().enumerate() {
        let (result, unwritten, used) = prefilled(function, pattern, &watched, || call(&objects));
        ensure!(used, "the check did not call the function");
        if result.is_err() {
            // A call that fails leaves its outputs as they are. It may fail for another reason than their contents.
            call(&objects).map_err(|error| {
                Finding::NotApplicable(format!("the function fails when it is called again: {error}"))
            })?;
        }
        outcome = outcome.and(result);
        for (kept, bytes) in kept.iter_mut().zip(unwritten) {
            match round {
                0 => *kept = bytes,
                _ => kept.retain(|byte| bytes.contains(byte)),
            }
        }
        if kept.iter().all(Vec::is_empty) {
            break;
        }
    }
    let mut kept = kept.into_iter();
    left.retain(|_| kept.next().is_some_and(|bytes| !bytes.is_empty()));
    let names: Vec<&str> = left.iter().map(|(output, _)| output.name).collect();
    ensure!(
        names.is_empty(),
        "{function} did not write all of {}: a host that does not clear its struct reads garbage there",
        names.join(", ")
    );
    outcome.map_err(|error| Finding::Wrong(format!("the call fails if its outputs hold garbage: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_fields_of_functions_that_are_called() {
        for (function, outputs) in OUTPUTS {
            assert!(CALLS.iter().any(|(name, ..)| name == function), "{function}");
            for output in *outputs {
                let output = Output::parse(output);
                assert!(output.range(function).is_some(), "{function} {}", output.name);
                let when = output.when.is_none_or(|when| range(function, when).is_some());
                assert!(when, "{function} {output:?}");
            }
        }
    }
}
