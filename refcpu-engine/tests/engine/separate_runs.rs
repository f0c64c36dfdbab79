//! Devices that are run one at a time, with programs that may differ, and execute collectives together.

use super::*;
use refcpu_engine::exec::{HostTransfer, Peers, Process, Rendezvous, RunError};
use std::thread;
use std::time::{Duration, Instant};

/// A time limit that no test reaches.
const LONG: Duration = Duration::from_secs(600);

const REPLICAS: usize = 4;
const DEVICES: [i32; REPLICAS] = [7, 3, 5, 1];

fn replicas(text: &str) -> Plan {
    plan_for(text, &CompileOptions { num_replicas: REPLICAS, ..CompileOptions::default() })
}

/// The sum of `%x` over groups of replicas, as the value `result`.
fn sum(result: &str, x: &str, groups: &str) -> String {
    format!(
        "{result} = \"stablehlo.all_reduce\"({x}) <{{replica_groups = dense<{groups}> : tensor<{}xi64>}}> ({{
           ^bb0(%p: tensor<f32>, %q: tensor<f32>):
             %r = stablehlo.add %p, %q : tensor<f32>
             stablehlo.return %r : tensor<f32>
         }}) : (tensor<f32>) -> tensor<f32> loc(\"the sum\")",
        if groups.matches('[').count() == 2 { "1x4" } else { "2x2" }
    )
}

const ALL: &str = "[[0, 1, 2, 3]]";

/// The sum over all replicas of the argument plus a constant.
fn sum_with(constant: f32) -> Plan {
    let sum = sum("%z", "%y", ALL);
    replicas(&format!(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
           %c = stablehlo.constant dense<{constant:?}> : tensor<f32>
           %y = stablehlo.add %x, %c : tensor<f32>
           {sum}
           return %z : tensor<f32>
         }}"
    ))
}

/// Runs one replica with a number.
fn run_replica(
    plan: &Plan,
    rt: &Runtime,
    peers: Peers,
    replica: usize,
    x: f32,
) -> Result<Vec<f32>, RunError> {
    run_with(plan, rt, peers, replica, kept(f32s(rt, &[], &[x])), None)
}

fn run_with(
    plan: &Plan,
    rt: &Runtime,
    peers: Peers,
    replica: usize,
    input: Input,
    host: Option<&dyn HostTransfer>,
) -> Result<Vec<f32>, RunError> {
    let options = RunOptions { lane: Some(replica), peers: Some(&peers), host, ..RunOptions::default() };
    let results = run(plan, rt, vec![vec![input]], &options);
    peers.finish(results.as_ref().map(|_| ()));
    results.map(|lanes| to_f32s(&lanes[0][0]))
}

