//! Operations that StableHLO lacks. They become composites with CHLO's names, or are expressed by other operations.

use super::attributes::{dot_dimensions, precisions};
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::build::Builder;
use crate::formulas::ragged_dot::ragged_dot;
use crate::formulas::scan::Scan;
use crate::formulas::top_k::top_k;
use crate::formulas::{Unary, at_least_f32, bits, erf, hyperbolic};
use crate::ir::{
    Attribute, ComparisonDirection, DictionaryAttribute, ElementKind, ElementType, RaggedDotDimensionNumbers,
    Str, Type, ValueId, Visibility, ops,
};

/// The functions of floats that StableHLO lacks, by opcode.
const FUNCTIONS: &[(&str, Unary)] = &[
    ("acos", hyperbolic::acos),
    ("acosh", hyperbolic::acosh),
    ("asin", hyperbolic::asin),
    ("asinh", hyperbolic::asinh),
    ("atanh", hyperbolic::atanh),
    ("cosh", hyperbolic::cosh),
    ("erf", erf::erf),
    ("sinh", hyperbolic::sinh),
];

impl Reader {
    /// Adds a composite. `decompose` adds the operations of its decomposition, unless a decomposition with the same
    /// name, operand types and attributes exists.
    fn composite(
        &mut self,
        name: &str,
        attributes: Vec<(Str, Attribute)>,
        operands: &[ValueId],
        decompose: impl FnOnce(&mut Builder) -> Vec<ValueId>,
    ) -> Result<Vec<ValueId>, Error> {
        let inputs: Vec<Type> = operands.iter().map(|&operand| self.code.body.ty(operand).clone()).collect();
        let attributes = DictionaryAttribute::new(attributes);
        let key = format!("{name} {inputs:?} {attributes:?}");
        let known = self.decompositions.get(&key).and_then(|name| {
            self.additions
                .iter()
                .find(|function| function.name == *name)
                .map(|function| function.ty.results.clone())
        });
        let results = match known {
            Some(results) => results,
            None => {
                let mut code = Builder::new(inputs);
                let values = decompose(&mut code);
                let mut function = code.finish(self.unique_name(&format!("{name}.impl")), &values)?;
                function.visibility = Some(Visibility::Private);
                let results = function.ty.results.clone();
                self.decompositions.insert(key.clone(), function.name.clone());
                self.additions.push(function);
                results
            }
        };
        let op = ops::Composite {
            name: name.into(),
            composite_attributes: attributes,
            decomposition: self.decompositions[&key].clone(),
            version: 1,
        };
        Ok(self.code.op_of_types(op, operands, results))
    }

    /// Converts `erf`, `acos` and similar opcodes.
    pub(super) fn function_of(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let opcode = &*at.proto.opcode;
        let formula =
            FUNCTIONS.iter().find(|(name, _)| *name == opcode).filter(|_| ty.element_type().is_float());
        let Some(&(_, formula)) = formula else {
            return Err(at.unsupported(format!("expected a float operand of '{opcode}', found {ty}")));
        };
        self.composite(&format!("chlo.{opcode}"), Vec::new(), &[at.array(0)?], |code| {
            vec![at_least_f32(code, formula, code.argument(0))]
        })
    }

    pub(super) fn mulhi(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let (ty, other) = (at.static_tensor(&self.code, 0)?, at.static_tensor(&self.code, 1)?);
        if !ty.element_type().is_integer() || ty != other {
            return Err(
                at.invalid(format!("expected two integer arrays of one type, found {ty} and {other}"))
            );
        }
        self.composite("chlo.mulhi", Vec::new(), &at.arrays()?, |code| {
            bits::mulhi(code, code.argument(0), code.argument(1)).into_iter().collect()
        })
    }

    pub(super) fn top_k(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let (k, is_largest) = (at.proto.k, at.proto.largest);
        let size = ty.dims().last().copied();
        if size.is_none_or(|size| !(0..=size).contains(&k)) {
            return Err(at.invalid(format!("expected at least {k} elements in the last dimension of {ty}")));
        }
        let operand = at.array(0)?;
        let parts =
            |code: &mut Builder, operand| top_k(code, operand, k, ElementType::I32, is_largest).to_vec();
        if !is_largest {
            // Targets that implement the composite compute the greatest elements, so the least ones are decomposed.
            return Ok(parts(&mut self.code, operand));
        }
        self.composite("chlo.top_k", vec![("k".into(), k.into())], &[operand], |code| {
            parts(code, code.argument(0))
        })
    }

    /// Converts a product in which each row, or each contracted element, belongs to a group.
    pub(super) fn ragged_dot(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let numbers = at.required("ragged_dot_dimension_numbers", &at.proto.ragged_dot_dimension_numbers)?;
        let dot = dot_dimensions(&numbers.dot_dimension_numbers.clone().unwrap_or_default());
        for index in 0..3 {
            at.static_tensor(&self.code, index)?;
        }
        let operands = [at.array(0)?, at.array(1)?, at.array(2)?];
        let &[ragged] = &*numbers.lhs_ragged_dimensions else {
            return Err(at.invalid("expected one ragged dimension of the left operand"));
        };
        let is_row = !dot.lhs_batching_dimensions.contains(&ragged)
            && !dot.lhs_contracting_dimensions.contains(&ragged);
        let group = match &*numbers.rhs_group_dimensions {
            [] if !is_row => None,
            &[group] if is_row => Some(group),
            _ => {
                return Err(at.invalid(
                    "expected a group dimension of the right operand if and only if the rows are ragged",
                ));
            }
        };
        let dimensions = RaggedDotDimensionNumbers { dot, ragged, group };
        let precision_config = precisions(at)?;
        let result = at.result_tensor()?;
        let product = ragged_dot(&mut self.code, operands, &dimensions, &precision_config, &result);
        Ok(vec![product.map_err(|message| at.unsupported(message))?])
    }

