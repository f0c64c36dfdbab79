//! Programs of the device, and the compiler from StableHLO to them.
//!
//! The device has commands that compute element by element, and commands that sum products along dimensions. The second kind
//! includes copies in another order, broadcasts, matrix products and reductions.

use pjrt_plugin::layout::{dense_size, row_major_strides};
use pjrt_plugin::queue::AddressSpace;
use pjrt_plugin::{ArraySpec, Error, Result};
use pjrt_stablehlo::ir::{Body, ElementType, Function, Op, OpCode, Operation, Reducer, ValueId};
use pjrt_stablehlo::passes::CoreOps;

/// The alignment of arrays in the memory of a device.
pub const ALIGNMENT: usize = 64;

/// The commands of a program. Its values have numbers, and an address when the program is launched.
pub struct Program {
    pub commands: Vec<Command>,
    pub values: Vec<Value>,
    pub temporary_size: usize,
    pub arguments: Vec<usize>,
    pub results: Vec<usize>,
}

/// A value of a program: an array of f32.
pub struct Value {
    pub dims: Vec<i64>,
    /// The offset in the temporary memory, which arguments do not use.
    pub offset: usize,
}

/// A command of the device: reads arrays, and writes one.
pub struct Command {
    pub kernel: Kernel,
    pub operands: Vec<usize>,
    pub result: usize,
}

/// The function that a command computes.
pub enum Kernel {
    Constant(Vec<f32>),
    Unary(fn(f32) -> f32),
    Binary(fn(f32, f32) -> f32),
    /// Each element of the result is the sum of products of elements of the first operands, and of the initial value, which is
    /// the last operand, if there is one.
    Contraction {
        /// The number of dimensions of the result.
        rank: usize,
        /// The dimensions of the result, and then those along which products are summed.
        dims: Vec<i64>,
        /// The strides of each of the first operands along these dimensions, in elements.
        strides: Vec<Vec<i64>>,
    },
}

/// Returns the operations of the device. `decompose` expresses the others in terms of these, or refuses them.
pub fn core_ops() -> CoreOps {
    let elementwise = [OpCode::Add, OpCode::Subtract, OpCode::Multiply, OpCode::Divide, OpCode::Negate];
    let functions = [OpCode::Exponential, OpCode::Log, OpCode::Tanh, OpCode::Constant];
    let contractions = [OpCode::BroadcastInDim, OpCode::DotGeneral, OpCode::Reshape, OpCode::Transpose];
    CoreOps::from_ops(elementwise.into_iter().chain(functions).chain(contractions))
        .with_condition(OpCode::Reduce, is_sum)
        .named("the tutorial device")
        .for_elements([ElementType::F32])
}

/// Returns `true` if a reduction adds the elements of one array.
fn is_sum(body: &Body, op: &Operation) -> bool {
    Reducer::of(body, op.regions[0]) == Some(Reducer::Add)
}

/// Translates a function that contains only [`core_ops`].
pub fn compile(main: &Function) -> Result<Program> {
    let mut space = AddressSpace::new(usize::MAX, ALIGNMENT);
    let mut values = Vec::new();
    for (_, value) in main.body.values() {
        let spec = ArraySpec::try_from(&value.ty)?;
        if spec.element_type() != pjrt_plugin::ElementType::F32 {
            return Err(Error::unimplemented(format!(
                "the tutorial device computes f32, but found {spec:?}"
            )));
        }
        let dims = spec.dims().to_vec();
        let offset = space.allocate(dense_size(&dims, 4)?);
        let offset = offset.ok_or_else(|| Error::resource_exhausted("the program has too many values"))?;
        values.push(Value { dims, offset });
    }
    let ops = main.ops().filter(|(_, op)| !matches!(op.kind, Op::FuncReturn(_)));
    let command = |op: &Operation| {
        Ok(Command {
            kernel: kernel(op, &values)?,
            operands: op.operands.iter().map(|operand| operand.index()).collect(),
            result: op.result().index(),
        })
    };
    Ok(Program {
        commands: ops.map(|(_, op)| command(op)).collect::<Result<_>>()?,
        values,
        temporary_size: space.highest(),
        arguments: main.arguments().iter().map(|value| value.index()).collect(),
        results: main.returned().iter().map(|value| value.index()).collect(),
    })
}