/// Runs a program on each replica, on separate threads.
fn run_apart(
    plans: &[Plan; REPLICAS],
    rendezvous: &Rendezvous,
    inputs: [&[f32]; REPLICAS],
) -> Vec<Result<Vec<f32>, RunError>> {
    let rt = &runtime();
    thread::scope(|scope| {
        let run = |(replica, plan)| {
            let peers = rendezvous.join(plan, replica, &DEVICES);
            let dims = &plan.parameters[0].shape.dims;
            let input = kept(f32s(rt, dims, inputs[replica]));
            scope.spawn(move || run_with(plan, rt, peers, replica, input, None))
        };
        let threads: Vec<_> = plans.iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn programs_that_differ_execute_a_collective_together() {
    let rendezvous = Rendezvous::new(LONG);
    let plans = [1.0, 20.0, 300.0, 4000.0].map(sum_with);
    for x in [0.0_f32, 1.0, 2.0] {
        let results = run_apart(&plans, &rendezvous, [&[x]; REPLICAS]);
        assert_eq!(results, vec![Ok(vec![4321.0 + 4.0 * x]); REPLICAS]);
    }
}

#[test]
fn runs_pair_up_in_the_order_in_which_they_joined() {
    let (rt, rendezvous) = (&runtime(), Rendezvous::new(LONG));
    let plan = &sum_with(0.0);
    let mut waiting: Vec<(usize, f32, Peers)> = Vec::new();
    for replica in 0..REPLICAS {
        for number in [1.0, 10.0, 100.0] {
            waiting.push((replica, number, rendezvous.join(plan, replica, &DEVICES)));
        }
    }
    // The threads start in a different order than the runs joined.
    thread::scope(|scope| {
        let run = |(replica, x, peers)| scope.spawn(move || (x, run_replica(plan, rt, peers, replica, x)));
        let threads: Vec<_> = waiting.into_iter().rev().map(run).collect();
        for thread in threads {
            let (x, result) = thread.join().unwrap();
            assert_eq!(result, Ok(vec![4.0 * x]));
        }
    });
}

#[test]
fn loops_and_branches_contain_collectives() {
    let (halves, all) = (sum("%s", "%v", "[[0, 1], [2, 3]]"), sum("%s", "%0#1", ALL));
    let text = format!(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
           %id = stablehlo.replica_id : tensor<ui32>
           %two = stablehlo.constant dense<2> : tensor<ui32>
           %zero = stablehlo.constant dense<0> : tensor<ui32>
           // Replicas 2 and 3 have one iteration less.
           %first = stablehlo.compare LT, %id, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
           %extra = stablehlo.convert %first : (tensor<i1>) -> tensor<ui32>
           %count = stablehlo.add %two, %extra : tensor<ui32>
           %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<ui32>, tensor<f32>
           cond {{
             %more = stablehlo.compare LT, %i, %count : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
             stablehlo.return %more : tensor<i1>
           }} do {{
             %one = stablehlo.constant dense<1> : tensor<ui32>
             %next = stablehlo.add %i, %one : tensor<ui32>
             {halves}
             stablehlo.return %next, %s : tensor<ui32>, tensor<f32>
           }}
           %big = stablehlo.constant dense<10.0> : tensor<f32>
           %any = stablehlo.compare LT, %x, %big : (tensor<f32>, tensor<f32>) -> tensor<i1>
           %1 = \"stablehlo.if\"(%any) ({{
             {all}
             stablehlo.return %s : tensor<f32>
           }}, {{
             stablehlo.return %0#1 : tensor<f32>
           }}) : (tensor<i1>) -> tensor<f32>
           return %1 : tensor<f32>
         }}"
    );
    let plans = [(); REPLICAS].map(|()| replicas(&text));
    let rendezvous = Rendezvous::new(LONG);
    let results = run_apart(&plans, &rendezvous, [&[1.0], &[2.0], &[3.0], &[4.0]]);
    // 3 doubled twice, and 7 doubled once, on two devices each.
    assert_eq!(results, vec![Ok(vec![2.0 * 12.0 + 2.0 * 14.0]); REPLICAS]);
    let results = run_apart(&plans, &rendezvous, [&[10.0], &[20.0], &[30.0], &[40.0]]);
    assert_eq!(results, [120.0, 120.0, 140.0, 140.0].map(|x| Ok(vec![x])));
}

#[test]
fn every_collective_gives_the_results_of_one_run_on_all_devices() {
    let groups = "replica_groups = dense<[[2, 0], [1, 3]]> : tensor<2x2xi64>";
    let add = "({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32>
    })";
    let same = "tensor<4x2xf32>";
    let collectives = [
        (format!("all_reduce\"(%x) <{{{groups}}}> {add}"), same),
        (format!("all_gather\"(%x) <{{all_gather_dim = 1 : i64, {groups}}}>"), "tensor<4x4xf32>"),
        (format!("reduce_scatter\"(%x) <{{scatter_dimension = 0 : i64, {groups}}}> {add}"), "tensor<2x2xf32>"),
        (
            format!(
                "all_to_all\"(%x) <{{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, {groups}}}>"
            ),
            "tensor<2x4xf32>",
        ),
        (
            "collective_permute\"(%x) <{source_target_pairs = dense<[[0, 1], [1, 3], [3, 0]]> : tensor<3x2xi64>}>"
                .to_owned(),
            same,
        ),
        ("collective_broadcast\"(%x) <{replica_groups = dense<[[3, 1]]> : tensor<1x2xi64>}>".to_owned(), same),
    ];
    let values: Vec<Vec<f32>> =
        (0..REPLICAS).map(|replica| (0..8).map(|i| (10 * replica + i) as f32).collect()).collect();
    let rendezvous = Rendezvous::new(LONG);
    for (collective, ty) in collectives {
        let text = format!(
            "func.func @main(%x: {same}) -> {ty} {{
               %0 = \"stablehlo.{collective} : ({same}) -> {ty}
               return %0 : {ty}
             }}"
        );
        let rt = runtime();
        let plans = [(); REPLICAS].map(|()| replicas(&text));
        let inputs = values.iter().map(|x| vec![kept(f32s(&rt, &[4, 2], x))]).collect();
        let together = run(&plans[0], &rt, inputs, &RunOptions::default()).unwrap();
        let expected: Vec<_> = together.iter().map(|lane| Ok(to_f32s(&lane[0]))).collect();
        let inputs = [0, 1, 2, 3].map(|replica| &*values[replica]);
        assert_eq!(run_apart(&plans, &rendezvous, inputs), expected, "{text}");
    }
}

