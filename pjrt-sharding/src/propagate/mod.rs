//! Sharding propagation: derives the shardings that a program does not state.
//!
//! The [rule](crate::rule) of an operation relates dimensions of its operands and results. All tensors of an elementwise
//! addition, for example, can be split in the same way. The shardings that the program states are propagated along these
//! relations until nothing changes. [`relation`] describes the order, which is that of Shardy.
//!
//! Within the program, a split may have parts of different sizes. Only equal parts that consist of whole parts of the split are
//! used, and for the parameters and results only those along whole axes of the mesh, since most hosts cannot describe others.

mod flow;
mod gspmd;
mod relation;
#[cfg(test)]
mod tests;

use crate::cut::{Cut, coarse, is_along_axes};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::{is_for_gspmd, splits_along_axes};
use crate::options::Options;
use crate::rule::common_divisor;
use crate::said::Said;
use crate::sharding::Sharding;
use crate::split::{Split, are_spread_evenly};
use flow::Flow;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function, Type, ValueId};
use relation::{STAGES, Strategy, TensorId};
use std::collections::HashMap;

/// The shardings of the arrays of a program's parameters and results, which [`propagate`](propagate()) returns and
/// [`partition`](crate::partition()) takes.
///
/// The example of [`propagate`](propagate()) reads them.
#[derive(Clone, Debug, Default)]
pub struct Shardings {
    /// The sharding of each parameter of `main`; `None` if every partition holds the whole array. A tuple has one entry for
    /// each of its arrays.
    pub parameters: Vec<Option<Sharding>>,
    /// The sharding of each result of `main`, in the same form.
    pub results: Vec<Option<Sharding>>,
    /// The shardings that the program inspects with `InspectSharding` custom calls, each with the name in the configuration of the
    /// call; `None` if every partition has the whole array.
    pub inspected: Vec<(String, Option<Sharding>)>,
    /// The layouts of the values of `main` that are split.
    pub(crate) values: HashMap<ValueId, Layout>,
}

/// Derives the shardings of all arrays of `main` from those that the program states.
///
/// The program states shardings as attributes of parameters and results (`sdy.sharding`, `mhlo.sharding`), as sharding
/// constraints and groups, and as the shardings of manual computations. They are propagated through all operations, and into
/// loops and branches. Calls must be inlined first, for example by [`pjrt_stablehlo::passes`].
///
/// ```
/// use pjrt_sharding::{Options, propagate};
///
/// let module = pjrt_stablehlo::parse(
///     r#"sdy.mesh @mesh = <["x"=2]>
///     func.func @main(%a: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<2x8xf32> {
///       %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x2xf32>) -> tensor<2x8xf32>
///       return %0 : tensor<2x8xf32>
///     }"#,
/// )?;
/// let options = Options { num_partitions: 2, propagate_to_results: vec![true], ..Options::default() };
/// let shardings = propagate(&module, &options)?;
/// assert_eq!(shardings.results[0].as_ref().unwrap().parts, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the module has no function `main`, or if a sharding does not
/// fit its array; or [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the form of a sharding is not supported,
/// or if the program contains calls.
pub fn propagate(module: &Module, options: &Options) -> Result<Shardings> {
    propagate_with(module, options, &HashMap::new())
}

