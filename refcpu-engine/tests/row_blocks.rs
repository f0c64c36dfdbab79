//! Kernels on blocks of rows: random programs on integers, which must have the results of the same programs without fusion.

use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::fmt::Write;

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The shape of a value: all dimensions, the leading ones, or the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Whole,
    Leading,
    Last,
}

/// A random program under construction.
struct Program {
    r: Random,
    dims: Vec<usize>,
    text: String,
    values: Vec<(String, Kind)>,
}

impl Program {
    fn shape(&self, kind: Kind) -> Vec<usize> {
        let last = self.dims.len() - 1;
        match kind {
            Kind::Whole => self.dims.clone(),
            Kind::Leading => self.dims[..last].to_vec(),
            Kind::Last => self.dims[last..].to_vec(),
        }
    }

    fn ty(&self, kind: Kind) -> String {
        let sizes: String = self.shape(kind).iter().map(|d| format!("{d}x")).collect();
        format!("tensor<{sizes}i32>")
    }

    /// Returns a value of a shape, often a recent one.
    fn of(&mut self, kind: Kind) -> Option<String> {
        let fitting: Vec<&String> = self.values.iter().filter(|v| v.1 == kind).map(|v| &v.0).collect();
        let recent = fitting.len().saturating_sub(if self.r.below(3) == 0 { 100 } else { 2 });
        let fitting: Vec<String> = fitting[recent..].iter().map(|s| (*s).clone()).collect();
        (!fitting.is_empty()).then(|| fitting[self.r.below(fitting.len())].clone())
    }

    fn add(&mut self, kind: Kind, operation: &str) {
        let name = format!("%v{}", self.values.len());
        writeln!(self.text, "  {name} = {operation}").unwrap();
        self.values.push((name, kind));
    }

    /// Moves the elements of an array along a dimension: rotates them, or moves them and fills the gap.
    fn movement(&mut self) {
        let Some(x) = self.of(Kind::Whole) else { return };
        let (dim, whole) = (self.r.below(self.dims.len()), self.ty(Kind::Whole));
        let by = self.r.below(self.dims[dim].min(9));
        if self.r.below(3) == 0 {
            let edges = |sign: isize| {
                let along = |d| if d == dim { sign * by as isize } else { 0 };
                (0..self.dims.len()).map(along).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
            };
            let (low, high, none) = (edges(1), edges(-1), vec!["0"; self.dims.len()].join(", "));
            let operands = format!("{x}, %zero, low = [{low}], high = [{high}], interior = [{none}]");
            return self
                .add(Kind::Whole, &format!("stablehlo.pad {operands} : ({whole}, tensor<i32>) -> {whole}"));
        }
        let (mut names, mut types) = (vec![], vec![]);
        for part in [self.dims[dim] - by..self.dims[dim], 0..self.dims[dim] - by] {
            let range = |(d, size): (usize, &usize)| {
                if d == dim { format!("{}:{}", part.start, part.end) } else { format!("0:{size}") }
            };
            let ranges = self.dims.iter().enumerate().map(range).collect::<Vec<_>>().join(", ");
            let size = |(d, size): (usize, &usize)| if d == dim { part.len() } else { *size };
            let sizes: String = self.dims.iter().enumerate().map(size).map(|n| format!("{n}x")).collect();
            let (name, ty) = (format!("%s{}", self.text.len()), format!("tensor<{sizes}i32>"));
            writeln!(self.text, "  {name} = stablehlo.slice {x} [{ranges}] : ({whole}) -> {ty}").unwrap();
            names.push(name);
            types.push(ty);
        }
        let (names, types) = (names.join(", "), types.join(", "));
        self.add(Kind::Whole, &format!("stablehlo.concatenate {names}, dim = {dim} : ({types}) -> {whole}"));
    }

