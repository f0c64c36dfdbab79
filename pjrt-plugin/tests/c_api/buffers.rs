//! Buffers: uploads in every shape, readbacks in every layout, states.

use std::ptr;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::dummy::run_queue;
use crate::host::*;

fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Uploads and reads back.
fn round_trip(upload: &Upload<'_>) -> Vec<u8> {
    let client = Client::new(&[]);
    let upload = Upload { device: client.devices()[0], ..*upload };
    let (buffer, done) = upload.to(&client).unwrap();
    await_event(done).unwrap();
    destroy_event(done);
    buffer.bytes(ptr::null_mut()).unwrap()
}

#[test]
fn strides_of_every_kind_are_understood() {
    let numbers: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let dense = Upload { dims: &[2, 3], ..Upload::new(&numbers) };
    assert_eq!(round_trip(&dense), bytes_of(&numbers));
    assert_eq!(round_trip(&Upload { strides: Some(&[12, 4]), ..dense }), bytes_of(&numbers));
    let transposed = Upload { dims: &[3, 2], strides: Some(&[4, 12]), ..dense };
    assert_eq!(round_trip(&transposed), bytes_of(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let reversed = Upload { data: numbers[5..].as_ptr().cast(), dims: &[6], strides: Some(&[-4]), ..dense };
    assert_eq!(round_trip(&reversed), bytes_of(&[5.0, 4.0, 3.0, 2.0, 1.0, 0.0]));
    let repeated = Upload { dims: &[2, 2], strides: Some(&[0, 4]), ..dense };
    assert_eq!(round_trip(&repeated), bytes_of(&[0.0, 1.0, 0.0, 1.0]));
}

#[test]
fn arrays_of_nothing_and_scalars_make_the_trip() {
    let numbers = [7.0_f32];
    assert_eq!(round_trip(&Upload { dims: &[0, 3], ..Upload::new(&numbers) }), [0_u8; 0]);
    assert_eq!(round_trip(&Upload { dims: &[], ..Upload::new(&numbers) }), bytes_of(&numbers));
    let nothing =
        Upload { data: ptr::null(), dims: &[3, 0], strides: Some(&[0, 4]), ..Upload::new(&numbers) };
    assert_eq!(round_trip(&nothing), [0_u8; 0]);
}

#[test]
fn elements_of_less_than_a_byte_come_unpacked() {
    let upload = Upload { element_type: PJRT_Buffer_Type_S4, dims: &[4], ..Upload::new(&[1_u8, 2, 3, 4]) };
    assert_eq!(round_trip(&upload), [1, 2, 3, 4]);
}

#[test]
fn wrong_uploads_are_refused() {
    let client = Client::new(&[]);
    let numbers = [0.0_f32; 4];
    let good = Upload { dims: &[4], device: client.devices()[0], ..Upload::new(&numbers) };
    let refused = |upload: Upload<'_>, what: &str| {
        let error = upload.to(&client).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
        assert!(error.message.contains(what), "{error:?}");
    };
    refused(Upload { dims: &[-1], ..good }, "overflows the address space");
    refused(Upload { dims: &[i64::MAX, 4], ..good }, "overflows the address space");
    refused(Upload { strides: Some(&[4, 4]), ..good }, "2 byte strides");
    refused(Upload { strides: Some(&[i64::MAX]), ..good }, "overflow the address space");
    refused(Upload { element_type: PJRT_Buffer_Type_INVALID, ..good }, "element type");
    refused(Upload { data: ptr::null(), ..good }, "'data' is null");
    refused(Upload { device: ptr::null_mut(), ..good }, "'device' and 'memory' are both null");
    let other = Client::new(&[]);
    refused(Upload { device: other.devices()[0], ..good }, "another client");
}

#[test]
fn host_memory_is_released_when_the_plugin_is_done_with_it() {
    let numbers = [1.0_f32, 2.0, 3.0, 4.0];
    for (semantics, opaque, kept) in [
        (PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, 0, false),
        (PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes, 0, false),
        (PJRT_HostBufferSemantics_kImmutableZeroCopy, 1, false),
        (PJRT_HostBufferSemantics_kImmutableZeroCopy, 0, true),
        (PJRT_HostBufferSemantics_kMutableZeroCopy, 0, true),
    ] {
        let opaque = text_option("opaque", if opaque == 1 { "true" } else { "false" });
        let client = Client::new(&[opaque]);
        let upload = Upload { dims: &[4], semantics, device: client.devices()[0], ..Upload::new(&numbers) };
        let (buffer, done) = upload.to(&client).unwrap();
        assert_eq!(is_ready(done), !kept);
        assert_eq!(buffer.numbers().unwrap(), numbers);
        buffer.delete();
        assert!(is_ready(done));
        destroy_event(done);
    }
}

#[test]
fn layouts_of_the_host_are_honoured() {
    let client = Client::new(&[]);
    let numbers: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let upload = Upload { dims: &[2, 3], device: client.devices()[0], ..Upload::new(&numbers) };
    let (buffer, done) = upload.to(&client).unwrap();
    destroy_event(done);
    let read = |u, type_| {
        // Sizes of nested structs are what hosts leave uninitialized.
        let mut layout = PJRT_Buffer_MemoryLayout {
            struct_size: 2,
            extension_start: ptr::without_provenance_mut(1),
            u,
            type_,
        };
        buffer.bytes(&raw mut layout)
    };
    let column_major = bytes_of(&[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let tiled = |order: &[i64]| {
        let tiled = PJRT_Buffer_MemoryLayout_Tiled {
            minor_to_major: order.as_ptr(),
            minor_to_major_size: order.len(),
            ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
        };
        read(PJRT_Buffer_MemoryLayout_Union { tiled }, PJRT_Buffer_MemoryLayout_Type_Tiled)
    };
    assert_eq!(tiled(&[1, 0]).unwrap(), bytes_of(&numbers));
    assert_eq!(tiled(&[0, 1]).unwrap(), column_major);
    assert!(tiled(&[0]).unwrap_err().message.contains("1 dimensions"));
    assert!(tiled(&[0, 0]).unwrap_err().message.contains("permutation"));
    let strided = |strides: &[i64]| {
        let strides = PJRT_Buffer_MemoryLayout_Strides {
            byte_strides: strides.as_ptr(),
            num_byte_strides: strides.len(),
            ..PJRT_Buffer_MemoryLayout_Strides::zeroed()
        };
        read(PJRT_Buffer_MemoryLayout_Union { strides }, PJRT_Buffer_MemoryLayout_Type_Strides)
    };
    assert_eq!(strided(&[4, 8]).unwrap(), column_major);
    assert!(strided(&[16, 4]).unwrap_err().message.contains("too small"));
    assert!(strided(&[-12, 4]).unwrap_err().message.contains("before it"));
}

#[test]
fn a_destination_that_is_too_small_is_refused() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    let mut dst = [0_u8; 15];
    let error = call!(PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args {
        src: buffer.0,
        dst: dst.as_mut_ptr().cast(),
        dst_size: 15,
    }))
    .err()
    .unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert_eq!(dst, [0; 15]);
}

#[test]
fn a_pending_buffer_answers_getters_and_fills_readbacks_later() {
    let client = Client::new(&[option("uploads", 201)]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let event = buffer.ready();
    assert!(!is_ready(event));
    let args =
        call!(PJRT_Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: buffer.0 }));
    assert_eq!(args.unwrap().on_device_size_in_bytes, 16);
    let mut dst = [0_f32; 4];
    let read = call!(PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args {
        src: buffer.0,
        dst: dst.as_mut_ptr().cast(),
        dst_size: 16,
    }))
    .unwrap()
    .event;
    let device = client.devices()[1];
    let copy = call!(PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args {
        buffer: buffer.0,
        dst_device: device
    }));
    let copy = Buffer(copy.unwrap().dst_buffer);
    // The readback holds on to the storage.
    buffer.delete();
    assert!(buffer.is_deleted() && !is_ready(read));
    assert_eq!(run_queue(201), 1);
    assert!(is_ready(event));
    await_event(read).unwrap();
    assert_eq!(dst, [1.0, 2.0, 3.0, 4.0]);
    // The copy is an upload of its own.
    assert_eq!(run_queue(201), 1);
    assert_eq!(copy.numbers().unwrap(), dst);
    destroy_event(event);
    destroy_event(read);
}