fn kernel(op: &Operation, values: &[Value]) -> Result<Kernel> {
    let dims = |value: ValueId| values[value.index()].dims.clone();
    let strides = |value: ValueId| row_major_strides(&values[value.index()].dims, 1);
    Ok(match &op.kind {
        Op::Add(_) => Kernel::Binary(|x, y| x + y),
        Op::Subtract(_) => Kernel::Binary(|x, y| x - y),
        Op::Multiply(_) => Kernel::Binary(|x, y| x * y),
        Op::Divide(_) => Kernel::Binary(|x, y| x / y),
        Op::Negate(_) => Kernel::Unary(|x| -x),
        Op::Exponential(_) => Kernel::Unary(f32::exp),
        Op::Log(_) => Kernel::Unary(f32::ln),
        Op::Tanh(_) => Kernel::Unary(f32::tanh),
        Op::Reshape(_) => Kernel::Unary(|x| x),
        Op::Constant(constant) => {
            let bytes =
                constant.value.dense_bytes().map_err(|error| Error::resource_exhausted(error.to_string()))?;
            Kernel::Constant(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        Op::BroadcastInDim(broadcast) => {
            let (dims, from) = (dims(op.result()), dims(op.operand(0)));
            let mut along = vec![0; dims.len()];
            for (d, stride) in strides(op.operand(0)).into_iter().enumerate().filter(|(d, _)| from[*d] != 1) {
                along[broadcast.broadcast_dimensions[d] as usize] = stride;
            }
            Kernel::Contraction { rank: dims.len(), dims, strides: vec![along] }
        }
        Op::Transpose(transpose) => {
            let along = picked(&strides(op.operand(0)), &transpose.permutation);
            Kernel::Contraction { rank: along.len(), dims: dims(op.result()), strides: vec![along] }
        }
        Op::Reduce(reduce) => {
            let (operand, along) = (dims(op.operand(0)), strides(op.operand(0)));
            let order = [&others(&operand, &[&reduce.dimensions]), &*reduce.dimensions].concat();
            let (rank, strides) = (dims(op.result()).len(), vec![picked(&along, &order)]);
            Kernel::Contraction { rank, dims: picked(&operand, &order), strides }
        }
        Op::DotGeneral(dot) => {
            let (numbers, [lhs, rhs]) = (&dot.dot_dimension_numbers, [op.operand(0), op.operand(1)]);
            let (batch, inner) = (&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions);
            let rows = others(&dims(lhs), &[batch, inner]);
            let left = picked(&strides(lhs), &[batch, &*rows].concat());
            let depth = (picked(&dims(lhs), inner), picked(&strides(lhs), inner));
            let (batch, inner) = (&numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions);
            let columns = picked(&strides(rhs), &others(&dims(rhs), &[batch, inner]));
            let right = [picked(&strides(rhs), batch), vec![0; rows.len()], columns.clone()];
            Kernel::Contraction {
                rank: dims(op.result()).len(),
                dims: [dims(op.result()), depth.0].concat(),
                strides: vec![
                    [left, vec![0; columns.len()], depth.1].concat(),
                    [right.concat(), picked(&strides(rhs), inner)].concat(),
                ],
            }
        }
        kind => return Err(Error::internal(format!("the tutorial device has no command for {kind}"))),
    })
}

/// Returns the elements of a list at these indices.
fn picked(list: &[i64], indices: &[i64]) -> Vec<i64> {
    indices.iter().map(|index| list[*index as usize]).collect()
}

/// Returns the dimensions of an array that are not in the lists.
fn others(dims: &[i64], lists: &[&[i64]]) -> Vec<i64> {
    (0..dims.len() as i64).filter(|d| !lists.iter().any(|list| list.contains(d))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sums_of_both_arguments_are_sums() {
        for (region, expected) in [
            ("stablehlo.add %a, %b", true),
            ("stablehlo.add %b, %a", true),
            ("stablehlo.add %a, %a", false),
            ("stablehlo.add %a, %y", false),
            ("stablehlo.maximum %a, %b", false),
        ] {
            let text = format!(
                "func.func @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<f32> {{
                    %0 = stablehlo.reduce(%x init: %y) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
                        reducer(%a: tensor<f32>, %b: tensor<f32>) {{
                            %r = {region} : tensor<f32>
                            stablehlo.return %r : tensor<f32>
                        }}
                    return %0 : tensor<f32>
                }}"
            );
            let module = pjrt_stablehlo::parse(text.into_bytes()).unwrap();
            let main = module.main().unwrap();
            let (_, op) = main.ops().next().unwrap();
            assert_eq!(core_ops().supports(&main.body, op), expected, "{region}");
        }
    }
}
