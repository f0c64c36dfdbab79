//! Products, matrix decompositions, transforms and normalizations.

use super::attributes::{dot_algorithm, dot_dimensions, ints, precisions};
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::{FftType, Op, TransposeKind, ValueId, ops};

impl Reader {
    pub(super) fn dot(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        if !at.proto.dot_sparsity.is_empty() {
            return Err(at.unsupported("sparse operands are not supported"));
        }
        let operands = at.arrays()?;
        let (lhs, rhs) = (at.tensor(&self.code, 0)?, at.tensor(&self.code, 1)?);
        let op = ops::DotGeneral {
            dot_dimension_numbers: dot_dimensions(
                &at.proto.dot_dimension_numbers.clone().unwrap_or_default(),
            ),
            precision_config: precisions(at)?,
            algorithm: dot_algorithm(at, lhs.element_type(), rhs.element_type())?,
        };
        Ok(vec![self.code.op_of_type(op, &operands, at.result()?)])
    }

    pub(super) fn fft(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let fft_type = u64::try_from(at.proto.fft_type).ok().and_then(FftType::from_code);
        let fft_type = fft_type.ok_or_else(|| {
            at.unsupported(format!("the FFT type code {} is not supported", at.proto.fft_type))
        })?;
        let op = ops::Fft { fft_type, fft_length: ints(&at.proto.fft_length) };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn cholesky(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let lower = at.proto.cholesky_options.as_ref().is_some_and(|options| options.lower);
        let op = ops::Cholesky { lower };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn triangular_solve(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let options = at.required("triangular_solve_options", &at.proto.triangular_solve_options)?;
        let transpose_a = match options.transpose_a {
            1 => TransposeKind::NoTranspose,
            2 => TransposeKind::Transpose,
            3 => TransposeKind::Adjoint,
            other => return Err(at.invalid(format!("transpose_a: expected 1, 2 or 3, found {other}"))),
        };
        let op = ops::TriangularSolve {
            left_side: options.left_side,
            lower: options.lower,
            unit_diagonal: options.unit_diagonal,
            transpose_a,
        };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn batch_norm(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let (epsilon, feature_index) = (at.proto.epsilon, at.proto.feature_index);
        let op = match &*at.proto.opcode {
            "batch-norm-training" => Op::BatchNormTraining(ops::BatchNormTraining { epsilon, feature_index }),
            "batch-norm-grad" => Op::BatchNormGrad(ops::BatchNormGrad { epsilon, feature_index }),
            _ => Op::BatchNormInference(ops::BatchNormInference { epsilon, feature_index }),
        };
        Ok(self.code.op_of_types(op, &at.arrays()?, at.shape.leaves()))
    }
}
