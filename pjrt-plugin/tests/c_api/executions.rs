//! Executions: outputs now and later, errors, donation, arguments that do not fit.

use std::ptr;

use pjrt_plugin::{CompileOptions, DeviceAssignment, ErrorCode};
use pjrt_sys::{PJRT_Error_Code_DATA_LOSS, PJRT_ExecuteOptions, SizedStruct};

use crate::dummy::{run_first, run_queue};
use crate::host::*;

const NUMBERS: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const NEGATED: [f32; 4] = [-1.0, -2.0, -3.0, -4.0];
/// The results of a program for an input that it received by value.
const CONSUMED: [f32; 4] = [101.0, 102.0, 103.0, 104.0];

#[test]
fn a_program_that_finishes_at_once_has_ready_outputs() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let launch = client.compile("two").unwrap().run(&[&buffer]).unwrap();
    assert!(is_ready(launch.events[0]));
    for output in &launch.outputs[0] {
        assert_eq!(output.numbers().unwrap(), NEGATED);
    }
    assert!(!buffer.is_deleted());
    client.compile("none").unwrap().run(&[]).unwrap();
}

#[test]
fn a_program_that_finishes_later_fills_its_outputs_then() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let launch = client.compile("later 301").unwrap().run(&[&buffer]).unwrap();
    let outcome = on_ready(launch.events[0]);
    assert!(!is_ready(launch.events[0]) && outcome.try_recv().is_err());
    // What it reads can be deleted meanwhile, and what it makes can be used.
    buffer.delete();
    let next = client.compile("negate").unwrap().run(&[&launch.outputs[0][0]]).unwrap();
    run_queue(301);
    outcome.recv().unwrap().unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
    assert_eq!(next.outputs[0][0].numbers().unwrap(), NUMBERS);
}

#[test]
fn outputs_may_be_allocated_before_they_are_ready() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let first = client.compile("allocated 302").unwrap().run(&[&buffer]).unwrap();
    // The second program starts although the data of its input is not there.
    let second = client.compile("allocated 303").unwrap().run(&[&first.outputs[0][0]]).unwrap();
    assert!(!is_ready(first.events[0]) && !is_ready(second.events[0]));
    assert_eq!(run_queue(302), 1);
    assert!(is_ready(first.events[0]) && !is_ready(second.events[0]));
    assert_eq!(run_queue(303), 1);
    assert_eq!(second.outputs[0][0].numbers().unwrap(), NUMBERS);
}

#[test]
fn a_program_is_enqueued_before_those_that_read_its_outputs() {
    let client = Client::new(&[]);
    let late = client.compile("later 320").unwrap().run(&[&client.upload(0, &NUMBERS)]).unwrap();
    // Neither can be enqueued yet; both are when the first input is there.
    let writer = client.compile("allocated 321").unwrap().run(&[&late.outputs[0][0]]).unwrap();
    let reader = client.compile("allocated 321").unwrap().run(&[&writer.outputs[0][0]]).unwrap();
    run_queue(320);
    run_first(321);
    assert!(is_ready(writer.events[0]) && !is_ready(reader.events[0]));
    run_first(321);
    assert_eq!(reader.outputs[0][0].numbers().unwrap(), NEGATED);
}

#[test]
fn errors_reach_outputs_and_events() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let check = |program: &str, code: ErrorCode, text: &str| {
        let launch = client.compile(program).unwrap().run(&[&buffer]).unwrap();
        let error = launch.outputs[0][0].numbers().unwrap_err();
        assert_eq!(error.code, code as u32, "{error:?}");
        assert!(error.message.contains(text), "{error:?}");
        assert_eq!(await_event(launch.events[0]).unwrap_err(), error);
        // What depends on them has the same error.
        let next = client.compile("negate").unwrap().run(&[&launch.outputs[0][0]]).unwrap();
        assert_eq!(next.outputs[0][0].wait().unwrap_err(), error);
    };
    check("fail", ErrorCode::DataLoss, "lost");
    check("drop", ErrorCode::Internal, "dropped an execution");
    check("short", ErrorCode::Internal, "1 outputs on each of 1 devices");
    let error = client.compile("panic").unwrap().run(&[&buffer]).err().unwrap();
    assert!(error.message.contains("asked to panic") && error.code == ErrorCode::Internal as u32);
}

