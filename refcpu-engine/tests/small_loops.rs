//! Loops over small values run as programs of the register machine; what they compute is what the ordinary steps compute.

use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunErrorKind, RunOptions, Runtime, run};
use refcpu_engine::plan::{Kernel, Plan, Step};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

fn runtime() -> Runtime {
    Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()))
}

fn plan(text: &str) -> Plan {
    let module = pjrt_stablehlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    compile(&module, &CompileOptions::default()).unwrap_or_else(|e| panic!("{e}\n{text}")).plan
}

/// `true` if all loops run on the register machine: those inside ordinary ones can.
fn is_small_loop(plan: &Plan) -> bool {
    let steps = &plan.program.steps;
    let goes_back = steps.iter().enumerate().any(|(at, s)| matches!(s, Step::Jump(to) if *to <= at));
    let is_loop = |s: &Step| matches!(s, Step::Run(c) if matches!(c.kernel, Kernel::Loop(_)));
    !goes_back && steps.iter().any(is_loop)
}

fn array<const N: usize, T>(
    rt: &Runtime,
    dtype: DType,
    dims: &[usize],
    values: &[T],
    bytes: fn(&T) -> [u8; N],
) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(bytes).collect();
    Array::from_bytes(&rt.allocator, dtype, dims, &bytes).unwrap()
}

fn f32s(rt: &Runtime, dims: &[usize], values: &[f32]) -> Array {
    array(rt, DType::F32, dims, values, |v| v.to_le_bytes())
}

fn i32s(rt: &Runtime, dims: &[usize], values: &[i32]) -> Array {
    array(rt, DType::S32, dims, values, |v| v.to_le_bytes())
}

fn execute(plan: &Plan, rt: &Runtime, inputs: &[Array]) -> Vec<Vec<u8>> {
    let inputs = inputs.iter().map(|a| Input { array: a.clone(), donatable: false }).collect();
    let results = run(plan, rt, vec![inputs], &RunOptions::default()).unwrap().remove(0);
    results.iter().map(|r| r.bytes().unwrap().to_vec()).collect()
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }

    fn one<'a>(&mut self, of: &'a [String]) -> &'a str {
        &of[self.below(of.len())]
    }
}

const F: &str = "tensor<f32>";
const I: &str = "tensor<i32>";
const P: &str = "tensor<i1>";
const V: &str = "tensor<5xf32>";
const A: &str = "tensor<7x3xf32>";

/// Writes a body of random operations on values in scope.
struct Writer {
    numbers: Numbers,
    text: String,
    count: usize,
    floats: Vec<String>,
    integers: Vec<String>,
    truths: Vec<String>,
    vectors: Vec<String>,
    /// The latest value of the array that is updated in place.
    array: String,
}

impl Writer {
    fn define(&mut self, value: std::fmt::Arguments<'_>) -> String {
        self.count += 1;
        let name = format!("%v{}", self.count);
        writeln!(self.text, "{name} = {value}").unwrap();
        name
    }

