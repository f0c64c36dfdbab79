//! Programs that send arrays to the host and receive arrays from it.

use refcpu_engine::compile::{CompileErrorKind, CompileOptions, Parts, compile};
use refcpu_engine::exec::{HostTransfer, Input, Process, RunError, RunErrorKind, RunOptions, Runtime, run};
use refcpu_engine::graph::Shape;
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::cell::RefCell;

/// A host that returns, for every receive operation, the number that it received last plus one.
#[derive(Default)]
struct Counter {
    sent: RefCell<Vec<(Process, i64, i32)>>,
    /// The number that the host refuses.
    refused: Option<i32>,
    /// The number of bytes that are missing in the host's answers.
    missing: usize,
}

impl HostTransfer for Counter {
    fn send(&self, process: Process, channel: i64, array: Vec<u8>) -> Result<(), RunError> {
        let number = array.try_into().map_or(-1, i32::from_le_bytes);
        self.sent.borrow_mut().push((process, channel, number));
        if self.refused == Some(number) {
            return Err(RunError::new(RunErrorKind::Host, format!("the host does not like {number}")));
        }
        Ok(())
    }

    fn receive(&self, _: Process, _: i64, bytes: usize) -> Result<Vec<u8>, RunError> {
        let last = self.sent.borrow().last().map_or(0, |(_, _, number)| *number);
        Ok((last + 1).to_le_bytes()[..bytes - self.missing].to_vec())
    }
}

fn compiled(text: &str, options: &CompileOptions) -> Result<Plan, (CompileErrorKind, String)> {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    compile(&module, options).map(|compiled| compiled.plan).map_err(|e| (e.kind, e.to_string()))
}

/// Runs with one number for each lane.
fn run_with(plan: &Plan, host: Option<&Counter>, numbers: &[i32]) -> Result<Vec<i32>, RunError> {
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let input = |number: &i32| {
        let array = Array::from_bytes(&runtime.allocator, DType::S32, &[], &number.to_le_bytes()).unwrap();
        vec![Input { array, donatable: true }]
    };
    let options = RunOptions { host: host.map(|host| host as &dyn HostTransfer), ..RunOptions::default() };
    let results = run(plan, &runtime, numbers.iter().map(input).collect(), &options)?;
    let number = |lane: &Vec<Array>| i32::from_le_bytes(lane[0].bytes().unwrap().try_into().unwrap());
    Ok(results.iter().map(number).collect())
}

fn send(result: &str, operand: &str, token: &str) -> String {
    format!(
        "{result} = \"stablehlo.send\"({operand}, {token}) {{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, \
         is_host_transfer = true}} : (tensor<i32>, !stablehlo.token) -> !stablehlo.token\n"
    )
}

fn receive(result: &str, token: &str) -> String {
    format!(
        "{result}:2 = \"stablehlo.recv\"({token}) {{channel_handle = #stablehlo.channel_handle<handle = 2, type = 3>, \
         is_host_transfer = true}} : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)\n"
    )
}

/// A function whose argument the host increments.
fn once() -> String {
    format!(
        "func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
           %t = stablehlo.create_token : !stablehlo.token
           {}{}
           return %r#0 : tensor<i32>
         }}",
        send("%s", "%x", "%t"),
        receive("%r", "%s")
    )
}

const ONE: Process = Process { replica: 0, partition: 0 };

#[test]
fn arrays_go_to_the_host_and_come_from_it() {
    let plan = compiled(&once(), &CompileOptions::default()).unwrap();
    assert!(plan.uses_host());
    let host = Counter::default();
    assert_eq!(run_with(&plan, Some(&host), &[41]), Ok(vec![42]));
    assert_eq!(*host.sent.borrow(), [(ONE, 1, 41)]);
}

