//! Random numbers.

use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::{ElementType, RngAlgorithm, RngDistribution, ValueId, ops};

impl Reader {
    pub(super) fn rng(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let distribution = u64::try_from(at.proto.distribution).ok();
        let distribution = distribution.and_then(RngDistribution::from_code).ok_or_else(|| {
            at.unsupported(format!("the random distribution code {} is not supported", at.proto.distribution))
        })?;
        let result = at.result_tensor()?;
        let Some(dims) = result.static_dims() else {
            return Err(at.unsupported(format!("random numbers of dynamic shape {result} are not supported")));
        };
        let (a, b) = (at.array(0)?, at.array(1)?);
        let shape = self.code.integers(dims, ElementType::I64);
        let op = ops::Rng { rng_distribution: distribution };
        Ok(vec![self.code.op_of_type(op, &[a, b, shape], result.clone())])
    }

    pub(super) fn rng_bit_generator(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let algorithm = u64::try_from(at.proto.rng_algorithm).ok().and_then(RngAlgorithm::from_code);
        let algorithm = algorithm.ok_or_else(|| {
            at.unsupported(format!("the random algorithm code {} is not supported", at.proto.rng_algorithm))
        })?;
        let op = ops::RngBitGenerator { rng_algorithm: algorithm };
        Ok(self.code.op_of_types(op, &at.arrays()?, at.shape.leaves()))
    }
}
