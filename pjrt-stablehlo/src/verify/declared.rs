//! Rules about declared result types that do not follow from the operands.

use crate::Constraint::{self, C};
use crate::Error;
use crate::infer::{Context, custom_call, manual_computation, shapes_agree, sizes_agree, uniform_quantize};
use crate::ir::{
    Attribute, ChannelHandle, DYNAMIC, ElementType, Op, QuantizedType, ReplicaGroups, TensorType, Type,
};

/// An operation with the declared types of its results, whose numbers and kinds have been checked.
struct Declared<'c, 'a> {
    cx: &'c Context<'a>,
}

/// Checks the declared types of an operation's results.
pub(super) fn check(cx: &Context<'_>) -> Result<(), Error> {
    let types = || cx.op.results.map(|value| cx.body.ty(value).clone()).collect::<Vec<Type>>();
    match &cx.op.kind {
        Op::CustomCall(op) => return custom_call(cx, op, &types()),
        Op::ManualComputation(op) => return manual_computation(cx, op, &types()),
        Op::Infeed(op) => return infeed(cx, &types(), op.layout.as_deref()),
        Op::Recv(_) => return received(cx, &types(), [None, None]),
        _ => {}
    }
    let declared = Declared { cx };
    let Some(result) = declared.results().next() else { return Ok(()) };
    match &cx.op.kind {
        Op::Add(_) => declared.add(result),
        Op::AllGather(op) => declared.all_gather(op.all_gather_dim as usize),
        Op::BitcastConvert(_) => declared.bitcast_convert(result),
        Op::BroadcastInDim(op) => declared.broadcast_in_dim(result, &op.broadcast_dimensions),
        Op::Convolution(op) => {
            let numbers = &op.dimension_numbers;
            declared.convolution(
                result,
                numbers.kernel_output_feature_dimension,
                numbers.output_feature_dimension,
            )
        }
        Op::DotGeneral(op) => {
            declared.dot_general(result, &op.dot_dimension_numbers.rhs_contracting_dimensions)
        }
        Op::DynamicBroadcastInDim(op) => declared.broadcast_in_dim(result, &op.broadcast_dimensions),
        Op::DynamicConv(op) => {
            let numbers = &op.dimension_numbers;
            declared.convolution(
                result,
                numbers.kernel_output_feature_dimension,
                numbers.output_feature_dimension,
            )
        }
        Op::DynamicReshape(_) | Op::Reshape(_) => declared.reshape(result),
        Op::Iota(op) => cx.dimension(C(1), "iota_dimension", op.iota_dimension, result.rank()).map(|_| ()),
        Op::ReduceScatter(op) => {
            let group = group_size(cx, &op.replica_groups, op.channel_handle, op.use_global_device_ids);
            declared.reduce_scatter(result, op.scatter_dimension as usize, group)
        }
        Op::Transpose(op) => declared.transpose(result, &op.permutation),
        Op::UniformQuantize(_) => uniform_quantize(cx, result),
        _ => Ok(()),
    }
}

/// `infeed`: the last result is a token, and each tensor may have a layout.
fn infeed(cx: &Context<'_>, types: &[Type], layouts: Option<&[Attribute]>) -> Result<(), Error> {
    cx.require(C(1), !types.is_empty(), || "expected at least one result, a token".to_owned())?;
    received(cx, types, [Some(C(2)), Some(C(3))])?;
    let Some(layouts) = layouts else { return Ok(()) };
    cx.length(None, "layout", layouts.len(), types.len() - 1)?;
    for layout in layouts {
        let numbers = layout.as_array();
        let fits = numbers.is_some_and(|all| all.iter().all(|one| matches!(one, Attribute::Integer { .. })));
        cx.require(None, fits, || {
            format!("layout: expected an array of integers for each tensor, found {}", layout.description())
        })?;
    }
    Ok(())
}

