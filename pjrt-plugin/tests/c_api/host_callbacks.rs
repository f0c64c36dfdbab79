//! Host callbacks: the data that a program sends and receives through functions of the host and slots 77 to 81.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use pjrt_plugin::ErrorCode;
use pjrt_sys::*;

use crate::dummy::run_queue;
use crate::host::*;
use crate::launches_in_flight::{STEPS, train};

const NUMBERS: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const ANSWER: [f32; 4] = [5.0, 6.0, 7.0, 8.0];

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The end of a stream that the host owns.
#[derive(Clone, Copy)]
struct Stream(*mut PJRT_CopyToDeviceStream);

// SAFETY: the API lets a stream be used on any thread.
unsafe impl Send for Stream {}

impl Stream {
    /// Adds a chunk, checks that it is freed once, and returns the outcome of its event.
    fn add(self, data: &[u8]) -> Result<()> {
        unsafe extern "C" fn count(_: *mut c_void, frees: *mut c_void) {
            // SAFETY: the argument is the counter below, which outlives the call of the plugin.
            unsafe { &*frees.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
        }
        let frees = AtomicUsize::new(0);
        let mut chunk = PJRT_Chunk {
            data: data.as_ptr().cast_mut().cast(),
            size: data.len(),
            deleter: Some(count),
            deleter_arg: (&raw const frees).cast_mut().cast(),
        };
        let added = call!(PJRT_CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args {
            stream: self.0,
            chunk: &raw mut chunk,
        }));
        assert_eq!(frees.load(Ordering::SeqCst), 1);
        let event = added?.transfer_complete;
        let outcome = await_event(event);
        destroy_event(event);
        outcome
    }

    fn destroy(self) {
        call!(PJRT_CopyToDeviceStream_Destroy(PJRT_CopyToDeviceStream_Destroy_Args { stream: self.0 }))
            .unwrap();
    }

    /// Returns the total, the granule and the current size.
    fn sizes(self) -> [i64; 3] {
        let stream = self.0;
        let total =
            call!(PJRT_CopyToDeviceStream_TotalBytes(PJRT_CopyToDeviceStream_TotalBytes_Args { stream }))
                .unwrap();
        let granule =
            call!(PJRT_CopyToDeviceStream_GranuleSize(PJRT_CopyToDeviceStream_GranuleSize_Args { stream }))
                .unwrap();
        let current =
            call!(PJRT_CopyToDeviceStream_CurrentBytes(PJRT_CopyToDeviceStream_CurrentBytes_Args { stream }))
                .unwrap();
        [total.total_bytes, granule.granule_size_in_bytes, current.current_bytes]
    }
}

/// A host's functions for channels 1 and 2 of one device.
struct Functions {
    sent: Mutex<Vec<Vec<u8>>>,
    /// The message of the error for data that is sent.
    refuse: Option<&'static str>,
    receive: Box<dyn Fn(Stream) + Send + Sync>,
}

impl Functions {
    fn new(receive: impl Fn(Stream) + Send + Sync + 'static) -> Self {
        Self { sent: Mutex::default(), refuse: None, receive: Box::new(receive) }
    }

    fn sent(&self) -> Vec<Vec<u8>> {
        self.sent.lock().unwrap().clone()
    }

    fn infos(&self) -> (PJRT_SendCallbackInfo, PJRT_RecvCallbackInfo) {
        let user_arg = ptr::from_ref(self).cast_mut().cast();
        (
            PJRT_SendCallbackInfo { channel_id: 1, user_arg, send_callback: Some(send) },
            PJRT_RecvCallbackInfo { channel_id: 2, user_arg, recv_callback: Some(receive) },
        )
    }
}

unsafe extern "C" fn send(
    chunk: *mut PJRT_Chunk,
    callback_error: *mut PJRT_CallbackError,
    total_size_in_bytes: usize,
    done: bool,
    user_arg: *mut c_void,
) -> *mut PJRT_Error {
    // SAFETY: the plugin hands back what `infos` gave it, a chunk that is now ours, and its way to make errors.
    unsafe {
        let functions = &*user_arg.cast::<Functions>();
        let chunk = chunk.read();
        let data = array(chunk.data.cast::<u8>(), chunk.size).to_vec();
        (chunk.deleter.unwrap())(chunk.data, chunk.deleter_arg);
        assert_eq!((data.len(), done), (total_size_in_bytes, true));
        functions.sent.lock().unwrap().push(data);
        functions.refuse.map_or(ptr::null_mut(), |message| {
            let text = message.as_ptr().cast::<c_char>();
            ((*callback_error).unwrap())(PJRT_Error_Code_DATA_LOSS, text, message.len())
        })
    }
}

