//! Programs that call handlers of the host.

use refcpu_engine::compile::{CompileErrorKind, CompileOptions, Parts, compile};
use refcpu_engine::exec::{
    ForeignHandlers, Input, Process, RunError, RunErrorKind, RunOptions, Runtime, run,
};
use refcpu_engine::graph::{ForeignAttribute, ForeignCall};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Dst, Pool, Src};
use std::cell::RefCell;

/// A handler that records its calls and adds ten to its results, into which it copies its operand unless they are
/// aliases.
#[derive(Default)]
struct AddTen {
    calls: RefCell<Vec<ForeignCall>>,
    fails: bool,
}

impl ForeignHandlers for AddTen {
    fn call(
        &self,
        process: Process,
        call: &ForeignCall,
        operands: &[Src<'_>],
        results: &mut [Dst<'_>],
    ) -> Result<(), RunError> {
        assert_eq!(process, Process { replica: 0, partition: 0 });
        self.calls.borrow_mut().push(call.clone());
        if self.fails {
            return Err(RunError::new(RunErrorKind::Host, "on purpose"));
        }
        for result in results {
            let bytes = result.bytes_mut();
            if call.aliases.is_empty() {
                bytes.copy_from_slice(operands[0].bytes());
            }
            bytes.iter_mut().for_each(|byte| *byte += 10);
        }
        Ok(())
    }
}

fn compiled(text: &str) -> Result<Plan, (CompileErrorKind, String)> {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = CompileOptions { has_handler: |target| target == "add_ten", ..CompileOptions::default() };
    compile(&module, &options).map(|compiled| compiled.plan).map_err(|error| (error.kind, error.to_string()))
}

/// Runs a plan on six numbers, and returns the bytes of its results.
fn run_on(plan: &Plan, handlers: Option<&AddTen>) -> Result<Vec<Vec<u8>>, RunError> {
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let numbers = Array::from_bytes(&runtime.allocator, DType::U8, &[2, 3], &[0, 1, 2, 3, 4, 5]).unwrap();
    let input = vec![Input { array: numbers, donatable: false }];
    let options = RunOptions {
        foreign: handlers.map(|handlers| handlers as &dyn ForeignHandlers),
        ..RunOptions::default()
    };
    let results = run(plan, &runtime, vec![input], &options)?;
    Ok(results[0]
        .iter()
        .map(|array| array.dense(&runtime.allocator).unwrap().bytes().unwrap().to_vec())
        .collect())
}

/// A program that is one call with these attributes.
fn program(attributes: &str) -> String {
    format!(
        "func.func public @main(%x: tensor<2x3xui8>) -> tensor<2x3xui8> {{
           %0 = stablehlo.custom_call @add_ten(%x) {{api_version = 4 : i32, {attributes}}} : (tensor<2x3xui8>) -> tensor<2x3xui8>
           return %0 : tensor<2x3xui8>
         }}"
    )
}

#[test]
fn a_handler_gets_attributes_of_every_kind() {
    let text = program(
        r#"backend_config = {b = true, i = -3 : i16, u = 200 : ui8, f = 1.5 : f32, s = "text", a = array<i64: 1, 2>,
           d = dense<[1.0, 2.0]> : tensor<2xf64>, l = [1 : i32, 2 : i32], n = {inner = {x = 7 : i64}}}"#,
    );
    let plan = compiled(&text).unwrap();
    assert!(plan.uses_host());
    let scalar = |dtype, bytes: &[u8]| ForeignAttribute::Scalar(dtype, bytes.to_vec());
    let array = |dtype, bytes: Vec<u8>| ForeignAttribute::Array(dtype, bytes);
    let inner = ("x".to_owned(), scalar(DType::S64, &7_i64.to_le_bytes()));
    let expected = [
        ("a", array(DType::S64, [1_i64, 2].map(i64::to_le_bytes).concat())),
        ("b", scalar(DType::Pred, &[1])),
        ("d", array(DType::F64, [1.0_f64, 2.0].map(f64::to_le_bytes).concat())),
        ("f", scalar(DType::F32, &1.5_f32.to_le_bytes())),
        ("i", scalar(DType::S16, &(-3_i16).to_le_bytes())),
        ("l", array(DType::S32, [1_i32, 2].map(i32::to_le_bytes).concat())),
        (
            "n",
            ForeignAttribute::Dictionary(vec![(
                "inner".to_owned(),
                ForeignAttribute::Dictionary(vec![inner]),
            )]),
        ),
        ("s", ForeignAttribute::String("text".to_owned())),
        ("u", scalar(DType::U8, &[200])),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    let handlers = AddTen::default();
    assert_eq!(run_on(&plan, Some(&handlers)).unwrap(), [[10, 11, 12, 13, 14, 15]]);
    let mut attributes = handlers.calls.borrow()[0].attributes.clone();
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(attributes, expected);
}

