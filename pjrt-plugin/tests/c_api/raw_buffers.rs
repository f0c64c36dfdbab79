//! The RawBuffer extension, through its functions and through those in a raw buffer's first word.

use std::ffi::c_void;
use std::ptr;
use std::sync::mpsc::{Sender, channel};

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::dummy::run_queue;
use crate::host::*;

fn raw_buffers() -> &'static PJRT_RawBuffer_Extension {
    extension(PJRT_Extension_Type_RawBuffer)
}

fn alias(buffer: &Buffer) -> Result<*mut PJRT_RawBuffer> {
    let args = PJRT_RawBuffer_CreateRawAliasOfBuffer_Args { buffer: buffer.0, ..SizedStruct::zeroed() };
    let args = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_CreateRawAliasOfBuffer(PJRT_RawBuffer_CreateRawAliasOfBuffer_Args {
            buffer: args.buffer
        })
    )?;
    Ok(args.raw_buffer)
}

fn destroy(buffer: *mut PJRT_RawBuffer) {
    call_extension!(raw_buffers(), PJRT_RawBuffer_Destroy(PJRT_RawBuffer_Destroy_Args { buffer })).unwrap();
}

fn finish(event: *mut PJRT_Event) -> Result<()> {
    let outcome = await_event(event);
    destroy_event(event);
    outcome
}

fn write(buffer: *mut PJRT_RawBuffer, bytes: &[u8], offset: i64) -> Result<()> {
    let args = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_CopyRawHostToDevice(PJRT_RawBuffer_CopyRawHostToDevice_Args {
            buffer,
            src: bytes.as_ptr().cast(),
            offset,
            transfer_size: bytes.len() as i64,
        })
    )?;
    finish(args.event)
}

fn read(buffer: *mut PJRT_RawBuffer, offset: i64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let args = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_CopyRawDeviceToHost(PJRT_RawBuffer_CopyRawDeviceToHost_Args {
            buffer,
            dst: bytes.as_mut_ptr().cast(),
            offset,
            transfer_size: len as i64,
        })
    )?;
    finish(args.event).map(|()| bytes)
}

#[test]
fn the_bytes_of_a_buffer_are_read_and_written_in_place() {
    let client = Client::new(&[text_option("raw", "true")]);
    let buffer = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let raw = alias(&buffer).unwrap();
    assert_eq!(read(raw, 4, 4).unwrap(), 2.0_f32.to_le_bytes());
    write(raw, &20.0_f32.to_le_bytes(), 4).unwrap();
    assert_eq!(buffer.numbers().unwrap(), [1.0, 20.0, 3.0, 4.0]);
    for (offset, len) in [(13, 4), (-1, 4), (17, 0)] {
        let error = read(raw, offset, len).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
    }
    let size = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_GetOnDeviceSizeInBytes(PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args { buffer: raw })
    );
    assert_eq!(size.unwrap().on_device_size_in_bytes, 16);
    let memory = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_GetMemorySpace(PJRT_RawBuffer_GetMemorySpace_Args { buffer: raw })
    );
    assert_eq!(memory.unwrap().memory_space, client.memories(0)[0]);
    let pointer = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_GetHostPointer(PJRT_RawBuffer_GetHostPointer_Args { buffer: raw })
    );
    assert!(pointer.unwrap().host_pointer.is_null(), "the memory is opaque");
    // The bytes outlive the buffer and the client.
    drop((buffer, client));
    assert_eq!(read(raw, 0, 4).unwrap(), 1.0_f32.to_le_bytes());
    destroy(raw);
}

#[test]
fn memory_that_the_host_can_read_is_shown_and_memory_that_it_lends_is_not_written() {
    let client = Client::new(&[text_option("opaque", "false")]);
    let numbers = [1.0_f32, 2.0, 3.0, 4.0];
    let upload = Upload {
        dims: &[4],
        device: client.devices()[0],
        semantics: PJRT_HostBufferSemantics_kImmutableZeroCopy,
        ..Upload::new(&numbers)
    };
    let (buffer, done) = upload.to(&client).unwrap();
    let raw = alias(&buffer).unwrap();
    let pointer = call_extension!(
        raw_buffers(),
        PJRT_RawBuffer_GetHostPointer(PJRT_RawBuffer_GetHostPointer_Args { buffer: raw })
    );
    assert_eq!(pointer.unwrap().host_pointer.cast_const().cast(), numbers.as_ptr());
    assert_eq!(write(raw, &[0; 4], 0).unwrap_err().code, ErrorCode::FailedPrecondition as u32);
    destroy(raw);
    drop(buffer);
    finish(done).unwrap();
}

#[test]
fn a_raw_buffer_of_a_deleted_buffer_is_refused() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &[1.0; 4]);
    buffer.delete();
    assert_eq!(alias(&buffer).unwrap_err().code, ErrorCode::InvalidArgument as u32);
}

