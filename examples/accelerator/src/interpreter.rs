//! The device's processor, which executes a program one operation at a time.
//!
//! An operation loads its operands from memory into registers, computes, and stores its results. (A processor
//! with fewer registers would process one tile at a time.)

use std::collections::HashMap;

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::{Block, Literal, Op, OpId, Operation, ValueId};

use crate::arithmetic::{apply, scalar};
use crate::array::{Array, Place};
use crate::element_type::{from_float, from_integer, integer, load, store};
use crate::movement::{clamped_start, for_each_index, gather, insert, transpose};
use crate::products::{Operand, dot_general};
use crate::program::{Location, Program, Value};
use crate::ram::Ram;
use crate::reduction::reduce;

/// The elements of an array in registers.
type Registers = Vec<u64>;

/// The state of an execution.
pub(crate) struct Interpreter<'a> {
    pub(crate) program: &'a Program,
    pub(crate) ram: &'a mut Ram,
    /// The address of the scratch memory.
    pub(crate) scratch: usize,
    pub(crate) arguments: &'a [Array],
}

impl<'a> Interpreter<'a> {
    /// Executes the program, and writes its results. Their memory may overlap the arguments, which are read
    /// first.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if a constant does not fit into host memory.
    pub(crate) fn run(mut self, outputs: &[Array]) -> Result<()> {
        let main = &self.program.main;
        let Some(entry) = main.body.entry() else { return Ok(()) };
        let results = self.block(main.body.block(entry))?;
        for ((output, value), registers) in outputs.iter().zip(main.returned()).zip(results) {
            output.write(self.ram, store(&registers, self.value(*value).ty.byte_width()));
        }
        Ok(())
    }

    /// Executes the operations of a block, and loads the values that it returns.
    fn block(&mut self, block: &Block) -> Result<Vec<Registers>> {
        for id in &block.ops {
            let op = self.program.main.body.op(*id);
            match &op.kind {
                Op::FuncReturn(_) | Op::Return(_) => return Ok(self.load_all(&op.operands)),
                Op::While(_) => self.repeat(*id, op)?,
                Op::If(_) => {
                    let condition = self.load(op.operand(0))[0];
                    let results = self.region(*id, if condition != 0 { 0 } else { 1 })?;
                    self.store_all(op, results);
                }
                _ => {
                    let results = self.compute(*id, op)?;
                    self.store_all(op, results);
                }
            }
        }
        Ok(Vec::new())
    }

    fn region(&mut self, op: OpId, index: usize) -> Result<Vec<Registers>> {
        let block = self.program.main.body.region_block(op, index);
        self.block(block.ok_or_else(|| Error::internal("an operation has no region"))?)
    }

    /// Executes a loop. Its state is in the memory of its results.
    fn repeat(&mut self, id: OpId, op: &Operation) -> Result<()> {
        let state = self.load_all(&op.operands);
        self.store_all(op, state);
        while self.region(id, 0)?[0][0] != 0 {
            let state = self.region(id, 1)?;
            self.store_all(op, state);
        }
        Ok(())
    }

