//! Programs whose lanes run on several nodes have the results of one process, bit by bit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex};
use std::thread;

use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{
    Bytes, Input, Nodes, RunError, RunErrorKind, RunOptions, Runtime, Transfer, Transport, run,
};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// The sender, the receiver and the tag of bytes.
type Key = (usize, usize, u64);

/// The bytes that have been sent and not received.
#[derive(Default)]
struct Mail(Mutex<HashMap<Key, VecDeque<Vec<u8>>>>, Condvar);

/// The transport of one node.
struct Post<'a> {
    mail: &'a Mail,
    own: usize,
}

impl Transport for Post<'_> {
    fn transfer(&self, transfers: &mut [Transfer<'_>]) -> Result<(), RunError> {
        for transfer in &*transfers {
            if let Bytes::Send(bytes) = &transfer.bytes {
                let mut mail = self.mail.0.lock().unwrap();
                mail.entry((self.own, transfer.node, transfer.tag)).or_default().push_back(bytes.to_vec());
                self.mail.1.notify_all();
            }
        }
        for transfer in transfers {
            let key = (transfer.node, self.own, transfer.tag);
            if let Bytes::Receive(into) = &mut transfer.bytes {
                let mut mail = self.mail.0.lock().unwrap();
                let bytes = loop {
                    if let Some(bytes) = mail.get_mut(&key).and_then(VecDeque::pop_front) {
                        break bytes;
                    }
                    mail = self.mail.1.wait(mail).unwrap();
                };
                into.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }
}

const LANES: usize = 8;

/// Groups of four, and the same in other orders.
const GROUPS: &[&str] =
    &["[[0, 1, 2, 3], [4, 5, 6, 7]]", "[[0, 2, 4, 6], [1, 3, 5, 7]]", "[[7, 0, 3, 2], [6, 5, 1, 4]]"];

/// Assignments of lanes to nodes: 2 nodes of 4 lanes, 4 of 2 in turn, 8 of 1, and uneven ones.
const NODES: &[[usize; LANES]] =
    &[[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [7, 6, 5, 4, 3, 2, 1, 0], [0, 1, 1, 1, 2, 2, 0, 1]];

/// Collectives on a `tensor<4xNxf32>`: the attributes, and the dimensions of the result for a number of columns.
type Collective = (&'static str, &'static str, fn(usize) -> [usize; 2]);
const COLLECTIVES: &[Collective] = &[
    ("all_reduce", "", |n| [4, n]),
    ("all_gather", "all_gather_dim = 1 : i64, ", |n| [4, 4 * n]),
    ("all_gather", "all_gather_dim = 0 : i64, ", |n| [16, n]),
    ("all_to_all", "split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, ", |n| {
        [1, 4 * n]
    }),
    ("all_to_all", "split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 4 : i64, ", |n| {
        [4, n]
    }),
    ("reduce_scatter", "scatter_dimension = 1 : i64, ", |n| [4, n / 4]),
    ("reduce_scatter", "scatter_dimension = 0 : i64, ", |n| [1, n]),
    ("collective_broadcast", "", |n| [4, n]),
];

fn module((op, attributes, dims): &Collective, columns: usize, groups: &str, channel: &str) -> String {
    let region = match *op {
        "all_reduce" | "reduce_scatter" => {
            "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
                %s = stablehlo.add %x, %y : tensor<f32>
                stablehlo.return %s : tensor<f32>
             })"
        }
        _ => "",
    };
    let [rows, width] = dims(columns);
    let groups =
        if groups.starts_with("source") { groups.to_owned() } else { format!("replica_groups = {groups}") };
    format!(
        r#"func.func @main(%a: tensor<4x{columns}xf32>) -> tensor<{rows}x{width}xf32> {{
            %0 = "stablehlo.{op}"(%a) <{{{attributes}{channel}{groups}}}> {region}
              : (tensor<4x{columns}xf32>) -> tensor<{rows}x{width}xf32>
            return %0 : tensor<{rows}x{width}xf32>
          }}"#
    )
}