#[test]
fn loops_and_branches_talk_to_the_host_in_the_order_of_the_program() {
    let text = format!(
        "func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
           %t = stablehlo.create_token : !stablehlo.token
           %ten = stablehlo.constant dense<10> : tensor<i32>
           %0:2 = stablehlo.while(%i = %x, %u = %t) : tensor<i32>, !stablehlo.token
           cond {{
             %p = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %p : tensor<i1>
           }} do {{
             {}{}
             stablehlo.return %r#0, %r#1 : tensor<i32>, !stablehlo.token
           }}
           %big = stablehlo.compare GT, %x, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
           %1 = \"stablehlo.if\"(%big) ({{
             {}
             stablehlo.return %a : !stablehlo.token
           }}, {{
             {}
             {}
             stablehlo.return %c : !stablehlo.token
           }}) : (tensor<i1>) -> !stablehlo.token
           return %0#0 : tensor<i32>
         }}",
        send("%s", "%i", "%u"),
        receive("%r", "%s"),
        send("%a", "%x", "%0#1"),
        send("%b", "%0#0", "%0#1"),
        send("%c", "%x", "%b"),
    );
    let plan = compiled(&text, &CompileOptions::default()).unwrap();
    let sent = |start: i32| {
        let host = Counter::default();
        assert_eq!(run_with(&plan, Some(&host), &[start]), Ok(vec![start.max(10)]));
        host.sent.take().into_iter().map(|(_, _, number)| number).collect::<Vec<_>>()
    };
    assert_eq!(sent(7), [7, 8, 9, 10, 7]);
    assert_eq!(sent(11), [11]);
}

#[test]
fn branches_without_results_talk_to_the_host() {
    let text = format!(
        "func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
           %t = stablehlo.create_token : !stablehlo.token
           %ten = stablehlo.constant dense<10> : tensor<i32>
           %y = stablehlo.add %x, %ten : tensor<i32>
           %p = stablehlo.compare LT, %x, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
           \"stablehlo.if\"(%p) ({{
             {}
             stablehlo.return
           }}, {{
             stablehlo.return
           }}) : (tensor<i1>) -> ()
           return %x : tensor<i32>
         }}",
        send("%s", "%y", "%t"),
    );
    let plan = compiled(&text, &CompileOptions::default()).unwrap();
    for (x, sent) in [(3, vec![(ONE, 1, 13)]), (10, vec![])] {
        let host = Counter::default();
        assert_eq!(run_with(&plan, Some(&host), &[x]), Ok(vec![x]));
        assert_eq!(host.sent.take(), sent);
    }
}

#[test]
fn every_device_talks_to_the_host_for_itself() {
    let options = CompileOptions { num_replicas: 3, ..CompileOptions::default() };
    let plan = compiled(&once(), &options).unwrap();
    let host = Counter::default();
    assert_eq!(run_with(&plan, Some(&host), &[1, 5, 3]), Ok(vec![2, 6, 4]));
    let process = |replica| Process { replica, partition: 0 };
    assert_eq!(*host.sent.borrow(), [(process(0), 1, 1), (process(1), 1, 5), (process(2), 1, 3)]);
}

#[test]
fn an_error_of_the_host_ends_the_run() {
    let plan = compiled(&once(), &CompileOptions::default()).unwrap();
    let host = Counter { refused: Some(13), ..Counter::default() };
    let error = run_with(&plan, Some(&host), &[13]).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (RunErrorKind::Host, "the host does not like 13"));
    assert_eq!(run_with(&plan, Some(&host), &[14]), Ok(vec![15]));
}

#[test]
fn an_answer_of_another_size_is_an_error() {
    let plan = compiled(&once(), &CompileOptions::default()).unwrap();
    let error = run_with(&plan, Some(&Counter { missing: 1, ..Counter::default() }), &[1]).unwrap_err();
    assert!(error.message.contains("3 bytes on channel 2, but the program expects 4"), "{error}");
}

#[test]
fn without_a_host_there_is_nobody_to_talk_to() {
    let plan = compiled(&once(), &CompileOptions::default()).unwrap();
    assert_eq!(run_with(&plan, None, &[1]).unwrap_err().kind, RunErrorKind::FailedPrecondition);
}

#[test]
fn transfers_between_devices_are_refused_when_compiling() {
    let (before, after) = ("type = 2>, is_host_transfer = true", "type = 1>, is_host_transfer = false");
    let text = once().replace(before, after);
    assert_ne!(text, once());
    let (kind, message) = compiled(&text, &CompileOptions::default()).err().unwrap();
    assert_eq!(kind, CompileErrorKind::Unimplemented);
    assert!(message.contains("stablehlo.send") && message.contains("type 1"), "{message}");
}

