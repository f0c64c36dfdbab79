//! Checks of the results of programs: of each operation, and of those that communicate between devices.

use std::time::{Duration, Instant};

use super::devices::{at_least, id_of};
use super::entry::{Entry, check};
use super::program_text::{compiled, launch_on_all};
use crate::conform::harness::{
    Context, Expected, Finding, ONE_DEVICE, Verdict, ensure, is_brief, performing,
};
use crate::numerics;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{Buffer, Client, Device, ElementType, HostArray};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "results/operations",
        "A program of one operation, which the plugin compiles, has about the results that StableHLO defines: the programs of `cargo pjrt numerics` on its operations with ordinary numbers of each element type.",
        operations,
        "PJRT_LoadedExecutable_Execute of_rank 2 fail INTERNAL",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client, with a list of arguments and a list of outputs for each.")
    .also(&["execute/adds"]),
    check(
        "results/collectives",
        "Programs that communicate between two, three and more devices, all at once or in groups, have the results that StableHLO defines on each of the devices.",
        collectives,
        "PJRT_LoadedExecutable_Execute when options>launch_id=990 swap_devices",
    )
    .header("PJRT_LoadedExecutable_Execute", "Executes on devices addressable by the client, with a list of arguments and a list of outputs for each."),
];

/// The element types of the programs.
const ELEMENTS: [&str; 15] = [
    "f32",
    "i32",
    "i1",
    "f64",
    "bf16",
    "f16",
    "i8",
    "i16",
    "i64",
    "ui8",
    "ui16",
    "ui32",
    "ui64",
    "complex<f32>",
    "complex<f64>",
];

/// The number of element types with all programs of each operation. All programs would take minutes with a compiler that takes a
/// tenth of a second for each.
const WHOLE: usize = 3;

/// The number of wrong programs that a message names.
const SHOWN: usize = 3;

/// The time after which no further program runs, for compilers that take long. The first program of each operation comes first.
const LONGEST: Duration = Duration::from_secs(30);

fn operations(context: &Context) -> Verdict {
    let (client, start) = (context.client()?, Instant::now());
    // Another thread or client hardly changes the results of one type, or of one program of an operation, only.
    let (elements, whole) =
        if is_brief() { (&ELEMENTS[..1], &[][..]) } else { (&ELEMENTS[..], &ELEMENTS[..WHOLE]) };
    let others = whole.iter().map(|element| (element, false));
    let order = numerics::Order::new();
    let (mut tried, mut wrong) = (Vec::new(), Vec::new());
    for (element, first) in elements.iter().map(|element| (element, true)).chain(others) {
        for operation in numerics::Operation::with_element(element, first).map_err(Finding::Unsupported)? {
            if start.elapsed() > LONGEST {
                break;
            }
            let (name, label) = (operation.op(), operation.label());
            let run = || operation.run(&client);
            let outcome = performing(format!("the program {label}"), run).map_err(Finding::Unsupported)?;
            let Some(outcome) = outcome else { continue };
            let module = outcome.as_ref().err().and_then(|_| operation.module());
            tried.push(numerics::Tried::new(name, element, operation.operands(), module.as_ref()));
            wrong.extend(
                outcome.err().map(|why| (order.key(name), tried.len() - 1, format!("{label}: {why}"))),
            );
        }
    }
    if tried.is_empty() {
        return Err(Finding::Unsupported("the plugin compiles none of the programs".to_owned()));
    }
    // An operation that others are decomposed into comes first.
    wrong.sort_by_key(|(key, ..)| *key);
    let shown = wrong[..wrong.len().min(SHOWN)].iter().map(|(_, at, text)| {
        let why = numerics::joined(&tried[*at], &tried, &order);
        let why = why.or_else(|| numerics::lengths(&tried[*at], &tried));
        why.map_or_else(|| text.clone(), |why| format!("{text}; {why}"))
    });
    ensure!(
        wrong.is_empty(),
        "{} of {} programs of few operations have wrong results or fail: {}. `cargo pjrt numerics` lists all",
        wrong.len(),
        tried.len(),
        shown.collect::<Vec<_>>().join("; ")
    );
    Ok(())
}

/// The replicas of a program that communicates, and the type and the number of the elements of each argument.
#[derive(Clone, Copy)]
struct Group {
    n: usize,
    element: &'static str,
    len: usize,
}

/// A program that communicates: its operation with the type of its result, and the number of elements of the result and their
/// values on each replica.
struct Collective {
    name: &'static str,
    text: fn(Group) -> String,
    len: fn(Group) -> usize,
    result: fn(group: Group, replica: usize, index: usize) -> usize,
}

/// The value of a replica's argument at an index.
fn argument(replica: usize, index: usize) -> usize {
    10 * (replica + 1) + index
}

