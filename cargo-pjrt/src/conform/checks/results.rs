//! Checks of the results of programs: of each operation, and of those that communicate between devices.

use super::devices::{at_least, id_of};
use super::entry::{Entry, check};
use super::program_text::{compiled, launch_on_all};
use crate::conform::harness::{Context, Finding, ONE_DEVICE, Verdict, ensure, numbers, upload_to};
use crate::numerics;
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Device};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "results/operations",
        "A program of one operation, which the plugin compiles, has about the results that StableHLO defines: the programs of `cargo pjrt numerics` with ordinary numbers of F32, S32 and PRED.",
        operations,
        "PJRT_LoadedExecutable_Execute of_rank 2 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client, with a list of arguments and a list of outputs for each.")
    .used_by(&Profile::ALL)
    .also(&["execute/adds"]),
    check(
        "results/collectives",
        "Programs that communicate between two, three and more devices, all at once or in groups, have the results that StableHLO defines on each of the devices.",
        collectives,
        "PJRT_LoadedExecutable_Execute when options>launch_id=990 swap_devices",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client, with a list of arguments and a list of outputs for each.")
    .used_by(&[Profile::Jax, Profile::TorchXla]),
];

/// The element types of the programs.
const ELEMENTS: [&str; 3] = ["f32", "i32", "i1"];

/// The number of wrong programs that a message names.
const SHOWN: usize = 3;

fn operations(context: &Context) -> Verdict {
    let client = context.client()?;
    let (total, wrong) = numerics::wrong_results(&client, &ELEMENTS).map_err(Finding::Unsupported)?;
    if total == 0 {
        return Err(Finding::Unsupported("the plugin compiles none of the programs".to_owned()));
    }
    ensure!(
        wrong.is_empty(),
        "{} of {total} programs of one operation have wrong results or fail: {}. `cargo pjrt numerics` lists all",
        wrong.len(),
        wrong[..wrong.len().min(SHOWN)].join("; ")
    );
    Ok(())
}

/// A program that communicates: its operation with the type of its result, and the result on each replica, of `n` with four
/// numbers each.
struct Collective {
    name: &'static str,
    text: fn(n: usize) -> String,
    /// Returns the element of a replica's result at an index.
    result: fn(n: usize, replica: usize, index: usize) -> f32,
}

/// The value of a replica's argument at an index.
fn argument(replica: usize, index: usize) -> f32 {
    (10 * (replica + 1) + index) as f32
}

/// Returns the groups of all replicas as an attribute.
fn one_group(n: usize) -> String {
    let members: Vec<String> = (0..n).map(|replica| replica.to_string()).collect();
    format!("replica_groups = dense<[[{}]]> : tensor<1x{n}xi64>", members.join(", "))
}

const COLLECTIVES: [Collective; 5] = [
    Collective {
        name: "all_reduce",
        text: |n| {
            format!(
                "\"stablehlo.all_reduce\"(%x) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): \
                 %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> }}) \
                 {{{}}} : (tensor<4xf32>) -> tensor<4xf32>",
                one_group(n)
            )
        },
        result: |n, _, index| (0..n).map(|replica| argument(replica, index)).sum(),
    },
    Collective {
        name: "all_reduce in two groups",
        text: |n| {
            // The first replicas, and the last one alone; absent members are -1.
            let first: Vec<String> = (0..n - 1).map(|replica| replica.to_string()).collect();
            let mut last = vec![(n - 1).to_string()];
            last.resize(n - 1, "-1".to_owned());
            format!(
                "\"stablehlo.all_reduce\"(%x) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): \
                 %s = stablehlo.maximum %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> }}) \
                 {{replica_groups = dense<[[{}], [{}]]> : tensor<2x{}xi64>}} : (tensor<4xf32>) -> tensor<4xf32>",
                first.join(", "),
                last.join(", "),
                n - 1
            )
        },
        result: |n, replica, index| argument(if replica + 1 == n { replica } else { n - 2 }, index),
    },
    Collective {
        name: "all_gather",
        text: |n| {
            format!(
                "\"stablehlo.all_gather\"(%x) {{all_gather_dim = 0 : i64, {}}} : (tensor<4xf32>) -> tensor<{}xf32>",
                one_group(n),
                4 * n
            )
        },
        result: |_, _, index| argument(index / 4, index % 4),
    },
    Collective {
        name: "collective_permute",
        text: |n| {
            let pairs: Vec<String> = (0..n).map(|from| format!("[{from}, {}]", (from + 1) % n)).collect();
            format!(
                "\"stablehlo.collective_permute\"(%x) {{source_target_pairs = dense<[{}]> : tensor<{n}x2xi64>}} : \
                 (tensor<4xf32>) -> tensor<4xf32>",
                pairs.join(", ")
            )
        },
        result: |n, replica, index| argument((replica + n - 1) % n, index),
    },
    Collective {
        name: "collective_permute without a source for some replicas",
        text: |n| {
            format!(
                "\"stablehlo.collective_permute\"(%x) {{source_target_pairs = dense<[[0, {}]]> : tensor<1x2xi64>}} : \
                 (tensor<4xf32>) -> tensor<4xf32>",
                n - 1
            )
        },
        result: |n, replica, index| if replica + 1 == n { argument(0, index) } else { 0.0 },
    },
];

fn collectives(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = at_least(&client, 2).map_err(|_| Finding::NotApplicable(ONE_DEVICE.to_owned()))?;
    let (mut ran, mut refusal) = (false, None);
    for n in 2..=devices.len() {
        for collective in &COLLECTIVES {
            match run(&client, &devices[..n], collective) {
                Err(Finding::Unsupported(why)) => refusal = Some(why),
                outcome => {
                    outcome?;
                    ran = true;
                }
            }
        }
    }
    match refusal {
        Some(why) if !ran => Err(Finding::Unsupported(why)),
        _ => Ok(()),
    }
}

fn run(client: &Client, devices: &[Device<'_>], collective: &Collective) -> Verdict {
    let n = devices.len();
    let operation = (collective.text)(n);
    let result = operation.rsplit(" -> ").next().unwrap_or_default().to_owned();
    let text = format!(
        "module @collective attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {n} : i32}} {{ \
         func.func @main(%x: tensor<4xf32>) -> {result} {{ %0 = {operation} return %0 : {result} }} }}"
    );
    let ids = devices.iter().map(|device| id_of(*device)).collect::<Result<Vec<_>, _>>()?;
    let options = CompileOptions { replicas: n as i64, devices: ids, ..CompileOptions::default() };
    let program = compiled(client, &text, &options)?;
    let upload = |(replica, device): (usize, &Device<'_>)| {
        let values: [f32; 4] = std::array::from_fn(|index| argument(replica, index));
        Ok(upload_to(client, &values, *device)?.buffer)
    };
    let arguments: Vec<Buffer> = devices.iter().enumerate().map(upload).collect::<Result<_, Finding>>()?;
    let lists: Vec<Vec<&Buffer>> = arguments.iter().map(|argument| vec![argument]).collect();
    let launched = launch_on_all(&program, &lists, 990)?;
    for (replica, outputs) in launched.outputs.iter().enumerate() {
        let found = numbers(&outputs[0])?;
        let expected: Vec<f32> =
            (0..found.len()).map(|index| (collective.result)(n, replica, index)).collect();
        ensure!(
            found == expected,
            "{} of {n} replicas, of which replica i has [10 (i + 1), 10 (i + 1) + 1, ...], is {found:?} on replica {replica}; \
             expected {expected:?}",
            collective.name
        );
    }
    Ok(())
}
