//! The device's processor, which executes a program one command at a time.
//!
//! A command loads its operands from memory into registers, computes, and stores its results. (A processor with fewer
//! registers would process one tile at a time.)

use pjrt_plugin::{Error, Result};

use crate::array::{Array, Place};
use crate::commands::{Block, Command, Id, Location, Program, Value};
use crate::element_type::{float, from_float, from_integer, integer, load, store};
use crate::indexing::Windows;
use crate::kernel::Kernel;
use crate::movement::{for_each_index, gather, insert};
use crate::ram::Ram;

/// The elements of an array in registers.
type Registers = Vec<u64>;

/// The state of an execution.
pub(crate) struct Processor<'a> {
    pub(crate) program: &'a Program,
    pub(crate) ram: &'a Ram,
    /// The address of the scratch memory.
    pub(crate) scratch: usize,
    pub(crate) arguments: &'a [Array],
}

impl<'a> Processor<'a> {
    /// Executes the program, and writes its results. Their memory may overlap the arguments, which are read first.
    ///
    /// # Errors
    ///
    /// Returns an error if an access to the memory fails, or RESOURCE_EXHAUSTED if a constant does not fit into host memory.
    pub(crate) fn run(&self, outputs: &[Array]) -> Result<()> {
        let results = self.block(&self.program.main)?;
        for ((output, id), registers) in outputs.iter().zip(&self.program.main.results).zip(results) {
            output.write(self.ram, store(&registers, self.value(*id).ty.byte_width()))?;
        }
        Ok(())
    }

    /// Executes the commands of a block, and loads the values that it returns.
    fn block(&self, block: &Block) -> Result<Vec<Registers>> {
        for command in &block.commands {
            let results = match command {
                Command::If { condition, branches: [then, otherwise], .. } => {
                    self.block(if self.scalar(*condition)? != 0 { then } else { otherwise })?
                }
                Command::While { init, condition, body, to } => {
                    self.store_all(to, self.load_all(init)?)?;
                    while self.block(condition)?[0][0] != 0 {
                        self.store_all(to, self.block(body)?)?;
                    }
                    continue;
                }
                command => self.compute(command)?,
            };
            self.store_all(command.writes(), results)?;
        }
        self.load_all(&block.results)
    }

    /// Computes the results of a command that has no blocks.
    fn compute(&self, command: &Command) -> Result<Vec<Registers>> {
        let to = self.value(command.writes()[0]);
        let registers = match command {
            Command::Constant { literal, .. } => {
                let dense =
                    literal.dense_bytes().map_err(|error| Error::resource_exhausted(error.to_string()))?;
                load(&dense, to.ty.byte_width())
            }
            Command::Iota { dimension, .. } => {
                let mut elements = Vec::new();
                for_each_index(&to.dims, |index| elements.push(number(to, index[*dimension])));
                elements
            }
            Command::Copy { from, .. } => self.load(*from)?,
            Command::Compute { kernel, .. } => self.map(kernel, to)?,
            Command::Move { from, axes, starts, outside, .. } => {
                let dims = &self.value(*from).dims;
                let start = self.clamped(starts, dims, &to.dims)?;
                let outside = outside.map_or(Ok(0), |value| self.scalar(value))?;
                gather(&self.load(*from)?, dims, &to.dims, axes, &start, outside)
            }
            Command::Insert { base, blocks, starts, .. } => {
                let mut whole = match base {
                    Some(base) => self.load(*base)?,
                    None => vec![0; to.dims.iter().product::<i64>() as usize],
                };
                for (block, at) in blocks {
                    let dims = &self.value(*block).dims;
                    let start = self.clamped(starts, &to.dims, dims)?;
                    let at: Vec<i64> =
                        at.iter().enumerate().map(|(d, at)| at + start.get(d).unwrap_or(&0)).collect();
                    insert(&mut whole, &to.dims, &self.load(*block)?, dims, &at);
                }
                whole
            }
            Command::Product { .. } => self.product(command, to)?,
            Command::Reduce { arrays, init, width, kernel, to } => {
                return self.reduce(&self.load_all(arrays)?, &self.load_all(init)?, *width, kernel, to);
            }
            Command::Gather { from, indices, windows, .. } => {
                let (elements, dims) = (self.load(*from)?, &self.value(*from).dims);
                let (starts, of_indices) = (self.load(*indices)?, self.value(*indices));
                let start = |at: usize| integer(of_indices.ty, starts[at]);
                let mut gathered = Vec::new();
                for_each_index(&to.dims, |index| {
                    let at = windows.position(index, dims, &of_indices.dims, start);
                    gathered.push(at.map_or(0, |at| elements[at]));
                });
                gathered
            }
            Command::Scatter { arrays, indices, updates, windows, kernel, .. } => {
                return self.scatter(arrays, *indices, updates, windows, kernel);
            }
            Command::If { .. } | Command::While { .. } => {
                unreachable!("blocks are executed by their command")
            }
        };
        Ok(vec![registers])
    }