impl Group {
    fn ty(self) -> String {
        format!("tensor<{}x{}>", self.len, self.element)
    }

    /// Returns the type of an array with another number of elements.
    fn of(self, len: usize) -> String {
        Self { len, ..self }.ty()
    }

    /// Returns the groups of all replicas as an attribute.
    fn all(self) -> String {
        let members: Vec<String> = (0..self.n).map(|replica| replica.to_string()).collect();
        format!("replica_groups = dense<[[{}]]> : tensor<1x{}xi64>", members.join(", "), self.n)
    }

    /// Returns a body that combines two elements with an operation.
    fn body(self, operation: &str) -> String {
        let ty = format!("tensor<{}>", self.element);
        format!(
            "({{ ^bb0(%a: {ty}, %b: {ty}): %s = stablehlo.{operation} %a, %b : {ty} stablehlo.return %s : {ty} }})"
        )
    }
}

const COLLECTIVES: [Collective; 8] = [
    Collective {
        name: "all_reduce",
        text: |g| {
            let (ty, body, all) = (g.ty(), g.body("add"), g.all());
            format!("\"stablehlo.all_reduce\"(%x) {body} {{{all}}} : ({ty}) -> {ty}")
        },
        len: |g| g.len,
        result: |g, _, index| (0..g.n).map(|replica| argument(replica, index)).sum(),
    },
    Collective {
        name: "all_reduce of the maximum",
        text: |g| {
            let (ty, body, all) = (g.ty(), g.body("maximum"), g.all());
            format!("\"stablehlo.all_reduce\"(%x) {body} {{{all}}} : ({ty}) -> {ty}")
        },
        len: |g| g.len,
        result: |g, _, index| argument(g.n - 1, index),
    },
    Collective {
        name: "all_reduce in two groups",
        text: |g| {
            // The first replicas, and the last one alone; absent members are -1.
            let n = g.n;
            let first: Vec<String> = (0..n - 1).map(|replica| replica.to_string()).collect();
            let mut last = vec![(n - 1).to_string()];
            last.resize(n - 1, "-1".to_owned());
            format!(
                "\"stablehlo.all_reduce\"(%x) {} {{replica_groups = dense<[[{}], [{}]]> : tensor<2x{}xi64>}} : ({}) -> {}",
                g.body("maximum"),
                first.join(", "),
                last.join(", "),
                n - 1,
                g.ty(),
                g.ty()
            )
        },
        len: |g| g.len,
        result: |g, replica, index| argument(if replica + 1 == g.n { replica } else { g.n - 2 }, index),
    },
    Collective {
        name: "all_gather",
        text: |g| {
            let (ty, all, result) = (g.ty(), g.all(), g.of(g.len * g.n));
            format!("\"stablehlo.all_gather\"(%x) {{all_gather_dim = 0 : i64, {all}}} : ({ty}) -> {result}")
        },
        len: |g| g.len * g.n,
        result: |g, _, index| argument(index / g.len, index % g.len),
    },
    Collective {
        name: "reduce_scatter",
        text: |g| {
            let (ty, body, all) = (g.of(g.len * g.n), g.body("add"), g.all());
            let copies: Vec<&str> = vec!["%x"; g.n];
            format!(
                "stablehlo.concatenate {}, dim = 0 : ({}) -> {ty} %1 = \"stablehlo.reduce_scatter\"(%0) {body} \
                 {{scatter_dimension = 0 : i64, {all}}} : ({ty}) -> {}",
                copies.join(", "),
                vec![g.ty(); g.n].join(", "),
                g.ty()
            )
        },
        len: |g| g.len,
        result: |g, _, index| (0..g.n).map(|replica| argument(replica, index)).sum(),
    },
    Collective {
        name: "all_to_all",
        text: |g| {
            let (ty, all, n) = (g.of(g.len * g.n), g.all(), g.n);
            let copies: Vec<&str> = vec!["%x"; n];
            format!(
                "stablehlo.concatenate {}, dim = 0 : ({}) -> {ty} %1 = \"stablehlo.all_to_all\"(%0) {{split_dimension = 0 : i64, \
                 concat_dimension = 0 : i64, split_count = {n} : i64, {all}}} : ({ty}) -> {ty}",
                copies.join(", "),
                vec![g.ty(); n].join(", ")
            )
        },
        len: |g| g.len * g.n,
        result: |g, _, index| argument(index / g.len, index % g.len),
    },
    Collective {
        name: "collective_permute",
        text: |g| {
            let (n, ty) = (g.n, g.ty());
            let pairs: Vec<String> = (0..n).map(|from| format!("[{from}, {}]", (from + 1) % n)).collect();
            format!(
                "\"stablehlo.collective_permute\"(%x) {{source_target_pairs = dense<[{}]> : tensor<{n}x2xi64>}} : \
                 ({ty}) -> {ty}",
                pairs.join(", ")
            )
        },
        len: |g| g.len,
        result: |g, replica, index| argument((replica + g.n - 1) % g.n, index),
    },
    Collective {
        name: "collective_permute without a source for some replicas",
        text: |g| {
            let (last, ty) = (g.n - 1, g.ty());
            format!(
                "\"stablehlo.collective_permute\"(%x) {{source_target_pairs = dense<[[0, {last}]]> : tensor<1x2xi64>}} : \
                 ({ty}) -> {ty}"
            )
        },
        len: |g| g.len,
        result: |g, replica, index| if replica + 1 == g.n { argument(0, index) } else { 0 },
    },
];