/// `infeed`, `recv`: the results are tensors followed by a token.
fn received(
    cx: &Context<'_>,
    types: &[Type],
    [tensors, token]: [Option<Constraint>; 2],
) -> Result<(), Error> {
    let Some((last, others)) = types.split_last() else {
        return Err(cx.error(token, "expected at least one result, a token"));
    };
    for (index, ty) in others.iter().enumerate() {
        cx.require(tensors, ty.as_tensor().is_some(), || {
            format!("result {index}: expected a tensor before the token, found {ty}")
        })?;
    }
    cx.require(token, last.is_token(), || format!("result {}: expected a token, found {last}", others.len()))
}

/// Returns the number of processes in a group, if the program determines it. It does not if one group contains all
/// processes, or if each id represents a replica in all partitions.
fn group_size(
    cx: &Context<'_>,
    groups: &ReplicaGroups,
    channel: Option<ChannelHandle>,
    global_ids: bool,
) -> Option<i64> {
    let across_partitions = !global_ids && channel.is_some_and(|channel| channel.handle > 0);
    match groups.dims(cx.module) {
        Ok([count, size]) if count > 0 && !across_partitions => Some(size.max(1)),
        _ => None,
    }
}

/// Returns the quantized dimension of a tensor.
fn axis(tensor: &TensorType) -> Option<usize> {
    tensor.quantization()?.axis.map(|axis| axis as usize)
}

/// Returns `true` if two quantized types have equal scales and zero points.
fn same_parameters(a: &QuantizedType, b: &QuantizedType) -> bool {
    a.scales == b.scales && a.zero_points == b.zero_points
}

/// Returns the product of sizes; `None` if a size is dynamic or the product does not fit.
fn product(sizes: &[i64]) -> Option<i64> {
    sizes
        .iter()
        .try_fold(1i64, |product, &size| if size == DYNAMIC { None } else { product.checked_mul(size) })
}

