//! Operations that StableHLO lacks: as composites of CHLO's names, or in terms of others.

use super::attributes::{dot_dimensions, precisions};
use super::decompositions;
use super::emitter::Emitter;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::Error;
use crate::ir::{
    Attribute, ComparisonDirection, DictionaryAttribute, ElementKind, ElementType, Function, FunctionType,
    Op, OpCode, Str, TensorType, Type, ValueId, Visibility, ops,
};

impl Reader {
    /// Adds a composite. `decompose` adds what it consists of to a function, unless there is one for the same `key`.
    fn composite(
        &mut self,
        name: &str,
        attributes: Vec<(Str, Attribute)>,
        operands: &[ValueId],
        decompose: impl FnOnce(&mut Emitter) -> Vec<ValueId>,
    ) -> Vec<ValueId> {
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
                let mut code = Emitter::new(inputs.iter().cloned());
                let values = decompose(&mut code);
                let results: Vec<Type> = values.iter().map(|&value| code.body.ty(value).clone()).collect();
                code.add(Op::FuncReturn(ops::FuncReturn {}), &values, []);
                let function = Function {
                    name: self.unique_name(&format!("{name}.impl")),
                    visibility: Some(Visibility::Private),
                    ty: FunctionType { inputs, results: results.clone() },
                    body: code.body,
                    ..Function::default()
                };
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
        self.code.values(Op::Composite(op.into()), operands, results)
    }

    /// `erf`, `acos` and the like.
    pub(super) fn function_of(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let opcode = at.proto.opcode.clone();
        if !ty.element_type().is_float() {
            return Err(at.unsupported(format!("'{opcode}' of {ty} is not supported, only of floats")));
        }
        let operand = at.array(0)?;
        Ok(self.composite(&format!("chlo.{opcode}"), Vec::new(), &[operand], |code| {
            let x = code.arguments()[0];
            vec![decompositions::function(code, &opcode, x)]
        }))
    }

    pub(super) fn mulhi(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let (ty, other) = (at.static_tensor(&self.code, 0)?, at.static_tensor(&self.code, 1)?);
        if !ty.element_type().is_integer() || ty != other {
            return Err(
                at.invalid(format!("expected two arrays of integers of one type, found {ty} and {other}"))
            );
        }
        let operands = at.arrays()?;
        Ok(self.composite("chlo.mulhi", Vec::new(), &operands, |code| {
            let arguments = code.arguments();
            vec![decompositions::mulhi(code, arguments[0], arguments[1])]
        }))
    }

    pub(super) fn top_k(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let ty = at.static_tensor(&self.code, 0)?;
        let (k, is_largest) = (at.proto.k, at.proto.largest);
        let size = ty.dims().last().copied();
        if size.is_none_or(|size| !(0..=size).contains(&k)) {
            return Err(at.invalid(format!("expected at least {k} elements in the last dimension of {ty}")));
        }
        let operand = at.array(0)?;
        if !is_largest {
            // Targets that know the composite take it for that of the largest.
            return Ok(decompositions::top_k(&mut self.code, operand, k, is_largest));
        }
        Ok(self.composite("chlo.top_k", vec![("k".into(), k.into())], &[operand], |code| {
            let operand = code.arguments()[0];
            decompositions::top_k(code, operand, k, is_largest)
        }))
    }

