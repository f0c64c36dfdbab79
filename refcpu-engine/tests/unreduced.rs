//! Random programs with unreduced arrays on random meshes: in parts and on whole arrays, they compute what the same program without
//! shardings computes on one device.

use pjrt_sharding::{Reduction, Sharding};
use proptest::prelude::*;
use refcpu_engine::compile::{ArrayInfo, CompileOptions, Compiled, Parts, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};
use std::fmt::Write;

/// The choices from which a program is generated. When they are used up, each further choice is the first option.
struct Choices<'a> {
    rest: std::slice::Iter<'a, u16>,
}

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.rest.next().copied().unwrap_or(0)) % count
    }

    fn of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    fn left(&self) -> bool {
        !self.rest.as_slice().is_empty()
    }
}

/// A program in two forms: with shardings, and for one device.
#[derive(Default)]
struct Program {
    axes: Vec<usize>,
    sharded: String,
    single: String,
    /// The dimensions of each value.
    values: Vec<Vec<usize>>,
    /// The shardings so far, each with the dimensions that it fits.
    shardings: Vec<(Vec<usize>, String)>,
}

fn ty(dims: &[usize]) -> String {
    let sizes: String = dims.iter().map(|size| format!("{size}x")).collect();
    format!("tensor<{sizes}i32>")
}

impl Program {
    fn generate(choices: &mut Choices<'_>) -> Self {
        let axes = choices.of(&[&[2][..], &[2, 2], &[4], &[2, 3], &[2, 2, 2], &[1, 2], &[3]]);
        let mut program = Self { axes: axes.to_vec(), ..Self::default() };
        let sizes = [4, 2, 6, 5, 8, 1];
        let shape = [choices.of(&sizes), choices.of(&sizes)];
        let others = [choices.of(&sizes), choices.of(&sizes)];
        program.values = vec![shape.to_vec(), shape.to_vec(), others.to_vec()];
        let parameters: Vec<(String, String)> = (program.values.clone().iter().enumerate())
            .map(|(i, dims)| {
                let sharding = program.sharding(dims, true, choices);
                (
                    format!("%v{i}: {} {{sdy.sharding = #sdy.sharding{sharding}}}", ty(dims)),
                    format!("%v{i}: {}", ty(dims)),
                )
            })
            .collect();
        while choices.left() {
            program.step(choices);
        }
        program.finish(&parameters, choices)
    }

    /// Returns a random sharding of an array of these dimensions: an earlier one, or a new one.
    fn sharding(&mut self, dims: &[usize], may_be_uneven: bool, choices: &mut Choices<'_>) -> String {
        let known: Vec<usize> = (0..self.shardings.len()).filter(|i| self.shardings[*i].0 == dims).collect();
        if !known.is_empty() && choices.below(2) == 0 {
            return self.shardings[choices.of(&known)].1.clone();
        }
        let new = self.new_sharding(dims, may_be_uneven, choices);
        self.shardings.push((dims.to_vec(), new.clone()));
        new
    }

    fn new_sharding(&self, dims: &[usize], may_be_uneven: bool, choices: &mut Choices<'_>) -> String {
        let mut of_dims = vec![vec![]; dims.len()];
        let mut unreduced = vec![];
        for (axis, size) in self.axes.iter().enumerate() {
            let name = format!("\"a{axis}\"");
            match choices.below(dims.len() + 2) {
                0 => unreduced.push(name),
                1 => {}
                dim if may_be_uneven || dims[dim - 2].is_multiple_of(*size) => of_dims[dim - 2].push(name),
                _ => {}
            }
        }
        if choices.below(2) == 1 {
            of_dims.iter_mut().for_each(|axes: &mut Vec<String>| axes.reverse());
        }
        let of_dims: Vec<String> = of_dims.iter().map(|axes| format!("{{{}}}", axes.join(", "))).collect();
        let mut text = format!("<@mesh, [{}]", of_dims.join(", "));
        if !unreduced.is_empty() {
            let reduction = choices.of(&["", "max", "min"]);
            let _ = write!(text, ", unreduced={reduction}{{{}}}", unreduced.join(", "));
        }
        text + ">"
    }

