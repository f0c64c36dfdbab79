//! The operations that IREE compiles.

use iree_runtime::VulkanFeatures;
use pjrt_stablehlo::ir::{Body, ElementKind, ElementType, Op, OpCode, Operation};
use pjrt_stablehlo::passes::{Condition, CoreOps};

/// The compiler's reason: it cannot convert the operation to those of its own dialects.
const FAILED: &str = "failed to legalize";

/// The operations of [`CoreOps::default`] that IREE 3.13 does not compile ([`FAILED`]), that need what this plugin does not have,
/// or whose results are wrong.
/// `pjrt-stablehlo` decomposes them, or refuses them with the location.
const REFUSED: &[(OpCode, &str)] = &[
    (OpCode::AllGather, "a channel between devices"),
    (OpCode::AllReduce, "a channel between devices"),
    (OpCode::AllToAll, "a channel between devices"),
    (OpCode::Atan2, "NaN for two zeros"),
    (OpCode::Cholesky, FAILED),
    (OpCode::CollectiveBroadcast, "a channel between devices"),
    (OpCode::CollectivePermute, "a channel between devices"),
    (OpCode::CollectiveReduce, "a channel between devices"),
    (OpCode::Cosine, "fewer digits from one turn on"),
    (OpCode::CustomCall, FAILED),
    (OpCode::Fft, "a transform of one dimension of 32-bit numbers"),
    (OpCode::Infeed, "a channel to the host"),
    (OpCode::Outfeed, "a channel to the host"),
    (OpCode::PartitionId, "a channel between devices"),
    (OpCode::Recv, "a channel to the host"),
    (OpCode::ReduceScatter, "a channel between devices"),
    (OpCode::ReplicaId, "a channel between devices"),
    (OpCode::ManualComputation, "the dialect of Shardy, which IREE does not register"),
    (OpCode::Reshard, "the dialect of Shardy, which IREE does not register"),
    (OpCode::ShardingConstraint, "the dialect of Shardy, which IREE does not register"),
    (OpCode::ShardingGroup, "the dialect of Shardy, which IREE does not register"),
    (OpCode::Sine, "fewer digits near zero, and from one turn on"),
    (OpCode::Send, "a channel to the host"),
    (OpCode::Tan, "fewer digits"),
    (OpCode::TriangularSolve, FAILED),
];

/// The operations that IREE compiles for some operands only. The others are decomposed, or refused.
const LIMITED: &[(OpCode, Condition)] = &[
    (OpCode::Cbrt, has_no_f64),
    (OpCode::Convert, is_converted),
    (OpCode::Convolution, has_wide_sums),
    (OpCode::DotGeneral, is_product),
    (OpCode::Reduce, has_wide_sums),
    (OpCode::ReduceWindow, has_wide_sums),
    // The power of a negative float is NaN, also if the exponent is a whole number.
    (OpCode::Power, |body, op| !body.element_types(op).iter().any(|element| element.is_float())),
    (OpCode::Scatter, scatters_whole_slices),
    // A sort takes time of the square of the size, and its arrays must fit into the stack of a thread.
    (OpCode::Sort, |body, op| {
        let Op::Sort(sort) = &op.kind else { return false };
        dims(body, op, 0).get(sort.dimension as usize).is_some_and(|size| *size <= 256)
    }),
    (OpCode::Tanh, has_no_f64),
];

/// Returns the operations that IREE compiles, for Vulkan devices with these features, or for others.
pub(crate) fn supported(features: Option<VulkanFeatures>) -> CoreOps {
    // IREE's complex numbers overflow in the middle of their range, and many operations on them end the compiler.
    let core = CoreOps::default().named("IREE").without_complex_numbers();
    let core = LIMITED.iter().fold(core, |core, (op, condition)| core.with_condition(*op, *condition));
    let core = REFUSED.iter().fold(core, |core, (op, _)| core.without(*op));
    // What is before a reduction is visible if calls are inlined. Sorts of some lengths end the compiler.
    let core = if features.is_some() { core.without(OpCode::FuncCall).without(OpCode::Sort) } else { core };
    let missing = features.map(|features| (features, features.missing_for_narrow_elements()));
    let Some((features, missing)) = missing.filter(|(_, names)| !names.is_empty()) else {
        let narrow = ElementType::ALL.iter().copied().filter(|element| is_narrow(*element));
        return narrow.fold(core, |core, element| core.widened(element, ElementType::F32));
    };
    let is_float = |element: &ElementType| element.is_float() && *element != ElementType::BF16;
    let has = |element: &&ElementType| features.have_elements(element.bits(), is_float(element));
    let elements = ElementType::ALL.iter().filter(has).copied();
    core.for_elements(elements).named(format!("IREE, on a device of Vulkan without {missing},"))
}