#[test]
fn a_deleted_buffer_says_so() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    assert!(!buffer.is_deleted());
    buffer.delete();
    buffer.delete();
    assert!(buffer.is_deleted());
    let event = buffer.ready();
    assert!(is_ready(event));
    assert!(await_event(event).unwrap_err().message.contains("deleted or donated"));
    destroy_event(event);
    let error = buffer.numbers().unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.contains("deleted or donated"), "{error:?}");
    let args = call!(PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args { buffer: buffer.0 })).unwrap();
    assert_eq!(array(args.dims, args.num_dims), [4]);
}

#[test]
fn external_references_keep_the_bytes_where_they_are() {
    let client = Client::new(&[text_option("opaque", "false")]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let pin = || {
        call!(PJRT_Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args {
            buffer: buffer.0
        }))
    };
    let unpin = || {
        call!(PJRT_Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args {
            buffer: buffer.0
        }))
    };
    let error = unpin().err().unwrap();
    assert!(error.message.contains("zero reference count"), "{error:?}");
    pin().unwrap();
    pin().unwrap();
    buffer.delete();
    let pointer =
        call!(PJRT_Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
            buffer: buffer.0
        }))
        .unwrap()
        .device_memory_ptr;
    assert_eq!(array(pointer.cast_const().cast::<f32>(), 4), [1.0, 2.0, 3.0, 4.0]);
    unpin().unwrap();
    unpin().unwrap();
    assert!(unpin().is_err());
    let args = call!(PJRT_Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args { buffer: buffer.0 })).unwrap();
    assert!(args.is_on_cpu);
}