    /// A product in which each row, or each contracted element, belongs to a group: the left operand is repeated for each
    /// group, with zeros where elements belong to another one.
    pub(super) fn ragged_dot(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let numbers = at.required("ragged_dot_dimension_numbers", &at.proto.ragged_dot_dimension_numbers)?;
        let mut dimensions = dot_dimensions(&numbers.dot_dimension_numbers.clone().unwrap_or_default());
        let (lhs, rhs, sizes) = (at.array(0)?, at.array(1)?, at.array(2)?);
        let lhs_ty = at.static_tensor(&self.code, 0)?;
        let sizes_ty = at.static_tensor(&self.code, 2)?;
        let &[ragged] = &*numbers.lhs_ragged_dimensions else {
            return Err(at.invalid("expected one ragged dimension of the left operand"));
        };
        let ragged_place = usize::try_from(ragged).ok().filter(|&place| place < lhs_ty.rank());
        let ragged_place =
            ragged_place.ok_or_else(|| at.invalid(format!("{lhs_ty} has no dimension {ragged}")))?;
        let is_batch = dimensions.lhs_batching_dimensions.contains(&ragged);
        let is_contracting = dimensions.lhs_contracting_dimensions.contains(&ragged);
        let group_dimension = match &*numbers.rhs_group_dimensions {
            [] if is_batch || is_contracting => None,
            &[group] if !is_batch && !is_contracting => Some(group),
            _ => {
                return Err(
                    at.invalid("expected a group dimension of the right operand just for ragged rows")
                );
            }
        };
        let precision_config = precisions(at)?;
        let mut groups = None;
        let mut left = lhs;
        if !is_batch {
            let &[count] = sizes_ty.dims() else {
                let message =
                    format!("group sizes that differ between batches, {sizes_ty}, are not supported");
                return Err(at.unsupported(message));
            };
            left = self.code.grouped_rows(lhs, ragged_place, sizes, count);
            let later = |list: &mut Box<[i64]>| {
                list.iter_mut().for_each(|dimension| *dimension = dimension.saturating_add(1))
            };
            later(&mut dimensions.lhs_batching_dimensions);
            later(&mut dimensions.lhs_contracting_dimensions);
            groups = Some(count);
        }
        if let Some(group) = group_dimension {
            let with = |list: &[i64], more: i64| list.iter().copied().chain([more]).collect();
            dimensions.lhs_contracting_dimensions = with(&dimensions.lhs_contracting_dimensions, 0);
            dimensions.rhs_contracting_dimensions = with(&dimensions.rhs_contracting_dimensions, group);
        }
        let batches = dimensions.lhs_batching_dimensions.len();
        let op = ops::DotGeneral { dot_dimension_numbers: dimensions, precision_config, algorithm: None };
        let result = at.result_tensor()?;
        match groups.filter(|_| is_contracting) {
            None => Ok(vec![self.code.value(Op::DotGeneral(op.into()), &[left, rhs], result)]),
            Some(groups) => {
                // The product has its batches first, the result its groups.
                let rank = result.rank();
                if rank <= batches {
                    return Err(
                        at.invalid(format!("expected a group dimension in the result, found {result}"))
                    );
                }
                let mut dims = result.dims()[1..].to_vec();
                dims.insert(batches, groups);
                let product =
                    self.code.value(Op::DotGeneral(op.into()), &[left, rhs], result.with_dims(dims));
                let order = std::iter::once(batches).chain((0..rank).filter(|&place| place != batches));
                let order: Vec<i64> = order.map(|place| place as i64).collect();
                Ok(vec![self.code.transpose(product, &order)])
            }
        }
    }