#[test]
fn a_device_that_does_not_come_is_an_error_after_the_timeout() {
    let timeout = Duration::from_millis(300);
    let (rt, rendezvous) = (&runtime(), Rendezvous::new(timeout));
    let plan = &sum_with(0.0);
    let start = Instant::now();
    let errors: Vec<RunError> = thread::scope(|scope| {
        let run = |replica| {
            let peers = rendezvous.join(plan, replica, &DEVICES);
            scope.spawn(move || run_replica(plan, rt, peers, replica, 1.0).unwrap_err())
        };
        let threads = [0, 2].map(run);
        // Replica 1 is launched, but its arguments do not become ready.
        let launched = rendezvous.join(plan, 1, &DEVICES);
        let errors = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        launched.finish(Ok(()));
        errors
    });
    assert!(start.elapsed() >= timeout);
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0].kind, RunErrorKind::DeadlineExceeded);
    assert_eq!(
        errors[0].message,
        "all_reduce of f32[] at \"the sum\" needs all of the devices [7, 3, 5, 1]; device 7, device 5 reached it, but these did \
         not within 300ms: device 3 (waits for its arguments or for other devices), device 1 (not launched)"
    );
    // A device that is too late receives the error, and the next runs are a new session.
    let late = rendezvous.join(plan, 3, &DEVICES);
    assert_eq!(run_replica(plan, rt, late, 3, 1.0).unwrap_err(), errors[0]);
    let plans = [(); REPLICAS].map(|()| sum_with(0.0));
    assert_eq!(run_apart(&plans, &rendezvous, [&[1.0]; REPLICAS]), vec![Ok(vec![4.0]); REPLICAS]);
}

#[test]
fn a_device_that_was_not_launched_does_not_miss_the_runs_after_the_error() {
    let timeout = Duration::from_millis(100);
    let (rt, rendezvous) = (&runtime(), Rendezvous::new(timeout));
    let plans = [(); REPLICAS].map(|()| sum_with(0.0));
    for _ in 0..2 {
        let alone = rendezvous.join(&plans[0], 0, &DEVICES);
        let error = run_replica(&plans[0], rt, alone, 0, 1.0).unwrap_err();
        assert_eq!(error.kind, RunErrorKind::DeadlineExceeded);
        thread::sleep(2 * timeout);
        assert_eq!(run_apart(&plans, &rendezvous, [&[1.0]; REPLICAS]), vec![Ok(vec![4.0]); REPLICAS]);
    }
}

#[test]
fn an_error_of_one_device_is_that_of_all() {
    let (rt, rendezvous) = (&runtime(), Rendezvous::new(LONG));
    let plan = &sum_with(0.0);
    thread::scope(|scope| {
        let run = |replica| {
            let peers = rendezvous.join(plan, replica, &DEVICES);
            scope.spawn(move || run_replica(plan, rt, peers, replica, 1.0).unwrap_err())
        };
        let waiting = [0, 1].map(run);
        let peers = rendezvous.join(plan, 2, &DEVICES);
        let refused = run_with(plan, rt, peers, 2, kept(f32s(rt, &[2], &[1.0, 2.0])), None).unwrap_err();
        for thread in waiting {
            let error = thread.join().unwrap();
            let expected =
                format!("device 5, with which this program communicates, failed: {}", refused.message);
            assert_eq!((error.kind, error.message), (RunErrorKind::InvalidArgument, expected));
        }
        // The last device comes after the others have failed.
        assert_eq!(run(3).join().unwrap().kind, RunErrorKind::InvalidArgument);
        // A run that cannot begin, because an argument is in error, fails the others too.
        let waiting = [0, 1, 3].map(run);
        drop(rendezvous.join(plan, 2, &DEVICES));
        for thread in waiting {
            let error = thread.join().unwrap();
            assert_eq!(error.kind, RunErrorKind::FailedPrecondition);
            assert!(error.message.contains("device 5, with which"), "{error}");
        }
    });
}