/// Returns the sizes of an operand.
fn dims<'b>(body: &'b Body, op: &Operation, at: usize) -> &'b [i64] {
    body.ty(op.operands[at]).as_tensor().map_or(&[], |ty| ty.dims())
}

/// The compiler divides by the number of terms of a product.
fn is_product(body: &Body, op: &Operation) -> bool {
    let Op::DotGeneral(dot) = &op.kind else { return false };
    dot.algorithm.is_none() && !dims(body, op, 0).contains(&0) && has_wide_sums(body, op)
}

/// Code adds in the element type of the result.
fn has_wide_sums(body: &Body, op: &Operation) -> bool {
    !body.element_types(op).last().copied().is_some_and(is_narrow)
}

/// Returns `true` for floats whose sums lose accuracy.
fn is_narrow(element: ElementType) -> bool {
    element.is_float() && matches!(element.bits(), 8 | 16)
}

/// Code for processors has no functions of the C library.
fn has_no_f64(body: &Body, op: &Operation) -> bool {
    !body.element_types(op).contains(&ElementType::F64)
}

/// The compiler computes sizes with operations that have no unsigned results, converts numbers of 8 bits from and to f32 only, and
/// converts integers to bf16 with a function of the C library, unless the processor has an instruction for it.
fn is_converted(body: &Body, op: &Operation) -> bool {
    let [from, to] = body.element_types(op)[..] else { return true };
    let is_small = |element: ElementType| element.is_float() && element.bits() == 8;
    (from.is_float() || to.kind() != ElementKind::UnsignedInteger && to != ElementType::BF16)
        && (!is_small(from) && !is_small(to) || [from, to].contains(&ElementType::F32))
}

/// `iree_linalg_ext.scatter` needs indices of whole slices of the leading dimensions. The compiler moves one indexed dimension to
/// the front, but not several, and it crashes if there are batching dimensions.
fn scatters_whole_slices(body: &Body, op: &Operation) -> bool {
    let Op::Scatter(scatter) = &op.kind else { return false };
    let numbers = &scatter.scatter_dimension_numbers;
    let (indexed, inserted) = (&numbers.scatter_dims_to_operand_dims, &numbers.inserted_window_dims);
    let are_leading = indexed.iter().enumerate().all(|(at, dimension)| *dimension == at as i64);
    let (input, update) = (dims(body, op, 0), dims(body, op, op.results.len() + 1));
    let mut window = numbers.update_window_dims.iter().map(|at| update[*at as usize]);
    let is_whole = |at: usize| inserted.contains(&(at as i64)) || window.next() == Some(input[at]);
    op.results.len() == 1
        && numbers.input_batching_dims.is_empty()
        && indexed.iter().all(|dimension| inserted.contains(dimension))
        && (indexed.len() <= 1 || are_leading && indexed == inserted)
        && (0..input.len()).all(is_whole)
}

/// Returns `true` if an operand is the array that a scatter updates, and a slice: the compiler fails if it fuses the two.
pub(crate) fn needs_barrier(body: &Body, op: &Operation, at: usize) -> bool {
    let defining = |value| body.defining_op(value).map(|id| body.op(id));
    let source = defining(op.operands[at]).filter(|_| op.kind.code() == OpCode::Scatter && at == 0);
    let reshaped =
        source.filter(|op| op.kind.code() == OpCode::Reshape).and_then(|op| defining(op.operand(0)));
    let source = reshaped.or(source);
    source.is_some_and(|op| matches!(op.kind.code(), OpCode::Slice | OpCode::DynamicSlice))
}