    /// A loop over one dimension: takes the inputs apart, calls the computation, and puts the outputs together.
    pub(super) fn scan(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let dimension = at.dimension(0)?;
        let operands = at.arrays()?;
        let types = at.shape.leaves();
        let carries = usize::try_from(at.proto.num_carries).ok();
        let carries = carries.filter(|&carries| carries <= operands.len().min(types.len()));
        let carries =
            carries.ok_or_else(|| at.invalid(format!("it cannot carry {} values", at.proto.num_carries)))?;
        let (inputs, carried) = operands.split_at(operands.len() - carries);
        let mut outputs = Vec::new();
        for ty in &types[..types.len() - carries] {
            let output = ty.as_tensor().filter(|ty| ty.num_elements().is_some());
            outputs.push(
                output
                    .cloned()
                    .ok_or_else(|| at.unsupported(format!("outputs of type {ty} are not supported")))?,
            );
        }
        let mut scanned = outputs.clone();
        for index in 0..inputs.len() {
            scanned.push(at.static_tensor(&self.code, index)?);
        }
        let place = usize::try_from(dimension).ok();
        let place = place.filter(|&place| scanned.iter().all(|ty| place < ty.rank()));
        let place =
            place.ok_or_else(|| at.invalid(format!("not all arrays have a dimension {dimension}")))?;
        let Some(steps) = scanned.first().map(|ty| ty.dims()[place]) else {
            return Err(at.invalid("expected an input or an output to scan"));
        };
        let computation = self.called(at, 0)?;
        let callee = self.function(computation);
        let is_reverse = at.proto.is_reverse;

        let code = &mut self.code;
        let counter_ty = TensorType::new(ElementType::I64, []);
        let mut initial = vec![code.integer(&counter_ty, 0)];
        initial.extend_from_slice(carried);
        for output in &outputs {
            initial.push(code.zeros(output));
        }
        let loop_types: Vec<Type> = initial.iter().map(|&value| code.body.ty(value).clone()).collect();
        let whole = code.add(Op::While(ops::While {}), &initial, loop_types.clone());
        let outside = code.place;

        let arguments = code.enter_region(whole, loop_types.iter().cloned());
        let end = code.integer(&counter_ty, i128::from(steps));
        let goes_on = code.compare(ComparisonDirection::Lt, arguments[0], end);
        code.add(Op::Return(ops::Return {}), &[goes_on], []);

        let arguments = code.enter_region(whole, loop_types);
        let counter = arguments[0];
        let step = if is_reverse {
            let last = code.integer(&counter_ty, i128::from(steps) - 1);
            code.apply(OpCode::Subtract, &[last, counter])
        } else {
            counter
        };
        let zero = code.integer(&counter_ty, 0);
        let starts = |rank: usize| (0..rank).map(move |index| if index == place { step } else { zero });
        let mut passed = Vec::new();
        for &input in inputs {
            let ty = code.tensor(input);
            let mut sizes = ty.dims().to_vec();
            sizes[place] = 1;
            let uses: Vec<ValueId> = std::iter::once(input).chain(starts(ty.rank())).collect();
            let op = ops::DynamicSlice { slice_sizes: sizes.clone().into() };
            let slice = code.value(Op::DynamicSlice(op), &uses, ty.with_dims(sizes.clone()));
            sizes.remove(place);
            passed.push(code.reshape(slice, &sizes));
        }
        passed.extend_from_slice(&arguments[1..=carries]);
        let element_types = outputs.iter().map(|ty| {
            let mut sizes = ty.dims().to_vec();
            sizes.remove(place);
            Type::from(ty.with_dims(sizes))
        });
        let carried_types = carried.iter().map(|&value| code.body.ty(value).clone());
        let given_types: Vec<Type> = element_types.chain(carried_types).collect();
        let given = code.call(&callee, &passed, given_types);
        let one = code.integer(&counter_ty, 1);
        let mut returned = vec![code.apply(OpCode::Add, &[counter, one])];
        returned.extend_from_slice(&given[outputs.len()..]);
        for (index, ty) in outputs.iter().enumerate() {
            let mut sizes = ty.dims().to_vec();
            sizes[place] = 1;
            let update = code.reshape(given[index], &sizes);
            let output = arguments[1 + carries + index];
            let uses: Vec<ValueId> = [output, update].into_iter().chain(starts(ty.rank())).collect();
            let op = Op::DynamicUpdateSlice(ops::DynamicUpdateSlice {});
            returned.push(code.value(op, &uses, ty.clone()));
        }
        code.add(Op::Return(ops::Return {}), &returned, []);
        code.place = outside;
        let results: Vec<ValueId> = code.body.op(whole).results.collect();
        Ok(results[1 + carries..].iter().chain(&results[1..=carries]).copied().collect())
    }

