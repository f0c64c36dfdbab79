//! Lowers `sdy.manual_computation`, whose body runs once for each position of a mesh along the manual axes.

use super::partial::Terms;
use super::{CompileError, Result, Scope, shapes_of, to_usize};
use crate::graph::{Body, Builder, Graph, ManualSpec, Op as Core, Shape, ValueId, ops as core_ops};
use pjrt_sharding::mesh_of;
use pjrt_stablehlo::ir::{AxisRef, Mesh, OpId, Operation, Str, TensorSharding, ops};

impl<'m> Scope<'m> {
    pub(super) fn manual_computation(
        &mut self,
        id: OpId,
        op: &'m Operation,
        manual: &'m ops::ManualComputation,
    ) -> Result<Vec<ValueId>> {
        let block = self.region(id, 0)?;
        let mut operands = self.flat(&op.operands)?;
        let mut arguments: Vec<Shape> = Vec::new();
        for a in &block.arguments {
            arguments.extend(shapes_of(self.function.body.ty(*a))?);
        }
        let mut body = self.body(block, &arguments, &[])?;
        let mut shapes = self.result_shapes(op)?;
        let Some(first) = manual.in_shardings.iter().chain(&manual.out_shardings).next() else {
            return Ok(self.b.inline(&body, &operands));
        };
        let mesh = mesh_of(self.module, first)?;
        let axes = ManualAxes::new(mesh, &manual.manual_axes)?;
        let (terms_in, terms_out) =
            (axes.of_terms(&manual.in_shardings)?, axes.of_terms(&manual.out_shardings)?);
        let sizes = mesh.axes.iter().map(|a| to_usize(a.size)).collect::<Result<Vec<usize>>>()?;
        let (mut inputs, mut outputs) =
            (axes.of_dims(&manual.in_shardings)?, axes.of_dims(&manual.out_shardings)?);
        if terms_in.iter().chain(&terms_out).any(|axes| !axes.is_empty()) {
            let count = |axes: &[usize]| axes.iter().map(|a| sizes[*a]).product::<usize>();
            for (i, axes) in terms_in.iter().enumerate().filter(|(_, axes)| !axes.is_empty()) {
                let Some(operand) = operands.get_mut(i) else { break };
                let terms = Terms { count: count(axes), reduction: manual.in_shardings[i].reduction };
                *operand = self.as_terms(*operand, terms);
                arguments[i] = arguments[i].with_dims(&[&[1], &*arguments[i].dims].concat());
                inputs[i].insert(0, axes.clone());
            }
            for (i, axes) in terms_out.iter().enumerate().filter(|(_, axes)| !axes.is_empty()) {
                let Some(shape) = shapes.get_mut(i) else { break };
                *shape = shape.with_dims(&[&[count(axes)], &*shape.dims].concat());
                outputs[i].insert(0, axes.clone());
            }
            body = of_terms(&body, &terms_in, &terms_out);
        }
        let spec = ManualSpec {
            mesh: sizes,
            inputs,
            outputs,
            device_ids: mesh.device_ids.iter().map(|d| to_usize(*d)).collect::<Result<_>>()?,
            axes: axes.positions,
        };
        check(&spec, &operands.iter().map(|v| self.shape(*v)).collect::<Vec<_>>(), &arguments, &spec.inputs)?;
        let results: Vec<Shape> = body.results().iter().map(|r| body.shape(*r).clone()).collect();
        check(&spec, &shapes, &results, &spec.outputs)?;
        let core = Core::Manual(core_ops::Manual { spec: Box::new(spec), body: Body::new(body) });
        let mut results = self.b.node(core, operands, shapes);
        for (i, result) in results.iter_mut().enumerate().filter(|(i, _)| !terms_out[*i].is_empty()) {
            *result = self.reduce_terms(*result, manual.out_shardings[i].reduction);
        }
        Ok(results)
    }
}

/// The manual axes of a computation.
struct ManualAxes<'a> {
    mesh: &'a Mesh,
    /// Their positions in the mesh.
    positions: Vec<usize>,
}