    fn operation(&mut self, depth: usize) {
        let n = &mut self.numbers;
        let (a, b) = (n.one(&self.floats).to_string(), n.one(&self.floats).to_string());
        let (i, j) = (n.one(&self.integers).to_string(), n.one(&self.integers).to_string());
        let (u, v) = (n.one(&self.vectors).to_string(), n.one(&self.vectors).to_string());
        let p = n.one(&self.truths).to_string();
        let array = self.array.clone();
        match n.below(if depth == 0 { 18 } else { 16 }) {
            0 | 1 => {
                let op = ["add", "subtract", "multiply", "divide", "maximum", "minimum"][n.below(6)];
                let r = self.define(format_args!("stablehlo.{op} {a}, {b} : {F}"));
                self.floats.push(r);
            }
            2 => {
                let op =
                    ["add", "subtract", "multiply", "and", "or", "xor", "shift_left", "divide", "remainder"]
                        [n.below(9)];
                let r = self.define(format_args!("stablehlo.{op} {i}, {j} : {I}"));
                self.integers.push(r);
            }
            3 => {
                let direction = ["LT", "LE", "GT", "GE", "EQ", "NE"][n.below(6)];
                let r = if n.below(2) == 0 {
                    self.define(format_args!("stablehlo.compare {direction}, {a}, {b} : ({F}, {F}) -> {P}"))
                } else {
                    self.define(format_args!("stablehlo.compare {direction}, {i}, {j} : ({I}, {I}) -> {P}"))
                };
                self.truths.push(r);
            }
            4 => {
                let r = self.define(format_args!("stablehlo.select {p}, {a}, {b} : {P}, {F}"));
                self.floats.push(r);
                let r = self.define(format_args!("stablehlo.select {p}, {i}, {j} : {P}, {I}"));
                self.integers.push(r);
            }
            5 => {
                let op = ["tanh", "sine", "abs", "negate", "sqrt"][n.below(5)];
                let r = self.define(format_args!("stablehlo.{op} {a} : {F}"));
                self.floats.push(r);
                let r = self.define(format_args!("stablehlo.convert {i} : ({I}) -> {F}"));
                self.floats.push(r);
            }
            6 => {
                let wide =
                    self.define(format_args!("stablehlo.broadcast_in_dim {a}, dims = [] : ({F}) -> {V}"));
                let op = ["add", "multiply", "maximum", "subtract"][self.numbers.below(4)];
                let r = self.define(format_args!("stablehlo.{op} {u}, {wide} : {V}"));
                self.vectors.push(r);
                let r = self.define(format_args!("stablehlo.{op} {u}, {v} : {V}"));
                self.vectors.push(r);
            }
            7 => {
                let r = self.define(format_args!(
                    "stablehlo.dynamic_slice {u}, {i}, sizes = [1] : ({V}, {I}) -> tensor<1xf32>"
                ));
                let r = self.define(format_args!("stablehlo.reshape {r} : (tensor<1xf32>) -> {F}"));
                self.floats.push(r);
            }
            8 => {
                let r = self.define(format_args!(
                    "stablehlo.dynamic_slice {array}, {i}, {j}, sizes = [2, 2] : ({A}, {I}, {I}) -> tensor<2x2xf32>"
                ));
                let r = self.define(format_args!(
                    "stablehlo.slice {r} [1:2, 0:1] : (tensor<2x2xf32>) -> tensor<1x1xf32>"
                ));
                let r = self.define(format_args!("stablehlo.reshape {r} : (tensor<1x1xf32>) -> {F}"));
                self.floats.push(r);
            }
            9 => {
                let row = self.define(format_args!(
                    "stablehlo.broadcast_in_dim {a}, dims = [] : ({F}) -> tensor<2x3xf32>"
                ));
                self.array = self.define(format_args!(
                    "stablehlo.dynamic_update_slice {array}, {row}, {i}, {j} : ({A}, tensor<2x3xf32>, {I}, {I}) -> {A}"
                ));
            }
            10 => {
                let at = self.define(format_args!("stablehlo.reshape {i} : ({I}) -> tensor<1xi32>"));
                let row = self.define(format_args!(
                    "stablehlo.broadcast_in_dim {b}, dims = [] : ({F}) -> tensor<3xf32>"
                ));
                self.array = self.define(format_args!(
                    "\"stablehlo.scatter\"({array}, {at}, {row}) <{{scatter_dimension_numbers = #stablehlo.scatter<\
                     update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, \
                     indices_are_sorted = true, unique_indices = true}}> ({{\n\
                     ^bb0(%old: {F}, %new: {F}):\n%sum = stablehlo.add %old, %new : {F}\n\
                     stablehlo.return %sum : {F}\n}}) : ({A}, tensor<1xi32>, tensor<3xf32>) -> {A}"
                ));
            }
            11 | 12 => self.sums(&a, &u, &v),
            13 => self.moved(&a, &u),
            14 => self.indexed(&i, &u, &v),
            15 => self.accumulated(&u, &v),
            16 => self.branches(&p),
            _ => self.inner_loop(&i),
        }
    }

