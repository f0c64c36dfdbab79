//! Programs through the whole engine: read, compile, run.

mod complex_numbers;
mod control_flow;
mod devices;
mod donation;
mod fusion;
mod linear_algebra;
mod reducers;
mod refusals;
mod separate_runs;

use refcpu_engine::compile::{CompileErrorKind, CompileOptions, Parts, compile};
use refcpu_engine::exec::{Input, RunErrorKind, RunOptions, Runtime, run};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

fn runtime() -> Runtime {
    Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()))
}

fn plan_for(text: &str, options: &CompileOptions) -> Plan {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = CompileOptions { parts: Parts::Never, ..options.clone() };
    compile(&module, &options).unwrap_or_else(|e| panic!("{e}\n{text}")).plan
}

fn plan(text: &str) -> Plan {
    plan_for(text, &CompileOptions::default())
}

fn f32s(runtime: &Runtime, dims: &[usize], values: &[f32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::F32, dims, &bytes).unwrap()
}

fn i32s(runtime: &Runtime, dims: &[usize], values: &[i32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::S32, dims, &bytes).unwrap()
}

fn to_f32s(array: &Array) -> Vec<f32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn to_i32s(array: &Array) -> Vec<i32> {
    array.bytes().unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn kept(array: Array) -> Input {
    Input { array, donatable: false }
}

/// Runs on one device.
fn run_one(text: &str, runtime: &Runtime, inputs: Vec<Array>) -> Vec<Array> {
    let plan = plan(text);
    let inputs: Vec<Input> = inputs.into_iter().map(kept).collect();
    run(&plan, runtime, vec![inputs], &RunOptions::default()).unwrap().remove(0)
}

/// Large enough that the loop exchanges buffers instead of copying them.
const WIDE: usize = 4096;

fn fibonacci() -> String {
    format!(
        "func.func public @main(%arg0: tensor<{WIDE}xf32>, %arg1: tensor<i32>) -> (tensor<{WIDE}xf32>, tensor<{WIDE}xf32>) {{
           %c = stablehlo.constant dense<0> : tensor<i32>
           %0:3 = stablehlo.while(%i = %c, %a = %arg0, %b = %arg0) : tensor<i32>, tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
           cond {{
             %1 = stablehlo.compare LT, %i, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %1 : tensor<i1>
           }} do {{
             %one = stablehlo.constant dense<1> : tensor<i32>
             %1 = stablehlo.add %i, %one : tensor<i32>
             %2 = stablehlo.add %a, %b : tensor<{WIDE}xf32>
             stablehlo.return %1, %b, %2 : tensor<i32>, tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
           }}
           return %0#1, %0#2 : tensor<{WIDE}xf32>, tensor<{WIDE}xf32>
         }}"
    )
}

const DONATING: &str = "func.func public @main(%arg0: tensor<1024xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<1024xf32>) -> tensor<1024xf32> {
   %0 = stablehlo.add %arg0, %arg1 : tensor<1024xf32>
   return %0 : tensor<1024xf32>
 }";

#[test]
fn a_plan_serves_several_threads_at_once() {
    let rt = runtime();
    let plan = plan(&fibonacci());
    std::thread::scope(|s| {
        for t in 0..4 {
            let (rt, plan) = (&rt, &plan);
            s.spawn(move || {
                for _ in 0..20 {
                    let x = vec![t as f32; WIDE];
                    let inputs = vec![vec![kept(f32s(rt, &[WIDE], &x)), kept(i32s(rt, &[], &[4]))]];
                    let results = run(plan, rt, inputs, &RunOptions::default()).unwrap();
                    assert_eq!(to_f32s(&results[0][1]), vec![8.0 * t as f32; WIDE]);
                }
            });
        }
    });
}
