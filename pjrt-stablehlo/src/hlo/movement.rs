//! Constants, tuples, and operations that create and move arrays.

use super::attributes::ints;
use super::instruction::Instruction;
use super::reader::Reader;
use super::{literal, proto, shape};
use crate::Error;
use crate::build::Builder;
use crate::ir::{
    BackendConfig, ComparisonDirection, CustomCallApiVersion, ElementType, TensorType, Type, ValueId, ops,
};

impl Reader {
    pub(super) fn constant(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let literal = at.required("the constant", &at.proto.literal)?;
        let mut arrays = Vec::new();
        let mut rest = vec![literal];
        while let Some(literal) = rest.pop() {
            match literal.tuple_literals.is_empty() {
                false => rest.extend(literal.tuple_literals.iter().rev()),
                true if is_empty_tuple(literal) => {}
                true => arrays.push(literal),
            }
        }
        let types = at.shape.leaves();
        if types.len() != arrays.len() {
            return Err(at.invalid(format!(
                "expected {} arrays in the constant, found {}",
                types.len(),
                arrays.len()
            )));
        }
        arrays.into_iter().zip(types).map(|(array, ty)| self.constant_array(at, array, &ty)).collect()
    }

    fn constant_array(
        &mut self,
        at: &Instruction,
        literal: &proto::Literal,
        ty: &Type,
    ) -> Result<ValueId, Error> {
        match ty {
            Type::Token => Ok(self.code.op_of_type(ops::AfterAll {}, &[], Type::Token)),
            Type::Tensor(tensor) => {
                let value = literal::read(literal, tensor).map_err(|error| at.placed(error))?;
                Ok(self.code.op_of_type(ops::Constant { value }, &[], tensor.clone()))
            }
            other => Err(at.unsupported(format!("a constant of type {other} is not supported"))),
        }
    }

    pub(super) fn get_tuple_element(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operand = at.operand(0)?;
        let index = usize::try_from(at.proto.tuple_index).ok();
        let is_tuple = matches!(operand.shape, shape::Shape::Tuple { .. });
        let element = index.filter(|_| is_tuple).and_then(|index| operand.element(index));
        let element = element.ok_or_else(|| {
            at.invalid(format!(
                "expected a tuple with an element {}, found {}",
                at.proto.tuple_index,
                operand.shape.ty()
            ))
        })?;
        Ok(element.leaves)
    }

    /// Replaces a copy by its operand. A copy with a sharding becomes the custom call with which programs request a
    /// sharding.
    pub(super) fn copy(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        match (&at.proto.sharding, &*at.operand(0)?.leaves) {
            (Some(_), &[value]) => Ok(vec![self.annotation("Sharding", value)]),
            (_, leaves) => Ok(leaves.to_vec()),
        }
    }

    /// Adds a custom call that returns its operand.
    fn annotation(&mut self, target: &str, value: ValueId) -> ValueId {
        let op = ops::CustomCall {
            call_target_name: target.into(),
            has_side_effect: false,
            backend_config: BackendConfig::default(),
            api_version: CustomCallApiVersion::Original,
            called_computations: Box::default(),
            operand_layouts: None,
            result_layouts: None,
            output_operand_aliases: Box::default(),
            result_tilings: None,
        };
        {
            let ty = self.code.ty(value).clone();
            self.code.op_of_type(op, &[value], ty)
        }
    }

    /// Returns the operand of an operation that adds a dependency on a token.
    pub(super) fn add_dependency(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operands = at.leaves();
        let types: Vec<Type> = operands.iter().map(|&operand| self.code.body.ty(operand).clone()).collect();
        let op = ops::OptimizationBarrier {};
        let mut results = self.code.op_of_types(op, &operands, types);
        results.truncate(at.operand(0)?.leaves.len());
        Ok(results)
    }

    pub(super) fn optimization_barrier(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::OptimizationBarrier {};
        Ok(self.code.op_of_types(op, &at.leaves(), at.shape.leaves()))
    }

    pub(super) fn after_all(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        Ok(vec![self.code.op_of_type(ops::AfterAll {}, &at.leaves(), at.result()?)])
    }