unsafe extern "C" fn receive(stream: *mut PJRT_CopyToDeviceStream, user_arg: *mut c_void) {
    // SAFETY: the plugin hands back what `infos` gave it.
    let functions = unsafe { &*user_arg.cast::<Functions>() };
    (functions.receive)(Stream(stream));
}

/// Launches a program with functions for each device. They must live until the launch has finished.
fn launch(program: &Executable, arguments: &[&[&Buffer]], functions: &[&Functions]) -> Result<Launch> {
    let (mut sends, mut recvs): (Vec<_>, Vec<_>) =
        functions.iter().map(|functions| functions.infos()).unzip();
    let mut send_lists: Vec<_> = sends.iter_mut().map(ptr::from_mut).collect();
    let mut recv_lists: Vec<_> = recvs.iter_mut().map(ptr::from_mut).collect();
    let options = PJRT_ExecuteOptions {
        send_callbacks: send_lists.as_mut_ptr(),
        recv_callbacks: recv_lists.as_mut_ptr(),
        num_send_ops: 1,
        num_recv_ops: 1,
        ..PJRT_ExecuteOptions::zeroed()
    };
    program.launch_with(arguments, options, ptr::null_mut())
}

/// Runs `host` on one device, and returns the outcome and the data that was sent.
fn run(queue: i64, functions: &Functions) -> Result<Vec<f32>> {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let launch =
        launch(&client.compile(&format!("host {queue}")).unwrap(), &[&[&buffer]], &[functions]).unwrap();
    assert!(!is_ready(launch.events[0]));
    assert_eq!(run_queue(queue), 1);
    assert_eq!(functions.sent(), [bytes(&NUMBERS)]);
    let outcome = await_event(launch.events[0]);
    let numbers = launch.outputs[0][0].numbers();
    assert_eq!(outcome.err(), numbers.as_ref().err().cloned());
    numbers
}

#[test]
fn a_program_sends_to_the_host_and_receives_from_it() {
    let functions = Functions::new(|stream| {
        assert_eq!(stream.sizes(), [16, 8, 0]);
        stream.add(&bytes(&ANSWER[..2])).unwrap();
        assert_eq!(stream.sizes(), [16, 8, 8]);
        stream.add(&bytes(&ANSWER[2..])).unwrap();
        assert_eq!(stream.sizes(), [16, 8, 16]);
        stream.destroy();
    });
    assert_eq!(run(401, &functions).unwrap(), ANSWER);
}

#[test]
fn the_host_is_not_blocked_by_a_launch_that_calls_it() {
    let client = Client::new(&[]);
    let functions = Functions::new(|stream| {
        stream.add(&bytes(&ANSWER)).unwrap();
        stream.destroy();
    });
    let [first, start] = [0, 1].map(|_| client.upload(0, &NUMBERS));
    let first = launch(&client.compile("host 416").unwrap(), &[&[&first]], &[&functions]).unwrap();
    // The queue executes in order, so these programs are behind the one that calls the host.
    let launched = AtomicUsize::new(0);
    let result = train(&client.compile("later 416").unwrap(), start, &launched);
    assert_eq!(launched.into_inner(), STEPS);
    run_queue(416);
    assert_eq!(
        (first.outputs[0][0].numbers().unwrap(), result.numbers().unwrap()),
        (ANSWER.into(), NUMBERS.into())
    );
}

#[test]
fn the_host_may_answer_later_from_another_thread() {
    let (sender, streams) = channel::<Stream>();
    let sender: Mutex<Sender<Stream>> = Mutex::new(sender);
    let functions = Functions::new(move |stream| sender.lock().unwrap().send(stream).unwrap());
    let answering = std::thread::spawn(move || {
        let stream = streams.recv().unwrap();
        stream.add(&bytes(&ANSWER)).unwrap();
        stream.destroy();
    });
    assert_eq!(run(402, &functions).unwrap(), ANSWER);
    answering.join().unwrap();
}