#[test]
fn a_panic_on_the_thread_that_completes_an_input_fails_only_the_execution() {
    let client = Client::new(&[option("uploads", 304)]);
    let buffer = client.upload(0, &NUMBERS);
    let launch = client.compile("panic_later").unwrap().run(&[&buffer]).unwrap();
    assert_eq!(run_queue(304), 1);
    let error = launch.outputs[0][0].wait().unwrap_err();
    assert!(error.message.contains("asked to panic later"), "{error:?}");
    assert_eq!(buffer.numbers().unwrap(), NUMBERS);
}

#[test]
fn a_donated_input_is_gone_and_comes_by_value() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let program = client.compile("donate").unwrap();
    let launch = program.run(&[&buffer]).unwrap();
    assert!(buffer.is_deleted());
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), CONSUMED);
    let error = program.run(&[&buffer]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.contains("deleted or donated"), "{error:?}");
    assert!(buffer.wait().unwrap_err().message.contains("deleted or donated"));
}

#[test]
fn a_donation_that_the_host_forbids_does_not_take_place() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let launch = client.compile("donate").unwrap().launch(&[&[&buffer]], &[0], ptr::null_mut()).unwrap();
    assert!(!buffer.is_deleted());
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
}

#[test]
fn a_donated_input_that_others_hold_is_not_consumed() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let reader = client.compile("later 305").unwrap().run(&[&buffer]).unwrap();
    let launch = client.compile("donate").unwrap().run(&[&buffer]).unwrap();
    assert!(buffer.is_deleted());
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
    run_queue(305);
    assert_eq!(reader.outputs[0][0].numbers().unwrap(), NEGATED);
}

#[test]
fn a_pending_input_can_be_donated() {
    let client = Client::new(&[option("uploads", 306)]);
    let buffer = client.upload(0, &NUMBERS);
    let launch = client.compile("donate").unwrap().run(&[&buffer]).unwrap();
    assert!(buffer.is_deleted());
    run_queue(306);
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), CONSUMED);
}

#[test]
fn a_buffer_cannot_be_donated_twice_or_donated_and_used() {
    let client = Client::new(&[]);
    let buffer = client.upload(0, &NUMBERS);
    let error = client.compile("donate_first").unwrap().run(&[&buffer, &buffer]).err().unwrap();
    assert_eq!(error.code, ErrorCode::InvalidArgument as u32);
    assert!(error.message.contains("Attempt to donate a buffer which is also used"), "{error:?}");
    assert!(!buffer.is_deleted());
}

#[test]
fn donations_of_an_execution_that_fails_are_undone() {
    let client = Client::new(&[]);
    let (first, second) = (client.upload(0, &NUMBERS), client.upload(0, &NUMBERS));
    second.delete();
    let error = client.compile("donate_first").unwrap().run(&[&first, &second]).err().unwrap();
    assert!(error.message.contains("argument 1"), "{error:?}");
    assert!(!first.is_deleted());
    assert_eq!(first.numbers().unwrap(), NUMBERS);
}

