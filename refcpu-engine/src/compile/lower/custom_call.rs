//! Lowers custom calls: those that JAX uses on a platform without its own kernels, and calls of the host's handlers.

use super::linalg::linalg_op;
use super::{CompileError, Result, Scope};
use crate::compile::api::{CompileErrorKind, CompileOptions};
use crate::graph::{Body, Op as Core, Shape, ValueId, ops as core_ops};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{
    Attribute, BackendConfig, CustomCallApiVersion, DictionaryAttribute, Op, Operation, ops,
};
use refcpu_kernels::linalg::LinalgOp;

/// Returns the dictionary with a call's parameters. JAX stores it in a separate attribute if the program must be readable by
/// versions of StableHLO in which `backend_config` is a string.
pub(crate) fn parameters<'a>(
    op: &'a Operation,
    call: &'a ops::CustomCall,
) -> Option<&'a DictionaryAttribute> {
    match &call.backend_config {
        BackendConfig::Dictionary(entries) => Some(entries),
        _ => op.attributes.get("mhlo.backend_config").and_then(Attribute::as_dictionary),
    }
}

/// Returns whether a call is of a handler of the host.
fn is_of_handler(op: &Operation, call: &ops::CustomCall, options: &CompileOptions) -> bool {
    let typed = call.api_version == CustomCallApiVersion::TypedFfi || parameters(op, call).is_some();
    typed && (options.has_handler)(&call.call_target_name)
}

/// Returns whether a program communicates with the host or calls its handlers.
pub(crate) fn calls_the_host(module: &Module, options: &CompileOptions) -> bool {
    let mut all = module.functions().iter().flat_map(|function| function.body.all_ops());
    all.any(|(_, op)| match &op.kind {
        Op::Send(o) => o.is_host_transfer,
        Op::Recv(o) => o.is_host_transfer,
        Op::CustomCall(call) => is_of_handler(op, call, options),
        _ => false,
    })
}

/// Returns whether a call of `Eigh` reads the lower triangle, from its configuration `lower,sort_eigenvalues,max_iter,tol`. The
/// other values have no effect: eigenvalues are always sorted, and computed to full precision.
fn eigh_lower(config: &BackendConfig) -> Result<bool> {
    let text = match config {
        BackendConfig::Bytes(bytes) => &**bytes,
        _ => b"",
    };
    match text.split(|byte| *byte == b',').next() {
        Some(b"0") => Ok(false),
        Some(b"1") => Ok(true),
        _ => Err(CompileError::invalid(
            "Eigh requires a backend_config of the form \"lower,sort,max_iter,tol\", such as \"1,1,100,1e-6\", with lower \
             0 or 1"
                .to_owned(),
        )),
    }
}

/// Returns whether a call only constrains the order of execution: it keeps its operands alive, or orders their computations,
/// which run in program order anyway.
fn is_about_order(op: &Operation, call: &ops::CustomCall) -> bool {
    op.results.is_empty() && matches!(&*call.call_target_name, "dce_sink" | "control_dep")
}