    /// Runs a kernel for every element of the result. A captured array of one element is broadcast.
    fn map(&self, kernel: &Kernel, to: &Value) -> Result<Registers> {
        let captured = self.load_all(&kernel.captured)?;
        let mut registers = Vec::new();
        let element = |index: usize| {
            let at = |array: usize| captured[array][if captured[array].len() == 1 { 0 } else { index }];
            kernel.run(&[], at, &mut registers)[0]
        };
        Ok((0..to.dims.iter().product::<i64>() as usize).map(element).collect())
    }

    fn product(&self, command: &Command, to: &Value) -> Result<Registers> {
        let Command::Product { lhs, rhs, batches, rows, columns, depth, .. } = command else {
            return Ok(Vec::new());
        };
        let (x, y) = (self.load(*lhs)?, self.load(*rhs)?);
        let (x_ty, y_ty) = (self.value(*lhs).ty, self.value(*rhs).ty);
        let dot = |x: &[u64], y: &[u64]| {
            let pairs = x.iter().zip(y);
            if to.ty.is_float() {
                return from_float(pairs.map(|(x, y)| float(*x) * float(*y)).sum());
            }
            let terms = pairs.map(|(x, y)| integer(x_ty, *x).wrapping_mul(integer(y_ty, *y)));
            from_integer(to.ty, terms.fold(0, i128::wrapping_add))
        };
        let mut products = Vec::with_capacity(batches * rows * columns);
        for batch in 0..*batches {
            for row in 0..*rows {
                let x = &x[(batch * rows + row) * depth..][..*depth];
                let column = |column: usize| dot(x, &y[(batch * columns + column) * depth..][..*depth]);
                products.extend((0..*columns).map(column));
            }
        }
        Ok(products)
    }

    /// Reduces `width` consecutive elements of the arrays at a time.
    fn reduce(
        &self,
        arrays: &[Registers],
        init: &[Registers],
        width: usize,
        kernel: &Kernel,
        to: &[Id],
    ) -> Result<Vec<Registers>> {
        let captured = self.load_all(&kernel.captured)?;
        let init: Vec<u64> = init.iter().map(|init| init[0]).collect();
        let mut registers = Vec::new();
        let mut combine = |lhs: &[u64], rhs: &[u64]| {
            kernel.run(&[lhs, rhs].concat(), |array| captured[array][0], &mut registers)
        };
        let mut results = vec![Vec::new(); to.len()];
        let length = self.value(to[0]).dims.iter().product::<i64>() as usize;
        for first in (0..length).map(|row| row * width) {
            let row = (first..first + width).map(|at| arrays.iter().map(|array| array[at]).collect());
            let row: Vec<Vec<u64>> = row.collect();
            let reduced = match width {
                0 => init.clone(),
                _ => {
                    let all = tree(row, &mut combine);
                    combine(&init, &all)
                }
            };
            results.iter_mut().zip(reduced).for_each(|(result, element)| result.push(element));
        }
        Ok(results)
    }

    fn scatter(
        &self,
        arrays: &[Id],
        indices: Id,
        updates: &[Id],
        windows: &Windows,
        kernel: &Kernel,
    ) -> Result<Vec<Registers>> {
        let (mut results, dims) = (self.load_all(arrays)?, &self.value(arrays[0]).dims);
        let (starts, of_indices) = (self.load(indices)?, self.value(indices));
        let (elements, captured) = (self.load_all(updates)?, self.load_all(&kernel.captured)?);
        let mut registers = Vec::new();
        let mut number = 0;
        for_each_index(&self.value(updates[0]).dims, |index| {
            let start = |at: usize| integer(of_indices.ty, starts[at]);
            if let Some(at) = windows.position(index, dims, &of_indices.dims, start) {
                let old = results.iter().map(|array| array[at]);
                let parameters: Vec<u64> = old.chain(elements.iter().map(|update| update[number])).collect();
                let new = kernel.run(&parameters, |array| captured[array][0], &mut registers);
                results.iter_mut().zip(new).for_each(|(array, element)| array[at] = element);
            }
            number += 1;
        });
        Ok(results)
    }