    /// Converts a scan to a loop over one dimension, which slices the inputs, applies the computation, and assembles
    /// the outputs.
    pub(super) fn scan(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let dimension = at.dimension(0)?;
        let operands = at.arrays()?;
        let types = at.shape.leaves();
        let carries = usize::try_from(at.proto.num_carries).ok();
        let carries = carries.filter(|&carries| carries <= operands.len().min(types.len()));
        let carries = carries.ok_or_else(|| {
            at.invalid(format!(
                "expected at most the number of operands as num_carries, found {}",
                at.proto.num_carries
            ))
        })?;
        let (inputs, carried) = operands.split_at(operands.len() - carries);
        let mut outputs = Vec::new();
        for ty in &types[..types.len() - carries] {
            let output = ty.as_tensor().filter(|ty| ty.num_elements().is_some());
            outputs.push(
                output
                    .cloned()
                    .ok_or_else(|| at.unsupported(format!("an output of type {ty} is not supported")))?,
            );
        }
        let mut scanned = outputs.clone();
        for index in 0..inputs.len() {
            scanned.push(at.static_tensor(&self.code, index)?);
        }
        let place = usize::try_from(dimension).ok();
        let place = place.filter(|&place| scanned.iter().all(|ty| place < ty.rank()));
        let place =
            place.ok_or_else(|| at.invalid(format!("an input or output has no dimension {dimension}")))?;
        let Some(steps) = scanned.first().map(|ty| ty.dims()[place]) else {
            return Err(at.invalid("expected at least one input or output to scan"));
        };
        let computation = self.called(at, 0)?;
        let callee = self.function(computation);
        let scan = Scan {
            dimension: place,
            steps,
            is_reverse: at.proto.is_reverse,
            inputs,
            initial: carried,
            outputs: &outputs,
        };
        let code = &mut self.code;
        let step = scan.begin(code);
        let element_types = outputs.iter().map(|ty| {
            let mut sizes = ty.dims().to_vec();
            sizes.remove(place);
            Type::from(ty.with_dims(sizes))
        });
        let given_types: Vec<Type> =
            element_types.chain(carried.iter().map(|&value| code.ty(value).clone())).collect();
        let (outer, whole) = (code.block(), step.op);
        code.set_block(step.block);
        let given = code.call(callee, &step.arguments, given_types);
        step.end(code, &given);
        code.set_block(outer);
        let results = code.all_results(whole);
        Ok(results[1..].to_vec())
    }

    /// Converts a stochastic rounding: a value is rounded up if the random number, as a fraction of its range, is less
    /// than the fractional part of the value.
    pub(super) fn stochastic_convert(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let random_ty = at.static_tensor(&self.code, 1)?;
        let result = at.result_tensor()?;
        let is_supported = ty.element_type().is_float()
            && random_ty.element_type().kind() == ElementKind::UnsignedInteger
            && result.element_type().is_integer()
            && ty.dims() == random_ty.dims()
            && ty.dims() == result.dims();
        if !is_supported {
            let message =
                format!("stochastic conversion of {ty} with {random_ty} to {result} is not supported");
            return Err(at.unsupported(message));
        }
        let (operand, random) = (at.array(0)?, at.array(1)?);
        let code = &mut self.code;
        let wide = if ty.element_type() == ElementType::F64 { ElementType::F64 } else { ElementType::F32 };
        let x = code.convert(operand, wide);
        let magnitude = code.abs(x);
        let whole = code.floor(magnitude);
        let fraction = code.subtract(magnitude, whole);
        let range = code.number(2f64.powi(random_ty.element_type().bits() as i32), x);
        let scaled = code.multiply(fraction, range);
        let threshold = code.convert(scaled, random_ty.element_type());
        let rounds_up = code.compare(ComparisonDirection::Lt, random, threshold);
        let one = code.number(1.0, x);
        let next = code.add(whole, one);
        let rounded = code.select(rounds_up, next, whole);
        let sign = code.sign(x);
        let signed = code.multiply(sign, rounded);
        let converted = code.convert(signed, result.element_type());

        // Values out of range are clamped, and NaN becomes 0.
        let bits = result.element_type().bits();
        let is_signed = result.element_type().kind() == ElementKind::SignedInteger;
        let (least, end): (i128, i128) =
            if is_signed { (-(1 << (bits - 1)), 1 << (bits - 1)) } else { (0, 1 << bits) };
        let is_low = code.compare_with(ComparisonDirection::Lt, signed, least as f64);
        let is_high = code.compare_with(ComparisonDirection::Ge, signed, end as f64);
        let is_nan = code.compare(ComparisonDirection::Ne, x, x);
        let (least, greatest) =
            (code.integer(least as i64, result.clone()), code.integer((end - 1) as i64, result.clone()));
        let zero = code.zeros(result);
        let bounded = code.select(is_low, least, converted);
        let bounded = code.select(is_high, greatest, bounded);
        Ok(vec![code.select(is_nan, zero, bounded)])
    }
}