    /// Adds an operation in both forms.
    fn add(&mut self, dims: &[usize], op: &str) {
        self.add_two(dims, op, op);
    }

    fn add_two(&mut self, dims: &[usize], sharded: &str, single: &str) {
        let name = format!("%v{}", self.values.len());
        let _ = writeln!(self.sharded, "    {name} = {sharded}");
        let _ = writeln!(self.single, "    {name} = {single}");
        self.values.push(dims.to_vec());
    }

    /// Adds a random operation on random values.
    fn step(&mut self, choices: &mut Choices<'_>) {
        // Recent values are used more often.
        let recent = choices.of(&[self.values.len(), 3]);
        let value = self.values.len() - 1 - choices.below(recent);
        let dims = self.values[value].clone();
        let (of, rank) = (ty(&dims), dims.len());
        let x = format!("%v{value}");
        match choices.below(12) {
            0 | 1 => {
                let sharding = self.sharding(&dims, false, choices);
                let same = format!("stablehlo.reshape {x} : ({of}) -> {of}");
                self.add_two(&dims, &format!("sdy.sharding_constraint {x} {sharding} : {of}"), &same);
            }
            2 | 3 => {
                let like: Vec<usize> = (0..self.values.len()).filter(|v| self.values[*v] == dims).collect();
                let other = choices.of(&like);
                let name = choices.of(&["add", "maximum", "minimum", "subtract", "multiply"]);
                self.add(&dims, &format!("stablehlo.{name} {x}, %v{other} : {of}"));
            }
            4 if rank > 0 => {
                let dim = choices.below(rank);
                let (name, init) = choices.of(&[
                    ("add", "0"),
                    ("maximum", "-2147483648"),
                    ("minimum", "2147483647"),
                    ("add", "3"),
                ]);
                let mut left = dims;
                left.remove(dim);
                let begin =
                    format!("%init{} = stablehlo.constant dense<{init}> : tensor<i32>\n", self.values.len());
                self.sharded += &begin;
                self.single += &begin;
                let op = format!(
                    "stablehlo.reduce({x} init: %init{}) applies stablehlo.{name} across dimensions = [{dim}] : ({of}, tensor<i32>) -> {}",
                    self.values.len(),
                    ty(&left)
                );
                self.add(&left, &op);
            }
            5 if rank == 2 => {
                let turned = [dims[1], dims[0]];
                let op = format!("stablehlo.transpose {x}, dims = [1, 0] : ({of}) -> {}", ty(&turned));
                self.add(&turned, &op);
            }
            6 if rank == 1 => {
                let larger = choices.of(&[[dims[0], 1], [dims[0], 4]]);
                let op = format!("stablehlo.broadcast_in_dim {x}, dims = [0] : ({of}) -> {}", ty(&larger));
                self.add(&larger, &op);
            }
            7 if rank == 2 => {
                let flat = [dims[0] * dims[1]];
                self.add(&flat, &format!("stablehlo.reshape {x} : ({of}) -> {}", ty(&flat)));
            }
            8 if rank > 0 => {
                let mut longer = dims;
                longer[0] *= 2;
                let op = format!("stablehlo.concatenate {x}, {x}, dim = 0 : ({of}, {of}) -> {}", ty(&longer));
                self.add(&longer, &op);
            }
            9 => self.add(&dims, &format!("stablehlo.negate {x} : {of}")),
            10 if rank > 0 => self.add(&dims, &format!("stablehlo.reverse {x}, dims = [0] : {of}")),
            _ => {
                let like: Vec<usize> = (0..self.values.len()).filter(|v| self.values[*v] == dims).collect();
                let (a, b) = (choices.of(&like), choices.of(&like));
                let number = self.values.len();
                let of_mask = of.replace("i32", "i1");
                let compare =
                    format!("%p{number} = stablehlo.compare LT, {x}, %v{a} : ({of}, {of}) -> {of_mask}\n");
                self.sharded += &compare;
                self.single += &compare;
                self.add(&dims, &format!("stablehlo.select %p{number}, %v{a}, %v{b} : {of_mask}, {of}"));
            }
        }
    }