#[test]
fn a_launch_without_the_arguments_of_a_later_device_takes_none() {
    let client = Client::new(&[]);
    let program = client.compile_with("donate", "mlir", &options(2, vec![0, 1], false)).unwrap();
    let buffer = client.upload(0, &NUMBERS);
    let error = program.launch(&[&[&buffer], &[]], &[], ptr::null_mut()).err().unwrap();
    assert!(error.message.contains("argument list"), "{error:?}");
    assert!(!buffer.is_deleted());
    assert_eq!(buffer.numbers().unwrap(), NUMBERS);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let client = Client::new(&[]);
    let program = client.compile("negate").unwrap();
    let refused = |arguments: &[&[&Buffer]], text: &str| {
        let error = program.launch(arguments, &[], ptr::null_mut()).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
        assert!(error.message.contains(text), "{error:?}");
    };
    let good = client.upload(0, &NUMBERS);
    refused(&[&[]], "Execution supplied 0 buffers but compiled program expected 1 buffers");
    refused(&[&[&good, &good]], "supplied 2 buffers");
    refused(
        &[&[&good], &[&good]],
        "Attempted to execute with 2 argument lists when local device count is 1 (total replica count: 1, partition count: 1)",
    );
    let numbers = [0.0_f32; 8];
    let device = client.devices()[0];
    let (long, done) = Upload { dims: &[8], device, ..Upload::new(&numbers) }.to(&client).unwrap();
    destroy_event(done);
    refused(&[&[&long]], "expected parameter 0 of size 16 but got buffer with incompatible size 32");
    refused(&[&[&client.upload(1, &NUMBERS)]], "is on device 1");
}

#[test]
fn an_argument_of_the_parameters_size_may_have_another_shape() {
    let client = Client::new(&[]);
    let program = client.compile("negate").unwrap();
    let device = client.devices()[0];
    let bytes: Vec<u8> = NUMBERS.iter().flat_map(|number| number.to_ne_bytes()).collect();
    let halves: Vec<u8> = bytes.iter().flat_map(|byte| [byte & 0xf, byte >> 4]).collect();
    let arguments: [(_, &[i64], &[u8]); 3] = [
        (pjrt_sys::PJRT_Buffer_Type_F32, &[2, 2], &bytes),
        (pjrt_sys::PJRT_Buffer_Type_S32, &[4], &bytes),
        (pjrt_sys::PJRT_Buffer_Type_U4, &[32], &halves),
    ];
    for (element_type, dims, bytes) in arguments {
        let (argument, done) =
            Upload { dims, device, element_type, ..Upload::new(bytes) }.to(&client).unwrap();
        destroy_event(done);
        let launch = program.launch(&[&[&argument]], &[], ptr::null_mut()).unwrap();
        assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
        assert!(!argument.is_deleted());
    }
}

fn options(replicas: usize, devices: Vec<i32>, portable: bool) -> Vec<u8> {
    let mut options = CompileOptions::default();
    options.num_replicas = replicas;
    options.device_assignment = Some(DeviceAssignment::new(replicas, 1, devices).unwrap());
    options.compile_portable_executable = portable;
    options.encode()
}

#[test]
fn one_launch_runs_on_all_devices_or_on_the_one_that_is_named() {
    let client = Client::new(&[]);
    let program = client.compile_with("negate", "mlir", &options(2, vec![1, 0], false)).unwrap();
    let (zero, one) = (client.upload(0, &NUMBERS), client.upload(1, &NEGATED));
    let launch = program.launch(&[&[&one], &[&zero]], &[], ptr::null_mut()).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NUMBERS);
    assert_eq!(launch.outputs[1][0].numbers().unwrap(), NEGATED);
    let launch = program.launch(&[&[&zero]], &[], client.devices()[0]).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
}

