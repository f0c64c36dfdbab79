//! Shapes and memory kinds of topologies: slots 136 and 137.

use pjrt_plugin::{ErrorCode, Memory};
use pjrt_sys::*;

use crate::host::*;

fn topology(client: &Client) -> *mut PJRT_TopologyDescription {
    call!(PJRT_Client_TopologyDescription(PJRT_Client_TopologyDescription_Args { client: client.0 }))
        .unwrap()
        .topology
}

/// The serialized `ShapeProto` that the plugin makes.
fn shape(
    client: &Client,
    kind: i32,
    dims: &[i64],
    element_type: PJRT_Buffer_Type,
    layout: *const PJRT_Buffer_MemoryLayout,
) -> Result<Vec<u8>> {
    let args = call!(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace(
        PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
            topology: topology(client),
            memory_space_kind_id: kind,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            element_type,
            layout,
        }
    ))?;
    let bytes = array(args.serialized_shape.cast::<u8>(), args.serialized_shape_size).to_vec();
    // SAFETY: what the deleter is for, once.
    unsafe { args.serialized_shape_deleter.unwrap()(args.serialized_shape) };
    Ok(bytes)
}

#[test]
fn the_memory_kinds_of_a_topology_are_those_of_its_devices() {
    let client = Client::new(&[]);
    let args = call!(PJRT_TopologyDescription_GetMemorySpaceKindIds(
        PJRT_TopologyDescription_GetMemorySpaceKindIds_Args { topology: topology(&client) }
    ))
    .unwrap();
    let kinds = [Memory::DEVICE, Memory::PINNED_HOST].map(|kind| Memory::new(0, kind).kind_id());
    assert_eq!(array(args.memory_space_kind_ids, args.num_memory_space_kind_ids), kinds);
}

#[test]
fn a_shape_gets_the_layout_that_the_host_asks_for_or_the_usual_one() {
    let (client, kind) = (Client::new(&[]), Memory::new(0, Memory::DEVICE).kind_id());
    // By hand: bf16 is 16 to XLA (13 in the C API); dimensions 2 and 3; minor to major 1, 0; nothing is dynamic.
    let usual = shape(&client, kind, &[2, 3], PJRT_Buffer_Type_BF16, std::ptr::null()).unwrap();
    assert_eq!(usual, [16, 16, 26, 2, 2, 3, 42, 4, 10, 2, 1, 0, 50, 2, 0, 0]);
    let order = [0_i64, 1];
    let tiled = PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: order.as_ptr(),
        minor_to_major_size: 2,
        ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
    };
    let layout = PJRT_Buffer_MemoryLayout {
        u: PJRT_Buffer_MemoryLayout_Union { tiled },
        type_: PJRT_Buffer_MemoryLayout_Type_Tiled,
        ..PJRT_Buffer_MemoryLayout::zeroed()
    };
    let wanted = shape(&client, kind, &[2, 3], PJRT_Buffer_Type_BF16, &raw const layout).unwrap();
    assert_eq!(wanted, [16, 16, 26, 2, 2, 3, 42, 4, 10, 2, 0, 1, 50, 2, 0, 0]);
    // A number has neither dimensions nor an order of them.
    assert_eq!(shape(&client, kind, &[], PJRT_Buffer_Type_PRED, std::ptr::null()).unwrap(), [16, 1, 42, 0]);
}

#[test]
fn a_shape_for_no_memory_or_of_no_size_is_refused() {
    let (client, kind) = (Client::new(&[]), Memory::new(0, Memory::DEVICE).kind_id());
    for (kind, dims) in [(kind + 1, [2_i64]), (kind, [-1])] {
        let error = shape(&client, kind, &dims, PJRT_Buffer_Type_F32, std::ptr::null()).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
    }
}