    /// Encloses the operations in functions, which return the last values.
    fn finish(mut self, parameters: &[(String, String)], choices: &mut Choices<'_>) -> Self {
        let returned: Vec<usize> = (self.values.len().saturating_sub(3)..self.values.len()).collect();
        let types: Vec<String> = returned.iter().map(|v| ty(&self.values[*v])).collect();
        let stated: Vec<String> = (returned.iter().zip(&types))
            .map(|(value, ty)| {
                let sharding = self.sharding(&self.values[*value].clone(), true, choices);
                format!("{ty} {{sdy.sharding = #sdy.sharding{sharding}}}")
            })
            .collect();
        let names: Vec<String> = returned.iter().map(|v| format!("%v{v}")).collect();
        let end = format!("    return {} : {}\n  }}\n}}\n", names.join(", "), types.join(", "));
        let (with, without): (Vec<&str>, Vec<&str>) =
            parameters.iter().map(|(with, without)| (&**with, &**without)).unzip();
        let axes = self.axes.iter().enumerate().map(|(i, size)| format!("\"a{i}\"={size}"));
        let mesh = format!("  sdy.mesh @mesh = <[{}]>\n", axes.collect::<Vec<_>>().join(", "));
        let function = |parameters: &[&str], results: &[String], body: &str| {
            let results = results.join(", ");
            format!("  func.func public @main({}) -> ({results}) {{\n{body}{end}", parameters.join(", "))
        };
        self.sharded = format!("module {{\n{mesh}{}", function(&with, &stated, &self.sharded));
        self.single = format!("module {{\n{}", function(&without, &types, &self.single));
        self
    }
}

/// An array of the host, row-major.
#[derive(Clone, Debug, PartialEq)]
struct Host {
    dims: Vec<usize>,
    elements: Vec<i32>,
}

impl Host {
    fn from(array: &Array) -> Self {
        let elements = array.bytes().unwrap().chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap()));
        Self { dims: array.dims().to_vec(), elements: elements.collect() }
    }

    fn to_input(&self, runtime: &Runtime) -> Input {
        let bytes: Vec<u8> = self.elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        let array = Array::from_bytes(&runtime.allocator, DType::S32, &self.dims, &bytes).unwrap();
        Input { array, donatable: false }
    }

    /// Returns the indices of all elements, in order.
    fn indices(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
        (0..dims.iter().product()).map(|flat: usize| {
            let mut rest = flat;
            let mut index: Vec<usize> = dims.iter().rev().map(|size| (rest % size, rest /= size).0).collect();
            index.reverse();
            index
        })
    }

    fn position(dims: &[usize], index: &[usize]) -> usize {
        index.iter().zip(dims).fold(0, |flat, (i, size)| flat * size + i)
    }

    /// Reduces the first dimension.
    fn reduced(&self, reduction: Reduction) -> Self {
        let combine = |a: i32, b: i32| match reduction {
            Reduction::Sum => a.wrapping_add(b),
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
        };
        let dims = self.dims[1..].to_vec();
        let size: usize = dims.iter().product();
        let of = |i: usize| self.elements[i..].iter().step_by(size).copied().reduce(combine).unwrap();
        Self { elements: (0..size).map(of).collect(), dims }
    }

    /// Returns the shard of a partition, as the host passes it. Elements outside the array are arbitrary.
    fn shard(&self, sharding: Option<&Sharding>, partition: usize) -> Self {
        let Some(sharding) = sharding else { return self.clone() };
        let (starts, sizes) = (sharding.shard_starts(partition, &self.dims), sharding.shard_dims(&self.dims));
        let element = |index: Vec<usize>| {
            let index: Vec<usize> = index.iter().zip(&starts).map(|(i, start)| i + start).collect();
            let is_inside = index.iter().zip(&self.dims).all(|(i, size)| i < size);
            if is_inside { self.elements[Self::position(&self.dims, &index)] } else { -1_000_003 }
        };
        let elements = Self::indices(&sizes).map(element).collect();
        let hidden = usize::from(sharding.reduction.is_some());
        Self { elements, dims: sizes[hidden..].to_vec() }
    }

    /// Joins the shards of an array of these dimensions. Shards of the same part must be equal.
    fn joined(dims: &[usize], sharding: Option<&Sharding>, shards: &[Self]) -> Self {
        let Some(sharding) = sharding else {
            assert!(shards.iter().all(|shard| *shard == shards[0]), "copies differ: {shards:?}");
            return shards[0].clone();
        };
        let mut elements: Vec<Option<i32>> = vec![None; dims.iter().product()];
        for (partition, shard) in shards.iter().enumerate() {
            let (starts, sizes) = (sharding.shard_starts(partition, dims), sharding.shard_dims(dims));
            for (index, found) in Self::indices(&sizes).zip(&shard.elements) {
                let index: Vec<usize> = index.iter().zip(&starts).map(|(i, start)| i + start).collect();
                if index.iter().zip(dims).all(|(i, size)| i < size) {
                    let known = elements[Self::position(dims, &index)].get_or_insert(*found);
                    assert_eq!(*known, *found, "copies of the element {index:?} differ");
                }
            }
        }
        Self { dims: dims.to_vec(), elements: elements.into_iter().map(|x| x.expect("covered")).collect() }
    }
}