fn plan(text: &str, num_replicas: usize, num_partitions: usize) -> Plan {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options =
        // The programs are those of one partition.
        CompileOptions { num_replicas, num_partitions, use_spmd_partitioning: false, ..CompileOptions::default() };
    compile(&module, &options).unwrap_or_else(|error| panic!("{error}\n{text}")).plan
}

fn runtime() -> Runtime {
    Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()))
}

/// Returns the argument of a lane. The sums of such numbers depend on the order of the summands.
fn input(runtime: &Runtime, lane: usize, columns: usize) -> Input {
    let number = |i: usize| ((i * 7 + lane * 13) % 31) as f32 * 0.1 + 1e4 * (lane % 3) as f32;
    let bytes: Vec<u8> = (0..4 * columns).flat_map(|i| number(i).to_le_bytes()).collect();
    let array = Array::from_bytes(&runtime.allocator, DType::F32, &[4, columns], &bytes).unwrap();
    Input { array, donatable: false }
}

fn bytes(lanes: &[Vec<Array>]) -> Vec<Vec<u8>> {
    lanes.iter().map(|lane| lane[0].bytes().unwrap().to_vec()).collect()
}

/// Runs a plan on each node, and returns the results of all lanes.
fn on_nodes(plan: &Plan, of_lane: &[usize], columns: usize) -> Result<Vec<Vec<u8>>, RunError> {
    let mail = &Mail::default();
    let count = of_lane.iter().max().unwrap() + 1;
    let mut results = vec![vec![]; of_lane.len()];
    thread::scope(|threads| {
        let start = |own: usize| {
            threads.spawn(move || {
                let runtime = runtime();
                let nodes = Nodes { of_lane, own, transport: &Post { mail, own } };
                let inputs = nodes.lanes().map(|lane| vec![input(&runtime, lane, columns)]).collect();
                let options = RunOptions { nodes: Some(nodes), ..RunOptions::default() };
                let results = bytes(&run(plan, &runtime, inputs, &options)?);
                let of_lanes: Vec<(usize, Vec<u8>)> = nodes.lanes().zip(results).collect();
                Ok::<_, RunError>(of_lanes)
            })
        };
        let started: Vec<_> = (0..count).map(start).collect();
        for thread in started {
            for (lane, bytes) in thread.join().unwrap()? {
                results[lane] = bytes;
            }
        }
        Ok::<_, RunError>(())
    })?;
    assert!(mail.0.lock().unwrap().values().all(VecDeque::is_empty), "all that was sent is received");
    Ok(results)
}

/// Checks that the results on all assignments of nodes are those of one process.
fn check(text: &str, num_replicas: usize, num_partitions: usize, columns: usize) {
    let plan = plan(text, num_replicas, num_partitions);
    let runtime = runtime();
    let inputs = (0..LANES).map(|lane| vec![input(&runtime, lane, columns)]).collect();
    let expected = bytes(&run(&plan, &runtime, inputs, &RunOptions::default()).unwrap());
    for of_lane in NODES {
        let results = on_nodes(&plan, of_lane, columns).unwrap();
        assert!(results == expected, "{of_lane:?}: {text}");
    }
}

/// The number of columns of small arrays, and of arrays whose sum is divided among the nodes.
const COLUMNS: [usize; 2] = [8, 8 << 10];

#[test]
fn collectives_of_replicas() {
    for collective in COLLECTIVES {
        for groups in GROUPS {
            for columns in COLUMNS {
                check(
                    &module(collective, columns, &format!("dense<{groups}> : tensor<2x4xi64>"), ""),
                    8,
                    1,
                    columns,
                );
            }
        }
    }
}

#[test]
fn large_sums_are_exchanged_in_pieces_of_different_sizes() {
    // Two pieces, of which neither the number of elements nor that of the nodes is a divisor.
    let columns = (1 << 20) + 13;
    let sum: Collective = ("all_reduce", "", |n| [4, n]);
    check(&module(&sum, columns, &format!("dense<{}> : tensor<2x4xi64>", GROUPS[2]), ""), 8, 1, columns);
}

