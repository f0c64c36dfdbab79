//! The CrossHostTransfers extension: two clients of one process.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::mpsc::channel;

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::host::*;

fn transfers() -> &'static PJRT_CrossHostTransfers_Extension {
    extension(PJRT_Extension_Type_CrossHostTransfers)
}

fn send(client: &Client, buffer: &Buffer, to: i32, key: i64) -> *mut PJRT_Event {
    let (mut buffers, mut event) = ([buffer.0], ptr::null_mut());
    let (to, key) = ([to], [key]);
    call_extension!(
        transfers(),
        PJRT_Transfers_PJRT_Client_CrossHostSendBuffers(
            PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
                client: client.0,
                num_buffers: 1,
                buffers: buffers.as_mut_ptr(),
                dst_global_device_ids: to.as_ptr(),
                transfer_keys: key.as_ptr(),
                send_events: &raw mut event,
            }
        )
    )
    .unwrap();
    event
}

fn receive(client: &Client, device: usize, dims: &[i64], from: i32, key: i64) -> Buffer {
    let (mut rank, mut dims, mut buffer) = ([dims.len()], [dims.as_ptr()], ptr::null_mut());
    let (mut types, mut layouts) = ([PJRT_Buffer_Type_F32], [ptr::null_mut()]);
    let (from, key) = ([from], [key]);
    call_extension!(
        transfers(),
        PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers(
            PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
                client: client.0,
                num_shapes: 1,
                shape_num_dims: rank.as_mut_ptr(),
                num_dims: dims.as_mut_ptr(),
                element_types: types.as_mut_ptr(),
                layouts: layouts.as_mut_ptr(),
                device: client.devices()[device],
                src_global_device_ids: from.as_ptr(),
                transfer_keys: key.as_ptr(),
                buffers: &raw mut buffer,
            }
        )
    )
    .unwrap();
    Buffer(buffer)
}