    /// A reduction of a vector, a product of vectors, and a product of a matrix and a vector.
    fn sums(&mut self, initial: &str, u: &str, v: &str) {
        let op = ["add", "multiply", "maximum", "minimum"][self.numbers.below(4)];
        let r = self.define(format_args!(
            "stablehlo.reduce({u} init: {initial}) applies stablehlo.{op} across dimensions = [0] : ({V}, {F}) -> {F}"
        ));
        self.floats.push(r);
        let r = self.define(format_args!(
            "stablehlo.dot_general {u}, {v}, contracting_dims = [0] x [0] : ({V}, {V}) -> {F}"
        ));
        self.floats.push(r);
        let matrix = "tensor<5x5xf32>";
        let m = self.define(format_args!("stablehlo.broadcast_in_dim {u}, dims = [0] : ({V}) -> {matrix}"));
        let (x, y, dim) = [(m.as_str(), v, 1), (m.as_str(), v, 0), (v, m.as_str(), 0)][self.numbers.below(3)];
        let [left, right] = if x == m { [matrix, V] } else { [V, matrix] };
        let (l, r) = if x == m { (dim, 0) } else { (0, dim) };
        let r = self.define(format_args!(
            "stablehlo.dot_general {x}, {y}, contracting_dims = [{l}] x [{r}] : ({left}, {right}) -> {V}"
        ));
        self.vectors.push(r);
        let r = self.define(format_args!(
            "stablehlo.dot_general {initial}, {v}, contracting_dims = [] x [] : ({F}, {V}) -> {V}"
        ));
        self.vectors.push(r);
    }

    /// Padding, strides, reversed and transposed arrays.
    fn moved(&mut self, value: &str, u: &str) {
        let (low, high) = [(1, 0), (0, 1)][self.numbers.below(2)];
        let r = self.define(format_args!(
            "stablehlo.pad {u}, {value}, low = [{low}], high = [{high}], interior = [1] : ({V}, {F}) -> tensor<10xf32>"
        ));
        let r = self.define(format_args!("stablehlo.slice {r} [0:9:2] : (tensor<10xf32>) -> {V}"));
        self.vectors.push(r);
        let r = self.define(format_args!("stablehlo.reverse {u}, dims = [0] : {V}"));
        self.vectors.push(r);
        let m = self
            .define(format_args!("stablehlo.broadcast_in_dim {u}, dims = [1] : ({V}) -> tensor<2x5xf32>"));
        let m = self.define(format_args!(
            "stablehlo.transpose {m}, dims = [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>"
        ));
        let m = self.define(format_args!("stablehlo.reshape {m} : (tensor<5x2xf32>) -> tensor<10xf32>"));
        let r = self.define(format_args!("stablehlo.slice {m} [3:8] : (tensor<10xf32>) -> {V}"));
        self.vectors.push(r);
    }

    /// A gather and a scatter with five indices, some of them equal or outside.
    fn indexed(&mut self, i: &str, u: &str, v: &str) {
        const INDICES: &str = "tensor<5x1xi32>";
        let wide =
            self.define(format_args!("stablehlo.broadcast_in_dim {i}, dims = [] : ({I}) -> {INDICES}"));
        let iota = self.define(format_args!("stablehlo.iota dim = 0 : {INDICES}"));
        let op = ["add", "subtract", "minimum"][self.numbers.below(3)];
        let at = self.define(format_args!("stablehlo.{op} {iota}, {wide} : {INDICES}"));
        let r = self.define(format_args!(
            "\"stablehlo.gather\"({u}, {at}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], \
             start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}> : ({V}, {INDICES}) -> {V}"
        ));
        self.vectors.push(r);
        let result = ["%new", "%sum"][self.numbers.below(2)];
        let r = self.define(format_args!(
            "\"stablehlo.scatter\"({u}, {at}, {v}) <{{scatter_dimension_numbers = #stablehlo.scatter<\
             inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{\n\
             ^bb0(%old: {F}, %new: {F}):\n%sum = stablehlo.add %old, %new : {F}\n\
             stablehlo.return {result} : {F}\n}}) : ({V}, {INDICES}, {V}) -> {V}"
        ));
        self.vectors.push(r);
    }