    /// Computes the results of an operation that has no branches.
    fn compute(&mut self, id: OpId, op: &Operation) -> Result<Vec<Registers>> {
        let x = self.load_all(&op.operands);
        let result = self.value(op.result());
        let from: &[i64] = op.operands.first().map_or(&[], |first| &*self.value(*first).dims);
        let registers = match &op.kind {
            Op::Constant(constant) => literal(&constant.value)?,
            Op::Iota(iota) => {
                let mut elements = Vec::new();
                for_each_index(&result.dims, |index| {
                    elements.push(number(result, index[iota.iota_dimension as usize]))
                });
                elements
            }
            Op::DotGeneral(dot) => {
                let [lhs, rhs] = [0, 1].map(|index| {
                    let value = self.value(op.operand(index));
                    Operand { elements: &x[index], dims: &value.dims, ty: value.ty }
                });
                dot_general(lhs, rhs, &dot.dot_dimension_numbers, result.ty)
            }
            Op::Reduce(op) => {
                let Some(block) = self.program.main.body.region_block(id, 0) else {
                    return Err(Error::internal("a reduction has no body"));
                };
                let (arrays, init) = x.split_at(x.len() / 2);
                return reduce(arrays, init, from, &op.dimensions, |lhs, rhs| {
                    self.lanes(block, lhs.into_iter().chain(rhs))
                });
            }
            _ => match self.moved(op, &x, from, &result.dims) {
                Some(registers) => registers,
                None => self.elementwise(op, &x.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            },
        };
        Ok(vec![registers])
    }

    /// Computes the result of an operation that moves elements, from the dimensions of its first operand to those of the
    /// result. Returns `None` for other operations.
    fn moved(&self, op: &Operation, x: &[Registers], from: &[i64], to: &[i64]) -> Option<Registers> {
        let operand = |index: usize| self.value(op.operand(index));
        let start = |first: usize| -> Vec<i128> {
            (first..x.len()).map(|index| integer(operand(index).ty, x[index][0])).collect()
        };
        Some(match &op.kind {
            Op::Reshape(_) | Op::CustomCall(_) => x[0].clone(),
            Op::BroadcastInDim(broadcast) => gather(&x[0], from, to, 0, |index, d| {
                if from[d] == 1 { 0 } else { index[broadcast.broadcast_dimensions[d] as usize] }
            }),
            Op::Transpose(op) => transpose(&x[0], from, &op.permutation).0,
            Op::Slice(slice) => {
                gather(&x[0], from, to, 0, |index, d| slice.start_indices[d] + index[d] * slice.strides[d])
            }
            Op::DynamicSlice(_) => {
                let start = clamped_start(&start(1), from, to);
                gather(&x[0], from, to, 0, |index, d| start[d] + index[d])
            }
            Op::DynamicUpdateSlice(_) => {
                let update = &operand(1).dims;
                let start = clamped_start(&start(2), from, update);
                let mut updated = x[0].clone();
                insert(&mut updated, to, &x[1], update, &start);
                updated
            }
            Op::Reverse(reverse) => gather(&x[0], from, to, 0, |index, d| {
                if reverse.dimensions.contains(&(d as i64)) { from[d] - 1 - index[d] } else { index[d] }
            }),
            Op::Pad(pad) => gather(&x[0], from, to, x[1][0], |index, d| {
                let offset = index[d].saturating_sub(pad.edge_padding_low[d]);
                let step = pad.interior_padding[d].saturating_add(1);
                if offset % step == 0 { offset / step } else { -1 }
            }),
            Op::Concatenate(concatenate) => {
                let mut whole = vec![0; to.iter().product::<i64>() as usize];
                let mut start = vec![0; to.len()];
                for (index, part) in x.iter().enumerate() {
                    let dims = &operand(index).dims;
                    insert(&mut whole, to, part, dims, &start);
                    start[concatenate.dimension as usize] += dims[concatenate.dimension as usize];
                }
                whole
            }
            _ => return None,
        })
    }

    fn elementwise(&self, op: &Operation, operands: &[&[u64]]) -> Registers {
        let last = self.value(op.operand(op.operands.len() - 1)).ty;
        match scalar(&op.kind, last, self.value(op.result()).ty) {
            Some(scalar) => apply(&scalar, operands),
            None => unreachable!("the compiler rejects the operation {}", op.kind.name()),
        }
    }

    /// Executes the body of a reduction for many positions at once, only in registers.
    fn lanes(&mut self, block: &Block, arguments: impl Iterator<Item = Registers>) -> Result<Vec<Registers>> {
        let mut registers: HashMap<ValueId, Registers> =
            block.arguments.iter().copied().zip(arguments).collect();
        for id in &block.ops {
            let op = self.program.main.body.op(*id);
            // A value from outside the body is a scalar in memory.
            for operand in &op.operands {
                registers.entry(*operand).or_insert_with(|| self.load(*operand));
            }
            let operands: Vec<&[u64]> = op.operands.iter().map(|operand| &*registers[operand]).collect();
            let result = match &op.kind {
                Op::Return(_) => return Ok(operands.into_iter().map(<[u64]>::to_vec).collect()),
                Op::Constant(constant) => literal(&constant.value)?,
                _ => self.elementwise(op, &operands),
            };
            registers.insert(op.result(), result);
        }
        Ok(Vec::new())
    }

    fn value(&self, value: ValueId) -> &'a Value {
        &self.program.values[value.index()]
    }

    fn array(&self, value: ValueId) -> Array {
        let Value { rows, location, .. } = *self.value(value);
        match location {
            Location::Argument(index) => self.arguments[index].clone(),
            Location::Scratch(offset) => Array { rows, place: Place::Device(self.scratch + offset) },
            Location::Register => unreachable!("a value in the body of a reduction is not in memory"),
        }
    }

    fn load(&mut self, value: ValueId) -> Registers {
        load(&self.array(value).read(self.ram), self.value(value).ty.byte_width())
    }

    fn load_all(&mut self, values: &[ValueId]) -> Vec<Registers> {
        values.iter().map(|value| self.load(*value)).collect()
    }

