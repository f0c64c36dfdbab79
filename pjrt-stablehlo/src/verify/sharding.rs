//! The shardings of Shardy: of arguments and results of functions, and of operations.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::invalid_function;
use crate::ir::ops::ManualComputation;
use crate::ir::{
    Attribute, AxisRef, Body, DYNAMIC, DictionaryAttribute, DimensionSharding, Function, Mesh, MeshReference,
    Module, Op, Operation, Str, TensorSharding, Type,
};
use crate::{Error, ErrorKind};

/// The discardable attribute with a sharding. Shardy's own operations have further attributes.
const NAME: &str = "sdy.sharding";

/// The axes of a mesh.
struct Axes<'a> {
    sizes: HashMap<&'a str, i64>,
    /// `true` if the mesh is a single device that holds whole values.
    is_maximal: bool,
}

/// The meshes of a module.
struct Meshes<'a> {
    named: HashMap<&'a str, Axes<'a>>,
    /// The meshes inside shardings that have been found valid. Values share shardings, and meshes can be large, so
    /// each is checked once.
    checked: RefCell<HashSet<*const Mesh>>,
}

impl Meshes<'_> {
    /// Returns the problem of an invalid mesh.
    fn problem(&self, mesh: &Mesh) -> Option<String> {
        let is_new = self.checked.borrow_mut().insert(std::ptr::from_ref(mesh));
        if is_new { mesh.problem() } else { None }
    }
}

fn axes(mesh: &Mesh) -> Axes<'_> {
    let sizes = mesh.axes.iter().map(|axis| (&*axis.name, axis.size)).collect();
    Axes { sizes, is_maximal: mesh.axes.is_empty() && mesh.device_ids.len() == 1 }
}

/// Checks the shardings of functions' arguments and results, and of operations.
pub(super) fn check(module: &Module) -> Result<(), Error> {
    let named = module.meshes().iter().map(|declaration| (&*declaration.name, axes(&declaration.mesh)));
    let meshes = Meshes { named: named.collect(), checked: RefCell::default() };
    module.functions().iter().try_for_each(|function| check_function(&meshes, function))
}

fn check_function(meshes: &Meshes<'_>, function: &Function) -> Result<(), Error> {
    let of_function =
        |what: &str, dictionaries: &[DictionaryAttribute], types: &[Type]| -> Result<(), Error> {
            for (index, (dictionary, ty)) in dictionaries.iter().zip(types).enumerate() {
                if let Some(Attribute::Sharding(sharding)) = dictionary.get(NAME)
                    && let Some(problem) = problem(meshes, sharding, ty)
                {
                    return Err(invalid_function(function, format!("{NAME} of {what} {index}: {problem}")));
                }
            }
            Ok(())
        };
    of_function("argument", &function.argument_attributes, &function.ty.inputs)?;
    of_function("result", &function.result_attributes, &function.ty.results)?;
    let body = &function.body;
    for (_, op) in body.all_ops() {
        let results = || op.results.iter().collect::<Vec<_>>();
        let (name, shardings, values) = match &op.kind {
            Op::ShardingConstraint(own) => ("sharding", std::slice::from_ref(&own.sharding), results()),
            Op::Reshard(own) => ("sharding", std::slice::from_ref(&own.sharding), results()),
            Op::ManualComputation(own) => {
                let problem = manual_problem(meshes, body, op, own);
                let error = problem.map(|problem| Error::new(ErrorKind::Invalid, problem));
                match error {
                    Some(error) => return Err(error.in_op(op.kind.name(), &op.location)),
                    None => continue,
                }
            }
            _ => match op.attributes.get(NAME) {
                Some(Attribute::Sharding(sharding)) => (NAME, std::slice::from_ref(&**sharding), results()),
                Some(Attribute::ShardingPerValue(shardings)) => (NAME, &**shardings, results()),
                _ => continue,
            },
        };
        // An operation without results may have a sharding of its own.
        let problem = if values.is_empty() && shardings.len() == 1 {
            None
        } else if shardings.len() == values.len() {
            shardings
                .iter()
                .zip(values)
                .find_map(|(sharding, value)| problem(meshes, sharding, body.ty(value)))
        } else {
            Some(format!(
                "expected a sharding for each of {} results, found {}",
                values.len(),
                shardings.len()
            ))
        };
        if let Some(problem) = problem {
            let error = Error::new(ErrorKind::Invalid, format!("{name}: {problem}"));
            return Err(error.in_op(op.kind.name(), &op.location));
        }
    }
    Ok(())
}

