//! The limit on the launches in flight.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pjrt_plugin::{CompileOptions, DeviceAssignment, PjrtClient};
use pjrt_sys::*;

use crate::dummy::{Dummy, run_first, run_queue};
use crate::host::*;

const NUMBERS: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
pub(crate) const STEPS: usize = 40;

fn limit() -> usize {
    Dummy::MAX_LAUNCHES_IN_FLIGHT.unwrap()
}

/// Launches a program on the results of its last launch, again and again, and counts the launches.
pub(crate) fn train(program: &Executable, start: Buffer, launched: &AtomicUsize) -> Buffer {
    let mut state = start;
    for _ in 0..STEPS {
        let mut launch = program.run(&[&state]).unwrap();
        state = launch.outputs.remove(0).remove(0);
        launched.fetch_add(1, Ordering::SeqCst);
    }
    state
}

/// Waits until there are this many launches, and checks that there are no more.
fn check_stopped_at(launched: &AtomicUsize, expected: usize) {
    let start = Instant::now();
    while launched.load(Ordering::SeqCst) < expected {
        assert!(start.elapsed() < Duration::from_secs(20), "stopped at {launched:?} and not at {expected}");
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(5));
    assert_eq!(launched.load(Ordering::SeqCst), expected);
}

/// Trains on another thread, with a device that executes one step at a time. Returns the result.
fn train_within_the_limit(program: &Executable, queue: i64, start: Buffer) -> Buffer {
    let launched = AtomicUsize::new(0);
    thread::scope(|scope| {
        let host = scope.spawn(|| train(program, start, &launched));
        for finished in 0..=STEPS - limit() {
            check_stopped_at(&launched, limit() + finished);
            run_first(queue);
        }
        let result = host.join().unwrap();
        run_queue(queue);
        result
    })
}

#[test]
fn a_training_loop_stays_within_the_limit() {
    // The outputs of the second program are allocated before they are ready.
    for (program, queue) in [("later 601", 601), ("allocated 602", 602)] {
        let client = Client::new(&[]);
        let program = client.compile(program).unwrap();
        let result = train_within_the_limit(&program, queue, client.upload(0, &NUMBERS));
        assert_eq!(result.numbers().unwrap(), NUMBERS);
    }
}

#[test]
fn a_buffer_that_the_host_has_provided_is_like_any_other() {
    let client = Client::new(&[]);
    let program = client.compile("later 603").unwrap();
    // The alias stands for an output that is in flight.
    let first = client.compile("later 604").unwrap().run(&[&client.upload(0, &NUMBERS)]).unwrap();
    let (alias, promise) = client.alias();
    fulfill(promise, &first.outputs[0][0]);
    let launched = AtomicUsize::new(0);
    thread::scope(|scope| {
        let host = scope.spawn(|| train(&program, alias, &launched));
        // `first` is in flight too.
        check_stopped_at(&launched, limit() - 1);
        run_queue(604);
        while !host.is_finished() {
            run_queue(603);
        }
    });
    run_queue(603);
}

#[test]
fn the_host_is_not_blocked_by_a_launch_whose_input_it_has_not_provided() {
    // The queue executes in order, so the program on its own array is behind the one that waits.
    let client = Client::new(&[]);
    let program = client.compile("later 605").unwrap();
    let (alias, promise) = client.alias();
    let copy = call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args {
        buffer: alias.0,
        dst_memory: client.memories(0)[1],
    }));
    let launched = AtomicUsize::new(0);
    let results = [Buffer(copy.unwrap().dst_buffer), client.upload(0, &NUMBERS)]
        .map(|start| train(&program, start, &launched));
    assert_eq!(launched.into_inner(), 2 * STEPS);
    fulfill(promise, &client.upload(0, &NUMBERS));
    run_queue(605);
    for result in results {
        assert_eq!(result.numbers().unwrap(), NUMBERS);
    }
    let result = train_within_the_limit(&program, 605, client.upload(0, &NUMBERS));
    assert_eq!(result.numbers().unwrap(), NUMBERS);
}

type Dependency = PJRT_Buffer_DonateWithControlDependency_Args;

/// Donates a buffer of four numbers to a new one that is ready only after [`complete`].
fn donate_with_dependency(client: &Client) -> (Buffer, Dependency) {
    let buffer = client.upload(0, &NUMBERS);
    let donated =
        call!(PJRT_Buffer_DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args {
            buffer: buffer.0,
        }))
        .unwrap();
    (Buffer(donated.out_buffer), donated)
}

fn complete(dependency: &Dependency) {
    let mut args = PJRT_Buffer_DonateWithControlDependency_Callback_Args {
        callback_data: dependency.callback_data,
        ..SizedStruct::zeroed()
    };
    // SAFETY: the plugin handed out the callback, for one call with its data.
    unsafe { (dependency.dependency_ready_callback.unwrap())(&raw mut args) };
}

#[test]
fn a_donated_buffer_waits_for_the_host_until_its_dependency_is_ready() {
    let client = Client::new(&[]);
    let (buffer, dependency) = donate_with_dependency(&client);
    let program = client.compile("later 606").unwrap();
    let result = train(&program, buffer, &AtomicUsize::new(0));
    complete(&dependency);
    run_queue(606);
    assert_eq!(result.numbers().unwrap(), NUMBERS);
}

#[test]
fn a_program_is_not_enqueued_before_the_host_has_acted() {
    // The buffer has memory, but a command that waited for its data would block the queue until the host acts.
    let client = Client::new(&[]);
    let (buffer, dependency) = donate_with_dependency(&client);
    let launch = client.compile("allocated 608").unwrap().run(&[&buffer]).unwrap();
    assert_eq!(run_queue(608), 0);
    complete(&dependency);
    assert_eq!(run_queue(608), 1);
    let negated = NUMBERS.map(|number| -number);
    assert_eq!(launch.outputs[0][0].numbers().unwrap(), negated);
}

#[test]
fn launches_on_single_devices_count_when_all_devices_have_theirs() {
    let client = Client::new(&[]);
    let mut options = CompileOptions::default();
    options.num_replicas = 2;
    options.device_assignment = Some(DeviceAssignment::new(2, 1, vec![0, 1]).unwrap());
    let program = client.compile_with("rotate_later 607", "mlir", &options.encode()).unwrap();
    let devices: Vec<usize> = client.devices().iter().map(|device| device.expose_provenance()).collect();
    let buffers = [0, 1].map(|device| client.upload(device, &NUMBERS));
    let launched = AtomicUsize::new(0);
    let launch = |device: usize| {
        let place = ptr::with_exposed_provenance_mut(devices[device]);
        program.launch(&[&[&buffers[device]]], &[], place).unwrap();
    };
    // Nothing can run before the second device is launched.
    (0..2 * limit()).for_each(|_| launch(0));
    thread::scope(|scope| {
        let host = scope.spawn(|| (0..2 * limit()).for_each(|_| launch(1)));
        while !host.is_finished() {
            run_queue(607);
        }
    });
    run_queue(607);
    thread::scope(|scope| {
        let host = scope.spawn(|| {
            for _ in 0..STEPS {
                [0, 1].into_iter().for_each(launch);
                launched.fetch_add(1, Ordering::SeqCst);
            }
        });
        check_stopped_at(&launched, limit());
        while !host.is_finished() {
            run_queue(607);
        }
    });
    run_queue(607);
}