/// The types and the numbers of the elements: few, one, and more than fit into blocks of a round size.
const ARRAYS: [(&str, usize); 5] = [("f32", 4), ("f32", 1), ("i32", 5), ("f32", 1037), ("f32", 20_003)];

fn collectives(context: &Context) -> Verdict {
    let client = context.client()?;
    let devices = at_least(&client, 2).map_err(|_| Finding::NotApplicable(ONE_DEVICE.to_owned()))?;
    let (mut ran, mut refusal) = (false, None);
    for n in 2..=devices.len().min(MOST) {
        for (element, len) in ARRAYS {
            for collective in &COLLECTIVES {
                match run(&client, &devices[..n], collective, Group { n, element, len }) {
                    Err(Finding::Unsupported(why)) => refusal = Some(why),
                    outcome => {
                        outcome?;
                        ran = true;
                    }
                }
            }
        }
    }
    match refusal {
        Some(why) if !ran => Err(Finding::Unsupported(why)),
        _ => Ok(()),
    }
}

/// The largest number of devices that communicate.
const MOST: usize = 8;

fn run(client: &Client, devices: &[Device<'_>], collective: &Collective, group: Group) -> Verdict {
    let Group { n, element, len } = group;
    let operation = (collective.text)(group);
    let last = if operation.contains("%1 = ") { "%1" } else { "%0" };
    let result = operation.rsplit(" -> ").next().unwrap_or_default().to_owned();
    let text = format!(
        "module @collective attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {n} : i32}} {{ \
         func.func @main(%x: {}) -> {result} {{ %0 = {operation} return {last} : {result} }} }}",
        group.ty()
    );
    let ids = devices.iter().map(|device| id_of(*device)).collect::<Result<Vec<_>, _>>()?;
    let options = CompileOptions { replicas: n as i64, devices: ids, ..CompileOptions::default() };
    let program = compiled(client, &text, &options)?;
    let element_type = if element == "i32" { ElementType::S32 } else { ElementType::F32 };
    let bytes_of = |value: usize| match element {
        "i32" => (value as i32).to_le_bytes(),
        _ => (value as f32).to_le_bytes(),
    };
    let upload = |(replica, device): (usize, &Device<'_>)| {
        let bytes: Vec<u8> = (0..len).flat_map(|index| bytes_of(argument(replica, index))).collect();
        let dims = [len as i64];
        Ok(client.upload(&HostArray::new(&bytes, element_type, &dims), Some(*device), None)?.buffer)
    };
    let arguments: Vec<Buffer> = devices.iter().enumerate().map(upload).collect::<Result<_, Finding>>()?;
    let lists: Vec<Vec<&Buffer>> = arguments.iter().map(|argument| vec![argument]).collect();
    let launched = launch_on_all(&program, &lists, 990)?;
    for replica in 0..devices.len() {
        let expected: Vec<u8> = (0..(collective.len)(group))
            .flat_map(|index| bytes_of((collective.result)(group, replica, index)))
            .collect();
        let what = format!(
            "{} of {n} replicas, of which replica i has [10 (i + 1), 10 (i + 1) + 1, ...] of {element}[{len}], on replica {replica}",
            collective.name
        );
        let dims = [(expected.len() / 4) as i64];
        Expected::new(&what, &expected, element_type, &dims)
            .otherwise(
                "the contribution of a replica is missing, or counts twice, or comes from another replica",
            )
            .check_array(launched.output(replica, 0)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_communicate_are_valid() {
        for collective in &COLLECTIVES {
            let group = Group { n: 3, element: "f32", len: 4 };
            let operation = (collective.text)(group);
            let result = operation.rsplit(" -> ").next().unwrap_or_default().to_owned();
            let last = if operation.contains("%1 = ") { "%1" } else { "%0" };
            let text = format!(
                "module @c {{ func.func @main(%x: {}) -> {result} {{ %0 = {operation} return {last} : {result} }} }}",
                group.ty()
            );
            let module = pjrt_stablehlo::parse(text.clone().into_bytes());
            assert!(module.is_ok(), "{text}: {module:?}");
        }
    }
}
