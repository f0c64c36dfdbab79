//! Functions beyond the table.

use std::ffi::c_char;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

fn layouts() -> &'static PJRT_Layouts_Extension {
    extension(PJRT_Extension_Type_Layouts)
}

fn layout_text(layout: *mut PJRT_Layouts_MemoryLayout) -> String {
    let args = call_extension!(
        layouts(),
        PJRT_Layouts_MemoryLayout_Serialize(PJRT_Layouts_MemoryLayout_Serialize_Args { layout })
    )
    .unwrap();
    let serialized = text(args.serialized_bytes, args.serialized_bytes_size);
    // SAFETY: what the deleter is for, once.
    unsafe { args.serialized_layout_deleter.unwrap()(args.serialized_layout) };
    serialized
}

fn destroy_layout(layout: *mut PJRT_Layouts_MemoryLayout) -> Result<()> {
    call_extension!(
        layouts(),
        PJRT_Layouts_MemoryLayout_Destroy(PJRT_Layouts_MemoryLayout_Destroy_Args { layout })
    )
    .map(drop)
}

#[test]
fn layouts_are_row_major_unless_a_plugin_says_otherwise() {
    let client = Client::new(&[]);
    let dims = [2_i64, 3, 4];
    let default = call_extension!(
        layouts(),
        PJRT_Layouts_PJRT_Client_GetDefaultLayout(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
            client: client.0,
            type_: PJRT_Buffer_Type(1),
            dims: dims.as_ptr(),
            num_dims: dims.len(),
        })
    )
    .unwrap()
    .layout;
    assert_eq!(layout_text(default), "{2,1,0}");
    destroy_layout(default).unwrap();
    let buffer = client.upload(0, &[1.0; 4]);
    let of_buffer = call_extension!(
        layouts(),
        PJRT_Layouts_PJRT_Buffer_MemoryLayout(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
            buffer: buffer.0
        })
    )
    .unwrap()
    .layout;
    // A layout of its own, which outlives the buffer.
    drop(buffer);
    assert_eq!(layout_text(of_buffer), "{0}");
    destroy_layout(of_buffer).unwrap();
    destroy_layout(std::ptr::null_mut()).unwrap();
}

#[test]
fn an_executable_keeps_the_layouts_of_its_parameters_and_outputs() {
    let client = Client::new(&[]);
    let loaded = client.compile("two").unwrap();
    let executable = loaded.get();
    let parameters = call_extension!(
        layouts(),
        PJRT_Layouts_PJRT_Executable_GetParameterLayouts(
            PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args { executable }
        )
    )
    .unwrap();
    let outputs = || {
        let args = call_extension!(
            layouts(),
            PJRT_Layouts_PJRT_Executable_GetOutputLayouts(
                PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args { executable }
            )
        )
        .unwrap();
        array(args.layouts.cast_const(), args.num_outputs).to_vec()
    };
    assert_eq!(array(parameters.layouts.cast_const(), parameters.num_parameters).len(), 1);
    assert_eq!(outputs().iter().map(|layout| layout_text(*layout)).collect::<Vec<_>>(), ["{0}", "{0}"]);
    assert_eq!(outputs(), outputs());
    call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
}

#[test]
fn shardings_are_what_the_author_says() {
    let client = Client::new(&[]);
    let shardings: &PJRT_Shardings_Extension = extension(PJRT_Extension_Type_Shardings);
    let outputs = |word: &str| {
        let loaded = client.compile(word).unwrap();
        let executable = loaded.get();
        let args = call_extension!(
            shardings,
            PJRT_Shardings_PJRT_Executable_OutputShardings(
                PJRT_Shardings_PJRT_Executable_OutputShardings_Args { executable }
            )
        );
        let read = args.map(|args| {
            let pointers: &[*const c_char] = array(args.shardings, args.num_outputs);
            let sizes = array(args.sharding_sizes, args.num_outputs);
            let read =
                pointers.iter().zip(sizes).map(|(start, size)| array(start.cast::<u8>(), *size).to_vec());
            (args.shardings.is_null(), read.collect::<Vec<_>>())
        });
        call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
        read
    };
    // Maximal on partition 1, and manual, as `OpSharding` messages.
    assert_eq!(outputs("two").unwrap(), (false, vec![vec![8, 1, 26, 1, 1, 34, 1, 1], vec![8, 4]]));
    assert_eq!(outputs("negate").unwrap(), (true, Vec::new()));
    // XLA's hosts expect one sharding for the empty tuple of outputs; this is how "replicated" is encoded.
    assert_eq!(outputs("none").unwrap(), (false, vec![vec![]]));
    let error = outputs("donate").unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal as u32);
    assert!(error.message.contains("0 shardings for 1 outputs"), "{error:?}");
}