    /// Cumulative operations, reductions of columns, of booleans, and products of matrices.
    fn accumulated(&mut self, u: &str, v: &str) {
        let matrix = "tensor<5x5xf32>";
        let zero = self.define(format_args!("stablehlo.constant dense<0.0> : {F}"));
        let op = ["add", "maximum"][self.numbers.below(2)];
        let (low, high) = [(4, 0), (0, 4)][self.numbers.below(2)];
        let r = self.define(format_args!(
            "\"stablehlo.reduce_window\"({u}, {zero}) <{{window_dimensions = array<i64: 5>, \
             padding = dense<[[{low}, {high}]]> : tensor<1x2xi64>}}> ({{\n^bb0(%old: {F}, %new: {F}):\n\
             %sum = stablehlo.{op} %old, %new : {F}\nstablehlo.return %sum : {F}\n}}) : ({V}, {F}) -> {V}"
        ));
        self.vectors.push(r);
        let [x, y] = [(u, 0), (v, 1)].map(|(x, dim)| {
            self.define(format_args!("stablehlo.broadcast_in_dim {x}, dims = [{dim}] : ({V}) -> {matrix}"))
        });
        let (l, r) = (self.numbers.below(2), self.numbers.below(2));
        let product = self.define(format_args!(
            "stablehlo.dot_general {x}, {y}, contracting_dims = [{l}] x [{r}] : ({matrix}, {matrix}) -> {matrix}"
        ));
        let r = self.define(format_args!(
            "stablehlo.reduce({product} init: {zero}) applies stablehlo.add across dimensions = [0] : ({matrix}, {F}) -> {V}"
        ));
        self.vectors.push(r);
        let less = self.define(format_args!("stablehlo.compare LT, {u}, {v} : ({V}, {V}) -> tensor<5xi1>"));
        let r = self.define(format_args!("stablehlo.select {less}, {u}, {v} : tensor<5xi1>, {V}"));
        self.vectors.push(r);
        let no = self.define(format_args!("stablehlo.constant dense<false> : {P}"));
        let r = self.define(format_args!(
            "stablehlo.reduce({less} init: {no}) applies stablehlo.or across dimensions = [0] : (tensor<5xi1>, {P}) -> {P}"
        ));
        self.truths.push(r);
    }

    /// Operations in a region of their own: its text, a float, an integer, and the array at its end.
    fn nested(&mut self, operations: usize) -> (String, [String; 3]) {
        let outer = (
            std::mem::take(&mut self.text),
            self.floats.clone(),
            self.integers.clone(),
            self.truths.clone(),
            self.vectors.clone(),
            self.array.clone(),
        );
        for _ in 0..operations {
            self.operation(1);
        }
        let results =
            [self.floats.last().unwrap().clone(), self.integers.last().unwrap().clone(), self.array.clone()];
        let text = std::mem::replace(&mut self.text, outer.0);
        (self.floats, self.integers, self.truths, self.vectors, self.array) =
            (outer.1, outer.2, outer.3, outer.4, outer.5);
        (text, results)
    }