#[test]
fn programs_whose_collectives_differ_fail_at_once() {
    let rendezvous = Rendezvous::new(LONG);
    let gather = || {
        replicas(
            "func.func @main(%x: tensor<1xf32>) -> tensor<4xf32> {
               %0 = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}>
                 : (tensor<1xf32>) -> tensor<4xf32>
               return %0 : tensor<4xf32>
             }",
        )
    };
    let plans = [sum_with(0.0), sum_with(0.0), gather(), sum_with(0.0)];
    for result in run_apart(&plans, &rendezvous, [&[1.0]; REPLICAS]) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, RunErrorKind::FailedPrecondition);
        let expected =
            "device 7 executes all_reduce of f32[] at \"the sum\", device 5 executes all_gather of f32[1]";
        assert!(error.message.contains(expected), "{error}");
    }
    let all_reduce = |op: &str| {
        replicas(&format!(
            "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
               %0 = \"stablehlo.all_reduce\"(%x) <{{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> ({{
                 ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                   %c = stablehlo.{op} %a, %b : tensor<f32>
                   stablehlo.return %c : tensor<f32>
               }}) : (tensor<f32>) -> tensor<f32>
               return %0 : tensor<f32>
             }}"
        ))
    };
    let plans = ["add", "add", "maximum", "add"].map(all_reduce);
    for result in run_apart(&plans, &rendezvous, [&[1.0]; REPLICAS]) {
        let error = result.unwrap_err();
        assert!(error.message.ends_with("; the first has add, the second maximum"), "{error}");
    }
}

#[test]
fn a_device_that_ends_without_its_collective_is_an_error_at_once() {
    let rendezvous = Rendezvous::new(LONG);
    let sum = sum("%s", "%x", ALL);
    let text = format!(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
           %zero = stablehlo.constant dense<0.0> : tensor<f32>
           %has = stablehlo.compare GT, %x, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
           %0 = \"stablehlo.if\"(%has) ({{
             {sum}
             stablehlo.return %s : tensor<f32>
           }}, {{
             stablehlo.return %x : tensor<f32>
           }}) : (tensor<i1>) -> tensor<f32>
           return %0 : tensor<f32>
         }}"
    );
    let plans = [(); REPLICAS].map(|()| replicas(&text));
    let results = run_apart(&plans, &rendezvous, [&[1.0], &[-1.0], &[1.0], &[1.0]]);
    assert_eq!(results[1], Ok(vec![-1.0]));
    for replica in [0, 2, 3] {
        let error = results[replica].clone().unwrap_err();
        assert_eq!(error.kind, RunErrorKind::FailedPrecondition);
        assert!(
            error.message.contains("device 3 of its group [7, 3, 5, 1] has ended its program"),
            "{error}"
        );
    }
}

/// A host that answers late.
struct Slow(Duration);

impl HostTransfer for Slow {
    fn send(&self, _: Process, _: i64, _: Vec<u8>) -> Result<(), RunError> {
        thread::sleep(self.0);
        Ok(())
    }

    fn receive(&self, _: Process, _: i64, bytes: usize) -> Result<Vec<u8>, RunError> {
        Ok(vec![0; bytes])
    }
}

#[test]
fn the_time_in_which_a_device_computes_does_not_count() {
    let timeout = Duration::from_millis(100);
    let sum = sum("%s", "%x", ALL);
    let text = format!(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {{
           %t = stablehlo.create_token : !stablehlo.token
           %u = \"stablehlo.send\"(%x, %t) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}}>
             : (tensor<f32>, !stablehlo.token) -> !stablehlo.token
           {sum}
           return %s : tensor<f32>
         }}"
    );
    let (rt, rendezvous, plan) = (runtime(), Rendezvous::new(timeout), replicas(&text));
    let (rt, plan) = (&rt, &plan);
    thread::scope(|scope| {
        let run = |replica| {
            let peers = rendezvous.join(plan, replica, &DEVICES);
            let input = kept(f32s(rt, &[], &[1.0]));
            // The first device is five timeouts late.
            let host = Slow(if replica == 0 { 5 * timeout } else { Duration::ZERO });
            scope.spawn(move || run_with(plan, rt, peers, replica, input, Some(&host)))
        };
        for thread in [0, 1, 2, 3].map(run) {
            assert_eq!(thread.join().unwrap(), Ok(vec![4.0]));
        }
    });
}