#[test]
fn an_error_of_the_send_function_is_the_error_of_the_execution() {
    let mut functions = Functions::new(|_| unreachable!("nothing is received after the error"));
    functions.refuse = Some("the function raised ValueError");
    let error = run(403, &functions).unwrap_err();
    assert_eq!(error.code, ErrorCode::DataLoss as u32);
    assert!(error.message.contains("the function raised ValueError"), "{error:?}");
    assert!(error.message.contains("[PJRT_LoadedExecutable_Execute]"), "{error:?}");
}

#[test]
fn chunks_that_cannot_be_right_fail_the_execution() {
    for (queue, size, text) in [(404, 24, "too long"), (405, 12, "granule of 8 bytes")] {
        let functions = Functions::new(move |stream| {
            let error = stream.add(&vec![0; size]).unwrap_err();
            assert!(error.message.contains(text), "{error:?}");
            // The stream is of no more use, but alive.
            assert!(stream.add(&[0; 8]).unwrap_err().message.contains("complete or cancelled"));
            assert_eq!(stream.sizes(), [16, 8, 0]);
            stream.destroy();
        });
        let error = run(queue, &functions).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
        assert!(error.message.contains(text), "{error:?}");
    }
}

#[test]
fn a_complete_stream_takes_no_more() {
    let functions = Functions::new(|stream| {
        stream.add(&bytes(&ANSWER)).unwrap();
        let error = stream.add(&[0; 8]).unwrap_err();
        assert_eq!(error.code, ErrorCode::FailedPrecondition as u32);
        stream.destroy();
    });
    assert_eq!(run(406, &functions).unwrap(), ANSWER);
}

#[test]
fn a_stream_that_is_destroyed_too_soon_fails_the_execution() {
    let functions = Functions::new(|stream| {
        stream.add(&[0; 8]).unwrap();
        stream.destroy();
    });
    let error = run(407, &functions).unwrap_err();
    assert_eq!(error.code, ErrorCode::Aborted as u32);
    assert!(error.message.contains("channel 2 received 8 of 16 bytes"), "{error:?}");
}

#[test]
fn a_null_stream_is_destroyed_and_a_null_chunk_refused() {
    Stream(ptr::null_mut()).destroy();
    let functions = Functions::new(|stream| {
        let refused = call!(PJRT_CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args {
            stream: stream.0,
        }));
        assert!(refused.err().unwrap().message.contains("'chunk' is null"));
        // The chunk is freed also where there is no stream for it.
        assert!(Stream(ptr::null_mut()).add(&[0; 8]).unwrap_err().message.contains("'stream' is null"));
        stream.add(&bytes(&ANSWER)).unwrap();
        stream.destroy();
    });
    assert_eq!(run(408, &functions).unwrap(), ANSWER);
}

#[test]
fn each_device_has_functions_of_its_own() {
    let client = Client::new(&[]);
    let mut options = pjrt_plugin::CompileOptions::default();
    options.num_replicas = 2;
    let program = client.compile_with("host 409", "mlir", &options.encode()).unwrap();
    let answering = |first: f32| {
        Functions::new(move |stream| {
            stream.add(&bytes(&[first, 0.0, 0.0, 0.0])).unwrap();
            stream.destroy();
        })
    };
    let (zero, one) = (answering(10.0), answering(11.0));
    let buffers = [client.upload(0, &NUMBERS), client.upload(1, &ANSWER)];
    let launch = launch(&program, &[&[&buffers[0]], &[&buffers[1]]], &[&zero, &one]).unwrap();
    run_queue(409);
    assert_eq!((zero.sent(), one.sent()), (vec![bytes(&NUMBERS)], vec![bytes(&ANSWER)]));
    assert_eq!(launch.outputs[0][0].numbers().unwrap()[0], 10.0);
    assert_eq!(launch.outputs[1][0].numbers().unwrap()[0], 11.0);
}