#[test]
fn buffers_move_between_devices_and_memories() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let to_device = |dst_device| {
        call!(PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args { buffer: buffer.0, dst_device }))
            .map(|args| Buffer(args.dst_buffer))
    };
    let copy = to_device(client.devices()[1]).unwrap();
    assert_eq!(copy.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert!(to_device(client.devices()[0]).is_err());
    let dst_memory = client.memories(0)[1];
    let args =
        call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args { buffer: buffer.0, dst_memory }));
    let copy = Buffer(args.unwrap().dst_buffer);
    let args = call!(PJRT_Buffer_Memory(PJRT_Buffer_Memory_Args { buffer: copy.0 })).unwrap();
    assert_eq!(args.memory, dst_memory);
    assert_eq!(copy.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_copy_through_the_host_waits_for_nothing() {
    // A device with one thread for everything could not finish a readback that something on it waits for.
    let client = Client::new(&[option("uploads", 202), option("readbacks", 203)]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let dst_device = client.devices()[1];
    let args =
        call!(PJRT_Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args { buffer: buffer.0, dst_device }))
            .unwrap();
    let copy = Buffer(args.dst_buffer);
    let event = copy.ready();
    drop(buffer);
    for queue in [202, 203, 202] {
        assert!(!is_ready(event));
        assert_eq!(run_queue(queue), 1);
    }
    await_event(event).unwrap();
    destroy_event(event);
}

#[test]
fn a_raw_copy_outside_of_the_buffer_is_the_events_error() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let mut dst = [0_f32; 2];
    let mut copy = |offset| {
        let args = call!(PJRT_Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args {
            buffer: buffer.0,
            dst: dst.as_mut_ptr().cast(),
            offset,
            transfer_size: 8,
        }))
        .unwrap();
        let outcome = await_event(args.event);
        destroy_event(args.event);
        outcome.map(|()| dst)
    };
    assert_eq!(copy(4).unwrap(), [2.0, 3.0]);
    for offset in [-1, 12, i64::MAX] {
        let error = copy(offset).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
        assert!(
            error.message.contains("a copy of 8 bytes") && error.message.contains("a buffer of 16 bytes"),
            "{error:?}"
        );
    }
}

