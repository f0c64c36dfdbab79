//! The device's processor, which executes a program one command at a time.
//!
//! A command loads its operands from memory into registers, computes, and stores its results. (A processor with fewer
//! registers would process one tile at a time.)

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::indexing::{Windows, for_each_index};
use pjrt_stablehlo::ir::scalar::{float, from_float, from_integer, integer, load, store};

use crate::array::{Array, Place};
use crate::commands::{Block, Command, Kind, Location, Program, Value};
use crate::kernel::{Id, Kernel};
use crate::movement::{Axis, gather, insert};
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
            let operands = self.load_all(&command.reads)?;
            let results = match command.kind {
                Kind::If => self.block(&command.blocks[usize::from(operands[0][0] == 0)])?,
                Kind::While => {
                    // The state is in the memory of the results.
                    self.store_all(&command.writes, operands)?;
                    while self.block(&command.blocks[0])?[0][0] != 0 {
                        self.store_all(&command.writes, self.block(&command.blocks[1])?)?;
                    }
                    continue;
                }
                _ => self.compute(command, &operands)?,
            };
            self.store_all(&command.writes, results)?;
        }
        self.load_all(&block.results)
    }

    /// Computes the results of a command that has no blocks.
    fn compute(&self, command: &Command, x: &[Registers]) -> Result<Vec<Registers>> {
        let to = self.value(command.writes[0]);
        let from: Vec<&Value> = command.reads.iter().map(|id| self.value(*id)).collect();
        Ok(vec![match &command.kind {
            Kind::Constant(literal) => {
                let dense =
                    literal.dense_bytes().map_err(|error| Error::resource_exhausted(error.to_string()))?;
                load(&dense, to.ty.byte_width())
            }
            Kind::Iota(dimension) => {
                let mut elements = Vec::new();
                for_each_index(&to.dims, |index| elements.push(number(to, index[*dimension])));
                elements
            }
            Kind::Copy => x[0].clone(),
            Kind::Compute(kernel) => map(kernel, to.len(), x),
            Kind::Move { axes, is_padded } => moved(axes, *is_padded, &from, x, to),
            Kind::Join(dimension) => join(*dimension, &from, x),
            Kind::Update => {
                let mut updated = x[0].clone();
                let start = clamped(&from[2..], &x[2..], &to.dims, &from[1].dims);
                insert(&mut updated, &to.dims, &x[1], &from[1].dims, &start);
                updated
            }
            Kind::Product { batches, depth } => product(*batches, *depth, &from, x, to),
            Kind::Reduce { width, kernel } => {
                return Ok(reduce(*width, kernel, x, command.writes.len(), to.len()));
            }
            Kind::Gather(windows) => {
                let mut gathered = Vec::new();
                let start = |at: usize| integer(from[1].ty, x[1][at]);
                for_each_index(&to.dims, |index| {
                    let at = windows.position(index, &from[0].dims, &from[1].dims, start);
                    gathered.push(at.map_or(0, |at| x[0][at]));
                });
                gathered
            }
            Kind::Scatter(windows, kernel) => {
                return Ok(scatter(windows, kernel, command.writes.len(), &from, x));
            }
            Kind::If | Kind::While => unreachable!("blocks are executed by their command"),
        }])
    }

    fn value(&self, id: Id) -> &'a Value {
        &self.program.values[id]
    }

    fn array(&self, id: Id) -> Array {
        let value = self.value(id);
        match value.location {
            Location::Argument(index) => self.arguments[index].clone(),
            Location::Scratch(offset) => {
                Array { size: value.size(), place: Place::Device(self.scratch + offset) }
            }
            Location::None => unreachable!("a value inside a kernel is not in memory"),
        }
    }

    fn load_all(&self, ids: &[Id]) -> Result<Vec<Registers>> {
        let load = |id: &Id| Ok(load(&self.array(*id).read(self.ram)?, self.value(*id).ty.byte_width()));
        ids.iter().map(load).collect()
    }

    fn store_all(&self, ids: &[Id], results: Vec<Registers>) -> Result<()> {
        let store = |(id, registers): (&Id, Registers)| {
            self.array(*id).write(self.ram, store(&registers, self.value(*id).ty.byte_width()))
        };
        ids.iter().zip(results).try_for_each(store)
    }
}

/// Runs a kernel for every element of the result. A captured array of one element is broadcast.
fn map(kernel: &Kernel, len: usize, x: &[Registers]) -> Registers {
    let mut registers = Vec::new();
    let element = |index: usize| {
        let captured = |array: usize| x[array][if x[array].len() == 1 { 0 } else { index }];
        kernel.run(&[], captured, &mut registers)[0]
    };
    (0..len).map(element).collect()
}

fn moved(axes: &[Axis], is_padded: bool, from: &[&Value], x: &[Registers], to: &Value) -> Registers {
    let starts = 1 + usize::from(is_padded);
    let start = clamped(&from[starts..], &x[starts..], &from[0].dims, &to.dims);
    gather(&x[0], &from[0].dims, &to.dims, axes, &start, if is_padded { x[1][0] } else { 0 })
}

fn join(dimension: usize, from: &[&Value], x: &[Registers]) -> Registers {
    let rows = from[0].dims[..dimension].iter().product::<i64>() as usize;
    let row = |row: usize| {
        let part = move |part: &'_ Registers| {
            let width = part.len() / rows;
            part[row * width..][..width].to_vec()
        };
        x.iter().flat_map(part).collect::<Registers>()
    };
    (0..rows).flat_map(row).collect()
}