    /// Returns the start of a slice that is clamped so that the slice lies within the array.
    fn clamped(&self, starts: &[Id], dims: &[i64], sizes: &[i64]) -> Result<Vec<i64>> {
        let last = dims.iter().zip(sizes).map(|(dim, size)| i128::from(dim - size));
        let start = |(start, last): (&Id, i128)| {
            Ok(integer(self.value(*start).ty, self.scalar(*start)?).clamp(0, last) as i64)
        };
        starts.iter().zip(last).map(start).collect()
    }

    fn value(&self, id: Id) -> &'a Value {
        &self.program.values[id]
    }

    fn array(&self, id: Id) -> Array {
        let Value { rows, location, .. } = *self.value(id);
        match location {
            Location::Argument(index) => self.arguments[index].clone(),
            Location::Scratch(offset) => Array { rows, place: Place::Device(self.scratch + offset) },
            Location::None => unreachable!("a value inside a kernel is not in memory"),
        }
    }

    fn load(&self, id: Id) -> Result<Registers> {
        Ok(load(&self.array(id).read(self.ram)?, self.value(id).ty.byte_width()))
    }

    fn scalar(&self, id: Id) -> Result<u64> {
        Ok(self.load(id)?[0])
    }

    fn load_all(&self, ids: &[Id]) -> Result<Vec<Registers>> {
        ids.iter().map(|id| self.load(*id)).collect()
    }

    fn store_all(&self, ids: &[Id], results: Vec<Registers>) -> Result<()> {
        let store = |(id, registers): (&Id, Registers)| {
            self.array(*id).write(self.ram, store(&registers, self.value(*id).ty.byte_width()))
        };
        ids.iter().zip(results).try_for_each(store)
    }
}

/// Reduces rows of elements of several arrays together. Neighboring elements are combined first, then neighboring results, and so
/// on: sums of many numbers are more accurate in this order.
fn tree(mut row: Vec<Vec<u64>>, combine: &mut impl FnMut(&[u64], &[u64]) -> Vec<u64>) -> Vec<u64> {
    while row.len() > 1 {
        row = row
            .chunks(2)
            .map(|pair| if let [x, y] = pair { combine(x, y) } else { pair[0].clone() })
            .collect();
    }
    row.pop().unwrap_or_default()
}

/// Converts an integer to an element of a value's type.
fn number(value: &Value, number: i64) -> u64 {
    if value.ty.is_float() { from_float(number as f32) } else { from_integer(value.ty, i128::from(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_stablehlo::passes::{CoreOps, decompose};

    use crate::lowering::lower;
    use crate::operations::OPERATIONS;

    fn compile(text: &str) -> Result<Program> {
        let core = CoreOps::from_ops(OPERATIONS.iter().copied());
        let module =
            pjrt_stablehlo::parse(text.as_bytes().to_vec()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let module = decompose(&module, &core).unwrap_or_else(|e| panic!("{e}\n{text}"));
        lower(module.main().unwrap())
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
        let ram = Ram::new(1 << 16).unwrap();
        let mut scratch = 0;
        let values = program.arguments.iter().zip(arguments);
        let arguments: Vec<Array> = values
            .map(|(value, dense)| {
                let rows = program.values[*value].rows;
                assert_eq!(dense.len(), rows.dense_size());
                let array = Array { rows, place: Place::Device(scratch) };
                scratch += rows.padded_size();
                array.write(&ram, dense.clone()).unwrap();
                array
            })
            .collect();
        let outputs: Vec<Array> = program
            .main
            .results
            .iter()
            .map(|value| Array { rows: program.values[*value].rows, place: Place::Host(Default::default()) })
            .collect();
        Processor { program: &program, ram: &ram, scratch, arguments: &arguments }.run(&outputs).unwrap();
        outputs.iter().map(|output| output.read(&ram).unwrap()).collect()
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