#[test]
fn an_error_buffer_is_in_error() {
    let client = Client::new(&[]);
    let (dims, message) = ([4_i64], "it was like this when I came");
    let args = call!(PJRT_Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args {
        client: client.0,
        error_code: PJRT_Error_Code_DATA_LOSS,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        shape_dims: dims.as_ptr(),
        shape_num_dims: 1,
        shape_element_type: PJRT_Buffer_Type_F32,
        memory: client.memories(0)[0],
    }));
    let buffer = Buffer(args.unwrap().buffer);
    let error = buffer.numbers().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::DataLoss as u32, message));
    // A program that reads it gives the same error.
    let launch = client.compile("negate").unwrap().run(&[&buffer]).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap_err(), error);
    assert_eq!(await_event(launch.events[0]).unwrap_err(), error);
}

#[test]
fn an_alias_becomes_what_it_stands_for() {
    let client = Client::new(&[]);
    let (buffer, promise) = client.alias();
    let launch = client.compile("negate").unwrap().run(&[&buffer]).unwrap();
    assert!(!is_ready(launch.events[0]));
    let real = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    fulfill(promise, &real);
    assert_eq!(buffer.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
    let (buffer, promise) = client.alias();
    call!(PJRT_Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args {
        status_code: PJRT_Error_Code_ABORTED,
        fulfill_alias_buffer_cb: promise,
    }))
    .unwrap();
    assert_eq!(buffer.numbers().unwrap_err().code, ErrorCode::Aborted as u32);
}

#[test]
fn an_uninitialised_buffer_has_a_size() {
    let client = Client::new(&[]);
    let dims = [4_i64];
    let args = call!(PJRT_Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args {
        client: client.0,
        shape_dims: dims.as_ptr(),
        shape_num_dims: 1,
        shape_element_type: PJRT_Buffer_Type_F32,
        memory: client.memories(1)[0],
    }));
    assert_eq!(Buffer(args.unwrap().buffer).numbers().unwrap().len(), 4);
}

#[test]
fn a_donation_with_a_dependency_is_ready_when_the_host_says_so() {
    let client = Client::new(&[]);
    let donate = |buffer: &Buffer| {
        call!(PJRT_Buffer_DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args {
            buffer: buffer.0
        }))
        .map(|args| (Buffer(args.out_buffer), args))
    };
    let say = |args: &PJRT_Buffer_DonateWithControlDependency_Args, error_code| {
        let mut said = PJRT_Buffer_DonateWithControlDependency_Callback_Args {
            callback_data: args.callback_data,
            error_code,
            ..PJRT_Buffer_DonateWithControlDependency_Callback_Args::zeroed()
        };
        // SAFETY: the callback is called once, with its data.
        unsafe { (args.dependency_ready_callback.unwrap())(&raw mut said) };
    };
    let buffer = client.upload(0, &[1.0; 4]);
    let (donated, args) = donate(&buffer).unwrap();
    assert!(buffer.is_deleted() && donate(&buffer).is_err());
    let event = donated.ready();
    assert!(!is_ready(event));
    say(&args, PJRT_Error_Code_OK);
    assert!(is_ready(event));
    destroy_event(event);
    assert_eq!(donated.numbers().unwrap(), [1.0; 4]);
    let (donated, args) = donate(&donated).unwrap();
    say(&args, PJRT_Error_Code_ABORTED);
    assert_eq!(donated.numbers().unwrap_err().code, ErrorCode::Aborted as u32);
}

#[test]
fn a_raw_copy_can_learn_later_where_to_go() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let mut dst = [0_f32; 2];
    let mut copy = |offset, error_code| {
        let args = call!(PJRT_Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args {
            buffer: buffer.0,
            offset,
            transfer_size: 8,
        }))
        .unwrap();
        assert!(!is_ready(args.event));
        let mut said = PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
            callback_data: args.callback_data,
            error_code,
            dst: dst.as_mut_ptr().cast(),
            ..PJRT_Buffer_CopyRawToHostFuture_Callback_Args::zeroed()
        };
        // SAFETY: the callback is called once, with its data.
        unsafe { (args.future_ready_callback.unwrap())(&raw mut said) };
        let outcome = await_event(args.event);
        destroy_event(args.event);
        outcome.map(|()| dst)
    };
    assert_eq!(copy(8, PJRT_Error_Code_OK).unwrap(), [3.0, 4.0]);
    assert_eq!(copy(8, PJRT_Error_Code_ABORTED).unwrap_err().code, ErrorCode::Aborted as u32);
    assert_eq!(copy(12, PJRT_Error_Code_OK).unwrap_err().code, ErrorCode::InvalidArgument as u32);
}