impl<'a> ManualAxes<'a> {
    fn new(mesh: &'a Mesh, names: &[Str]) -> Result<Self> {
        let positions = names.iter().map(|name| position(mesh, name)).collect::<Result<_>>()?;
        Ok(Self { mesh, positions })
    }

    /// Returns the manual axes among these. Free axes do not split the array, since all devices share one global array.
    fn among(&self, axes: &[AxisRef]) -> Result<Vec<usize>> {
        let one = |axis: &AxisRef| match (position(self.mesh, &axis.name)?, axis.sub_axis) {
            (position, None) => Ok(position),
            (_, Some(_)) => Err(CompileError::unimplemented(
                "sub-axes of a mesh are not supported in a manual computation",
            )),
        };
        let all = axes.iter().map(one).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().filter(|axis| self.positions.contains(axis)).collect())
    }

    /// Returns, for each array and each of its dimensions, the manual axes that split it.
    fn of_dims(&self, shardings: &[TensorSharding]) -> Result<Vec<Vec<Vec<usize>>>> {
        let one = |s: &TensorSharding| s.dim_shardings.iter().map(|dim| self.among(&dim.axes)).collect();
        shardings.iter().map(one).collect()
    }

    /// Returns, for each array, the manual axes along which it is unreduced. An unreduced array has a new first dimension for its
    /// partial results.
    fn of_terms(&self, shardings: &[TensorSharding]) -> Result<Vec<Vec<usize>>> {
        shardings.iter().map(|s| self.among(&s.unreduced_axes)).collect()
    }
}

fn position(mesh: &Mesh, name: &str) -> Result<usize> {
    let position = mesh.axes.iter().position(|axis| &*axis.name == name);
    position.ok_or_else(|| {
        CompileError::invalid(format!(
            "the manual computation refers to the axis {name:?}, which its mesh does not have"
        ))
    })
}

/// Rebuilds a body so that unreduced parameters and results have a new first dimension of size 1.
fn of_terms(body: &Graph, parameters: &[Vec<usize>], results: &[Vec<usize>]) -> Graph {
    let mut b = Builder::new();
    let mut arguments = Vec::with_capacity(body.parameters().len());
    for (i, parameter) in body.parameters().iter().enumerate() {
        let shape = body.shape(*parameter).clone();
        arguments.push(if parameters.get(i).is_some_and(|axes| !axes.is_empty()) {
            let term = b.parameter(shape.with_dims(&[&[1], &*shape.dims].concat()));
            b.reshape(term, &shape.dims)
        } else {
            b.parameter(shape)
        });
    }
    let mut values = b.inline(body, &arguments);
    for (value, _) in values.iter_mut().zip(results).filter(|(_, axes)| !axes.is_empty()) {
        let dims = [&[1], &*b.shape(*value).dims].concat();
        *value = b.reshape(*value, &dims);
    }
    b.finish(values)
}

/// Checks that the parts of the whole arrays have the types of the body's arrays.
fn check(spec: &ManualSpec, whole: &[Shape], parts: &[Shape], cuts: &[Vec<Vec<usize>>]) -> Result<()> {
    let fits = |(whole, (part, cut)): (&Shape, (&Shape, &Vec<Vec<usize>>))| {
        let factors =
            (0..whole.rank()).map(|d| cut.get(d).map_or(1, |a| a.iter().map(|a| spec.mesh[*a]).product()));
        whole.dtype == part.dtype
            && whole.rank() == part.rank()
            && factors.enumerate().all(|(d, f): (usize, usize)| part.dims[d] * f == whole.dims[d])
    };
    let same = whole.len() == parts.len() && whole.len() == cuts.len();
    if same && whole.iter().zip(parts.iter().zip(cuts)).all(fits) {
        return Ok(());
    }
    Err(CompileError::invalid(format!(
        "the body has arrays {parts:?}, which are not the parts of {whole:?} along the mesh axes {cuts:?}"
    )))
}