fn reduction_of(array: &ArrayInfo) -> Option<Reduction> {
    array.sharding.as_ref().and_then(|sharding| sharding.reduction)
}

/// Returns the reduction of an array that may have partial results along its first dimension.
fn reduced(array: &Host, info: &ArrayInfo) -> Host {
    reduction_of(info).map_or_else(|| array.clone(), |reduction| array.reduced(reduction))
}

fn results_of(compiled: &Compiled, runtime: &Runtime, lanes: Vec<Vec<Input>>) -> Vec<Vec<Host>> {
    let results = run(&compiled.plan, runtime, lanes, &RunOptions::default()).unwrap();
    results.iter().map(|of_lane| of_lane.iter().map(Host::from).collect()).collect()
}

/// Compiles a program, and compares what its three forms compute.
fn compare(program: &Program) {
    let text = &program.sharded;
    let parse = |text: &str| pjrt_stablehlo::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let partitions: usize = program.axes.iter().product();
    let options = |parts| CompileOptions {
        num_partitions: partitions,
        use_spmd_partitioning: true,
        parts,
        ..CompileOptions::default()
    };
    let module = parse(text);
    let compiled = |parts| compile(&module, &options(parts)).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let (whole, in_parts) = (compiled(Parts::Never), compiled(Parts::Always));
    let single = compile(&parse(&program.single), &CompileOptions::default()).unwrap();
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let number = |i: usize, seed: usize| ((i * 37 + seed * 11 + i * i * 3) % 23) as i32 - 11;
    let arguments: Vec<Host> = (whole.parameters.iter().enumerate())
        .map(|(seed, p)| {
            let dims = p.shape.dims.to_vec();
            Host { elements: (0..dims.iter().product()).map(|i| number(i, seed)).collect(), dims }
        })
        .collect();
    let infos = || arguments.iter().zip(&whole.parameters);
    let lane = infos().map(|(array, info)| reduced(array, info).to_input(&runtime)).collect();
    let expected = results_of(&single, &runtime, vec![lane]).remove(0);
    let lane = arguments.iter().map(|array| array.to_input(&runtime)).collect();
    let of_whole = results_of(&whole, &runtime, vec![lane]).remove(0);
    let lane = |partition: usize| {
        infos().map(|(array, p)| array.shard(p.sharding.as_ref(), partition).to_input(&runtime)).collect()
    };
    let lanes = results_of(&in_parts, &runtime, (0..partitions).map(lane).collect());
    for (k, info) in whole.results.iter().enumerate() {
        assert_eq!(reduced(&of_whole[k], info), expected[k], "result {k} on whole arrays:\n{text}");
        let shards: Vec<Host> = lanes.iter().map(|lane| lane[k].clone()).collect();
        let joined = Host::joined(&info.shape.dims, info.sharding.as_ref(), &shards);
        assert_eq!(reduced(&joined, info), expected[k], "result {k} in parts:\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn programs_with_unreduced_arrays_compute_what_one_device_computes(choices in prop::collection::vec(any::<u16>(), 8..80)) {
        compare(&Program::generate(&mut Choices { rest: choices.iter() }));
    }
}