    fn branches(&mut self, p: &str) {
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (text, [f, i, a]) = self.nested(4);
            bodies.push(format!("{text}stablehlo.return {f}, {i}, {a} : {F}, {I}, {A}"));
        }
        self.count += 1;
        let name = format!("%v{}", self.count);
        writeln!(
            self.text,
            "{name}:3 = \"stablehlo.if\"({p}) ({{\n{}\n}}, {{\n{}\n}}) : ({P}) -> ({F}, {I}, {A})",
            bodies[0], bodies[1]
        )
        .unwrap();
        self.floats.push(format!("{name}#0"));
        self.integers.push(format!("{name}#1"));
        self.array = format!("{name}#2");
    }

    fn inner_loop(&mut self, i: &str) {
        self.count += 1;
        let name = format!("%v{}", self.count);
        let (f, array) = (self.numbers.one(&self.floats).to_string(), self.array.clone());
        let (c, x, y) = (format!("{name}c"), format!("{name}x"), format!("{name}y"));
        self.floats.push(x.clone());
        self.integers.push(c.clone());
        self.array.clone_from(&y);
        let (text, [result, _, a]) = self.nested(4);
        self.floats.pop();
        self.integers.pop();
        writeln!(
            self.text,
            "{name}:3 = stablehlo.while({c} = %zero, {x} = {f}, {y} = {array}) : {I}, {F}, {A}\ncond {{\n\
             %m = stablehlo.constant dense<3> : {I}\n%r = stablehlo.remainder {i}, %m : {I}\n\
             %q = stablehlo.compare LT, {c}, %r : ({I}, {I}) -> {P}\nstablehlo.return %q : {P}\n}} do {{\n{text}\
             %next = stablehlo.add {c}, %one : {I}\nstablehlo.return %next, {result}, {a} : {I}, {F}, {A}\n}}"
        )
        .unwrap();
        self.integers.push(format!("{name}#0"));
        self.floats.push(format!("{name}#1"));
        self.array = format!("{name}#2");
    }
}

/// A program with a loop of random operations. With `large`, it also carries an array that every step recreates.
fn program(seed: u64, large: bool) -> String {
    const W: &str = "tensor<5000xf32>";
    let mut w = Writer {
        numbers: Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        text: String::new(),
        count: 0,
        floats: vec!["%x".into(), "%y".into()],
        integers: vec!["%i".into(), "%k".into(), "%one".into()],
        truths: vec!["%p".into()],
        vectors: vec!["%u".into()],
        array: "%a".into(),
    };
    for _ in 0..18 {
        w.operation(0);
    }
    let (x, y) = (w.numbers.one(&w.floats).to_string(), w.numbers.one(&w.floats).to_string());
    let (k, u) = (w.numbers.one(&w.integers).to_string(), w.numbers.one(&w.vectors).to_string());
    let p = w.numbers.one(&w.truths).to_string();
    let (arguments, types, step, back) = if large {
        (", %w = %wide", format!(", {W}"), format!("%w1 = stablehlo.add %w, %w : {W}"), ", %w1")
    } else {
        ("", String::new(), String::new(), "")
    };
    format!(
        "func.func public @main(%arg0: {F}, %arg1: {I}, %arg2: {V}, %arg3: {A}) -> ({F}, {F}, {I}, {P}, {V}, {A}{types}) {{
         %zero = stablehlo.constant dense<0> : {I}
         %one = stablehlo.constant dense<1> : {I}
         %true = stablehlo.constant dense<true> : {P}
         %wide = stablehlo.constant dense<1.0> : {W}
         %0:{count} = stablehlo.while(%i = %zero, %x = %arg0, %y = %arg0, %k = %arg1, %p = %true, %u = %arg2, %a = %arg3{arguments}) : {I}, {F}, {F}, {I}, {P}, {V}, {A}{types}
         cond {{
           %n = stablehlo.constant dense<9> : {I}
           %c = stablehlo.compare LT, %i, %n : ({I}, {I}) -> {P}
           stablehlo.return %c : {P}
         }} do {{
           {text}{step}
           %next = stablehlo.add %i, %one : {I}
           stablehlo.return %next, {x}, {y}, {k}, {p}, {u}, {array}{back} : {I}, {F}, {F}, {I}, {P}, {V}, {A}{types}
         }}
         return %0#1, %0#2, %0#3, %0#4, %0#5, %0#6{last} : {F}, {F}, {I}, {P}, {V}, {A}{types}
         }}",
        count = if large { 8 } else { 7 },
        last = if large { ", %0#7" } else { "" },
        text = w.text,
        array = w.array,
    )
}