#[test]
fn a_reduction_cannot_talk_to_the_host() {
    let text = format!(
        "func.func public @main(%x: tensor<4xi32>) -> tensor<i32> {{
           %z = stablehlo.constant dense<0> : tensor<i32>
           %r = \"stablehlo.reduce\"(%x, %z) ({{
           ^bb0(%a: tensor<i32>, %b: tensor<i32>):
             %t = stablehlo.create_token : !stablehlo.token
             {}
             %c = stablehlo.add %a, %b : tensor<i32>
             stablehlo.return %c : tensor<i32>
           }}) {{dimensions = array<i64: 0>}} : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
           return %r : tensor<i32>
         }}",
        send("%s", "%a", "%t")
    );
    let (kind, message) = compiled(&text, &CompileOptions::default()).err().unwrap();
    assert_eq!(kind, CompileErrorKind::Unimplemented, "{message}");
}

/// An operation with a sharding.
fn stated(operation: String, sharding: &str) -> String {
    operation.replace("is_host_transfer = true", &format!("is_host_transfer = true, {sharding}"))
}

fn in_parts() -> CompileOptions {
    CompileOptions {
        num_partitions: 4,
        use_spmd_partitioning: true,
        parts: Parts::Always,
        ..CompileOptions::default()
    }
}

#[test]
fn a_program_in_parts_sends_from_the_partition_that_it_states_and_all_receive_the_answer() {
    let shardy = |list: &str| format!("sdy.sharding = #sdy.sharding_per_value<[{list}]>");
    let gspmd = "mhlo.sharding = \"{maximal device=1}\"".to_owned();
    for (of_send, of_receive) in
        [(shardy("<@second, []>"), shardy("<@second, []>, <@second, []>")), (gspmd.clone(), gspmd)]
    {
        let text = format!(
            "module {{
               sdy.mesh @second = <[], device_ids=[1]>
               func.func public @main(%x: tensor<i32>) -> tensor<i32> {{
                 %t = stablehlo.create_token : !stablehlo.token
                 {}{}
                 return %r#0 : tensor<i32>
               }}
             }}",
            stated(send("%s", "%x", "%t"), &of_send),
            stated(receive("%r", "%s"), &of_receive)
        );
        let (plan, host) = (compiled(&text, &in_parts()).unwrap(), Counter::default());
        assert_eq!(run_with(&plan, Some(&host), &[7; 4]).unwrap(), [8; 4], "{of_send}");
        assert_eq!(*host.sent.borrow(), [(Process { replica: 0, partition: 1 }, 1, 7)], "{of_send}");
    }
}

#[test]
fn tokens_among_the_arguments_and_results_of_a_program_in_parts_are_arrays_without_elements() {
    let sharding = "mhlo.sharding = \"{maximal device=1}\"";
    let text = format!(
        "func.func public @main(%x: tensor<i32>, %t: !stablehlo.token) -> (tensor<i32>, !stablehlo.token) {{
           {}{}{}
           return %r#0, %u : tensor<i32>, !stablehlo.token
         }}",
        stated(send("%s", "%x", "%t"), sharding),
        stated(receive("%r", "%s"), sharding),
        stated(send("%u", "%r#0", "%r#1"), sharding),
    );
    let compiled = compile(&pjrt_stablehlo::parse(text.as_str()).unwrap(), &in_parts()).unwrap();
    let token = Shape::new(DType::Pred, &[0]);
    assert_eq!((&compiled.parameters[1].shape, &compiled.results[1].shape), (&token, &token));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let array = |dtype, dims: &[usize], bytes: &[u8]| {
        let array = Array::from_bytes(&runtime.allocator, dtype, dims, bytes).unwrap();
        Input { array, donatable: false }
    };
    let lane = |_| vec![array(DType::S32, &[], &7_i32.to_le_bytes()), array(DType::Pred, &[0], &[])];
    let host = Counter::default();
    let options = RunOptions { host: Some(&host), ..RunOptions::default() };
    let results = run(&compiled.plan, &runtime, (0..4).map(lane).collect(), &options).unwrap();
    for lane in results {
        assert_eq!((lane[0].bytes(), lane[1].dims()), (Some(&8_i32.to_le_bytes()[..]), &[0][..]));
    }
    let second = Process { replica: 0, partition: 1 };
    assert_eq!(*host.sent.borrow(), [(second, 1, 7), (second, 1, 8)]);
}