#[test]
fn arrays_are_in_the_order_of_memory_that_the_call_asks_for() {
    let layouts = "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]";
    let handlers = AddTen::default();
    // Columns go in, and what comes out is taken for rows.
    let results = run_on(&compiled(&program(layouts)).unwrap(), Some(&handlers)).unwrap();
    assert_eq!(results, [[10, 13, 11, 14, 12, 15]]);
    let call = handlers.calls.borrow()[0].clone();
    assert_eq!((&call.operand_dims[..], &call.result_dims[..]), (&[vec![2, 3]][..], &[vec![2, 3]][..]));
    let both = layouts.replace("[1, 0]", "[0, 1]");
    let results = run_on(&compiled(&program(&both)).unwrap(), Some(&AddTen::default())).unwrap();
    assert_eq!(results, [[10, 11, 12, 13, 14, 15]]);
}

#[test]
fn a_result_that_is_an_alias_begins_with_its_operand() {
    let alias = "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, \
                 operand_tuple_indices = []>]";
    let handlers = AddTen::default();
    let results = run_on(&compiled(&program(alias)).unwrap(), Some(&handlers)).unwrap();
    assert_eq!(results, [[10, 11, 12, 13, 14, 15]]);
    assert_eq!(handlers.calls.borrow()[0].aliases, [(0, 0)]);
}

#[test]
fn a_failing_or_missing_handler_is_the_error_of_the_run() {
    let plan = compiled(&program("backend_config = {}")).unwrap();
    let error = run_on(&plan, Some(&AddTen { fails: true, ..AddTen::default() })).unwrap_err();
    assert_eq!((error.kind, &*error.message), (RunErrorKind::Host, "on purpose"));
    let error = run_on(&plan, None).unwrap_err();
    assert_eq!(error.kind, RunErrorKind::FailedPrecondition);
    assert!(error.message.contains("\"add_ten\""), "{error}");
    let (kind, message) =
        compiled(&program("backend_config = {}").replace("@add_ten", "@other")).err().unwrap();
    assert_eq!(kind, CompileErrorKind::Unimplemented);
    assert!(message.contains("no handler of that name"), "{message}");
}

#[test]
fn only_calls_with_side_effects_happen_although_nobody_needs_them() {
    let twice = |effect: &str| {
        format!(
            "func.func public @main(%x: tensor<2x3xui8>) -> tensor<2x3xui8> {{
               %0 = stablehlo.custom_call @add_ten(%x) {{api_version = 4 : i32{effect}}} : (tensor<2x3xui8>) -> tensor<2x3xui8>
               %1 = stablehlo.custom_call @add_ten(%x) {{api_version = 4 : i32{effect}}} : (tensor<2x3xui8>) -> tensor<2x3xui8>
               stablehlo.custom_call @add_ten(%x) {{api_version = 4 : i32{effect}}} : (tensor<2x3xui8>) -> ()
               return %1 : tensor<2x3xui8>
             }}"
        )
    };
    for (effect, calls) in [(", has_side_effect = true", 3), ("", 1)] {
        let handlers = AddTen::default();
        run_on(&compiled(&twice(effect)).unwrap(), Some(&handlers)).unwrap();
        assert_eq!(handlers.calls.borrow().len(), calls, "{effect}");
    }
}

#[test]
fn a_parameter_that_is_no_number_or_text_is_refused_by_name() {
    for attribute in ["i32", "[1 : i32, 2 : i64]", "[]", "1.0 : f16"] {
        let (kind, message) =
            compiled(&program(&format!("backend_config = {{odd = {attribute}}}"))).err().unwrap();
        assert_eq!(kind, CompileErrorKind::Unimplemented, "{attribute}");
        assert!(message.contains("\"odd\"") && message.contains("handlers take numbers"), "{message}");
    }
}