/// Returns the problem of an invalid manual computation. Its shardings apply to whole operands and results; the region
/// has their parts along the manual axes. The numbers of shardings have been checked.
fn manual_problem(
    meshes: &Meshes<'_>,
    body: &Body,
    op: &Operation,
    manual: &ManualComputation,
) -> Option<String> {
    let block = op.regions.first().and_then(|&region| body.region(region).blocks.first());
    let block = body.block(*block?);
    let returned = block.ops.last().map(|&last| &*body.op(last).operands).unwrap_or_default();
    let values = [
        ("argument", &manual.in_shardings, op.operands.to_vec(), &*block.arguments),
        ("returned value", &manual.out_shardings, op.results.iter().collect(), returned),
    ];
    for (what, shardings, wholes, parts) in values {
        for (index, ((sharding, whole), part)) in shardings.iter().zip(wholes).zip(parts).enumerate() {
            let (whole, part) = (body.ty(whole), body.ty(*part));
            let counts = match counts(meshes, sharding, whole, &manual.manual_axes) {
                Ok(counts) => counts,
                Err(problem) => return Some(problem),
            };
            let (Some(whole), Some(part)) = (whole.as_tensor(), part.as_tensor()) else { continue };
            let fits = whole.dims().iter().zip(part.dims()).zip(&counts).all(|((&whole, &part), &count)| {
                whole == DYNAMIC || part == DYNAMIC || (part.checked_mul(count) == Some(whole))
            });
            if !fits {
                return Some(format!(
                    "region 'body', {what} {index}: expected the part of {whole} that {counts:?} positions along the \
                     manual axes have, found {part}"
                ));
            }
        }
    }
    None
}

/// Returns the problem of an invalid sharding of a value.
fn problem(meshes: &Meshes<'_>, sharding: &TensorSharding, ty: &Type) -> Option<String> {
    counts(meshes, sharding, ty, &[]).err()
}

/// Returns the number of parts of each dimension of a value along the `manual` axes of its sharding.
///
/// # Errors
/// Returns the problem if the sharding is invalid.
fn counts(
    meshes: &Meshes<'_>,
    sharding: &TensorSharding,
    ty: &Type,
    manual: &[Str],
) -> Result<Vec<i64>, String> {
    let own;
    let mesh = match &sharding.mesh {
        MeshReference::Mesh(mesh) => {
            if let Some(problem) = meshes.problem(mesh) {
                return Err(problem);
            }
            own = axes(mesh);
            &own
        }
        MeshReference::Symbol(name) => match meshes.named.get(&**name) {
            Some(axes) => axes,
            None => return Err(format!("the module declares no mesh '@{name}'")),
        },
    };
    let rank = match ty {
        _ if mesh.is_maximal => 0,
        Type::Tensor(tensor) => tensor.rank(),
        // The sharding applies to the single element of the tuple.
        Type::Tuple(types) if types.len() == 1 => types[0].as_tensor().map_or(0, |tensor| tensor.rank()),
        _ => 0,
    };
    let found = sharding.dim_shardings.len();
    if found != rank {
        return Err(format!("expected shardings for the {rank} dimensions of {ty}, found {found}"));
    }
    let dims = sharding.dim_shardings.iter().flat_map(|dim| &dim.axes);
    let axes: Vec<&AxisRef> = dims.chain(&sharding.replicated_axes).chain(&sharding.unreduced_axes).collect();
    let mut parts: Vec<(&str, i64, i64)> = Vec::with_capacity(axes.len());
    for axis in axes {
        let (start, end) = part(mesh, axis)?;
        parts.push((&axis.name, start, end));
    }
    parts.sort_unstable();
    let is_overlap =
        |pair: &&[(&str, i64, i64)]| pair[0].0 == pair[1].0 && (pair[1].1 < pair[0].2 || pair[0] == pair[1]);
    if let Some([(name, _, _), _]) = parts.windows(2).find(is_overlap) {
        return Err(format!("the axis '{name}' occurs more than once"));
    }
    let count = |axis: &AxisRef| match part(mesh, axis) {
        Ok((start, end)) if manual.contains(&axis.name) => end / start,
        _ => 1,
    };
    let of_dimension = |dim: &DimensionSharding| dim.axes.iter().map(count).fold(1, i64::saturating_mul);
    Ok(sharding.dim_shardings.iter().map(of_dimension).collect())
}