    pub(super) fn broadcast(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::BroadcastInDim { broadcast_dimensions: ints(&at.proto.dimensions) };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn reshape(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        Ok(vec![self.code.op_of_type(ops::Reshape {}, &at.arrays()?, at.result()?)])
    }

    /// Adds a reshape to sizes that are given by scalar operands.
    pub(super) fn dynamic_reshape(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operands = at.arrays()?;
        let operand = at.array(0)?;
        if operands.len() == 1 {
            return self.reshape(at);
        }
        let mut sizes = Vec::new();
        for (index, &size_operand) in operands.iter().enumerate().skip(1) {
            let size = at.tensor(&self.code, index)?;
            if size.rank() != 0 {
                return Err(at.invalid(format!("operand {index}: expected a scalar, found {size}")));
            }
            sizes.push(self.code.reshape(size_operand, &[1]));
        }
        let element_type = self.code.tensor(sizes[0]).element_type();
        let ty = TensorType::new(element_type, [sizes.len() as i64]);
        let sizes = self.code.op_of_type(ops::Concatenate { dimension: 0 }, &sizes, ty);
        let op = ops::DynamicReshape {};
        Ok(vec![self.code.op_of_type(op, &[operand, sizes], at.result()?)])
    }

    /// Reinterprets the bytes of the operand in memory as another array.
    pub(super) fn bitcast(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let operand = at.static_tensor(&self.code, 0)?;
        let result = at.result_tensor()?;
        let (from, to) = (operand.element_type(), result.element_type());
        let bits = |ty: ElementType| if ty == ElementType::I1 { 8 } else { ty.bits() };
        if bits(from) != bits(to) || operand.num_elements() != result.num_elements() {
            return Err(at.unsupported(format!("a bitcast from {operand} to {result} is not supported")));
        }
        let rank = operand.rank() as i64;
        let major_to_minor = |order: &Option<Box<[i64]>>, rank: i64| -> Vec<i64> {
            order.as_ref().map_or_else(|| (0..rank).collect(), |order| order.iter().rev().copied().collect())
        };
        let mut value = at.array(0)?;
        let order = major_to_minor(&at.operand(0)?.order, rank);
        if !order.iter().copied().eq(0..rank) {
            value = self.code.transpose(value, &order);
        }
        let order = major_to_minor(&at.order()?, result.rank() as i64);
        let physical: Vec<i64> = order.iter().map(|&dimension| result.dims()[dimension as usize]).collect();
        value = self.code.reshape(value, &physical);
        if !order.iter().copied().eq(0..order.len() as i64) {
            let mut inverse = vec![0; order.len()];
            (0..).zip(&order).for_each(|(place, &dimension)| inverse[dimension as usize] = place);
            value = self.code.transpose(value, &inverse);
        }
        Ok(vec![if from == to { value } else { cast_bits(&mut self.code, value, result) }])
    }

    pub(super) fn bitcast_convert(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        at.tensor(&self.code, 0)?;
        Ok(vec![cast_bits(&mut self.code, at.array(0)?, at.result_tensor()?)])
    }

    pub(super) fn transpose(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Transpose { permutation: ints(&at.proto.dimensions) };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn reverse(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Reverse { dimensions: ints(&at.proto.dimensions) };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn slice(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let dimensions = &at.proto.slice_dimensions;
        let op = ops::Slice {
            start_indices: dimensions.iter().map(|dimension| dimension.start).collect(),
            limit_indices: dimensions.iter().map(|dimension| dimension.limit).collect(),
            strides: dimensions.iter().map(|dimension| dimension.stride).collect(),
        };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn pad(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let dimensions = at.proto.padding_config.as_ref().map_or(&[][..], |config| &config.dimensions);
        let op = ops::Pad {
            edge_padding_low: dimensions.iter().map(|dimension| dimension.edge_padding_low).collect(),
            edge_padding_high: dimensions.iter().map(|dimension| dimension.edge_padding_high).collect(),
            interior_padding: dimensions.iter().map(|dimension| dimension.interior_padding).collect(),
        };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn concatenate(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Concatenate { dimension: at.dimension(0)? };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn iota(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Iota { iota_dimension: at.dimension(0)? };
        Ok(vec![self.code.op_of_type(op, &[], at.result()?)])
    }

    pub(super) fn get_dimension_size(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::GetDimensionSize { dimension: at.dimension(0)? };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }

    pub(super) fn set_dimension_size(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::SetDimensionSize { dimension: at.dimension(0)? };
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }
}

/// Returns `true` if a literal is a tuple without elements.
fn is_empty_tuple(literal: &proto::Literal) -> bool {
    let shape = literal.shape.as_ref();
    shape.is_some_and(|shape| matches!(shape::Shape::read(shape), Ok(shape::Shape::Tuple { .. })))
}

/// Reinterprets the bits of the operand as another type. A boolean has 8 bits in HLO, where 0 is `false`, and 1 bit in
/// StableHLO.
fn cast_bits(code: &mut Builder, operand: ValueId, ty: TensorType) -> ValueId {
    let is_boolean = |ty: &TensorType| ty.element_type() == ElementType::I1;
    match (is_boolean(&code.tensor(operand)), is_boolean(&ty)) {
        (true, false) => {
            let bytes = code.convert(operand, ElementType::Ui8);
            code.op_of_type(ops::BitcastConvert {}, &[bytes], ty)
        }
        (false, true) => {
            let bytes = TensorType::new(ElementType::Ui8, ty.dims());
            let value = code.op_of_type(ops::BitcastConvert {}, &[operand], bytes);
            code.compare_with(ComparisonDirection::Ne, value, 0.0)
        }
        _ => code.op_of_type(ops::BitcastConvert {}, &[operand], ty),
    }
}
