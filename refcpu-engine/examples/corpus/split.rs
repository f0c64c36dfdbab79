//! Splits a program for one device into a program for each of four devices, and runs that.

use anyhow::{Context, Result, ensure};
use pjrt_sharding::Sharding;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, DictionaryAttribute, Operation, Trait};
use refcpu_engine::compile::{ArrayInfo, CompileOptions, Compiled, Parts, compile, partitioned};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::Array;

const PARTITIONS: usize = 4;

/// A split program: the whole program, and the program of one partition.
pub(crate) struct Split {
    whole: Compiled,
    part: Plan,
    communicates: bool,
}

impl Split {
    /// Splits a program without shardings. Every argument is split along one or two of its dimensions if their sizes are even.
    /// `variant` selects the dimensions.
    pub(crate) fn new(module: &Module, variant: usize) -> Result<Self> {
        let options = CompileOptions {
            num_partitions: PARTITIONS,
            use_spmd_partitioning: true,
            propagate_to_results: vec![true],
            parts: Parts::Never,
            ..CompileOptions::default()
        };
        let module = with_shardings(module, variant)?;
        let whole = compile(&module, &options)?;
        let program = partitioned(&module, &options)?;
        // The program is printed and read, because hosts receive it as text.
        let program = pjrt_stablehlo::parse(program.to_string())
            .with_context(|| format!("the partitioned program cannot be read:\n{program}"))?;
        let is_collective = |op: &Operation| op.info().has(Trait::Collective);
        let mut functions = program.functions().iter();
        let communicates = functions.any(|function| function.body.all_ops().any(|(_, op)| is_collective(op)));
        let options = CompileOptions { use_spmd_partitioning: false, ..options };
        let part = compile(&program, &options);
        let part = part.with_context(|| format!("the partitioned program is\n{program}"))?.plan;
        Ok(Self { whole, part, communicates })
    }

    /// Returns whether the partitions communicate.
    pub(crate) fn communicates(&self) -> bool {
        self.communicates
    }

    /// Runs the program of all partitions. The arguments and the results are whole arrays.
    pub(crate) fn run(&self, runtime: &Runtime, inputs: &[Input]) -> Result<Vec<Array>> {
        let of_partition = |partition: usize| {
            let cut = |(input, parameter): (&Input, &ArrayInfo)| {
                let (starts, sizes) = part(parameter.sharding.as_ref(), &parameter.shape.dims, partition);
                let array = Array::window(&input.array, &starts, &sizes).dense(&runtime.allocator)?;
                Ok(Input { array, donatable: true })
            };
            inputs.iter().zip(&self.whole.parameters).map(cut).collect::<Result<Vec<_>>>()
        };
        let lanes = (0..PARTITIONS).map(of_partition).collect::<Result<Vec<_>>>()?;
        let results = run(&self.part, runtime, lanes, &RunOptions::default())?;
        let joined = |(k, result): (usize, &ArrayInfo)| {
            let dims = &result.shape.dims;
            let mut boxes: Vec<(Array, Vec<usize>)> = vec![];
            for (partition, results) in results.iter().enumerate() {
                let (starts, sizes) = part(result.sharding.as_ref(), dims, partition);
                ensure!(results[k].dims() == sizes, "a part of {:?}, not {sizes:?}", results[k].dims());
                // The last parts of a dimension may reach beyond the array.
                let ends = starts
                    .iter()
                    .zip(&sizes)
                    .zip(dims.iter())
                    .map(|((start, size), dim)| (start + size).min(*dim));
                let inside: Vec<usize> =
                    ends.zip(&starts).map(|(end, start)| end.saturating_sub(*start)).collect();
                if inside.contains(&0) && !dims.contains(&0) {
                    continue;
                }
                let array =
                    Array::window(&results[k], &vec![0; dims.len()], &inside).dense(&runtime.allocator)?;
                if let Some((other, _)) = boxes.iter().find(|(_, at)| *at == starts) {
                    ensure!(other.bytes() == array.bytes(), "partitions have different copies of result {k}");
                } else {
                    boxes.push((array, starts));
                }
            }
            let boxes: Vec<(&Array, &[usize])> = boxes.iter().map(|(a, at)| (a, at.as_slice())).collect();
            Ok(Array::assemble(&runtime.allocator, result.shape.dtype, dims, &boxes)?)
        };
        self.whole.results.iter().enumerate().map(joined).collect()
    }
}

/// Returns the start indices and the sizes of a partition's part. All parts have the size of the largest.
fn part(sharding: Option<&Sharding>, dims: &[usize], partition: usize) -> (Vec<usize>, Vec<usize>) {
    let Some(sharding) = sharding else { return (vec![0; dims.len()], dims.to_vec()) };
    let sizes: Vec<usize> =
        dims.iter().zip(&sharding.parts).map(|(size, parts)| size.div_ceil(*parts)).collect();
    let starts = sharding.position[partition].iter().zip(&sizes).map(|(index, size)| index * size).collect();
    (starts, sizes)
}

fn with_shardings(module: &Module, variant: usize) -> Result<Module> {
    let mut result = Module::new();
    result.name.clone_from(&module.name);
    result.attributes = module.attributes.clone();
    for function in module.functions() {
        let mut function = function.clone();
        if &*function.name == "main" {
            let sharding = |(i, ty): (usize, &pjrt_stablehlo::ir::Type)| {
                let dims = ty.as_tensor().and_then(|ty| ty.static_dims()).unwrap_or_default();
                let text = sharding(dims, variant + i);
                DictionaryAttribute::new(vec![(
                    "mhlo.sharding".into(),
                    Attribute::String(text.as_str().into()),
                )])
            };
            function.argument_attributes =
                function.argument_types().iter().enumerate().map(sharding).collect();
        }
        result.add_function(function).map_err(|_| anyhow::anyhow!("a function is there twice"))?;
    }
    Ok(result)
}

/// Returns a sharding in HLO's form on a mesh of 2 by 2. Each axis splits a dimension, which may be the same for both, if there
/// is one of even size.
fn sharding(dims: &[i64], variant: usize) -> String {
    let rank = dims.len();
    let mut parts = vec![1; rank];
    let mut axes: Vec<Option<usize>> = vec![None; 2];
    for (i, axis) in axes.iter_mut().enumerate() {
        let order = (0..rank).map(|d| (d + variant + i) % rank);
        let mut can = order.filter(|d| dims[*d] > 0 && dims[*d] % (2 * parts[*d]) == 0);
        *axis = can.next();
        if let Some(dim) = *axis {
            parts[dim] *= 2;
        }
    }
    if parts.iter().all(|parts| *parts == 1) {
        return "{replicated}".to_owned();
    }
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let copies = 4 / parts.iter().product::<i64>();
    let mut tiles = parts.clone();
    tiles.extend((copies > 1).then_some(copies));
    // The devices in the order of the tiles. The first axis is the major one of a dimension that both axes split.
    let mut devices: Vec<i64> = (0..4).collect();
    let part = |device: i64, dim: usize| {
        let bits = [device / 2, device % 2];
        (0..2).filter(|i| axes[*i] == Some(dim)).fold(0, |part, i| part * 2 + bits[i])
    };
    devices.sort_by_key(|device| (0..rank).fold(0, |tile, dim| tile * parts[dim] + part(*device, dim)));
    let last = if copies > 1 { " last_tile_dim_replicate" } else { "" };
    format!("{{devices=[{}]{}{last}}}", list(&tiles), list(&devices))
}