/// Returns the part of the mesh's axis that a reference selects: the products of the sizes before it, and up to its
/// end.
fn part(mesh: &Axes<'_>, axis: &AxisRef) -> Result<(i64, i64), String> {
    let Some(&whole) = mesh.sizes.get(&*axis.name) else {
        return Err(format!("the mesh has no axis '{}'", axis.name));
    };
    let Some(sub_axis) = axis.sub_axis else { return Ok((1, whole)) };
    let (pre_size, size) = (sub_axis.pre_size, sub_axis.size);
    match pre_size.checked_mul(size) {
        Some(end) if pre_size >= 1 && size > 1 && size < whole && whole % end == 0 => Ok((pre_size, end)),
        _ => Err(format!(
            "the sub-axis ({pre_size}){size} is not a proper part of the axis '{}' of size {whole}",
            axis.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    fn with_sharding(sharding: &str) -> Result<(), String> {
        let text = format!(
            r#"module {{
              sdy.mesh @mesh = <["x"=4, "y"=2]>
              sdy.mesh @one = <[], device_ids=[0]>
              func.func @main(%a: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<{sharding}>}}) -> tensor<8x4xf32> {{
                return %a : tensor<8x4xf32>
              }}
            }}"#
        );
        parse(text.as_str()).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn shardings_name_meshes_and_axes_that_there_are() {
        for valid in [
            r#"@mesh, [{"x"}, {"y"}]"#,
            r#"@mesh, [{"x", ?}, {}]"#,
            r#"@mesh, [{"x":(1)2}, {"x":(2)2}]"#,
            r#"@mesh, [{}, {}], replicated={"x"}"#,
            r#"mesh<["z"=2]>, [{"z"}, {}]"#,
            r#"@one, []"#,
            r#"mesh<[], device_ids=[3]>, []"#,
        ] {
            with_sharding(valid).unwrap();
        }
        for (wrong, expected) in [
            (r#"@other, [{"x"}, {"y"}]"#, "the module declares no mesh '@other'"),
            (r#"@mesh, [{"z"}, {}]"#, "the mesh has no axis 'z'"),
            (r#"@mesh, [{"x"}]"#, "expected shardings for the 2 dimensions of tensor<8x4xf32>, found 1"),
            (r#"@mesh, [{"x"}, {"x"}]"#, "the axis 'x' occurs more than once"),
            (r#"@mesh, [{"x"}, {"x":(1)2}]"#, "the axis 'x' occurs more than once"),
            (r#"@mesh, [{"x"}, {}], replicated={"x"}"#, "the axis 'x' occurs more than once"),
            (
                r#"@mesh, [{"x":(1)4}, {}]"#,
                "the sub-axis (1)4 is not a proper part of the axis 'x' of size 4",
            ),
            (r#"@one, [{}, {}]"#, "expected shardings for the 0 dimensions of tensor<8x4xf32>, found 2"),
            (
                r#"@mesh, [{"x":(2)3}, {}]"#,
                "the sub-axis (2)3 is not a proper part of the axis 'x' of size 4",
            ),
        ] {
            let found = with_sharding(wrong).unwrap_err();
            assert!(found.contains(expected), "{wrong}: {found}");
        }
    }

    #[test]
    fn what_calls_the_host_is_on_one_device() {
        let text = r#"module {
          sdy.mesh @one = <[], device_ids=[0]>
          func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
            stablehlo.custom_call @print(%a) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8x4xf32>) -> ()
            %0 = stablehlo.custom_call @call(%a) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
            return %0 : tensor<8x4xf32>
          }
        }"#;
        parse(text).unwrap();
        let twice = text.replacen("<[<@one, []>]>", "<[<@one, []>, <@one, []>]>", 1);
        let error = parse(twice.as_str()).unwrap_err().to_string();
        assert!(error.contains("expected a sharding for each of 0 results, found 2"), "{error}");
    }

    #[test]
    fn manual_computations_have_the_parts_that_their_shardings_say() {
        let with_parts = |size: usize| {
            let text = format!(
                r#"module {{
                  sdy.mesh @mesh = <["x"=4, "y"=2]>
                  func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {{
                    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x", "y"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x"}} (%p: tensor<{size}x4xf32>) {{
                      sdy.return %p : tensor<{size}x4xf32>
                    }} : (tensor<8x4xf32>) -> tensor<8x4xf32>
                    return %0 : tensor<8x4xf32>
                  }}
                }}"#
            );
            parse(text.as_str()).map(|_| ()).map_err(|error| error.to_string())
        };
        with_parts(2).unwrap();
        for wrong in [1, 4, 8] {
            let error = with_parts(wrong).unwrap_err();
            assert!(error.contains("argument 0: expected the part of tensor<8x4xf32>"), "{error}");
        }
    }
}