#[test]
fn collectives_of_partitions() {
    let channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, ";
    for collective in COLLECTIVES {
        // Without this attribute, these three have groups of replicas.
        let has_ids = matches!(collective.0, "all_reduce" | "all_gather" | "reduce_scatter");
        let ids = if has_ids { "use_global_device_ids, " } else { "" };
        for groups in GROUPS {
            let groups = format!("dense<{groups}> : tensor<2x4xi64>");
            check(&module(collective, 8, &groups, &format!("{channel}{ids}")), 1, 8, 8);
        }
    }
}

#[test]
fn collectives_of_replicas_and_partitions() {
    let channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, ";
    // Groups of replicas, of all their partitions.
    let sum: Collective = ("all_reduce", "", |n| [4, n]);
    check(&module(&sum, 8, "dense<[[1, 0]]> : tensor<1x2xi64>", channel), 2, 4, 8);
    // Groups of ids of both.
    let sum: Collective = ("all_reduce", "use_global_device_ids, ", |n| [4, n]);
    check(&module(&sum, 8, "dense<[[0, 7, 2, 4], [1, 3, 5, 6]]> : tensor<2x4xi64>", channel), 2, 4, 8);
}

#[test]
fn permutations_of_replicas_and_of_partitions() {
    let pairs = "source_target_pairs = dense<[[0, 3], [3, 1], [1, 0]]> : tensor<3x2xi64>";
    let permute: Collective = ("collective_permute", "", |n| [4, n]);
    check(&module(&permute, 8, pairs, ""), 4, 2, 8);
    let channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, ";
    check(&module(&permute, 8, pairs, channel), 2, 4, 8);
}

#[test]
fn collectives_in_loops_are_matched_iteration_by_iteration() {
    check(
        "func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
           %zero = stablehlo.constant dense<0> : tensor<i32>
           %0:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4x8xf32>
           cond {
             %end = stablehlo.constant dense<5> : tensor<i32>
             %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %1 : tensor<i1>
           } do {
             %one = stablehlo.constant dense<1> : tensor<i32>
             %1 = stablehlo.add %i, %one : tensor<i32>
             %2 = \"stablehlo.collective_permute\"(%x) <{
               source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>
             }> : (tensor<4x8xf32>) -> tensor<4x8xf32>
             %3 = stablehlo.add %2, %a : tensor<4x8xf32>
             stablehlo.return %1, %3 : tensor<i32>, tensor<4x8xf32>
           }
           return %0#1 : tensor<4x8xf32>
         }",
        8,
        1,
        8,
    );
}

#[test]
fn devices_of_a_node_that_reach_different_collectives_are_refused() {
    let sum = |result: &str, operand: &str| {
        format!(
            "{result} = \"stablehlo.all_reduce\"({operand}) <{{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}}> ({{
               ^bb0(%p: tensor<f32>, %q: tensor<f32>):
                 %s = stablehlo.add %p, %q : tensor<f32>
                 stablehlo.return %s : tensor<f32>
             }}) : (tensor<4x8xf32>) -> tensor<4x8xf32>"
        )
    };
    let text = format!(
        "func.func @main(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {{
           %id = stablehlo.replica_id : tensor<ui32>
           %two = stablehlo.constant dense<2> : tensor<ui32>
           %odd = stablehlo.remainder %id, %two : tensor<ui32>
           %i = stablehlo.convert %odd : (tensor<ui32>) -> tensor<i32>
           %0 = \"stablehlo.case\"(%i) ({{
             {}
             stablehlo.return %1 : tensor<4x8xf32>
           }}, {{
             %neg = stablehlo.negate %a : tensor<4x8xf32>
             {}
             stablehlo.return %2 : tensor<4x8xf32>
           }}) : (tensor<i32>) -> tensor<4x8xf32>
           return %0 : tensor<4x8xf32>
         }}",
        sum("%1", "%a"),
        sum("%2", "%neg")
    );
    let plan = plan(&text, 4, 1);
    let error = on_nodes(&plan, &[0, 0, 1, 1], 8).unwrap_err();
    assert_eq!(error.kind, RunErrorKind::Unimplemented, "{error}");
    // With a device per node, each node waits only for its own collective.
    on_nodes(&plan, &[0, 1, 2, 3], 8).unwrap();
}