/// Does the same as [`propagate`] with known shardings of results of the custom calls that the host partitions.
pub(crate) fn propagate_with(
    module: &Module,
    options: &Options,
    inferred: &HashMap<ValueId, Sharding>,
) -> Result<Shardings> {
    let main = module.main().ok_or_else(|| Error::invalid("the module has no function named main"))?;
    let entry = main.body.entry().ok_or_else(|| Error::invalid("the function main has no body"))?;
    let mut flow = Flow::new(module, &main.body, options, inferred);
    flow.define(main.body.block(entry).arguments.iter().copied());
    let parameters = flow.flat(main.body.block(entry).arguments.iter().copied())?;
    if options.shared_by() == 1 {
        let results = main.result_types().iter().map(arrays_of).sum();
        return Ok(Shardings {
            parameters: vec![None; parameters.len()],
            results: vec![None; results],
            ..Shardings::default()
        });
    }
    let results = flow.block(entry)?;
    let parameters = Interface::parameters(module, main, options, &flow, parameters)?;
    let results = Interface::results(module, main, options, &flow, results)?;
    let mut splits = stated(&mut flow, &parameters, &results);
    let axes = axes_of(module, options, &splits);
    spread(&flow, &mut splits);
    let layout = |tensor: TensorId| {
        let dims = splits[tensor].dims.clone();
        Layout { dims, partial: None }.equal_parts(&flow.tensors[tensor])
    };
    let unequal = |tensor: TensorId| {
        Layout { dims: splits[tensor].dims.clone(), partial: None }.sharding(options.num_partitions)
    };
    let sharding = |tensor: TensorId| {
        let (found, sizes) = (&splits[tensor].dims, &flow.tensors[tensor]);
        let whole_axes = |(cut, size): (&Option<Cut>, &usize)| along_whole_axes(cut.as_ref()?, *size, &axes);
        let dims: Vec<_> = found.iter().zip(sizes).map(whole_axes).collect();
        // XLA's GSPMD partitioner splits an array equally along all of these dimensions or along none.
        if dims != *found && is_for_gspmd(module) {
            return None;
        }
        Layout { dims, partial: None }.sharding(options.num_partitions)
    };
    let values = flow.of_value.iter().filter_map(|(value, tensors)| match tensors[..] {
        [tensor] => Some((*value, layout(tensor))).filter(|(_, layout)| !layout.is_whole()),
        _ => None,
    });
    // XLA's GSPMD partitioner checks the parts of results only if it has a flag for each of them.
    let keeps_unequal = is_for_gspmd(module) && options.propagate_to_results.len() != results.arrays.len();
    let results = if keeps_unequal { results.chosen(unequal) } else { results.chosen(sharding) };
    let parameters = parameters.chosen(sharding);
    let inspected = std::mem::take(&mut flow.given.inspected);
    Ok(Shardings {
        values: values.collect(),
        inspected: inspected.into_iter().map(|(name, tensor)| (name, sharding(tensor))).collect(),
        parameters,
        results,
    })
}

/// Returns the splits along which hosts can describe the shardings of arrays: those along the axes of the program's meshes, and
/// those that the program states.
fn axes_of(module: &Module, options: &Options, stated: &[Split]) -> Vec<Cut> {
    let mut axes = splits_along_axes(module, options.num_partitions);
    for cut in stated.iter().flat_map(|split| &split.dims).flatten() {
        if !axes.contains(cut) {
            axes.push(cut.clone());
        }
    }
    axes
}

/// Returns the finest split of a dimension of this size into equal parts that consist of whole parts of `cut` and that are along
/// whole axes.
fn along_whole_axes(cut: &Cut, size: usize, axes: &[Cut]) -> Option<Cut> {
    let most = if size == 0 { 1 } else { common_divisor(size, cut.parts) };
    let equal = (2..=most).rev().filter(|parts| size.is_multiple_of(*parts));
    equal.filter_map(|parts| coarse(cut, parts)).find(|cut| is_along_axes(cut, axes))
}

/// Returns the number of arrays in a value of this type.
fn arrays_of(ty: &Type) -> usize {
    match ty {
        Type::Tuple(parts) | Type::Future(parts) => parts.iter().map(arrays_of).sum(),
        _ => 1,
    }
}

/// A function that returns an attribute of one of a function's parameters or results.
type Lookup = for<'f> fn(&'f Function, usize, &str) -> Option<&'f Attribute>;

/// The parameters or the results of `main`.
struct Interface {
    /// The arrays, each with the sharding that its attributes state.
    arrays: Vec<(TensorId, Option<Said>)>,
    /// For each array, whether it may be split if its attributes state no sharding.
    may_be_split: Vec<bool>,
}

impl Interface {
    fn parameters(
        module: &Module,
        main: &Function,
        options: &Options,
        flow: &Flow<'_>,
        tensors: Vec<TensorId>,
    ) -> Result<Self> {
        // Attributes belong to arguments. After tuples are flattened, they cannot be assigned to arrays.
        let lookup: Option<Lookup> =
            (main.argument_types().len() == tensors.len()).then_some(Function::argument_attribute);
        let allowed = &options.propagate_to_parameters;
        Self::new(module, main, lookup, allowed, flow, options.num_partitions, tensors)
    }

    fn results(
        module: &Module,
        main: &Function,
        options: &Options,
        flow: &Flow<'_>,
        tensors: Vec<TensorId>,
    ) -> Result<Self> {
        let lookup: Option<Lookup> =
            (main.result_types().len() == tensors.len()).then_some(Function::result_attribute);
        let allowed = &options.propagate_to_results;
        Self::new(module, main, lookup, allowed, flow, options.num_partitions, tensors)
    }

    fn new(
        module: &Module,
        main: &Function,
        lookup: Option<Lookup>,
        allowed: &[bool],
        flow: &Flow<'_>,
        partitions: usize,
        tensors: Vec<TensorId>,
    ) -> Result<Self> {
        let may_be_split = |i: usize| match allowed {
            [all] => *all,
            each => each.get(i).copied().unwrap_or(false),
        };
        let said = |(i, tensor): (usize, TensorId)| {
            let Some(lookup) = lookup else { return Ok((tensor, None)) };
            let attribute = |name: &str| lookup(main, i, name);
            Ok((tensor, Said::of_attributes(module, attribute, &flow.tensors[tensor], partitions)?))
        };
        let may_be_split = (0..tensors.len()).map(may_be_split).collect();
        Ok(Self { arrays: tensors.into_iter().enumerate().map(said).collect::<Result<_>>()?, may_be_split })
    }