impl<'a> Declared<'_, 'a> {
    /// Returns the types of the results that are tensors.
    fn results(&self) -> impl Iterator<Item = &'a TensorType> {
        let body = self.cx.body;
        self.cx.op.results.filter_map(|value| body.ty(value).as_tensor())
    }

    /// `add` of quantized elements.
    fn add(&self, result: &TensorType) -> Result<(), Error> {
        let (lhs, rhs) = (self.cx.tensor(0)?, self.cx.tensor(1)?);
        let (Some(of_lhs), Some(of_rhs)) = (lhs.quantization(), rhs.quantization()) else { return Ok(()) };
        let Some(of_result) = result.quantization() else {
            let message = format!("result 0: expected quantized elements as in {lhs}, found {result}");
            return Err(self.cx.error(C(2), message));
        };
        self.cx.require(C(3), of_lhs.storage_type == of_result.storage_type, || {
            format!("result 0: expected the storage type of {lhs}, found {result}")
        })?;
        self.cx.require(C(4), of_lhs.expressed_type == of_result.expressed_type, || {
            format!("result 0: expected the expressed type of {lhs}, found {result}")
        })?;
        let per_axis = of_lhs.axis.is_some() || of_rhs.axis.is_some();
        self.cx.require(C(5), per_axis == of_result.axis.is_some(), || {
            format!(
                "result 0: expected per-axis quantization if and only if an operand has it, found {result}"
            )
        })?;
        for (operand, constraint) in [(lhs, C(6)), (rhs, C(7))] {
            self.cx.require(constraint, axis(operand).is_none() || axis(operand) == axis(result), || {
                format!("result 0: expected the quantized dimension of {operand}, found {result}")
            })?;
        }
        Ok(())
    }

    /// `all_gather`: one dimension grows. By the specification, it grows by the size of a group; MLIR's verifier and
    /// existing programs require a multiple only.
    fn all_gather(&self, dimension: usize) -> Result<(), Error> {
        for (index, result) in self.results().enumerate() {
            let operand = self.cx.tensor(index)?;
            let (Some(&size), Some(&gathered)) =
                (operand.dims().get(dimension), result.dims().get(dimension))
            else {
                continue;
            };
            let fits = match (size, gathered) {
                (DYNAMIC, _) | (_, DYNAMIC) => true,
                (0, gathered) => gathered == 0,
                (size, gathered) => gathered % size == 0,
            };
            self.cx.require(C(6), fits, || {
                format!(
                    "result {index}: expected a multiple of {size} in dimension {dimension}, found {result}"
                )
            })?;
        }
        Ok(())
    }

    /// `reduce_scatter`: one dimension is divided by the size of a group.
    fn reduce_scatter(&self, result: &TensorType, dimension: usize, group: Option<i64>) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        let (Some(&size), Some(&part)) = (operand.dims().get(dimension), result.dims().get(dimension)) else {
            return Ok(());
        };
        if let Some(group) = group {
            self.cx.require(C(1), size == DYNAMIC || size % group == 0, || {
                format!(
                    "dimension {dimension} of {operand}: expected a size that is a multiple of the group size {group}"
                )
            })?;
        }
        let fits = match (size, part, group) {
            (DYNAMIC, ..) | (_, DYNAMIC, _) => true,
            (size, part, Some(group)) => size / group == part,
            (size, 0, None) => size == 0,
            (size, part, None) => size % part == 0,
        };
        self.cx.require(C(8), fits, || {
            let expected =
                group.map_or_else(|| format!("a divisor of {size}"), |group| (size / group).to_string());
            format!("result 0: expected {expected} in dimension {dimension}, found {result}")
        })
    }

    /// `bitcast_convert`: if the widths differ, the narrower tensor has a further dimension at the end.
    fn bitcast_convert(&self, result: &TensorType) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        let is_complex = |tensor: &TensorType| tensor.element_type().is_complex();
        self.cx.require(C(2), is_complex(operand) == is_complex(result), || {
            format!("expected the operand and the result to be both complex or both not complex, found {operand} and {result}")
        })?;
        let (from, to) = (operand.storage_type().bits(), result.storage_type().bits());
        let fits = if from == to {
            shapes_agree(operand.dims(), result.dims())
        } else {
            let (narrow, wide) = if from < to { (operand, result) } else { (result, operand) };
            let ratio = i64::from(from.max(to) / from.min(to));
            let expected: Vec<i64> = wide.dims().iter().copied().chain([ratio]).collect();
            from.max(to).is_multiple_of(from.min(to)) && shapes_agree(narrow.dims(), &expected)
        };
        self.cx.require(C(1), fits, || {
            format!("result 0: expected elements with as many bits as those of {operand}, found {result}")
        })
    }

    /// Returns an error if per-tensor quantization parameters differ.
    fn same_tensor_parameters(&self, result: &TensorType, constraint: Constraint) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        let (Some(before), Some(after)) = (operand.quantization(), result.quantization()) else {
            return Ok(());
        };
        let fits = before.axis.is_some() || after.axis.is_some() || before == after;
        self.cx.require(constraint, fits, || {
            format!("result 0: expected the element type of {operand}, found {result}")
        })
    }

    /// Returns an error if per-axis quantization parameters differ.
    fn same_axis_parameters(&self, result: &TensorType, constraint: Constraint) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        let (Some(before), Some(after)) = (operand.quantization(), result.quantization()) else {
            return Ok(());
        };
        let fits = before.axis.is_none() || after.axis.is_none() || same_parameters(before, after);
        self.cx.require(constraint, fits, || {
            format!("result 0: expected the element type of {operand}, found {result}")
        })
    }

    /// `broadcast_in_dim`, `dynamic_broadcast_in_dim`: dimensions of size 1 are repeated, others keep their size.
    fn broadcast_in_dim(&self, result: &TensorType, dimensions: &[i64]) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        self.same_tensor_parameters(result, C(1))?;
        self.cx.length(C(2), "broadcast_dimensions", dimensions.len(), operand.rank())?;
        self.cx.dimensions(C(3), "broadcast_dimensions", dimensions, result.rank())?;
        self.cx.unique(C(4), "broadcast_dimensions", dimensions.iter().copied())?;
        for (index, (&size, &dimension)) in operand.dims().iter().zip(dimensions).enumerate() {
            let target = result.dims()[dimension as usize];
            self.cx.require(C(5), size == 1 || sizes_agree(size, target), || {
                format!("dimension {index} of operand {operand}: expected size 1 or that of dimension {dimension} of {result}")
            })?;
        }
        let (Some(before), Some(after)) = (operand.quantization(), result.quantization()) else {
            return Ok(());
        };
        let (Some(from), Some(to)) = (axis(operand), axis(result)) else { return Ok(()) };
        self.cx.require(C(6), dimensions.get(from) == Some(&(to as i64)), || {
            format!(
                "result 0: expected the quantized dimension that broadcast_dimensions gives, found {result}"
            )
        })?;
        let same = if operand.dims()[from] == 1 {
            after.scales.iter().all(|scale| before.scales.first() == Some(scale))
                && after.zero_points.iter().all(|zero| before.zero_points.first() == Some(zero))
        } else {
            same_parameters(before, after)
        };
        self.cx.require(C(6), same, || {
            format!("result 0: expected scales and zero points of {operand}, found {result}")
        })
    }

    /// `reshape`, `dynamic_reshape`: the number of elements does not change, nor does it on either side of a quantized
    /// dimension.
    fn reshape(&self, result: &TensorType) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        if let (Some(before), Some(after)) = (operand.num_elements(), result.num_elements()) {
            self.cx.require(C(2), before == after, || {
                format!("result 0: expected {before} elements as in {operand}, found {after} in {result}")
            })?;
        }
        self.same_tensor_parameters(result, C(1))?;
        self.same_axis_parameters(result, C(1))?;
        let (Some(from), Some(to)) = (axis(operand), axis(result)) else { return Ok(()) };
        let agree = |a: Option<i64>, b: Option<i64>| a.is_none() || b.is_none() || a == b;
        let (before, after) = (operand.dims(), result.dims());
        let fits = agree(product(&before[..from]), product(&after[..to]))
            && sizes_agree(before[from], after[to])
            && agree(product(&before[from + 1..]), product(&after[to + 1..]));
        self.cx.require(C(3), fits, || {
            format!("result 0: expected the same elements for each index of the quantized dimension of {operand}, found {result}")
        })
    }

    /// `transpose`: the quantized dimension is permuted with the others.
    fn transpose(&self, result: &TensorType, permutation: &[i64]) -> Result<(), Error> {
        let operand = self.cx.tensor(0)?;
        self.same_tensor_parameters(result, C(1))?;
        self.same_axis_parameters(result, C(1))?;
        let (Some(from), Some(to)) = (axis(operand), axis(result)) else { return Ok(()) };
        self.cx.require(C(4), permutation.get(to) == Some(&(from as i64)), || {
            format!("result 0: expected the quantized dimension that permutation gives, found {result}")
        })
    }

    /// Checks the common rules of quantized convolutions and dot products. The constraints C17 to C20 of `dot_general`
    /// correspond to C31 to C34 of `convolution`.
    fn quantized_product(&self, result: &TensorType, dot: bool) -> Result<(), Error> {
        let (lhs, rhs) = (self.cx.tensor(0)?, self.cx.tensor(1)?);
        let number = |number: u8| C(if dot { number } else { number + 14 });
        let (of_lhs, of_result) = (lhs.quantization(), result.quantization());
        let both = of_lhs.is_some() == of_result.is_some();
        let Some(of_rhs) = rhs.quantization().filter(|_| both) else {
            let message = format!(
                "expected a quantized rhs, and lhs and result both quantized or not, found {lhs}, {rhs} and {result}"
            );
            return Err(self.cx.error(number(14), message));
        };
        let (Some(of_lhs), Some(of_result)) = (of_lhs, of_result) else {
            let expressed: ElementType = of_rhs.expressed_type;
            let fits = lhs.element_type() == expressed && result.element_type() == expressed;
            return self.cx.require(number(20), fits, || {
                format!(
                    "expected lhs and result with the expressed type {expressed} of rhs, found {lhs} and {result}"
                )
            });
        };
        self.cx.require(number(17), of_lhs.storage_type == of_rhs.storage_type, || {
            format!("operand 'rhs': expected the storage type of {lhs}, found {rhs}")
        })?;
        let expressed = of_lhs.expressed_type;
        self.cx.require(
            number(18),
            of_rhs.expressed_type == expressed && of_result.expressed_type == expressed,
            || format!("expected the expressed type of {lhs}, found {rhs} and {result}"),
        )?;
        self.cx.require(number(19), of_rhs.axis.is_some() || of_result.axis.is_none(), || {
            format!("result 0: expected per-tensor quantization as in {rhs}, found {result}")
        })
    }

    /// Returns `true` if the operands and the result are not quantized, and an error if only some of them are.
    fn is_plain(&self, result: &TensorType) -> Result<bool, Error> {
        let operands = [self.cx.tensor(0)?, self.cx.tensor(1)?];
        Ok(operands.iter().chain([&result]).all(|tensor| tensor.quantization().is_none()))
    }

    /// `convolution`, `dynamic_conv`.
    fn convolution(&self, result: &TensorType, kernel_output: i64, output: i64) -> Result<(), Error> {
        let rhs = self.cx.tensor(1)?;
        self.cx.require(C(26), result.rank() == rhs.rank(), || {
            format!("result 0: expected {} dimensions, found {result}", rhs.rank())
        })?;
        if self.is_plain(result)? {
            return self.product_elements(result, C(27));
        }
        for (what, tensor, dimension, constraint) in
            [("operand 'rhs'", rhs, kernel_output, C(29)), ("result 0", result, output, C(30))]
        {
            let fits = axis(tensor).is_none_or(|axis| axis as i64 == dimension);
            self.cx.require(constraint, fits, || {
                format!("{what}: expected the output feature dimension {dimension} to be the quantized one, found {tensor}")
            })?;
        }
        self.quantized_product(result, false)
    }

    /// `dot_general`.
    fn dot_general(&self, result: &TensorType, contracted: &[i64]) -> Result<(), Error> {
        if self.is_plain(result)? {
            return self.product_elements(result, Constraint::O(1));
        }
        let rhs = self.cx.tensor(1)?;
        if let Some(of_rhs) = rhs.quantization() {
            self.cx.require(C(15), of_rhs.zero_points.iter().all(|&zero| zero == 0), || {
                format!("operand 'rhs': expected zero points of 0, found {rhs}")
            })?;
            let fits = axis(rhs).is_none_or(|axis| !contracted.contains(&(axis as i64)));
            self.cx.require(C(16), fits, || {
                format!("operand 'rhs': expected a quantized dimension that is not contracted, found {rhs}")
            })?;
        }
        self.quantized_product(result, true)
    }

    /// Checks that the elements of sums of products have the kind of the operands' elements. Frameworks choose the
    /// width.
    fn product_elements(&self, result: &TensorType, constraint: Constraint) -> Result<(), Error> {
        let lhs = self.cx.tensor(0)?;
        let (from, to) = (lhs.element_type(), result.element_type());
        // Frameworks also multiply integers into floats, and booleans into integers, which MLIR's verifier accepts.
        let fits = from.is_complex() == to.is_complex();
        self.cx.require(constraint, fits, || {
            format!("result 0: expected elements that can represent products of {from}, found {result}")
        })
    }
}