#[test]
fn the_functions_are_not_called_once_the_host_knows_that_the_execution_is_over() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let functions = Functions::new(|_| unreachable!("the execution is over"));
    let launch = launch(&client.compile("host_late 410").unwrap(), &[&[&buffer]], &[&functions]).unwrap();
    await_event(launch.events[0]).unwrap();
    assert_eq!(run_queue(410), 1);
    assert!(functions.sent().is_empty());
}

#[test]
fn the_functions_are_not_called_after_a_launch_that_fails() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let functions = Functions::new(|_| unreachable!("there is no execution"));
    let program = client.compile("host_error 411").unwrap();
    assert!(launch(&program, &[&[&buffer]], &[&functions]).is_err());
    assert_eq!(run_queue(411), 1);
    assert!(functions.sent().is_empty());
}

#[test]
fn the_host_learns_of_the_end_only_when_its_functions_have_returned() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let over = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&over);
    let functions = Functions::new(move |stream| {
        stream.add(&bytes(&ANSWER)).unwrap();
        stream.destroy();
        let event: usize = seen.lock().unwrap().unwrap();
        assert!(!is_ready(ptr::with_exposed_provenance_mut(event)));
    });
    let launch = launch(&client.compile("host 412").unwrap(), &[&[&buffer]], &[&functions]).unwrap();
    *over.lock().unwrap() = Some(launch.events[0].expose_provenance());
    run_queue(412);
    assert!(is_ready(launch.events[0]));
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), ANSWER);
}

#[test]
fn a_program_that_calls_functions_which_the_host_did_not_give_fails() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let program = client.compile("host 413").unwrap();
    let launched = program.run(&[&buffer]).unwrap();
    run_queue(413);
    let error = launched.outputs[0][0].numbers().unwrap_err();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32);
    assert!(error.message.contains("the host passed none"), "{error:?}");
    // A function for another channel does not help.
    let functions = Functions::new(|_| unreachable!("another channel"));
    let (mut send, _) = functions.infos();
    send.channel_id = 9;
    let mut list = &raw mut send;
    let options = PJRT_ExecuteOptions {
        send_callbacks: &raw mut list,
        num_send_ops: 1,
        ..PJRT_ExecuteOptions::zeroed()
    };
    let launched = program.launch_with(&[&[&buffer]], options, ptr::null_mut()).unwrap();
    run_queue(413);
    let error = launched.outputs[0][0].numbers().unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound as u32);
    assert!(
        error.message.contains("no send callback for channel 1") && error.message.contains("[9]"),
        "{error:?}"
    );
}

#[test]
fn lists_and_functions_that_are_null_are_refused() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let program = client.compile("host 414").unwrap();
    let refused = |options: PJRT_ExecuteOptions, text: &str| {
        let error = program.launch_with(&[&[&buffer]], options, ptr::null_mut()).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
        assert!(error.message.contains(text), "{error:?}");
    };
    let none = PJRT_ExecuteOptions { num_recv_ops: 1, ..PJRT_ExecuteOptions::zeroed() };
    refused(none, "'recv_callbacks' is null");
    let mut list = ptr::null_mut();
    let of_device = PJRT_ExecuteOptions {
        send_callbacks: &raw mut list,
        num_send_ops: 1,
        ..PJRT_ExecuteOptions::zeroed()
    };
    refused(of_device, "'send_callbacks' is null");
    let mut info = PJRT_RecvCallbackInfo { channel_id: 5, user_arg: ptr::null_mut(), recv_callback: None };
    let mut list = &raw mut info;
    let function = PJRT_ExecuteOptions {
        recv_callbacks: &raw mut list,
        num_recv_ops: 1,
        ..PJRT_ExecuteOptions::zeroed()
    };
    refused(function, "callback of channel 5");
}

#[test]
fn a_host_whose_structs_end_early_gets_what_it_has_room_for() {
    let functions = Functions::new(|stream| {
        let args = call!(PJRT_CopyToDeviceStream_TotalBytes(PJRT_CopyToDeviceStream_TotalBytes_Args {
            struct_size: field_end::PJRT_CopyToDeviceStream_TotalBytes_Args::stream,
            stream: stream.0,
            total_bytes: 77,
        }));
        assert_eq!(args.unwrap().total_bytes, 77);
        stream.add(&bytes(&ANSWER)).unwrap();
        stream.destroy();
    });
    assert_eq!(run(415, &functions).unwrap(), ANSWER);
}