/// Bytes with one value for all NaN, whose payload no operation promises.
fn comparable(bytes: &[u8], is_float: bool) -> Vec<u8> {
    if !is_float {
        return bytes.to_vec();
    }
    let one = |b: &[u8]| {
        let v = f32::from_le_bytes(b.try_into().unwrap());
        if v.is_nan() { f32::NAN.to_le_bytes() } else { v.to_le_bytes() }
    };
    bytes.chunks_exact(4).flat_map(one).collect()
}

#[test]
fn random_loops_compute_bit_for_bit_what_ordinary_steps_do() {
    let rt = runtime();
    let mut small_loops = 0;
    for seed in 1..=90 {
        let (text, ordinary) = (program(seed, false), plan(&program(seed, true)));
        let small = plan(&text);
        assert!(!is_small_loop(&ordinary));
        if !is_small_loop(&small) {
            continue;
        }
        small_loops += 1;
        for (x, k) in [(0.75f32, 5), (-3.5, -2), (1e20, i32::MAX)] {
            let vector: Vec<f32> = (0..5).map(|i| i as f32 * 0.3 - x).collect();
            let values: Vec<f32> = (0..21).map(|i| x * i as f32 - 1.0).collect();
            let inputs = [
                f32s(&rt, &[], &[x]),
                i32s(&rt, &[], &[k]),
                f32s(&rt, &[5], &vector),
                f32s(&rt, &[7, 3], &values),
            ];
            // After some runs, the loop is machine code.
            let ours = [
                execute(&small, &rt, &inputs),
                (0..60).map(|_| execute(&small, &rt, &inputs)).last().unwrap(),
            ];
            let theirs = execute(&ordinary, &rt, &inputs);
            for (r, (a, b)) in ours.iter().flat_map(|ours| ours.iter().zip(&theirs).enumerate()) {
                let is_float = r != 2 && r != 3;
                assert_eq!(
                    comparable(a, is_float),
                    comparable(b, is_float),
                    "result {r} of seed {seed} for {x}, {k}:\n{text}"
                );
            }
        }
    }
    assert!(small_loops >= 60, "only {small_loops} of the loops qualified");
}

#[test]
fn a_loop_without_end_can_be_cancelled() {
    let plan = plan(
        "func.func public @main(%arg0: tensor<i32>) -> tensor<i32> {
           %0 = stablehlo.while(%i = %arg0) : tensor<i32>
           cond {
             %c = stablehlo.constant dense<true> : tensor<i1>
             stablehlo.return %c : tensor<i1>
           } do {
             %1 = stablehlo.add %i, %i : tensor<i32>
             stablehlo.return %1 : tensor<i32>
           }
           return %0 : tensor<i32>
         }",
    );
    assert!(is_small_loop(&plan));
    let rt = runtime();
    let cancel = AtomicBool::new(false);
    let inputs = vec![vec![Input { array: i32s(&rt, &[], &[1]), donatable: false }]];
    std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            cancel.store(true, Ordering::Relaxed);
        });
        let options = RunOptions { cancel: Some(&cancel), ..RunOptions::default() };
        let error = run(&plan, &rt, inputs, &options).unwrap_err();
        assert_eq!(error.kind, RunErrorKind::Cancelled);
    });
}

