//! Checks of several devices: placement, order, and transfers between them.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::entry::{Entry, check};
use super::pending::Pending;
use super::program_text::{compiled, launch, launch_on_all, sums, with_main};
use super::without_hazard::{Waits, Wrong, is_without_hazard};
use crate::conform::harness::{
    Context, Finding, ONE_DEVICE, RIGHT_ON_ANOTHER, Verdict, add_program, described, device_name, ensure,
    equal, is_in_memory, is_on_device, numbers, patience, upload_to,
};
use crate::protobuf::DeviceAssignment;
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Device, Error, Event, LoadedExecutable};
use pjrt_testing::preferred::preferred;

pub(super) const CHECKS: &[Entry] = &[
    check(
        "devices/upload_to_the_second",
        "An array that is uploaded to the second device is there, and in this device's default memory.",
        upload_second,
        "PJRT_Client_BufferFromHostBuffer first_device",
    )
    .header("PJRT_Buffer_Device", "Returns this buffer's storage device.")
    .also(&["devices/*", "execute/on_a_named_device"]),
    check(
        "devices/uploads_from_other_threads",
        "An array that another thread than the one that created the client uploads to a device is on this device.",
        upload_from_threads,
        "PJRT_Client_BufferFromHostBuffer another_thread first_device",
    )
    .header("pjrt_c_api.h", "Every function may be called from any thread, and concurrently.")
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["another_thread/*", "threads/*"]),
    check(
        "devices/program_for_the_second",
        "A program that is compiled for the second device runs there, and its outputs are there.",
        program_for_second,
        "PJRT_LoadedExecutable_Execute when options>launch_id=930 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::execute_device", "If nullptr, will execute on the device(s) specified at compile time."),
    check(
        "devices/num_replicas",
        "PJRT_Executable_NumReplicas is the number of replicas in the compile options.",
        num_replicas,
        "PJRT_Executable_NumReplicas replace num_replicas 2 1",
    )
    .header("PJRT_Executable_NumReplicas", "Returns the number of replicas of the executable."),
    check(
        "devices/num_partitions",
        "PJRT_Executable_NumPartitions is the number of partitions in the compile options.",
        num_partitions,
        "PJRT_Executable_NumPartitions replace num_partitions 2 1",
    )
    .header("PJRT_Executable_NumPartitions", "Returns the number of partitions of the executable."),
    check(
        "devices/order_of_devices",
        "PJRT_LoadedExecutable_AddressableDevices lists the devices in the order of the device assignment: hosts pass argument lists in this order.",
        order,
        "PJRT_LoadedExecutable_AddressableDevices reverse addressable_devices num_addressable_devices",
    )
    .host("JAX, xla/python/pjrt_ifrt/pjrt_executable.cc, PjRtLoadedExecutable::Execute", "Passes the buffers of each argument, and receives those of each output, in the order of the program's addressable devices.")
    .also(&["devices/replicas_in_another_order", "executables/overridden_order"]),
    check(
        "devices/logical_ids",
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds lists replica and partition of each of these devices, in the same order.",
        logical_ids,
        "PJRT_LoadedExecutable_AddressableDeviceLogicalIds reverse addressable_device_logical_ids num_addressable_device_logical_ids",
    )
    .header("PJRT_LoadedExecutable_AddressableDeviceLogicalIds", "Returns a list of logical device ids this executable will run on."),
    check(
        "devices/device_assignment",
        "PJRT_LoadedExecutable_GetDeviceAssignment returns the assignment of the compile options.",
        assignment,
        "PJRT_LoadedExecutable_GetDeviceAssignment set serialized_bytes_size=0",
    )
    .header("PJRT_LoadedExecutable_GetDeviceAssignment", "Retrieves the serialized DeviceAssignmentProto for a given PJRT_LoadedExecutable.")
    .since(79)
    .needed_since(79)
    .also(&["ownership/device_assignment"]),
    check(
        "devices/replicas",
        "Each replica computes with its own arguments, and its outputs are on its device.",
        replicas,
        "PJRT_LoadedExecutable_Execute when options>launch_id=931 swap_devices",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device."),
    check(
        "devices/replicas_in_another_order",
        "If the device assignment begins with the second device, so do the lists of arguments and outputs.",
        reversed_replicas,
        "PJRT_LoadedExecutable_Execute when options>launch_id=932 swap_devices",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device."),
    check(
        "devices/replicas_in_a_cycle",
        "If the device assignment is a cycle of all devices, of which there are at least three, the lists of devices, arguments and outputs are in its order, not in the inverse one.",
        cycled_replicas,
        "PJRT_LoadedExecutable_Execute when options>launch_id=936 swap_devices 1 2",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device."),
    check(
        "devices/replicas_of_partitions",
        "A program of two replicas with two partitions each runs on the devices of its assignment: the lists of devices, logical ids, arguments and outputs have the same order.",
        replicas_of_partitions,
        "PJRT_LoadedExecutable_Execute when options>launch_id=937 swap_devices 1 2",
    )
    .header("PJRT_LoadedExecutable_AddressableDeviceLogicalIds", "Returns a list of logical device ids this executable will run on."),
    check(
        "devices/split_array",
        "The parts of an array that is split over two partitions are the outputs of their devices, in order.",
        split_array,
        "PJRT_LoadedExecutable_Execute when options>launch_id=933 swap_devices",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::output_lists", "Execution output of size [`num_devices`, num_outputs`], where `num_outputs` is the number of outputs returned by this executable per device."),
    check(
        "devices/an_event_for_each",
        "PJRT_LoadedExecutable_Execute returns an event for each device, and all of them complete.",
        events,
        "PJRT_LoadedExecutable_Execute when options>launch_id=934 lose_event 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete."),
    check(
        "devices/each_event_waits",
        "The event of each device of an execution does not complete while the argument of this device has no data.",
        each_event_waits,
        "PJRT_LoadedExecutable_Execute when options>launch_id=939 early_events 1",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete."),
    check(
        "devices/copies_in_both_directions",
        "Two devices that copy arrays to each other do not wait for each other: a receive is queued before the programs that are launched later.",
        exchange,
        "PJRT_Buffer_CopyToDevice call 30 hang",
    )
    .header("PJRT_Buffer_CopyToDevice", "Copies the buffer to device `dst_device` within the same client. No call says that the host must wait between copies.")
    .used_by(&[Profile::Jax]),
    check(
        "devices/copy_outlives_its_source",
        "A copy on another device is complete although its source is destroyed and its memory reused immediately.",
        copy_outlives,
        "PJRT_Buffer_CopyToDevice free_source",
    )
    .header("PJRT_Buffer_Delete", "The device memory will be freed when all async operations using the buffer have completed.")
    .also(&["buffer/copy_to_another_device", "devices/copies_in_both_directions", "bits/copies_to_devices"]),
];

/// Returns the first two devices, or if the host prefers another device, this one and one before it.
pub(super) fn two(client: &Client) -> Result<[Device<'_>; 2], Finding> {
    match (&client.addressable_devices()?[..], preferred()) {
        (&[.., before, last], Some(_)) => Ok([last, before]),
        (&[first, second, ..], None) => Ok([first, second]),
        _ => Err(Finding::NotApplicable(ONE_DEVICE.to_owned())),
    }
}

/// Returns the devices other than the one on which the client puts arrays.
pub(super) fn others(client: &Client) -> Result<Vec<Device<'_>>, Finding> {
    let device = client.device()?;
    Ok(client.addressable_devices()?.into_iter().filter(|other| *other != device).collect())
}

/// Returns the id of a device.
pub(super) fn id_of(device: Device<'_>) -> Result<i64, Error> {
    Ok(i64::from(device.description()?.id()?))
}

/// Compiles the program that adds for these devices, as replicas.
fn replicated(client: &Client, devices: &[Device<'_>]) -> Result<LoadedExecutable, Finding> {
    let devices = devices.iter().map(|device| id_of(*device)).collect::<Result<Vec<_>, _>>()?;
    let options = CompileOptions { replicas: devices.len() as i64, devices, ..CompileOptions::default() };
    compiled(client, &add_program("4x"), &options)
}

/// Compiles a program for two partitions.
fn partitioned(client: &Client, text: &str) -> Result<LoadedExecutable, Finding> {
    let [first, second] = two(client)?;
    let devices = vec![id_of(first)?, id_of(second)?];
    let text = text.replacen(
        "module @sums",
        "module @sums attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}",
        1,
    );
    compiled(client, &text, &CompileOptions { partitions: 2, devices, ..CompileOptions::default() })
}

fn upload_second(context: &Context) -> Verdict {
    let client = context.client()?;
    let [_, second] = two(&client)?;
    let array = upload_to(&client, &[1.0, 2.0, 3.0, 4.0], second)?.buffer;
    let cause = "The plugin probably ignores `device` and uploads to the first device";
    is_on_device("the array", &array, second, cause)?;
    is_in_memory("the array", &array, second.default_memory()?, cause)?;
    equal("the array", numbers(&array)?, vec![1.0, 2.0, 3.0, 4.0])
}

fn upload_from_threads(context: &Context) -> Verdict {
    let client = context.client()?;
    two(&client)?;
    let cause = "The plugin probably takes the device from a state of the thread, and not from the arguments of the call";
    for (number, device) in client.addressable_devices()?.into_iter().enumerate() {
        let values = [number as f32; 4];
        let upload = || upload_to(&client, &values, device).map(|uploaded| uploaded.buffer);
        let joined = std::thread::scope(|scope| scope.spawn(upload).join());
        let array = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        is_on_device("an array that another thread uploaded", &array, device, cause)?;
        equal("an array that another thread uploaded", numbers(&array)?, values.to_vec())?;
    }
    Ok(())
}

fn program_for_second(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    let executable = replicated(&client, &[second])?;
    ensure!(
        executable.devices()? == [second],
        "a program whose device assignment is the second device reports other devices; the plugin probably ignores the \
         device assignment in the compile options"
    );
    let x = upload_to(&client, &[1.0; 4], second)?.buffer;
    equal("an array on the second device, before the execution,", numbers(&x)?, vec![1.0; 4])?;
    let output = launch(&executable, &[&x, &x], 930)?.take_output()?;
    is_on_device(
        "the output",
        &output,
        second,
        "The plugin probably runs every program on the first device",
    )?;
    let (sum, expected) = (numbers(&output)?, vec![2.0; 4]);
    if sum != expected && sum_on(&client, first)? == expected {
        let device = device_name(second);
        return Err(Finding::Wrong(format!(
            "the sum on {device} is {sum:?}; expected {expected:?}, and {RIGHT_ON_ANOTHER}"
        )));
    }
    equal("the sum", sum, expected)
}

/// Returns the sum of an array of ones and itself, which a device computes.
fn sum_on(client: &Client, device: Device<'_>) -> Result<Vec<f32>, Finding> {
    let x = upload_to(client, &[1.0; 4], device)?.buffer;
    Ok(numbers(launch(&replicated(client, &[device])?, &[&x, &x], 0)?.output(0, 0)?)?)
}

fn num_replicas(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = replicated(&client, &two(&client)?)?;
    let program = loaded.executable()?;
    equal("PJRT_Executable_NumReplicas of a program with 2 replicas", program.num_replicas()?, 2)?;
    equal("PJRT_Executable_NumPartitions of a program with 2 replicas", program.num_partitions()?, 1)
}

fn num_partitions(context: &Context) -> Verdict {
    let client = context.client()?;
    let loaded = partitioned(&client, &sums(&["4xf32"], &[("%p0", "%p0", "4xf32")]))?;
    let program = loaded.executable()?;
    equal("PJRT_Executable_NumPartitions of a program with 2 partitions", program.num_partitions()?, 2)?;
    equal("PJRT_Executable_NumReplicas of a program with 2 partitions", program.num_replicas()?, 1)
}

fn order(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    for (name, wanted) in [("in_order", [first, second]), ("in_reverse", [second, first])] {
        // The programs differ, so that a cache of compiled programs is not tested here.
        let text = add_program("4x").replacen("@add", &format!("@{name}"), 1);
        let wanted = wanted.to_vec().to_vec_of_ids()?;
        let options = CompileOptions { replicas: 2, devices: wanted.clone(), ..CompileOptions::default() };
        let devices = compiled(&client, &text, &options)?.devices()?.to_vec_of_ids()?;
        let mut sorted = wanted.clone();
        sorted.sort_unstable();
        let cause = if devices == sorted { "The plugin probably sorts the devices. " } else { "" };
        ensure!(
            devices == wanted,
            "PJRT_LoadedExecutable_AddressableDevices lists the devices {devices:?}; the device assignment is {wanted:?}. \
             {cause}Hosts pass `argument_lists` in the order of this list"
        );
    }
    Ok(())
}

/// The ids of a list of devices.
trait Ids {
    fn to_vec_of_ids(&self) -> Result<Vec<i64>, Error>;
}

impl Ids for Vec<Device<'_>> {
    fn to_vec_of_ids(&self) -> Result<Vec<i64>, Error> {
        self.iter().map(|device| id_of(*device)).collect()
    }
}

fn logical_ids(context: &Context) -> Verdict {
    let client = context.client()?;
    let of_replicas = replicated(&client, &two(&client)?)?.logical_ids()?;
    equal("the (replica, partition) of two replicas", of_replicas, vec![(0, 0), (1, 0)])?;
    match partitioned(&client, &sums(&["4xf32"], &[("%p0", "%p0", "4xf32")])) {
        Err(Finding::Unsupported(_)) => Ok(()),
        loaded => {
            equal("the (replica, partition) of two partitions", loaded?.logical_ids()?, vec![(0, 0), (0, 1)])
        }
    }
}

fn assignment(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    let given = replicated(&client, &[second, first])?.device_assignment()?;
    let devices = vec![id_of(second)?, id_of(first)?];
    let wanted = DeviceAssignment { replicas: 2, partitions: 1, devices };
    let decoded = DeviceAssignment::decode(&given.bytes);
    ensure!(
        decoded.as_ref() == Some(&wanted),
        "the {} bytes of PJRT_LoadedExecutable_GetDeviceAssignment are {decoded:?}; expected the DeviceAssignmentProto \
         of {wanted:?}",
        given.bytes.len()
    );
    Ok(())
}

/// Executes the program that adds on these devices, with different values on each, and checks the outputs.
fn run_replicas(client: &Client, devices: [Device<'_>; 2], id: i32) -> Verdict {
    let executable = replicated(client, &devices)?;
    let x =
        [upload_to(client, &[1.0; 4], devices[0])?.buffer, upload_to(client, &[2.0; 4], devices[1])?.buffer];
    let lists = [vec![&x[0], &x[0]], vec![&x[1], &x[1]]];
    let launched = launch_on_all(&executable, &lists, id)?;
    expect_per_device(&launched.outputs, &devices, &[vec![2.0; 4], vec![4.0; 4]])
}

/// Checks that each device has its own output.
fn expect_per_device(outputs: &[Vec<Buffer>], devices: &[Device<'_>], expected: &[Vec<f32>]) -> Verdict {
    const SIZE: &str =
        "`output_lists` has the size [num_devices, num_outputs], in the order of `argument_lists`";
    let all = outputs.iter().map(|of_device| numbers(&of_device[0])).collect::<Result<Vec<_>, _>>()?;
    let places = outputs.iter().map(|of_device| of_device[0].device()).collect::<Result<Vec<_>, _>>()?;
    let is_permutation = expected.iter().all(|wanted| all.contains(wanted))
        || devices.iter().all(|wanted| places.contains(wanted)) && places != devices;
    let cause = if is_permutation {
        format!(
            "The plugin probably returns the lists of outputs in a different order than the devices of the program. {SIZE}"
        )
    } else {
        SIZE.to_owned()
    };
    for (index, of_device) in outputs.iter().enumerate() {
        let what = format!("the output in list {index}");
        is_on_device(&what, &of_device[0], devices[index], &cause)?;
        let got = &all[index];
        ensure!(*got == expected[index], "{what} is {got:?}; expected {:?}. {cause}", expected[index]);
    }
    Ok(())
}

/// Executes a program on its devices, which are in this order, with one value for each replica, and checks the outputs.
fn run_on(
    client: &Client,
    executable: &LoadedExecutable,
    devices: &[Device<'_>],
    replicas: &[i32],
    id: i32,
) -> Verdict {
    let value = |index: usize| replicas[index] as f32 + 1.0;
    let arrays = devices
        .iter()
        .enumerate()
        .map(|(index, device)| Ok(upload_to(client, &[value(index); 4], *device)?.buffer))
        .collect::<Result<Vec<_>, Error>>()?;
    let lists: Vec<Vec<&Buffer>> = arrays.iter().map(|array| vec![array, array]).collect();
    let launched = launch_on_all(executable, &lists, id)?;
    let expected: Vec<Vec<f32>> = (0..devices.len()).map(|index| vec![2.0 * value(index); 4]).collect();
    expect_per_device(&launched.outputs, devices, &expected)
}

/// Returns all devices, at most eight, or a finding if there are fewer than this number.
pub(super) fn at_least(client: &Client, least: usize) -> Result<Vec<Device<'_>>, Finding> {
    let mut devices = client.addressable_devices()?;
    devices.truncate(8);
    if devices.len() < least {
        return Err(Finding::NotApplicable(format!("there are fewer than {least} devices")));
    }
    Ok(devices)
}

fn cycled_replicas(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut devices = at_least(&client, 3)?;
    devices.rotate_left(1);
    let executable = replicated(&client, &devices)?;
    let (got, wanted) = (executable.devices()?.to_vec_of_ids()?, devices.to_vec_of_ids()?);
    ensure!(
        got == wanted,
        "PJRT_LoadedExecutable_AddressableDevices lists the devices {got:?}; the device assignment is {wanted:?}. The plugin \
         probably sorts the devices, or applies the inverse of the assignment"
    );
    let replicas: Vec<i32> = (0..).take(devices.len()).collect();
    run_on(&client, &executable, &devices, &replicas, 936)
}

fn replicas_of_partitions(context: &Context) -> Verdict {
    let client = context.client()?;
    let all = at_least(&client, 4)?;
    let devices = [all[2], all[0], all[3], all[1]];
    let ids = devices.to_vec().to_vec_of_ids()?;
    let text = add_program("4x").replacen(
        "module @add",
        "module @add attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}",
        1,
    );
    let options =
        CompileOptions { replicas: 2, partitions: 2, devices: ids.clone(), ..CompileOptions::default() };
    let executable = compiled(&client, &text, &options)?;
    let (listed, logical) = (executable.devices()?, executable.logical_ids()?);
    equal("the number of devices of two replicas with two partitions", listed.len(), 4)?;
    equal("the number of logical ids of two replicas with two partitions", logical.len(), 4)?;
    let listed_ids = listed.to_vec_of_ids()?;
    for (device, (replica, partition)) in listed_ids.iter().zip(&logical) {
        let of_assignment = ids.get((2 * replica + partition) as usize);
        ensure!(
            of_assignment == Some(device),
            "PJRT_LoadedExecutable_AddressableDevices lists the devices {listed_ids:?} with the logical ids {logical:?}; the \
             device assignment, replica by replica, is {ids:?}. The plugin probably transposes the assignment, or orders the \
             two lists differently"
        );
    }
    // Partitions receive the same value, because an argument without a sharding is the same in all partitions.
    let replicas: Vec<i32> = logical.iter().map(|(replica, _)| *replica).collect();
    run_on(&client, &executable, &listed, &replicas, 937)
}

fn replicas(context: &Context) -> Verdict {
    let client = context.client()?;
    run_replicas(&client, two(&client)?, 931)
}

fn reversed_replicas(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    run_replicas(&client, [second, first], 932)
}

fn split_array(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = two(&client)?;
    let split = "tensor<8xf32> {mhlo.sharding = \"{devices=[2]<=[2]}\"}";
    let lines = "    %s = stablehlo.add %p0, %p0 : tensor<8xf32>\n";
    let text = with_main(&format!("%p0: {split}"), lines, "%s", "tensor<8xf32>").replacen(
        "-> (tensor<8xf32>)",
        &format!("-> ({split})"),
        1,
    );
    let executable = partitioned(&client, &text)?;
    let parts = [
        upload_to(&client, &[1.0, 2.0, 3.0, 4.0], devices[0])?.buffer,
        upload_to(&client, &[5.0, 6.0, 7.0, 8.0], devices[1])?.buffer,
    ];
    let launched = launch_on_all(&executable, &[vec![&parts[0]], vec![&parts[1]]], 933)?;
    let expected = [vec![2.0, 4.0, 6.0, 8.0], vec![10.0, 12.0, 14.0, 16.0]];
    expect_per_device(&launched.outputs, &devices, &expected)
}

fn events(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = two(&client)?;
    let executable = replicated(&client, &devices)?;
    let x = [
        upload_to(&client, &[1.0; 4], devices[0])?.buffer,
        upload_to(&client, &[2.0; 4], devices[1])?.buffer,
    ];
    let launched = launch_on_all(&executable, &[vec![&x[0]; 2], vec![&x[1]; 2]], 934)?;
    for (index, event) in launched.done.iter().enumerate() {
        let outcome = event.on_ready()?.wait(patience());
        ensure!(
            outcome == Some(Ok(())),
            "the event of device {index} completed with {got}; `device_complete_events` has length num_devices, \
             and each event becomes ready once the execution on its device is complete",
            got = described(outcome.as_ref())
        );
    }
    Ok(())
}

fn each_event_waits(context: &Context) -> Verdict {
    const SHORT: Duration = Duration::from_millis(20);
    let client = context.client()?;
    let devices = two(&client)?;
    let executable = replicated(&client, &devices)?;
    for late in 0..devices.len() {
        let pending = Pending::on(&client, devices[late])?;
        let other = upload_to(&client, &[1.0; 4], devices[1 - late])?.buffer;
        let mut arguments = [vec![&other; 2], vec![&other; 2]];
        arguments[late] = vec![&pending.array; 2];
        let launched = launch_on_all(&executable, &arguments, 939)?;
        std::thread::sleep(SHORT);
        let is_early = launched.done[late].is_ready()?;
        let _array = pending.provide_on(&client, devices[late], &[2.0; 4])?;
        ensure!(
            !is_early,
            "the event of device {late} of two in `device_complete_events` is ready before the host provided the argument of \
             this device; the plugin probably waits for the execution on the first device only. Hosts free what the execution \
             uses when its event is ready"
        );
        launched.done.iter().try_for_each(Event::wait)?;
    }
    Ok(())
}

/// The number of times that each device sends an array to the other.
const ROUNDS: usize = 40;

/// Executes programs on both devices whose arguments come from the other one, without waiting.
fn exchange_rounds(client: &Client) -> Verdict {
    is_without_hazard("does not wait for the data of an array before it copies it", |waits| {
        exchanged(client, waits)
    })
}

/// Exchanges two arrays between two devices in each round, and doubles them. Describes them if they are wrong.
fn exchanged(client: &Client, waits: Waits) -> Result<Wrong, Finding> {
    let devices = two(client)?;
    let programs = [replicated(client, &devices[..1])?, replicated(client, &devices[1..])?];
    let mut arrays =
        [upload_to(client, &[1.0; 4], devices[0])?.buffer, upload_to(client, &[0.0; 4], devices[1])?.buffer];
    for _ in 0..ROUNDS {
        let received = [arrays[1].copy_to_device(devices[0])?, arrays[0].copy_to_device(devices[1])?];
        let mut next = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            next.push(launch(program, &[&received[index], &received[index]], 0)?.take_output()?);
        }
        waits.until(|| next.iter().try_for_each(|array| array.ready()?.wait()))?;
        let second = next.pop().expect("two devices");
        arrays = [next.remove(0), second];
    }
    let power = 2_f32.powi(ROUNDS as i32);
    for (array, expected, which) in [(&arrays[0], power, "first"), (&arrays[1], 0.0, "second")] {
        let found = numbers(array)?;
        let wrong = found.iter().filter(|element| **element != expected).count();
        if wrong > 0 {
            return Ok(Some(format!(
                "after {ROUNDS} rounds of copies in both directions, the array {found:?} of the {which} device, which should be \
                 {expected} everywhere, has {wrong} wrong elements"
            )));
        }
    }
    Ok(None)
}

fn exchange(context: &Context) -> Verdict {
    let client = Arc::new(context.client()?);
    two(&client)?;
    let (done, ended) = channel();
    let worker = Arc::clone(&client);
    // The thread remains if the devices wait for each other.
    std::thread::spawn(move || done.send(exchange_rounds(&worker)));
    match ended.recv_timeout(patience()) {
        Ok(verdict) => verdict,
        Err(_) => {
            // The client is in use.
            std::mem::forget(client);
            Err(Finding::Wrong(format!(
                "{ROUNDS} rounds of copies in both directions between two devices did not end in {limit:?}: the queues \
                 of the devices probably wait for each other, because a receive is queued only when its data is needed. \
                 PJRT_Buffer_CopyToDevice must queue both sides of the copy in the order of the calls",
                limit = patience()
            )))
        }
    }
}

fn copy_outlives(context: &Context) -> Verdict {
    let client = context.client()?;
    let [first, second] = two(&client)?;
    for round in 0..10_u8 {
        let value = f32::from(round) + 1.0;
        let source = upload_to(&client, &[value; 4], first)?.buffer;
        let copy = source.copy_to_device(second)?;
        drop(source);
        // These may use the memory of the source.
        let others = (0..4).map(|_| upload_to(&client, &[-1.0; 4], first)).collect::<Result<Vec<_>, _>>()?;
        let got = numbers(&copy)?;
        ensure!(
            got == [value; 4],
            "a copy on another device is {got:?}; expected {:?}. The plugin probably frees or reuses the memory of the \
             source before the copy is complete: the memory of a deleted array is freed when all operations that use it \
             have completed (PJRT_Buffer_Delete)",
            [value; 4]
        );
        drop(others);
    }
    Ok(())
}
