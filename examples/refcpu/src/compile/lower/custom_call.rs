//! The custom calls that programs from JAX make on a platform without kernels of its own.

use super::{CompileError, Result, Scope};
use crate::graph::{Op as Core, ValueId};
use pjrt_stablehlo::ir::{Operation, ops};

impl Scope<'_> {
    /// Lowers a custom call by the name of its target.
    pub(super) fn custom_call(&mut self, op: &Operation, call: &ops::CustomCall) -> Result<Vec<ValueId>> {
        let operands = self.flat(&op.operands)?;
        let shapes = self.result_shapes(op)?;
        match &*call.call_target_name {
            // These say where data should be; here it is all in one place.
            "Sharding"
            | "SPMDFullToShardShape"
            | "SPMDShardToFullShape"
            | "annotate_device_placement"
            | "LayoutConstraint"
            | "MoveToHost"
            | "MoveToDevice"
                if operands.len() == shapes.len()
                    && operands.iter().zip(&shapes).all(|(v, s)| self.b.shape(*v) == s) =>
            {
                Ok(operands)
            }
            "Qr" if operands.len() == 1 && shapes.len() == 2 => {
                Ok(self.b.node(Core::QrFactor, operands, shapes))
            }
            "ProductOfElementaryHouseholderReflectors" if operands.len() == 2 && shapes.len() == 1 => {
                Ok(self.b.node(Core::QrProduct, operands, shapes))
            }
            target => Err(CompileError::unimplemented(format!("there is no custom call target {target:?}"))),
        }
    }
}