#[test]
fn carried_values_may_change_places() {
    let plan = plan(
        "func.func public @main(%arg0: tensor<i32>, %arg1: tensor<3xf32>, %arg2: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
           %zero = stablehlo.constant dense<0> : tensor<i32>
           %0:3 = stablehlo.while(%i = %zero, %a = %arg1, %b = %arg2) : tensor<i32>, tensor<3xf32>, tensor<3xf32>
           cond {
             %c = stablehlo.compare LT, %i, %arg0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %c : tensor<i1>
           } do {
             %one = stablehlo.constant dense<1> : tensor<i32>
             %1 = stablehlo.add %i, %one : tensor<i32>
             stablehlo.return %1, %b, %a : tensor<i32>, tensor<3xf32>, tensor<3xf32>
           }
           return %0#1, %0#2 : tensor<3xf32>, tensor<3xf32>
         }",
    );
    assert!(is_small_loop(&plan));
    let rt = runtime();
    let (a, b) = (f32s(&rt, &[3], &[1., 2., 3.]), f32s(&rt, &[3], &[4., 5., 6.]));
    for n in 0..4 {
        let results = execute(&plan, &rt, &[i32s(&rt, &[], &[n]), a.clone(), b.clone()]);
        let (first, second) = if n % 2 == 0 { (&a, &b) } else { (&b, &a) };
        assert_eq!(results, [first.bytes().unwrap(), second.bytes().unwrap()], "{n} steps");
    }
}

#[test]
fn counters_that_run_alike_and_those_that_do_not_are_told_apart() {
    // %a and %b are the same; %c begins elsewhere, %d has another step, %e changes by another operation.
    let text = r#"
module {
  func.func public @main(%start: tensor<i32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:6 = stablehlo.while(%a = %zero, %b = %zero, %c = %start, %d = %zero, %e = %zero, %sum = %zero)
        : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
    cond {
      %end = stablehlo.constant dense<7> : tensor<i32>
      %go = stablehlo.compare LT, %a, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %a1 = stablehlo.add %a, %one : tensor<i32>
      %b1 = stablehlo.add %b, %one : tensor<i32>
      %c1 = stablehlo.add %c, %one : tensor<i32>
      %d1 = stablehlo.add %d, %two : tensor<i32>
      %e1 = stablehlo.subtract %e, %one : tensor<i32>
      %zero0 = stablehlo.constant dense<0> : tensor<i32>
      %inner:3 = stablehlo.while(%i = %zero0, %j = %zero0, %s = %sum) : tensor<i32>, tensor<i32>, tensor<i32>
      cond {
        %go = stablehlo.compare LT, %i, %a, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      } do {
        %i1 = stablehlo.add %i, %one : tensor<i32>
        %j1 = stablehlo.add %j, %one : tensor<i32>
        %p = stablehlo.multiply %j, %b : tensor<i32>
        %s1 = stablehlo.add %s, %p : tensor<i32>
        stablehlo.return %i1, %j1, %s1 : tensor<i32>, tensor<i32>, tensor<i32>
      }
      stablehlo.return %a1, %b1, %c1, %d1, %e1, %inner#2
        : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
    }
    return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5
      : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
  }
}"#;
    let rt = runtime();
    let plan = plan(text);
    assert!(is_small_loop(&plan));
    let results = execute(&plan, &rt, &[i32s(&rt, &[], &[100])]);
    let got: Vec<i32> = results.iter().map(|r| i32::from_le_bytes(r[..4].try_into().unwrap())).collect();
    let sum: i32 = (0..7).map(|a| (0..a).map(|j| j * a).sum::<i32>()).sum();
    assert_eq!(got, [7, 7, 107, 14, -7, sum]);
}