#[test]
fn regions_call_handlers_for_one_element_after_the_other() {
    let region = |arguments: &str, called: &str, result: &str| {
        format!(
            "({{
            ^bb0({arguments}):
              %c = stablehlo.custom_call @add_ten({called}) {{api_version = 4 : i32}} : (tensor<ui8>) -> tensor<ui8>
              {result}
            }})"
        )
    };
    let sum = region(
        "%a: tensor<ui8>, %b: tensor<ui8>",
        "%b",
        "%d = stablehlo.add %a, %c : tensor<ui8>
         stablehlo.return %d : tensor<ui8>",
    );
    let map = region("%a: tensor<ui8>", "%a", "stablehlo.return %c : tensor<ui8>");
    let greater = region(
        "%a: tensor<ui8>, %b: tensor<ui8>",
        "%a",
        "%p = stablehlo.compare GT, %c, %b : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
         stablehlo.return %p : tensor<i1>",
    );
    let text = format!(
        r#"func.func public @main(%x: tensor<2x3xui8>) -> (tensor<3xui8>, tensor<2x3xui8>, tensor<2x3xui8>,
            tensor<2x3xui8>, tensor<2x2xui8>) {{
          %init = stablehlo.constant dense<1> : tensor<ui8>
          %0 = "stablehlo.reduce"(%x, %init) <{{dimensions = array<i64: 0>}}> {sum}
            : (tensor<2x3xui8>, tensor<ui8>) -> tensor<3xui8>
          %1 = "stablehlo.map"(%x) <{{dimensions = array<i64: 0, 1>}}> {map} : (tensor<2x3xui8>) -> tensor<2x3xui8>
          %row = stablehlo.constant dense<[[1], [5]]> : tensor<2x1xi32>
          %2 = "stablehlo.scatter"(%x, %row, %x) <{{scatter_dimension_numbers = #stablehlo.scatter<
              update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
              index_vector_dim = 1>}}> {sum}
            : (tensor<2x3xui8>, tensor<2x1xi32>, tensor<2x3xui8>) -> tensor<2x3xui8>
          %3 = "stablehlo.sort"(%x) <{{dimension = 1 : i64}}> {greater} : (tensor<2x3xui8>) -> tensor<2x3xui8>
          %4 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: 1, 2>}}> {sum}
            : (tensor<2x3xui8>, tensor<ui8>) -> tensor<2x2xui8>
          return %0, %1, %2, %3, %4 : tensor<3xui8>, tensor<2x3xui8>, tensor<2x3xui8>, tensor<2x3xui8>, tensor<2x2xui8>
        }}"#
    );
    let plan = compiled(&text).unwrap_or_else(|(_, error)| panic!("{error}"));
    let handler = AddTen::default();
    let results = run_on(&plan, Some(&handler)).unwrap();
    assert_eq!(results[0], [24, 26, 28]);
    assert_eq!(results[1], [10, 11, 12, 13, 14, 15]);
    // The second row of updates leaves the array: its handlers are not called.
    assert_eq!(results[2], [0, 1, 2, 13, 15, 17]);
    // Whatever comes second is put first.
    assert_eq!(results[3], [2, 1, 0, 5, 4, 3]);
    assert_eq!(results[4], [22, 24, 28, 30]);
    let comparisons = 2 * 2;
    assert_eq!(handler.calls.borrow().len(), 6 + 6 + 3 + comparisons + 8);
}

/// A handler that records the partitions that call it, and doubles its operand.
#[derive(Default)]
struct Double(RefCell<Vec<usize>>);

impl ForeignHandlers for Double {
    fn call(
        &self,
        process: Process,
        _: &ForeignCall,
        operands: &[Src<'_>],
        results: &mut [Dst<'_>],
    ) -> Result<(), RunError> {
        self.0.borrow_mut().push(process.partition);
        for (result, operand) in results[0].bytes_mut().iter_mut().zip(operands[0].bytes()) {
            *result = 2 * operand;
        }
        Ok(())
    }
}

/// Runs a call with this attribute in parts on a split array of four elements. Returns the partitions that have called, and the
/// result of each partition.
fn called_in_parts(attribute: &str) -> (Vec<usize>, Vec<Vec<u8>>) {
    let text = format!(
        "module {{
           sdy.mesh @mesh = <[\"x\"=4]>
           sdy.mesh @third = <[], device_ids=[2]>
           func.func public @main(%a: tensor<4xui8> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>}})
               -> (tensor<4xui8> {{sdy.sharding = #sdy.sharding<@mesh, [{{\"x\"}}]>}}) {{
             %r = stablehlo.custom_call @double(%a) {{api_version = 4 : i32, backend_config = {{}}, {attribute}}}
               : (tensor<4xui8>) -> tensor<4xui8>
             return %r : tensor<4xui8>
           }}
         }}"
    );
    let module = pjrt_stablehlo::parse(text.as_str()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = CompileOptions {
        num_partitions: 4,
        use_spmd_partitioning: true,
        has_handler: |target| target == "double",
        parts: Parts::Always,
        ..CompileOptions::default()
    };
    let plan = compile(&module, &options).unwrap().plan;
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let lane = |partition: u8| {
        let array = Array::from_bytes(&runtime.allocator, DType::U8, &[1], &[partition + 1]).unwrap();
        vec![Input { array, donatable: false }]
    };
    let handler = Double::default();
    let options = RunOptions { foreign: Some(&handler), ..RunOptions::default() };
    let results = run(&plan, &runtime, (0..4).map(lane).collect(), &options).unwrap();
    let results = results.iter().map(|lane| lane[0].bytes().unwrap().to_vec()).collect();
    (handler.0.into_inner(), results)
}

#[test]
fn a_program_in_parts_calls_on_the_partition_that_it_states_and_all_receive_the_result() {
    for attribute in
        ["sdy.sharding = #sdy.sharding_per_value<[<@third, []>]>", "mhlo.sharding = \"{maximal device=2}\""]
    {
        let (callers, results) = called_in_parts(attribute);
        assert_eq!(callers, [2], "{attribute}");
        assert_eq!(results, [[2], [4], [6], [8]], "{attribute}");
    }
}

#[test]
fn a_program_in_parts_calls_on_each_partition_if_it_states_none() {
    let (callers, results) = called_in_parts("has_side_effect = true");
    assert_eq!(callers, [0, 1, 2, 3]);
    assert_eq!(results, [[2], [4], [6], [8]]);
}