#[test]
fn a_bitcast_reads_the_same_bytes_as_another_array() {
    let client = Client::new(&[option("uploads", 204)]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let bitcast_of = |buffer: &Buffer, element_type, dims: &[i64]| {
        call!(PJRT_Buffer_Bitcast(PJRT_Buffer_Bitcast_Args {
            buffer: buffer.0,
            element_type,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
        }))
        .map(|args| Buffer(args.out_buffer))
    };
    let bitcast = |element_type, dims: &[i64]| bitcast_of(&buffer, element_type, dims);
    // The data is not there yet.
    let cast = bitcast(PJRT_Buffer_Type_U16, &[2, 4]).unwrap();
    while run_queue(204) > 0 {}
    let halves = [0, 0x3f80, 0, 0x4000, 0, 0x4040, 0, 0x4080_u16];
    assert_eq!(cast.bytes(ptr::null_mut()).unwrap(), halves.map(u16::to_ne_bytes).concat());
    let args = call!(PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args { buffer: cast.0 })).unwrap();
    assert_eq!(array(args.dims, args.num_dims), [2, 4]);
    assert!(!buffer.is_deleted());
    let error = bitcast(PJRT_Buffer_Type_U16, &[4]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
    let error = bitcast(PJRT_Buffer_Type_U4, &[16]).err().unwrap();
    assert!(error.message.contains("their sizes are 16 and 8 bytes"), "{error:?}");
    // Two elements of 4 bits share a byte, and the first one is in its lower half.
    let cast = bitcast(PJRT_Buffer_Type_U4, &[32]).unwrap();
    while run_queue(204) > 0 {}
    assert_eq!(cast.bytes(ptr::null_mut()).unwrap()[4..8], [0, 8, 0xf, 3]);
    let back = bitcast_of(&cast, PJRT_Buffer_Type_F32, &[4]).unwrap();
    while run_queue(204) > 0 {}
    assert_eq!(back.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn why_a_plugin_shows_no_bytes_is_said_and_they_can_be_asked_for_again() {
    let pointer = |buffer: &Buffer| {
        call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args { buffer: buffer.0 }))
            .map(|args| args.buffer_pointer)
    };
    let opaque_pointer = |buffer: &Buffer| {
        let args =
            PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: buffer.0, ..SizedStruct::zeroed() };
        call!(PJRT_Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
            buffer: args.buffer,
        }))
        .map(|args| args.device_memory_ptr.addr())
    };
    for opaque in ["false", "true"] {
        let client = Client::new(&[text_option("scarce", "true"), text_option("opaque", opaque)]);
        for ask in [&pointer as &dyn Fn(&Buffer) -> Result<usize>, &opaque_pointer] {
            let buffer = client.upload(0, &[3.0; 4]);
            let error = ask(&buffer).unwrap_err();
            assert_eq!(error.code, ErrorCode::ResourceExhausted as u32, "{error:?}");
            assert!(error.message.contains("no room for 16 bytes"), "{error:?}");
            assert_ne!(ask(&buffer).unwrap(), 0);
            assert_eq!(buffer.numbers().unwrap(), [3.0; 4]);
        }
    }
}

#[test]
fn an_address_of_0_is_an_error_of_the_plugin() {
    let client = Client::new(&[text_option("raw", "true"), text_option("opaque", "true")]);
    let buffer = client.upload(0, &[3.0; 4]);
    let pointer = call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args { buffer: buffer.0 }));
    let error = pointer.map(drop).unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal as u32);
    assert!(error.message.contains("device_address returned 0"), "{error:?}");
}