#[test]
fn launches_on_single_devices_that_communicate_make_up_one() {
    let client = Client::new(&[]);
    let (zero, one) = (client.upload(0, &NUMBERS), client.upload(1, &NEGATED));
    let devices = client.devices();
    for word in ["rotate", "rotate_later 340"] {
        // Hosts may load the program once for each of their threads.
        let programs: Vec<_> = (0..2)
            .map(|_| client.compile_with(word, "mlir", &options(2, vec![0, 1], false)).unwrap())
            .collect();
        for _ in 0..3 {
            let first = programs[0].launch(&[&[&zero]], &[], devices[0]).unwrap();
            assert!(!is_ready(first.events[0]));
            let second = programs[1].launch(&[&[&one]], &[], devices[1]).unwrap();
            run_queue(340);
            assert_eq!(first.outputs[0][0].numbers().unwrap(), NEGATED);
            assert_eq!(second.outputs[0][0].numbers().unwrap(), NUMBERS);
        }
        // One device may be ahead of the other.
        let ahead = [&zero, &one].map(|_| programs[0].launch(&[&[&zero]], &[], devices[0]).unwrap());
        let behind = [&zero, &one].map(|_| programs[1].launch(&[&[&one]], &[], devices[1]).unwrap());
        run_queue(340);
        assert!(ahead.iter().all(|launch| launch.outputs[0][0].numbers().unwrap() == NEGATED));
        assert!(behind.iter().all(|launch| launch.outputs[0][0].numbers().unwrap() == NUMBERS));
    }
}

#[test]
fn an_error_on_one_device_is_that_of_the_joint_launch() {
    let client = Client::new(&[]);
    let (zero, one) = (client.upload(0, &NUMBERS), client.upload(1, &NUMBERS));
    let failed = client.compile("fail").unwrap().run(&[&zero]).unwrap();
    let devices = client.devices();
    let program = client.compile_with("rotate", "mlir", &options(2, vec![0, 1], false)).unwrap();
    let launches = [
        program.launch(&[&[&failed.outputs[0][0]]], &[], devices[0]).unwrap(),
        program.launch(&[&[&one]], &[], devices[1]).unwrap(),
    ];
    for launch in launches {
        assert_eq!(launch.outputs[0][0].numbers().unwrap_err().code, ErrorCode::DataLoss as u32);
    }
    let program = client.compile_with("rotate_error", "mlir", &options(2, vec![0, 1], false)).unwrap();
    let launches = [
        program.launch(&[&[&zero]], &[], devices[0]).unwrap(),
        program.launch(&[&[&one]], &[], devices[1]).unwrap(),
    ];
    for launch in launches {
        assert_eq!(launch.outputs[0][0].numbers().unwrap_err().code, ErrorCode::ResourceExhausted as u32);
    }
}

#[test]
fn the_client_learns_of_an_argument_in_error_if_other_devices_may_wait() {
    let client = Client::new(&[option("remote", 1)]);
    let zero = client.upload(0, &NUMBERS);
    let failed = client.compile("fail").unwrap().run(&[&zero]).unwrap();
    let (argument, devices) = (&failed.outputs[0][0], client.devices());
    // Another device of this process, or one of another process.
    for (other, execute_device) in [(1, devices[0]), (2, ptr::null_mut())] {
        let launch = |word| {
            let program = client.compile_with(word, "mlir", &options(2, vec![0, other], false)).unwrap();
            program.launch(&[&[argument]], &[], execute_device)
        };
        // The client of this program returns its own error.
        let refused = launch("error").err().unwrap();
        assert_eq!(refused.code, ErrorCode::ResourceExhausted as u32, "{other}");
        let launch = launch("negate").unwrap();
        assert_eq!(launch.outputs[0][0].numbers().unwrap_err().code, ErrorCode::DataLoss as u32, "{other}");
    }
    let launch = client.compile("error").unwrap().run(&[argument]).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap_err().code, ErrorCode::DataLoss as u32);
}

