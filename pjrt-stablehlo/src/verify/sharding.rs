//! Shardy's shardings: of arguments and results of functions, and of operations.

use std::collections::HashMap;

use super::invalid_function;
use crate::ir::{
    Attribute, AxisRef, DictionaryAttribute, Function, Mesh, MeshReference, Module, Op, TensorSharding, Type,
};
use crate::{Error, ErrorKind};

/// The attribute that a sharding stands in, beside those of Shardy's own operations.
const NAME: &str = "sdy.sharding";

/// The sizes of a mesh's axes.
type Axes<'a> = HashMap<&'a str, i64>;

fn axes(mesh: &Mesh) -> Axes<'_> {
    mesh.axes.iter().map(|axis| (&*axis.name, axis.size)).collect()
}

/// Checks the shardings of the arguments and results of functions and of their operations.
pub(super) fn check(module: &Module) -> Result<(), Error> {
    let meshes = module.meshes().iter().map(|declaration| (&*declaration.name, axes(&declaration.mesh)));
    let meshes = meshes.collect();
    module.functions().iter().try_for_each(|function| check_function(&meshes, function))
}

fn check_function(meshes: &HashMap<&str, Axes<'_>>, function: &Function) -> Result<(), Error> {
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
    for (_, op) in body.ops() {
        let operands = || op.operands.to_vec();
        let results = || op.results.iter().collect::<Vec<_>>();
        let (name, shardings, values) = match &op.kind {
            Op::ShardingConstraint(own) => ("sharding", std::slice::from_ref(&own.sharding), results()),
            Op::Reshard(own) => ("sharding", std::slice::from_ref(&own.sharding), results()),
            Op::ManualComputation(own) => {
                // The rest of the operation is checked where its types are inferred.
                let pairs = own.in_shardings.iter().zip(operands());
                let problems = pairs.chain(own.out_shardings.iter().zip(results()));
                let mut problems =
                    problems.filter_map(|(sharding, value)| problem(meshes, sharding, body.ty(value)));
                match problems.next() {
                    Some(problem) => {
                        let error = Error::new(ErrorKind::Invalid, problem);
                        return Err(error.in_op(op.kind.name(), &op.location));
                    }
                    None => continue,
                }
            }
            _ => match op.attributes.get(NAME) {
                Some(Attribute::Sharding(sharding)) => (NAME, std::slice::from_ref(&**sharding), results()),
                Some(Attribute::ShardingPerValue(shardings)) => (NAME, &**shardings, results()),
                _ => continue,
            },
        };
        let problem = if shardings.len() == values.len() {
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

/// What is wrong with a sharding of a value of this type, if anything.
fn problem(meshes: &HashMap<&str, Axes<'_>>, sharding: &TensorSharding, ty: &Type) -> Option<String> {
    let own;
    let mesh = match &sharding.mesh {
        MeshReference::Mesh(mesh) => {
            own = axes(mesh);
            &own
        }
        MeshReference::Symbol(name) => match meshes.get(&**name) {
            Some(axes) => axes,
            None => return Some(format!("expected a mesh of the module, found '@{name}'")),
        },
    };
    let rank = match ty {
        Type::Tensor(tensor) => tensor.rank(),
        _ => 0,
    };
    let found = sharding.dim_shardings.len();
    if found != rank {
        return Some(format!("expected shardings of {rank} dimensions of {ty}, found {found}"));
    }
    let dims = sharding.dim_shardings.iter().flat_map(|dim| &dim.axes);
    let axes: Vec<&AxisRef> = dims.chain(&sharding.replicated_axes).chain(&sharding.unreduced_axes).collect();
    let mut parts: Vec<(&str, i64, i64)> = Vec::with_capacity(axes.len());
    for axis in axes {
        let (start, end) = match part(mesh, axis) {
            Ok(part) => part,
            Err(problem) => return Some(problem),
        };
        parts.push((&axis.name, start, end));
    }
    parts.sort_unstable();
    let is_overlap =
        |pair: &&[(&str, i64, i64)]| pair[0].0 == pair[1].0 && (pair[1].1 < pair[0].2 || pair[0] == pair[1]);
    let (name, _, _) = parts.windows(2).find(is_overlap)?[0];
    Some(format!("expected each axis once, found '{name}' more than once"))
}

/// The part of its mesh's axis that an axis stands for: products of sizes before it and including it.
fn part(mesh: &Axes<'_>, axis: &AxisRef) -> Result<(i64, i64), String> {
    let Some(&whole) = mesh.get(&*axis.name) else {
        return Err(format!("expected an axis of the mesh, found '{}'", axis.name));
    };
    let Some(sub_axis) = axis.sub_axis else { return Ok((1, whole)) };
    let (pre_size, size) = (sub_axis.pre_size, sub_axis.size);
    match pre_size.checked_mul(size) {
        Some(end) if pre_size >= 1 && size >= 1 && whole % end == 0 => Ok((pre_size, end)),
        _ => Err(format!(
            "expected a part of axis '{}' of size {}, found ({pre_size}){size}",
            axis.name, whole
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
        ] {
            with_sharding(valid).unwrap();
        }
        for (wrong, expected) in [
            (r#"@other, [{"x"}, {"y"}]"#, "expected a mesh of the module, found '@other'"),
            (r#"@mesh, [{"z"}, {}]"#, "expected an axis of the mesh, found 'z'"),
            (r#"@mesh, [{"x"}]"#, "expected shardings of 2 dimensions of tensor<8x4xf32>, found 1"),
            (r#"@mesh, [{"x"}, {"x"}]"#, "expected each axis once, found 'x' more than once"),
            (r#"@mesh, [{"x"}, {"x":(1)2}]"#, "expected each axis once, found 'x' more than once"),
            (r#"@mesh, [{"x"}, {}], replicated={"x"}"#, "expected each axis once, found 'x' more than once"),
            (r#"@mesh, [{"x":(2)3}, {}]"#, "expected a part of axis 'x' of size 4, found (2)3"),
        ] {
            let found = with_sharding(wrong).unwrap_err();
            assert!(found.contains(expected), "{wrong}: {found}");
        }
    }
}