    /// Stores the results of an operation.
    fn store_all(&mut self, op: &Operation, results: Vec<Registers>) {
        for (value, registers) in op.results.zip(results) {
            self.array(value).write(self.ram, store(&registers, self.value(value).ty.byte_width()));
        }
    }
}

fn literal(literal: &Literal) -> Result<Registers> {
    let dense = literal.dense_bytes().map_err(|error| Error::resource_exhausted(error.to_string()))?;
    Ok(load(&dense, literal.ty().element_type().byte_width()))
}

/// Converts an integer to an element of a value's type.
fn number(value: &Value, number: i64) -> u64 {
    if value.ty.is_float() { from_float(number as f32) } else { from_integer(value.ty, i128::from(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_stablehlo::passes::{CoreOps, decompose};

    use crate::program::OPERATIONS;

    fn compile(text: &str) -> Result<Program> {
        let core = CoreOps::from_ops(OPERATIONS.iter().copied());
        let module =
            pjrt_stablehlo::parse(text.as_bytes().to_vec()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let module = decompose(&module, &core).unwrap_or_else(|e| panic!("{e}\n{text}"));
        Program::new(module.main().unwrap().clone())
    }

    fn bytes<const N: usize>(numbers: &[f64], element: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
        numbers.iter().flat_map(|number| element(*number)).collect()
    }

    fn f32s(numbers: &[f64]) -> Vec<u8> {
        bytes(numbers, |number| (number as f32).to_le_bytes())
    }

    fn i32s(numbers: &[f64]) -> Vec<u8> {
        bytes(numbers, |number| (number as i32).to_le_bytes())
    }

    /// Runs a program. Arguments and scratch memory are consecutive in device memory; the results are in host
    /// memory.
    fn run(text: &str, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let program = compile(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut ram = Ram::new(1 << 16).unwrap();
        let mut scratch = 0;
        let values = program.main.arguments().iter().zip(arguments);
        let arguments: Vec<Array> = values
            .map(|(value, dense)| {
                let rows = program.values[value.index()].rows;
                assert_eq!(dense.len(), rows.dense_size());
                let array = Array { rows, place: Place::Device(scratch) };
                scratch += rows.padded_size();
                array.write(&mut ram, dense.clone());
                array
            })
            .collect();
        let outputs: Vec<Array> = program
            .main
            .returned()
            .iter()
            .map(|value| Array {
                rows: program.values[value.index()].rows,
                place: Place::Host(Default::default()),
            })
            .collect();
        Interpreter { program: &program, ram: &mut ram, scratch, arguments: &arguments }
            .run(&outputs)
            .unwrap();
        outputs.iter().map(|output| output.read(&mut ram)).collect()
    }

    #[test]
    fn values_stay_until_their_last_use_in_loops_and_branches() {
        // %k is defined before the loop and read in a branch inside it, after many other computations.
        let text = "func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
            %zero = stablehlo.constant dense<0> : tensor<i32>
            %one = stablehlo.constant dense<1> : tensor<i32>
            %k = stablehlo.add %n, %n : tensor<i32>
            %r:2 = stablehlo.while(%i = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
              cond {
                %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                stablehlo.return %c : tensor<i1>
              } do {
                %two = stablehlo.add %one, %one : tensor<i32>
                %odd = stablehlo.remainder %i, %two : tensor<i32>
                %p = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
                %more = \"stablehlo.if\"(%p) ({
                  %t = stablehlo.multiply %k, %i : tensor<i32>
                  stablehlo.return %t : tensor<i32>
                }, {
                  stablehlo.return %one : tensor<i32>
                }) : (tensor<i1>) -> tensor<i32>
                %s = stablehlo.add %sum, %more : tensor<i32>
                %j = stablehlo.add %i, %one : tensor<i32>
                stablehlo.return %j, %s : tensor<i32>, tensor<i32>
              }
            return %r#0, %r#1 : tensor<i32>, tensor<i32>
        }";
        // 1 + 10*1 + 1 + 10*3 + 1
        assert_eq!(run(text, &[i32s(&[5.0])]), [i32s(&[5.0]), i32s(&[43.0])]);
    }

    #[test]
    fn a_loop_may_exchange_its_values() {
        let text = "func.func @main(%x: tensor<i32>, %y: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
            %yes = stablehlo.constant dense<true> : tensor<i1>
            %no = stablehlo.constant dense<false> : tensor<i1>
            %r:3 = stablehlo.while(%go = %yes, %a = %x, %b = %y) : tensor<i1>, tensor<i32>, tensor<i32>
              cond { stablehlo.return %go : tensor<i1> }
              do { stablehlo.return %no, %b, %a : tensor<i1>, tensor<i32>, tensor<i32> }
            return %r#1, %r#2 : tensor<i32>, tensor<i32>
        }";
        assert_eq!(run(text, &[i32s(&[1.0]), i32s(&[2.0])]), [i32s(&[2.0]), i32s(&[1.0])]);
    }

    #[test]
    fn reductions_combine_in_order_along_any_dimensions() {
        // The operation that returns its second operand is associative but not commutative: the last element
        // is the result.
        let reduce = |dims: &str, to: &str, body: &str| {
            format!(
                "func.func @main(%x: tensor<2x3x1xi32>, %init: tensor<i32>) -> tensor<{to}> {{
                  %r = stablehlo.reduce(%x init: %init) across dimensions = {dims} : (tensor<2x3x1xi32>, tensor<i32>) -> tensor<{to}>
                    reducer(%a: tensor<i32>, %b: tensor<i32>) {{ {body} }}
                  return %r : tensor<{to}>
                }}"
            )
        };
        let last = "stablehlo.return %b : tensor<i32>";
        let sum = "%s = stablehlo.add %a, %b : tensor<i32> stablehlo.return %s : tensor<i32>";
        let x = [i32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), i32s(&[10.0])];
        assert_eq!(run(&reduce("[1]", "2x1xi32", last), &x), [i32s(&[3.0, 6.0])]);
        assert_eq!(run(&reduce("[0, 1, 2]", "i32", last), &x), [i32s(&[6.0])]);
        assert_eq!(run(&reduce("[0, 2]", "3xi32", sum), &x), [i32s(&[15.0, 17.0, 19.0])]);
        assert_eq!(run(&reduce("[]", "2x3x1xi32", sum), &x), [i32s(&[11.0, 12.0, 13.0, 14.0, 15.0, 16.0])]);
    }

    #[test]
    fn a_reduction_of_nothing_is_its_initial_value() {
        let text = "func.func @main(%x: tensor<0x2xf32>, %init: tensor<f32>) -> tensor<2xf32> {
            %r = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>
            return %r : tensor<2xf32>
        }";
        assert_eq!(run(text, &[vec![], f32s(&[7.0])]), [f32s(&[7.0, 7.0])]);
    }

    #[test]
    fn products_contract_any_dimensions_and_batches() {
        let text = "func.func @main(%x: tensor<3x2x2xf32>, %y: tensor<2x2x3xf32>) -> tensor<2x2x2xf32> {
            %r = stablehlo.dot_general %x, %y, batching_dims = [1] x [0], contracting_dims = [0] x [2]
              : (tensor<3x2x2xf32>, tensor<2x2x3xf32>) -> tensor<2x2x2xf32>
            return %r : tensor<2x2x2xf32>
        }";
        let count = |from: i32| (from..from + 12).map(f64::from).collect::<Vec<_>>();
        let (x, y) = (count(0), count(1));
        let mut expected = Vec::new();
        for (batch, i, j) in (0..8).map(|n| (n / 4, n / 2 % 2, n % 2)) {
            expected.push((0..3).map(|k| x[k * 4 + batch * 2 + i] * y[batch * 6 + j * 3 + k]).sum());
        }
        assert_eq!(run(text, &[f32s(&x), f32s(&y)]), [f32s(&expected)]);
    }

    #[test]
    fn padding_may_be_inside_and_negative() {
        let text = "func.func @main(%x: tensor<4xf32>, %p: tensor<f32>) -> tensor<7xf32> {
            %r = stablehlo.pad %x, %p, low = [-1], high = [1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
            return %r : tensor<7xf32>
        }";
        let padded = [9.0, 2.0, 9.0, 3.0, 9.0, 4.0, 9.0];
        assert_eq!(run(text, &[f32s(&[1.0, 2.0, 3.0, 4.0]), f32s(&[9.0])]), [f32s(&padded)]);
    }

    #[test]
    fn slices_beyond_the_end_are_moved_inside() {
        let text = "func.func @main(%x: tensor<4xi32>, %at: tensor<i32>, %u: tensor<2xi32>) -> (tensor<2xi32>, tensor<4xi32>) {
            %s = stablehlo.dynamic_slice %x, %at, sizes = [2] : (tensor<4xi32>, tensor<i32>) -> tensor<2xi32>
            %r = stablehlo.dynamic_update_slice %x, %u, %at : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
            return %s, %r : tensor<2xi32>, tensor<4xi32>
        }";
        let (x, u) = (i32s(&[1.0, 2.0, 3.0, 4.0]), i32s(&[8.0, 9.0]));
        for (at, slice, updated) in
            [(-5.0, [1.0, 2.0], [8.0, 9.0, 3.0, 4.0]), (9.0, [3.0, 4.0], [1.0, 2.0, 8.0, 9.0])]
        {
            assert_eq!(run(text, &[x.clone(), i32s(&[at]), u.clone()]), [i32s(&slice), i32s(&updated)]);
        }
    }

    #[test]
    fn what_the_device_lacks_is_made_of_what_it_has() {
        let text = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
            %0 = stablehlo.logistic %x : tensor<3xf32>
            %1 = stablehlo.rsqrt %0 : tensor<3xf32>
            %2 = func.call @sign(%1) : (tensor<3xf32>) -> tensor<3xf32>
            return %2 : tensor<3xf32>
        }
        func.func private @sign(%x: tensor<3xf32>) -> tensor<3xf32> {
            %0 = stablehlo.sign %x : tensor<3xf32>
            return %0 : tensor<3xf32>
        }";
        assert_eq!(run(text, &[f32s(&[-1.0, 0.0, 1.0])]), [f32s(&[1.0, 1.0, 1.0])]);
    }

    #[test]
    fn what_the_device_cannot_do_is_refused_with_operation_type_and_place() {
        let refused = |text: &str, parts: &[&str]| {
            let error = compile(text).err().unwrap();
            assert_eq!(error.code(), pjrt_plugin::ErrorCode::Unimplemented);
            for part in parts {
                assert!(error.message().contains(part), "{part}: {error}");
            }
        };
        let half = "func.func @main(%x: tensor<3xf16>) -> tensor<3xf16> {
            %0 = stablehlo.add %x, %x : tensor<3xf16> loc(\"model.py\":7:1)
            return %0 : tensor<3xf16>
        }";
        refused(half, &["stablehlo.add", "tensor<3xf16>", "model.py\":7:1"]);
        let power = half.replace("f16", "i32").replace("add", "power");
        refused(&power, &["stablehlo.power", "tensor<3xi32>"]);
        let call = "func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
            %0 = stablehlo.custom_call @mine(%x) : (tensor<3xf32>) -> tensor<3xf32>
            return %0 : tensor<3xf32>
        }";
        refused(call, &["stablehlo.custom_call @mine"]);
    }

    #[test]
    fn scratch_memory_is_used_again() {
        let step = "%a = stablehlo.add %x, %x : tensor<64xf32>\n";
        let text: String = (0..20)
            .map(|i| step.replace("%x", &format!("%v{i}")).replace("%a", &format!("%v{}", i + 1)))
            .collect();
        let text = format!(
            "func.func @main(%v0: tensor<64xf32>) -> tensor<64xf32> {{\n{text} return %v20 : tensor<64xf32>\n}}"
        );
        assert_eq!(compile(&text).unwrap().scratch_size, 2 * 256, "one operand and one result at a time");
        let ones = f32s(&[1.0; 64]);
        assert_eq!(run(&text, &[ones]), [f32s(&[f64::from(1 << 20); 64])]);
    }

    #[test]
    fn integers_wrap_and_divide_as_xla_has_it() {
        let text = "func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
            %0 = stablehlo.multiply %x, %x : tensor<4xi32>
            %1 = stablehlo.divide %x, %y : tensor<4xi32>
            %2 = stablehlo.remainder %x, %y : tensor<4xi32>
            return %0, %1, %2 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
        }";
        let min = f64::from(i32::MIN);
        let results = run(text, &[i32s(&[65536.0, 7.0, min, -7.0]), i32s(&[1.0, 0.0, -1.0, 2.0])]);
        let expected =
            [i32s(&[0.0, 49.0, 0.0, 49.0]), i32s(&[65536.0, -1.0, min, -3.0]), i32s(&[0.0, 7.0, 0.0, -1.0])];
        assert_eq!(results, expected);
    }

    #[test]
    fn nothing_is_equal_to_nan_and_conversions_stay_in_range() {
        let text = "func.func @main(%x: tensor<3xf32>) -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi8>) {
            %0 = stablehlo.compare EQ, %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
            %1 = stablehlo.compare NE, %x, %x, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
            %2 = stablehlo.convert %x : (tensor<3xf32>) -> tensor<3xi8>
            return %0, %1, %2 : tensor<3xi1>, tensor<3xi1>, tensor<3xi8>
        }";
        let results = run(text, &[f32s(&[f64::NAN, 300.5, -2.9])]);
        assert_eq!(results, [vec![0, 1, 1], vec![0, 0, 0], vec![0, 127, 0xfe]]);
    }
}