#[test]
fn memory_descriptions_are_the_memories_of_devices_and_topologies() {
    let client = Client::new(&[]);
    let described = |description: *mut PJRT_DeviceDescription| {
        let memories: &PJRT_MemoryDescriptions_Extension = extension(PJRT_Extension_Type_MemoryDescriptions);
        let args = call_extension!(
            memories,
            PJRT_DeviceDescription_MemoryDescriptions(PJRT_DeviceDescription_MemoryDescriptions_Args {
                device_description: description
            })
        )
        .unwrap();
        let kind = |memory: &*const PJRT_MemoryDescription| {
            let args = call_extension!(
                memories,
                PJRT_MemoryDescription_Kind(PJRT_MemoryDescription_Kind_Args { memory_description: *memory })
            )
            .unwrap();
            assert_ne!(args.kind_id, 0);
            text(args.kind, args.kind_size)
        };
        let kinds: Vec<String> =
            array(args.memory_descriptions, args.num_memory_descriptions).iter().map(kind).collect();
        (kinds, args.default_memory_index)
    };
    let device = client.devices()[1];
    let args = call!(PJRT_Device_GetDescription(PJRT_Device_GetDescription_Args { device })).unwrap();
    let expected = (vec!["device".to_owned(), "pinned_host".to_owned()], 0);
    assert_eq!(described(args.device_description), expected);
    // The client's topology, and a copy of it that went through bytes.
    let topology =
        call!(PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 }))
            .unwrap();
    let bytes = call!(PJRT_TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args {
        topology: topology.topology
    }))
    .unwrap();
    let copy = call!(PJRT_TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args {
        serialized_topology: bytes.serialized_bytes,
        serialized_topology_size: bytes.serialized_bytes_size,
    }))
    .unwrap();
    // SAFETY: what the deleter is for, once.
    unsafe { bytes.serialized_topology_deleter.unwrap()(bytes.serialized_topology) };
    for topology in [topology.topology, copy.topology] {
        let args = call!(PJRT_TopologyDescription_GetDeviceDescriptions(
            PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology }
        ))
        .unwrap();
        for description in array(args.descriptions, args.num_descriptions) {
            assert_eq!(described(*description), expected);
        }
    }
    call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args {
        topology: copy.topology
    }))
    .unwrap();
    // A topology whose devices have none has no default either.
    let name = "row";
    let bare = call!(PJRT_TopologyDescription_Create(PJRT_TopologyDescription_Create_Args {
        topology_name: name.as_ptr().cast(),
        topology_name_size: name.len(),
    }))
    .unwrap();
    let args = call!(PJRT_TopologyDescription_GetDeviceDescriptions(
        PJRT_TopologyDescription_GetDeviceDescriptions_Args { topology: bare.topology }
    ))
    .unwrap();
    assert_eq!(described(array(args.descriptions, args.num_descriptions)[0]), (Vec::new(), usize::MAX));
    call!(PJRT_TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args {
        topology: bare.topology
    }))
    .unwrap();
}

#[test]
fn a_handle_of_another_kind_is_refused_by_an_extension() {
    let client = Client::new(&[]);
    let loaded = client.compile("two").unwrap();
    let error = call_extension!(
        layouts(),
        PJRT_Layouts_PJRT_Executable_GetOutputLayouts(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
            executable: std::ptr::null_mut()
        })
    )
    .unwrap_err();
    assert!(error.message.contains("'executable' is null"), "{error:?}");
    drop(loaded);
}