    /// Returns the final sharding of each array: the stated one, refined or replaced by the derived one where that is allowed.
    fn chosen(&self, found: impl Fn(TensorId) -> Option<Sharding>) -> Vec<Option<Sharding>> {
        let one = |((tensor, said), may_be_split): (&(TensorId, Option<Said>), &bool)| match said {
            None => found(*tensor).filter(|_| *may_be_split),
            Some(Said { sharding: None, open }) => found(*tensor).filter(|_| open.contains(&true)),
            Some(Said { sharding: Some(sharding), open }) => {
                let finer = found(*tensor).filter(|_| open.contains(&true));
                finer.and_then(|found| finer_of(sharding, &found)).or_else(|| Some(sharding.clone()))
            }
        };
        self.arrays.iter().zip(&self.may_be_split).map(one).collect()
    }
}

/// Returns the derived sharding if it is compatible with the stated one and splits further dimensions.
fn finer_of(said: &Sharding, found: &Sharding) -> Option<Sharding> {
    let rank = found.parts.len();
    let (said, mut layout) = (Layout::of(Some(said), rank), Layout::of(Some(found), rank));
    let is_finer = said.dims.iter().zip(&layout.dims).all(|(said, found)| said.is_none() || said == found);
    layout.partial = said.partial;
    (is_finer && are_spread_evenly(&layout.cuts().collect::<Vec<_>>()))
        .then(|| layout.sharding(found.position.len()))
        .flatten()
}

/// Returns the splits of all tensors as the program states them, and relates the tensors of each group.
fn stated(flow: &mut Flow<'_>, parameters: &Interface, results: &Interface) -> Vec<Split> {
    let given = std::mem::take(&mut flow.given);
    let mut splits: Vec<Option<Split>> = vec![None; flow.tensors.len()];
    let mut give = |tensor: TensorId, split: Split| {
        splits[tensor].get_or_insert(split);
    };
    given.manual_results.into_iter().for_each(|(tensor, split)| give(tensor, split));
    for ((tensor, said), may_be_split) in parameters.arrays.iter().zip(&parameters.may_be_split) {
        match said {
            Some(said) => give(*tensor, said.split()),
            // The constraints in the program determine its split.
            None if *may_be_split => {}
            None => give(*tensor, Split::whole(flow.tensors[*tensor].len())),
        }
    }
    given.constraints.into_iter().for_each(|(tensor, split)| give(tensor, split));
    for (tensor, said) in &results.arrays {
        said.iter().for_each(|said| give(*tensor, said.split()));
    }
    given.manual_operands.into_iter().for_each(|(tensor, split)| give(tensor, split));
    flow.given.inspected = given.inspected;
    for group in given.groups.values() {
        flow.alike(group);
    }
    let splits = splits.into_iter().zip(&flow.tensors);
    splits.map(|(split, dims)| split.unwrap_or_else(|| Split::open(dims.len()))).collect()
}

/// Propagates splits along all relations, in the order of the stages.
fn spread(flow: &Flow<'_>, splits: &mut [Split]) {
    let mut users: Vec<Vec<usize>> = vec![vec![]; splits.len()];
    for (i, relation) in flow.relations.iter().enumerate() {
        relation.tensors.iter().flatten().for_each(|tensor| users[*tensor].push(i));
    }
    // The relations that may change splits by each strategy: those of a tensor that changed since, and those that move splits in
    // other directions than in the stage before.
    let mut is_due = [vec![true; flow.relations.len()], vec![true; flow.relations.len()]];
    for stage in 0..STAGES {
        for (i, _) in flow.relations.iter().enumerate().filter(|(_, relation)| relation.turns(stage)) {
            is_due.iter_mut().for_each(|due| due[i] = true);
        }
        for (which, strategy) in [Strategy::Common, Strategy::Each].into_iter().enumerate() {
            while is_due[which].contains(&true) {
                for (i, relation) in flow.relations.iter().enumerate() {
                    if !std::mem::take(&mut is_due[which][i]) {
                        continue;
                    }
                    let changed = relation.spread(splits, stage, strategy);
                    for user in changed.iter().flat_map(|tensor| &users[*tensor]) {
                        is_due.iter_mut().for_each(|due| due[*user] = true);
                    }
                }
            }
        }
    }
}