fn product(batches: usize, depth: usize, from: &[&Value], x: &[Registers], to: &Value) -> Registers {
    let (lhs, rhs) = (from[0].ty, from[1].ty);
    let dot = |x: &[u64], y: &[u64]| {
        let pairs = x.iter().zip(y);
        if to.ty.is_float() {
            return from_float(to.ty, pairs.map(|(x, y)| float(lhs, *x) * float(rhs, *y)).sum());
        }
        let terms = pairs.map(|(x, y)| integer(lhs, *x).wrapping_mul(integer(rhs, *y)));
        from_integer(to.ty, terms.fold(0, i128::wrapping_add))
    };
    if depth == 0 || to.len() == 0 {
        return vec![0; to.len()];
    }
    let matrices = |array: usize| x[array].chunks(x[array].len() / batches);
    let pairs = matrices(0).zip(matrices(1));
    let rows = pairs.flat_map(|(x, y)| x.chunks(depth).map(move |row| (row, y)));
    rows.flat_map(|(row, y)| y.chunks(depth).map(move |column| dot(row, column))).collect()
}

/// Reduces `width` consecutive elements of several arrays together, `len` times.
fn reduce(width: usize, kernel: &Kernel, x: &[Registers], num_arrays: usize, len: usize) -> Vec<Registers> {
    let (arrays, others) = x.split_at(num_arrays);
    let (init, captured) = others.split_at(num_arrays);
    let init: Vec<u64> = init.iter().map(|init| init[0]).collect();
    let mut registers = Vec::new();
    let mut combine =
        |x: &[u64], y: &[u64]| kernel.run(&[x, y].concat(), |array| captured[array][0], &mut registers);
    let mut results = vec![Vec::new(); num_arrays];
    for first in (0..len).map(|row| row * width) {
        let row = (first..first + width).map(|at| arrays.iter().map(|array| array[at]).collect());
        let reduced = match tree(row.collect(), &mut combine) {
            Some(all) => combine(&init, &all),
            None => init.clone(),
        };
        results.iter_mut().zip(reduced).for_each(|(result, element)| result.push(element));
    }
    results
}

/// Reduces rows of elements of several arrays together. Neighboring elements are combined first, then neighboring results, and so
/// on: sums of many numbers are more accurate in this order.
fn tree(mut row: Vec<Vec<u64>>, combine: &mut impl FnMut(&[u64], &[u64]) -> Vec<u64>) -> Option<Vec<u64>> {
    while row.len() > 1 {
        row = row
            .chunks(2)
            .map(|pair| if let [x, y] = pair { combine(x, y) } else { pair[0].clone() })
            .collect();
    }
    row.pop()
}

fn scatter(
    windows: &Windows,
    kernel: &Kernel,
    num_arrays: usize,
    from: &[&Value],
    x: &[Registers],
) -> Vec<Registers> {
    let mut results = x[..num_arrays].to_vec();
    let (updates, captured) = x[num_arrays + 1..].split_at(num_arrays);
    let (indices, starts) = (from[num_arrays], &x[num_arrays]);
    let (mut registers, mut number) = (Vec::new(), 0);
    for_each_index(&from[num_arrays + 1].dims, |index| {
        let start = |at: usize| integer(indices.ty, starts[at]);
        if let Some(at) = windows.position(index, &from[0].dims, &indices.dims, start) {
            let old = results.iter().map(|array| array[at]);
            let parameters: Vec<u64> = old.chain(updates.iter().map(|update| update[number])).collect();
            let new = kernel.run(&parameters, |array| captured[array][0], &mut registers);
            results.iter_mut().zip(new).for_each(|(array, element)| array[at] = element);
        }
        number += 1;
    });
    results
}

/// Returns the start of a slice, which is clamped so that the slice lies within the array.
fn clamped(starts: &[&Value], x: &[Registers], dims: &[i64], sizes: &[i64]) -> Vec<i64> {
    let last = dims.iter().zip(sizes).map(|(dim, size)| i128::from(dim - size));
    let starts = starts.iter().zip(x).map(|(start, x)| integer(start.ty, x[0]));
    starts.zip(last).map(|(start, last)| start.clamp(0, last) as i64).collect()
}

/// Converts an integer to an element of a value's type.
fn number(value: &Value, number: i64) -> u64 {
    if value.ty.is_float() {
        from_float(value.ty, number as f64)
    } else {
        from_integer(value.ty, i128::from(number))
    }
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
        let ram = Ram::new("chip", 1 << 16).unwrap();
        let mut scratch = 0;
        let values = program.main.arguments.iter().zip(arguments);
        let arguments: Vec<Array> = values
            .map(|(value, dense)| {
                let size = program.values[*value].size();
                assert_eq!(dense.len(), size);
                let array = Array { size, place: Place::Device(scratch) };
                scratch += size;
                array.write(&ram, dense.clone()).unwrap();
                array
            })
            .collect();
        let outputs: Vec<Array> = program
            .main
            .results
            .iter()
            .map(|value| Array {
                size: program.values[*value].size(),
                place: Place::Host(Default::default()),
            })
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
        let shift = half.replace("f16", "ui32").replace("add", "shift_right_arithmetic");
        refused(&shift, &["stablehlo.shift_right_arithmetic", "tensor<3xui32>"]);
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