impl Scope<'_> {
    /// Lowers a custom call by its target.
    pub(super) fn custom_call(&mut self, op: &Operation, call: &ops::CustomCall) -> Result<Vec<ValueId>> {
        let operands = self.flat(&op.operands)?;
        let shapes = self.result_shapes(op)?;
        if is_of_handler(op, call, self.options) {
            return self.foreign_call(op, call, &operands, &shapes, None);
        }
        match &*call.call_target_name {
            // A sharding has no effect on whole arrays.
            "Sharding" if self.are_first(&operands, &shapes) => {
                Ok(operands.into_iter().take(shapes.len()).collect())
            }
            // These state the placement of data, which is always in the same memory here.
            "SPMDFullToShardShape"
            | "SPMDShardToFullShape"
            | "annotate_device_placement"
            | "LayoutConstraint"
            | "MoveToHost"
            | "MoveToDevice"
                if operands.len() == shapes.len() && self.are_first(&operands, &shapes) =>
            {
                Ok(operands)
            }
            "InspectSharding" if operands.len() == 1 && shapes.len() <= 1 => {
                Ok(operands.into_iter().take(shapes.len()).collect())
            }
            _ if is_about_order(op, call) => Ok(vec![]),
            "Qr" if operands.len() == 1 && shapes.len() == 2 => {
                Ok(self.b.node(Core::QrFactor, operands, shapes))
            }
            "ProductOfElementaryHouseholderReflectors" if operands.len() == 2 && shapes.len() == 1 => {
                Ok(self.b.node(Core::QrProduct, operands, shapes))
            }
            // The form of XLA's builder, which PyTorch/XLA uses. The results are the eigenvectors and the eigenvalues.
            "Eigh" if operands.len() == 1 => {
                self.linalg(LinalgOp::Eigh { lower: eigh_lower(&call.backend_config)? }, operands, &shapes)
            }
            "ApproxTopK" if operands.len() == 4 && shapes.len() == 2 => {
                self.approx_top_k(op, call, &operands, shapes)
            }
            target => match linalg_op(target, parameters(op, call))? {
                Some(linalg) => self.linalg(linalg, operands, &shapes),
                None => match self.lapack(call, parameters(op, call), &operands, &shapes) {
                    Err(error) if error.kind == CompileErrorKind::InvalidArgument => {
                        self.foreign_call(op, call, &operands, &shapes, Some(error))
                    }
                    found => found?.ok_or_else(|| {
                        CompileError::unimplemented(format!(
                            "there is no custom call target {target:?}, and the host has registered no handler of that name and no partitioner"
                        ))
                    }),
                },
            },
        }
    }

    /// Returns whether the types of the results are those of the first operands. Further operands are sizes that were dynamic.
    fn are_first(&self, operands: &[ValueId], shapes: &[Shape]) -> bool {
        operands.len() >= shapes.len() && operands.iter().zip(shapes).all(|(v, s)| self.b.shape(*v) == s)
    }

    /// Adds an operation of linear algebra.
    ///
    /// # Errors
    /// Returns an error if the operation does not accept these operands, or if the types of its results differ from `shapes`.
    fn linalg(&mut self, op: LinalgOp, operands: Vec<ValueId>, shapes: &[Shape]) -> Result<Vec<ValueId>> {
        let results = self.linalg_results(op, operands)?;
        if !results.iter().map(|v| self.b.shape(*v)).eq(shapes) {
            let expected: Vec<_> = results.iter().map(|v| self.shape(*v).to_string()).collect();
            return Err(CompileError::invalid(format!(
                "the results must have the types ({})",
                expected.join(", ")
            )));
        }
        Ok(results)
    }

    /// Adds an operation of linear algebra, whose results have the types that follow from the operands.
    ///
    /// # Errors
    /// Returns an error if the operation does not accept these operands.
    pub(super) fn linalg_results(&mut self, op: LinalgOp, operands: Vec<ValueId>) -> Result<Vec<ValueId>> {
        let types: Vec<_> = operands.iter().map(|v| self.b.shape(*v)).map(|s| (s.dtype, &*s.dims)).collect();
        let results = op.results(&types).map_err(CompileError::invalid)?;
        let shapes = results.iter().map(|(dtype, dims)| Shape::new(*dtype, dims)).collect();
        Ok(self.b.node(Core::Linalg(op), operands, shapes))
    }

    /// Lowers `ApproxTopK`: the first elements along a dimension by a comparator, with their indices. The results are exact.
    /// The operands are the values, the indices, and the initial values of both.
    fn approx_top_k(
        &mut self,
        op: &Operation,
        call: &ops::CustomCall,
        operands: &[ValueId],
        shapes: Vec<Shape>,
    ) -> Result<Vec<ValueId>> {
        let dim = parameters(op, call).and_then(|d| d.get("reduction_dim")).and_then(Attribute::as_i64);
        let from = self.shape(operands[0]);
        let dim = dim
            .and_then(|d| usize::try_from(if d < 0 { d + from.rank() as i64 } else { d }).ok())
            .filter(|d| *d < from.rank())
            .ok_or_else(|| {
                CompileError::invalid(format!(
                    "ApproxTopK requires a reduction_dim that is a dimension of its operands, which have {}",
                    from.rank()
                ))
            })?;
        let [comparator] = &*call.called_computations else {
            return Err(CompileError::invalid(format!(
                "ApproxTopK requires exactly one called computation, the comparator; found {}",
                call.called_computations.len()
            )));
        };
        let scalars: Vec<Shape> = operands[..2]
            .iter()
            .flat_map(|v| {
                let one = Shape::scalar(self.b.shape(*v).dtype);
                [one.clone(), one]
            })
            .collect();
        let comparator = self.function_body(comparator, &scalars)?;
        let sorted = vec![self.shape(operands[0]), self.shape(operands[1])];
        let sort = Core::SortBy(core_ops::SortBy { dim, comparator: Body::new(comparator) });
        let sorted = self.b.node(sort, operands[..2].to_vec(), sorted);
        let start = vec![0; from.rank()];
        sorted
            .into_iter()
            .zip(shapes)
            .map(|(v, shape)| {
                let fits = shape.rank() == from.rank()
                    && (0..from.rank()).all(|d| {
                        if d == dim { shape.dims[d] <= from.dims[d] } else { shape.dims[d] == from.dims[d] }
                    });
                if !fits {
                    return Err(CompileError::invalid(format!(
                        "ApproxTopK of {from} cannot have a result of type {shape}"
                    )));
                }
                Ok(self.b.slice(v, &start, &shape.dims))
            })
            .collect()
    }
}