/// An inner loop that changes an array of its own, which the outer loop adds up. With `late`, the inner loop also reads the array
/// as it was before the change, after the change.
fn sums_of_changed_arrays(late: bool) -> String {
    const T: &str = "tensor<40xi32>";
    let old = if late { "%y" } else { "%z" };
    format!(
        "func.func public @main(%arg0: {T}) -> {T} {{
         %zero = stablehlo.constant dense<0> : {I}
         %one = stablehlo.constant dense<1> : {I}
         %none = stablehlo.constant dense<7> : {T}
         %0:2 = stablehlo.while(%i = %zero, %sum = %arg0) : {I}, {T}
         cond {{
           %n = stablehlo.constant dense<20> : {I}
           %c = stablehlo.compare LT, %i, %n : ({I}, {I}) -> {P}
           stablehlo.return %c : {P}
         }} do {{
           %1:3 = stablehlo.while(%j = %zero, %y = %none, %x = %i) : {I}, {T}, {I}
           cond {{
             %n = stablehlo.constant dense<40> : {I}
             %c = stablehlo.compare LT, %j, %n : ({I}, {I}) -> {P}
             stablehlo.return %c : {P}
           }} do {{
             %two = stablehlo.constant dense<2> : {I}
             %k = stablehlo.remainder %j, %two : {I}
             %u = stablehlo.add %x, %j : {I}
             %v = stablehlo.reshape %u : ({I}) -> tensor<1xi32>
             %z = stablehlo.dynamic_update_slice %y, %v, %j : ({T}, tensor<1xi32>, {I}) -> {T}
             %w = stablehlo.dynamic_slice {old}, %k, sizes = [1] : ({T}, {I}) -> tensor<1xi32>
             %x1 = stablehlo.reshape %w : (tensor<1xi32>) -> {I}
             %next = stablehlo.add %j, %one : {I}
             stablehlo.return %next, %z, %x1 : {I}, {T}, {I}
           }}
           %t = stablehlo.add %sum, %1#1 : {T}
           %next = stablehlo.add %i, %one : {I}
           stablehlo.return %next, %t : {I}, {T}
         }}
         return %0#1 : {T}
         }}"
    )
}

#[test]
fn inner_loops_change_arrays_of_their_own() {
    let rt = runtime();
    for late in [false, true] {
        let plan = plan(&sums_of_changed_arrays(late));
        assert!(is_small_loop(&plan));
        let mut sum: Vec<i32> = (0..40).collect();
        let input = i32s(&rt, &[40], &sum);
        for i in 0..20 {
            let (mut y, mut x) = ([7; 40], i);
            for j in 0..40 {
                let old = y;
                y[j] = x + j as i32;
                x = if late { old[j % 2] } else { y[j % 2] };
            }
            sum.iter_mut().zip(y).for_each(|(s, y)| *s += y);
        }
        let expected: Vec<u8> = sum.iter().flat_map(|s| s.to_le_bytes()).collect();
        for _ in 0..60 {
            assert_eq!(execute(&plan, &rt, std::slice::from_ref(&input))[0], expected, "late: {late}");
        }
    }
}

#[test]
fn the_estimated_duration_of_a_loop_counts_its_iterations() {
    let nanoseconds = |steps: u32| {
        let text = format!(
            "func.func public @main(%arg0: {V}) -> {V} {{
             %zero = stablehlo.constant dense<0> : {I}
             %0:2 = stablehlo.while(%i = %zero, %x = %arg0) : {I}, {V}
             cond {{
               %n = stablehlo.constant dense<{steps}> : {I}
               %c = stablehlo.compare LT, %i, %n : ({I}, {I}) -> {P}
               stablehlo.return %c : {P}
             }} do {{
               %two = stablehlo.constant dense<2> : {I}
               %y = stablehlo.tanh %x : {V}
               %next = stablehlo.add %i, %two : {I}
               stablehlo.return %next, %y : {I}, {V}
             }}
             return %0#1 : {V}
             }}"
        );
        plan(&text).stats().nanoseconds
    };
    let (few, many) = (nanoseconds(1_000), nanoseconds(1_000_000));
    assert!((500.0..50_000.0).contains(&few), "{few} ns for 500 iterations");
    assert!((900.0..1_100.0).contains(&(many / few)), "{few} ns for 500 iterations, {many} ns for 500,000");
}