    /// Adds a random operation, if its operands exist.
    fn operation(&mut self) -> Option<()> {
        let last = self.dims.len() - 1;
        let leading = (0..last).map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
        let whole = self.ty(Kind::Whole);
        match self.r.below(12) {
            0 | 1 => {
                let kind = self.r.choose(&[Kind::Leading, Kind::Leading, Kind::Last]);
                let (x, ty, reduced) = (self.of(Kind::Whole)?, whole, self.ty(kind));
                let dims = if kind == Kind::Leading { last.to_string() } else { leading };
                let (op, initial) = self.r.choose(&[("add", "%zero"), ("maximum", "%low")]);
                let text = format!(
                    "stablehlo.reduce({x} init: {initial}) applies stablehlo.{op} across dimensions = [{dims}] \
                     : ({ty}, tensor<i32>) -> {reduced}"
                );
                self.add(kind, &text);
            }
            10 => self.movement(),
            2 | 3 => {
                let kind = self.r.choose(&[Kind::Leading, Kind::Leading, Kind::Last]);
                let (x, ty) = (self.of(kind)?, self.ty(kind));
                let dims = if kind == Kind::Last { last.to_string() } else { leading };
                let text = format!("stablehlo.broadcast_in_dim {x}, dims = [{dims}] : ({ty}) -> {whole}");
                self.add(Kind::Whole, &text);
            }
            4 if self.r.below(3) == 0 => {
                let (x, dim) = (self.of(Kind::Whole)?, self.r.below(last + 1));
                self.add(Kind::Whole, &format!("stablehlo.reverse {x}, dims = [{dim}] : {whole}"));
            }
            4 if self.r.below(3) == 0 => {
                let dim = self.r.below(last + 1);
                self.add(Kind::Whole, &format!("stablehlo.iota dim = {dim} : {whole}"));
            }
            5 => {
                let kind = self.r.choose(&[Kind::Whole, Kind::Whole, Kind::Leading]);
                let (op, x, ty) = (self.r.choose(&["abs", "negate", "not"]), self.of(kind)?, self.ty(kind));
                self.add(kind, &format!("stablehlo.{op} {x} : {ty}"));
            }
            _ => {
                let kind = self.r.choose(&[Kind::Whole, Kind::Whole, Kind::Leading, Kind::Last]);
                let (x, y, ty) = (self.of(kind)?, self.of(kind)?, self.ty(kind));
                let op = self.r.choose(&["add", "subtract", "maximum", "minimum", "multiply"]);
                self.add(kind, &format!("stablehlo.{op} {x}, {y} : {ty}"));
            }
        }
        Some(())
    }
}

/// Returns a random program and the shapes of its parameters, the first of which is donated.
fn generate(seed: u64) -> (String, Vec<Vec<usize>>) {
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    r.next();
    let dims = r.choose::<&[usize]>(&[&[1000, 200], &[300, 701], &[5, 97, 400], &[64, 4096], &[3001, 64]]);
    let mut p = Program { r, dims: dims.to_vec(), text: String::new(), values: vec![] };
    let kinds = [Kind::Whole, Kind::Whole, Kind::Leading, Kind::Last];
    let parameters: Vec<String> =
        kinds.iter().enumerate().map(|(i, k)| format!("%a{i}: {}", p.ty(*k))).collect();
    p.values = kinds.iter().enumerate().map(|(i, k)| (format!("%a{i}"), *k)).collect();
    for _ in 0..4 + p.r.below(20) {
        let _ = p.operation();
    }
    let results: Vec<(String, Kind)> =
        (0..1 + p.r.below(2)).map(|k| p.values[p.values.len() - 1 - k].clone()).collect();
    let types: Vec<String> = results.iter().map(|(_, k)| p.ty(*k)).collect();
    let names: Vec<&str> = results.iter().map(|(n, _)| n.as_str()).collect();
    let donation = if results[0].1 == Kind::Whole { " {tf.aliasing_output = 0 : i32}" } else { "" };
    let (first, rest) = (&parameters[0], parameters[1..].join(", "));
    let (names, types, body) = (names.join(", "), types.join(", "), &p.text);
    let text = format!(
        "func.func public @main({first}{donation}, {rest}) -> ({types}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
{body}  return {names} : {types}
}}"
    );
    (text, kinds.map(|k| p.shape(k)).to_vec())
}