    /// Rounds up as often as the fraction says: where the random number, as a fraction of its range, is less than it.
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
        let is_wide = ty.element_type() == ElementType::F64;
        let computed = TensorType::new(if is_wide { ElementType::F64 } else { ElementType::F32 }, ty.dims());
        let x = code.convert(operand, computed.element_type());
        let magnitude = code.apply(OpCode::Abs, &[x]);
        let whole = code.apply(OpCode::Floor, &[magnitude]);
        let fraction = code.apply(OpCode::Subtract, &[magnitude, whole]);
        let range = code.number(&computed, 2f64.powi(random_ty.element_type().bits() as i32));
        let scaled = code.apply(OpCode::Multiply, &[fraction, range]);
        let threshold = code.convert(scaled, random_ty.element_type());
        let rounds_up = code.compare(ComparisonDirection::Lt, random, threshold);
        let one = code.number(&computed, 1.0);
        let next = code.apply(OpCode::Add, &[whole, one]);
        let rounded = code.select(rounds_up, next, whole);
        let sign = code.apply(OpCode::Sign, &[x]);
        let signed = code.apply(OpCode::Multiply, &[sign, rounded]);
        let converted = code.convert(signed, result.element_type());

        // What does not fit becomes the nearest that does; NaN becomes 0.
        let bits = result.element_type().bits();
        let is_signed = result.element_type().kind() == ElementKind::SignedInteger;
        let (least, end): (i128, i128) =
            if is_signed { (-(1 << (bits - 1)), 1 << (bits - 1)) } else { (0, 1 << bits) };
        let (low, high) = (code.number(&computed, least as f64), code.number(&computed, end as f64));
        let (least, greatest) = (code.integer(&result, least), code.integer(&result, end - 1));
        let is_low = code.compare(ComparisonDirection::Lt, signed, low);
        let is_high = code.compare(ComparisonDirection::Ge, signed, high);
        let is_nan = code.compare(ComparisonDirection::Ne, x, x);
        let zero = code.zeros(&result);
        let bounded = code.select(is_low, least, converted);
        let bounded = code.select(is_high, greatest, bounded);
        Ok(vec![code.select(is_nan, zero, bounded)])
    }
}

impl Emitter {
    /// `operand` once for each group, in a new first dimension, with zeros where elements of dimension `ragged` belong to
    /// another group. Groups follow each other; `sizes` says how long they are.
    fn grouped_rows(&mut self, operand: ValueId, ragged: usize, sizes: ValueId, groups: i64) -> ValueId {
        let ty = self.tensor(operand);
        let index_type = self.tensor(sizes).element_type();
        // Where groups end: sums of the sizes up to each, as a product with a triangle of ones.
        let square = TensorType::new(index_type, [groups, groups]);
        let (rows, columns) = (self.iota(&square, 0), self.iota(&square, 1));
        let is_before = self.compare(ComparisonDirection::Le, columns, rows);
        let triangle = self.convert(is_before, index_type);
        let sums = ops::DotGeneral {
            dot_dimension_numbers: crate::ir::DotDimensionNumbers {
                lhs_contracting_dimensions: [1].into(),
                rhs_contracting_dimensions: [0].into(),
                ..Default::default()
            },
            precision_config: Box::default(),
            algorithm: None,
        };
        let ends = self.value(
            Op::DotGeneral(sums.into()),
            &[triangle, sizes],
            TensorType::new(index_type, [groups]),
        );
        let starts = self.apply(OpCode::Subtract, &[ends, sizes]);

        let dims: Vec<i64> = std::iter::once(groups).chain(ty.dims().iter().copied()).collect();
        let places = self.iota(&TensorType::new(index_type, dims.clone()), ragged + 1);
        let (starts, ends) = (self.broadcast(starts, &dims, &[0]), self.broadcast(ends, &dims, &[0]));
        let is_after = self.compare(ComparisonDirection::Ge, places, starts);
        let is_before = self.compare(ComparisonDirection::Lt, places, ends);
        let belongs = self.apply(OpCode::And, &[is_after, is_before]);
        let kept: Vec<i64> = (1..=ty.rank() as i64).collect();
        let repeated = self.broadcast(operand, &dims, &kept);
        let zeros = self.zeros(&ty.with_dims(dims));
        self.select(belongs, repeated, zeros)
    }
}