/// A promise of the host, which sends its outcome to a channel.
#[repr(C)]
struct Promise {
    public: PJRT_DeviceEventPromise,
    shares: i32,
    sender: Sender<std::result::Result<(), String>>,
}

unsafe extern "C" fn inc_ref(promise: *mut PJRT_DeviceEventPromise) {
    // SAFETY: the promise is one of this file.
    unsafe { (*promise.cast::<Promise>()).shares += 1 };
}

unsafe extern "C" fn dec_ref(promise: *mut PJRT_DeviceEventPromise) {
    // SAFETY: as above.
    unsafe { (*promise.cast::<Promise>()).shares -= 1 };
}

unsafe extern "C" fn set_ready(promise: *mut PJRT_DeviceEventPromise) {
    // SAFETY: as above.
    unsafe { (*promise.cast::<Promise>()).sender.send(Ok(())).unwrap() };
}

unsafe extern "C" fn set_error(promise: *mut PJRT_DeviceEventPromise, error: *mut PJRT_Error) {
    let error = take_error(error).unwrap_err();
    // SAFETY: as above.
    unsafe { (*promise.cast::<Promise>()).sender.send(Err(error.message)).unwrap() };
}

static PROMISES: PJRT_DeviceEventPromise_FunctionTable_ =
    PJRT_DeviceEventPromise_FunctionTable_(PJRT_DeviceEventPromise_FunctionTable {
        struct_size: 72,
        instance_size: 0,
        extension_start: ptr::null_mut(),
        inc_ref: Some(inc_ref),
        dec_ref: Some(dec_ref),
        event: None,
        set: None,
        set_error: Some(set_error),
        set_ready: Some(set_ready),
    });

#[allow(non_camel_case_types, reason = "named after the table that it wraps")]
struct PJRT_DeviceEventPromise_FunctionTable_(PJRT_DeviceEventPromise_FunctionTable);
// SAFETY: the table's only pointer is null.
unsafe impl Sync for PJRT_DeviceEventPromise_FunctionTable_ {}

#[test]
fn a_scheduled_copy_waits_for_its_dependencies_and_keeps_its_promises() {
    let client = Client::new(&[text_option("raw", "true"), option("uploads", 9101)]);
    let source = client.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    let destination = client.upload(0, &[0.0; 4]);
    assert_eq!(run_queue(9101), 2);
    // What the copy waits for.
    let late = client.upload(0, &[0.0; 4]);
    let raws = [&source, &destination, &late].map(|buffer| alias(buffer).unwrap());
    // SAFETY: raw buffers begin with their table; everything that is passed lives until the promises are kept.
    unsafe {
        let table = &*(*raws[0]).vtable;
        let mut dependency = PJRT_DeviceEvent { vtable: ptr::null(), device_event: ptr::null_mut() };
        take_error((table.make_allocation_ready_event.unwrap())(raws[2], &raw mut dependency)).unwrap();
        let events = &*dependency.vtable;
        assert_eq!((events.get_state.unwrap())(dependency.device_event), PJRT_DeviceEvent_State_Unavailable);
        let mut dependencies =
            PJRT_DeviceEventVector { data: &raw mut dependency, size: 1, capacity: 1, destroy: None };
        let mut half = [ptr::null_mut(); 2];
        for (raw, half) in raws.iter().zip(&mut half) {
            take_error((table.slice.unwrap())(*raw, 4, 8, half)).unwrap();
        }
        assert_eq!((table.get_on_device_size_in_bytes.unwrap())(half[0]), 8);
        let (sender, receiver) = channel();
        let mut promise =
            Promise { public: PJRT_DeviceEventPromise { vtable: &raw const PROMISES.0 }, shares: 1, sender };
        let promise: *mut PJRT_DeviceEventPromise = (&raw mut promise).cast();
        unsafe extern "C" fn allocated(status: *mut PJRT_Error, count: *mut c_void) {
            take_error(status).unwrap();
            // SAFETY: the argument is the number below.
            unsafe { *count.cast::<i32>() += 1 };
        }
        let mut told = 0;
        (table.schedule_copy_to.unwrap())(
            half[0],
            &raw mut dependencies,
            half[1],
            promise,
            promise,
            Some(allocated),
            (&raw mut told).cast(),
        );
        (events.dec_ref.unwrap())(dependency.device_event);
        assert_eq!((told, receiver.try_recv().is_err()), (1, true));
        assert_eq!(run_queue(9101), 1);
        assert_eq!([receiver.recv().unwrap(), receiver.recv().unwrap()], [Ok(()), Ok(())]);
        assert_eq!((*promise.cast::<Promise>()).shares, 1);
        for raw in raws.into_iter().chain(half) {
            (table.dec_ref.unwrap())(raw);
        }
    }
    assert_eq!(destination.numbers().unwrap(), [0.0, 2.0, 3.0, 0.0]);
}