fn plan(text: &str, fuse: bool) -> Plan {
    let module = pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = CompileOptions { fuse, ..CompileOptions::default() };
    compile(&module, &options).unwrap_or_else(|e| panic!("{e}\n{text}")).plan
}

fn results(plan: &Plan, runtime: &Runtime, shapes: &[Vec<usize>], donatable: bool) -> Vec<Vec<i32>> {
    let mut r = Random(77);
    let inputs = shapes.iter().map(|dims| {
        let count = dims.iter().product::<usize>();
        let bytes: Vec<u8> = (0..count).flat_map(|_| (r.next() as i32).to_le_bytes()).collect();
        Input { array: Array::from_bytes(&runtime.allocator, DType::S32, dims, &bytes).unwrap(), donatable }
    });
    let results = run(plan, runtime, vec![inputs.collect()], &RunOptions::default()).unwrap().remove(0);
    let numbers = |array: &Array| {
        array.bytes().unwrap().chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    results.iter().map(numbers).collect()
}

#[test]
fn a_step_that_runs_after_a_group_reads_its_operand_before_a_result_has_its_memory() {
    let runtime = Runtime::new(Pool::new(2), Allocator::new(AllocatorOptions::default()));
    let text = "func.func public @main(%a: tensor<1000x200xi32> {tf.aliasing_output = 0 : i32}, %b: tensor<1000x200xi32>)
        -> (tensor<1000x200xi32>, tensor<200xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %q = stablehlo.divide %b, %b : tensor<1000x200xi32>
  %x = stablehlo.add %q, %b : tensor<1000x200xi32>
  %columns = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<1000x200xi32>, tensor<i32>) -> tensor<200xi32>
  %rows = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<1000x200xi32>, tensor<i32>) -> tensor<1000xi32>
  %of_rows = stablehlo.broadcast_in_dim %rows, dims = [0] : (tensor<1000xi32>) -> tensor<1000x200xi32>
  %y = stablehlo.subtract %x, %of_rows : tensor<1000x200xi32>
  return %y, %columns : tensor<1000x200xi32>, tensor<200xi32>
}";
    let shapes = [vec![1000, 200], vec![1000, 200]];
    let (fused, single) = (plan(text, true), plan(text, false));
    let steps = fused.program.to_string();
    let (group, columns) = (steps.find("kernels on blocks"), steps.find("dims: [0]"));
    assert!(group.is_some() && group < columns, "{steps}");
    assert_eq!(results(&fused, &runtime, &shapes, true), results(&single, &runtime, &shapes, false));
}

#[test]
fn blocks_of_rows_have_the_results_of_single_steps() {
    let runtime = Runtime::new(Pool::new(2), Allocator::new(AllocatorOptions::default()));
    let first: u64 = std::env::var("REFCPU_ROWS_SEED").map_or(0, |s| s.parse().unwrap());
    let mut blocked = 0;
    for seed in first..first + 300 {
        let (text, shapes) = generate(seed);
        let (fused, single) = (plan(&text, true), plan(&text, false));
        blocked += usize::from(fused.program.to_string().contains("kernels on blocks"));
        let expected = results(&single, &runtime, &shapes, false);
        for donatable in [false, true, false] {
            let found = results(&fused, &runtime, &shapes, donatable);
            for (k, (e, f)) in expected.iter().zip(&found).enumerate() {
                let wrong = e.iter().zip(f).position(|(x, y)| x != y);
                assert_eq!(
                    wrong, None,
                    "seed {seed}, donated: {donatable}, result {k}\n{text}\n{}",
                    fused.program
                );
            }
        }
    }
    assert!(blocked >= 30, "only {blocked} of 300 programs have blocks of rows");
}
