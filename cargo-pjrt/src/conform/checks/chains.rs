//! Checks of copies between all pairs of devices, of copies of copies, and of programs that run with them.

use super::devices::id_of;
use super::entry::{Entry, check};
use super::program_text::compiled;
use crate::conform::harness::{
    Context, Finding, ONE_DEVICE, Verdict, add_program, ensure, f32_bytes, is_on_device, numbers, upload_to,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Device, ElementType, Error, ExecuteOptions, HostArray, LoadedExecutable,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "devices/chains_of_copies",
        "A copy can be copied on, from any device to any third one and back, although the earlier arrays are deleted immediately: each copy is on its device, with the elements of the first array.",
        chains,
        "PJRT_Buffer_CopyToMemory on_another_device of_rank 7 zeroed dst_buffer 11 7",
    )
    .header("PJRT_Buffer_CopyToMemory", "Copies the buffer to memory `dst_memory` within the same client: from whichever device it is on."),
    check(
        "devices/programs_of_copies",
        "A program on any device computes with copies of arrays of every other device, immediately after the copy was requested, and with copies of copies.",
        programs,
        "PJRT_LoadedExecutable_Execute on_another_device when options>launch_id=656 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::argument_lists", "The arguments are arrays on the device that executes; a copy on this device is one."),
];

/// The maximum number of devices of which all pairs are checked.
const MOST: usize = 4;

/// A function that copies an array to a device.
type Copy = (&'static str, fn(&Buffer, Device<'_>) -> Result<Buffer, Error>);

const COPIES: [Copy; 2] = [
    ("PJRT_Buffer_CopyToMemory", |array, device| array.copy_to_memory(device.default_memory()?)),
    ("PJRT_Buffer_CopyToDevice", |array, device| array.copy_to_device(device)),
];

/// The first devices.
fn some(client: &Client) -> Result<Vec<Device<'_>>, Finding> {
    let mut devices = client.addressable_devices()?;
    devices.truncate(MOST);
    match devices.len() {
        0 | 1 => Err(Finding::NotApplicable(ONE_DEVICE.to_owned())),
        _ => Ok(devices),
    }
}

/// Returns the ways through the devices, as indices: there and back, and with three devices in a cycle.
fn ways(count: usize) -> Vec<Vec<usize>> {
    let mut ways = Vec::new();
    for first in 0..count {
        for second in (0..count).filter(|second| *second != first) {
            ways.push(vec![first, second, first]);
            let thirds = (0..count).filter(|third| *third != first && *third != second);
            ways.extend(thirds.map(|third| vec![first, second, third, first]));
        }
    }
    ways
}

/// The dimensions of the arrays of chains, a rank that other checks of copies do not use.
const DIMS: [i64; 7] = [1, 1, 2, 1, 2, 1, 1];

fn chains(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = some(&client)?;
    let ids = devices.iter().map(|device| id_of(*device)).collect::<Result<Vec<_>, _>>()?;
    for (function, copy) in COPIES {
        for (number, way) in ways(devices.len()).into_iter().enumerate() {
            let value = number as f32 + 0.25;
            let bytes = f32_bytes(&[value, value + 100.0, value + 200.0, value + 300.0]);
            let array = HostArray::new(&bytes, ElementType::F32, &DIMS);
            let mut array = client.upload(&array, Some(devices[way[0]]), None)?.buffer;
            let route: Vec<i64> = way.iter().map(|at| ids[*at]).collect();
            for (step, at) in way.iter().enumerate().skip(1) {
                let next = copy(&array, devices[*at])?;
                array.delete()?;
                array = next;
                let what = format!("copy {step} of {function} along the devices {route:?}");
                is_on_device(&what, &array, devices[*at], "The plugin probably ignores the destination")?;
            }
            let read = array.read()?;
            ensure!(
                read == bytes,
                "the last copy of {function} along the devices {route:?} has the bytes {read:?}; expected those of the first array, \
                 {bytes:?}. The plugin probably copies only from or to the first device, or frees the memory of an array that was deleted \
                 before it was copied (PJRT_Buffer_Delete: \"the device memory will be freed when all async operations using the buffer \
                 have completed\")"
            );
        }
    }
    Ok(())
}

/// Compiles the program that adds for each device.
fn compiled_for_each(client: &Client, devices: &[Device<'_>]) -> Result<Vec<LoadedExecutable>, Finding> {
    let of_device = |device: &Device<'_>| {
        let options = CompileOptions { devices: vec![id_of(*device)?], ..CompileOptions::default() };
        compiled(client, &add_program("4x"), &options)
    };
    devices.iter().map(of_device).collect()
}

fn programs(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = some(&client)?;
    let programs = compiled_for_each(&client, &devices)?;
    for (function, copy) in COPIES {
        for (from, source) in devices.iter().enumerate() {
            for (to, target) in devices.iter().enumerate().filter(|(to, _)| *to != from) {
                // A copy that comes by way of every other device.
                let others = devices.iter().enumerate().filter(|(at, _)| *at != from && *at != to);
                let value = (10 * from + to) as f32 + 1.0;
                let array = upload_to(&client, &[value; 4], *source)?.buffer;
                let direct = copy(&array, *target)?;
                let mut indirect = array;
                for (_, other) in others {
                    indirect = copy(&indirect, *other)?;
                }
                let indirect = copy(&indirect, *target)?;
                let options = ExecuteOptions { launch_id: 656, ..ExecuteOptions::default() };
                let launched = programs[to].launch(&[vec![&direct, &indirect]], &options, None, true);
                let pair = format!("from the device {} to the device {}", id_of(*source)?, id_of(*target)?);
                let launched = launched.map_err(|refused| {
                    Finding::Wrong(format!(
                        "a program that adds two copies of {function} {pair} was refused: {}. The copies are on the device of the \
                         program",
                        refused.error
                    ))
                })?;
                let sum = numbers(launched.output(0, 0)?)?;
                ensure!(
                    sum == [2.0 * value; 4],
                    "a program that adds two copies of {function} {pair}, one of which came by way of the other devices, returned \
                     {sum:?}; expected {:?}. The plugin probably does not make the execution wait for the copies",
                    [2.0 * value; 4]
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_and_each_cycle_of_three_is_a_way() {
        assert_eq!(ways(2), [[0, 1, 0], [1, 0, 1]]);
        let of_four = ways(4);
        assert_eq!(of_four.len(), 12 + 24);
        assert!(of_four.contains(&vec![2, 3, 1, 2]));
    }
}