#[test]
fn a_buffer_that_is_sent_arrives_whichever_side_is_first() {
    let (here, there) = (Client::new(&[]), Client::new(&[]));
    let buffer = here.upload(0, &[1.0, 2.0, 3.0, 4.0]);
    for (key, first) in [(71, true), (72, false)] {
        let early = first.then(|| receive(&there, 1, &[4], 0, key));
        if let Some(early) = &early {
            let ready = early.ready();
            assert!(!is_ready(ready));
            destroy_event(ready);
        }
        let event = send(&here, &buffer, 1, key);
        await_event(event).unwrap();
        destroy_event(event);
        let received = early.unwrap_or_else(|| receive(&there, 1, &[4], 0, key));
        assert_eq!(received.numbers().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}

#[test]
fn a_buffer_of_another_shape_gets_an_error_instead() {
    let (here, there) = (Client::new(&[]), Client::new(&[]));
    let received = receive(&there, 1, &[2, 2], 0, 73);
    let event = send(&here, &here.upload(0, &[1.0; 4]), 1, 73);
    destroy_event(event);
    let error = received.wait().unwrap_err();
    assert!(error.message.contains("f32[4] was sent to a buffer of shape f32[2, 2]"), "{error:?}");
}

type Cancel = PJRT_Transfers_CrossHostSendCancelNotifier;

/// Creates a buffer that is described, and returns its description and the function that cancels it.
fn describe(client: &Client) -> (Buffer, Vec<u8>, Cancel) {
    unsafe extern "C" fn notify(
        error: *mut PJRT_Error,
        descriptors: *mut *const c_char,
        sizes: *mut usize,
        count: usize,
        user_arg: *mut c_void,
        cancel: Cancel,
        _: *mut c_void,
    ) {
        take_error(error).unwrap();
        assert_eq!(count, 1);
        // SAFETY: the plugin gave the strings, and the argument is the place below.
        unsafe {
            let description = array((*descriptors).cast::<u8>(), *sizes).to_vec();
            *user_arg.cast::<(Vec<u8>, Cancel)>() = (description, cancel);
        }
    }
    let mut noted: (Vec<u8>, Cancel) = (Vec::new(), None);
    let dims = [4_i64];
    let (mut rank, mut dims, mut buffer) = ([1], [dims.as_ptr()], ptr::null_mut());
    let (mut types, mut layouts) = ([PJRT_Buffer_Type_F32], [ptr::null_mut()]);
    let args = call_extension!(
        transfers(),
        PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers(
            PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args {
                client: client.0,
                num_shapes: 1,
                shape_num_dims: rank.as_mut_ptr(),
                num_dims: dims.as_mut_ptr(),
                element_types: types.as_mut_ptr(),
                layouts: layouts.as_mut_ptr(),
                device: client.devices()[0],
                notifier: PJRT_Transfers_CrossHostRecvNotifierInfo {
                    user_arg: (&raw mut noted).cast(),
                    notifier: Some(notify),
                },
                buffers: &raw mut buffer,
            }
        )
    )
    .unwrap();
    assert_eq!(args.num_buffers, 1);
    (Buffer(buffer), noted.0, noted.1)
}

#[test]
fn a_buffer_that_describes_itself_is_filled_by_whoever_has_the_description() {
    let (here, there) = (Client::new(&[]), Client::new(&[]));
    let (received, description, _) = describe(&there);
    let buffer = here.upload(0, &[5.0, 6.0, 7.0, 8.0]);
    // Says that the description is there; both belong to the plugin then.
    let event = call!(PJRT_Event_Create(PJRT_Event_Create_Args {})).unwrap().event;
    let bytes = description.into_boxed_slice();
    let mut size = bytes.len();
    let mut place: *mut c_char = Box::into_raw(bytes).cast();
    unsafe extern "C" fn free(place: *mut *mut c_char, size: *mut usize) {
        // SAFETY: the bytes came from the box below.
        unsafe { drop(Box::from_raw(ptr::slice_from_raw_parts_mut((*place).cast::<u8>(), *size))) };
    }
    let (sender, receiver) = channel();
    unsafe extern "C" fn done(error: *mut PJRT_Error, enqueued: bool, user_arg: *mut c_void) {
        // SAFETY: the argument is the box below, and the plugin calls once.
        let sender = unsafe { Box::from_raw(user_arg.cast::<std::sync::mpsc::Sender<_>>()) };
        sender.send((take_error(error), enqueued)).unwrap();
    }
    let mut args = PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args {
        buffer: buffer.0,
        event,
        serialized_descriptor: &raw mut place,
        serialized_descriptor_size: &raw mut size,
        on_done: PJRT_Transfers_CrossHostRemoteSendCallbackInfo {
            user_arg: Box::into_raw(Box::new(sender)).cast(),
            on_done: Some(done),
        },
        descriptor_destructor: Some(free),
        ..SizedStruct::zeroed()
    };
    call!(PJRT_Event_Set(PJRT_Event_Set_Args { event })).unwrap();
    // SAFETY: the struct is filled in as the API says.
    unsafe { (transfers().PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice.unwrap())(&raw mut args) };
    let (outcome, enqueued): (Result<()>, bool) = receiver.recv().unwrap();
    outcome.unwrap();
    assert!(enqueued);
    assert_eq!(received.numbers().unwrap(), [5.0, 6.0, 7.0, 8.0]);
}

#[test]
fn a_transfer_that_is_cancelled_leaves_a_buffer_in_error() {
    let client = Client::new(&[]);
    let (received, description, cancel) = describe(&client);
    let run = || {
        let (sender, receiver) = channel::<Result<()>>();
        unsafe extern "C" fn canceled(error: *mut PJRT_Error, user_arg: *mut c_void) {
            // SAFETY: the argument is the box below, and the plugin calls once.
            let sender = unsafe { Box::from_raw(user_arg.cast::<std::sync::mpsc::Sender<Result<()>>>()) };
            sender.send(take_error(error)).unwrap();
        }
        let message = "no longer wanted";
        // SAFETY: the strings live during the call, and the argument until it is called.
        unsafe {
            cancel.unwrap()(
                description.as_ptr().cast(),
                description.len(),
                PJRT_Error_Code_ABORTED,
                message.as_ptr().cast(),
                message.len(),
                Some(canceled),
                Box::into_raw(Box::new(sender)).cast(),
                ptr::null_mut(),
            );
        }
        receiver.recv().unwrap()
    };
    run().unwrap();
    let error = received.wait().unwrap_err();
    assert_eq!((error.code, error.message.contains("no longer wanted")), (ErrorCode::Aborted as u32, true));
    assert_eq!(run().unwrap_err().code, ErrorCode::NotFound as u32);
}