#[test]
fn a_launch_whose_partner_does_not_come_fails() {
    let client = Client::new(&[]);
    let (zero, one) = (client.upload(0, &NUMBERS), client.upload(1, &NUMBERS));
    let devices = client.devices();
    let program = client.compile_with("rotate", "mlir", &options(2, vec![0, 1], false)).unwrap();
    let alone = program.launch(&[&[&zero]], &[], devices[0]).unwrap();
    let error = alone.outputs[0][0].numbers().unwrap_err();
    assert_eq!(error.code, ErrorCode::DeadlineExceeded as u32);
    assert!(
        error.message.contains("was launched on device 0, but not within 2s on device 1"),
        "{}",
        error.message
    );
    // The partner is too late, and the next launches are a new pair.
    let late = program.launch(&[&[&one]], &[], devices[1]).unwrap();
    assert_eq!(late.outputs[0][0].numbers().unwrap_err().code, ErrorCode::DeadlineExceeded as u32);
    let next = [
        program.launch(&[&[&zero]], &[], devices[0]).unwrap(),
        program.launch(&[&[&one]], &[], devices[1]).unwrap(),
    ];
    assert_eq!(next[0].outputs[0][0].numbers().unwrap(), NUMBERS);
}

#[test]
fn a_launch_without_its_partner_fails_when_the_program_goes() {
    let client = Client::new(&[]);
    let zero = client.upload(0, &NUMBERS);
    let program = client.compile_with("rotate", "mlir", &options(2, vec![0, 1], false)).unwrap();
    let alone = program.launch(&[&[&zero]], &[], client.devices()[0]).unwrap();
    drop(program);
    let error = alone.outputs[0][0].numbers().unwrap_err();
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32);
}

#[test]
fn only_a_portable_executable_runs_on_any_device() {
    let client = Client::new(&[]);
    let one = client.upload(1, &NUMBERS);
    let device = client.devices()[1];
    let fixed = client.compile_with("negate", "mlir", &options(1, vec![0], false)).unwrap();
    assert!(fixed.launch(&[&[&one]], &[], device).err().unwrap().message.contains("cannot run on device 1"));
    let portable = client.compile_with("negate", "mlir", &options(1, vec![0], true)).unwrap();
    let launch = portable.launch(&[&[&one]], &[], device).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), NEGATED);
}

#[test]
fn an_execution_may_have_a_context() {
    let client = Client::new(&[]);
    let (executable, buffer) = (client.compile("negate").unwrap(), client.upload(0, &[1.0; 4]));
    let context = call!(PJRT_ExecuteContext_Create(PJRT_ExecuteContext_Create_Args {})).unwrap().context;
    let options = PJRT_ExecuteOptions { context, ..PJRT_ExecuteOptions::zeroed() };
    let launch = executable.launch_with(&[&[&buffer]], options, std::ptr::null_mut()).unwrap();
    call!(PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args { context })).unwrap();
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), [-1.0; 4]);
    call!(PJRT_ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args {})).unwrap();
}

#[test]
fn a_launch_that_has_not_finished_can_be_poisoned_once() {
    let client = Client::new(&[]);
    let (executable, buffer) = (client.compile("later 401").unwrap(), client.upload(0, &NUMBERS));
    let poison = |device: usize, launch_id: i32, message: &str| {
        let payload = [text_option("who", "the host")];
        call!(PJRT_Device_PoisonExecution(PJRT_Device_PoisonExecution_Args {
            device: client.devices()[device],
            launch_id,
            error_code: PJRT_Error_Code_DATA_LOSS,
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            payload: payload.as_ptr(),
            num_payload: 1,
        }))
        .unwrap()
        .poisoned
    };
    let launch = executable.run(&[&buffer]).unwrap();
    let next = executable.run(&[&buffer]).unwrap();
    assert!(!poison(0, 8, "another launch"));
    assert!(!poison(1, -7, "another device"));
    assert!(poison(0, -7, "a neighbor is gone"));
    let error = await_event(launch.events[0]).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::DataLoss as u32, "a neighbor is gone"));
    assert_eq!(error.payloads, [("who".to_owned(), b"the host".to_vec())]);
    // The program finishes all the same, and its results come to nothing.
    assert_eq!(run_queue(401), 2);
    assert_eq!(launch.outputs[0][0].numbers().unwrap_err(), error);
    assert_eq!(next.outputs[0][0].numbers().unwrap(), NEGATED);
    assert!(!poison(0, -7, "too late"));
}
