//! Generates random forms of each operation.

mod control;
mod elementwise;
mod indexing;
mod products;
mod reductions;
mod shapes;

use crate::generator::{Generator, Value};
use crate::types::{Element, Fill, Ty};
use pjrt_stablehlo::ir::{ElementKind, OpCode, Trait, Variadicity};

pub(crate) use elementwise::step;

/// Adds the operation on elements of this type; `None` if the generator does not support this combination.
pub(crate) fn emit(g: &mut Generator, code: OpCode, element: Element) -> Option<Vec<Value>> {
    use OpCode::*;
    let info = code.info();
    let is_plain = info.operands.iter().all(|group| group.variadicity == Variadicity::One);
    let has_own_attributes = info.attributes.iter().any(|a| a.required);
    if code == Remainder && element.kind() == ElementKind::Complex {
        // The specification does not define it.
        return None;
    }
    if info.has(Trait::Elementwise) && info.has(Trait::SameType) && is_plain && !has_own_attributes {
        return Some(elementwise::same_type(g, info.name, info.operands.len(), element));
    }
    match code {
        Abs | Real | Imag => elementwise::part(g, info.name, element),
        BitcastConvert => elementwise::bitcast_convert(g, element),
        Clamp => elementwise::clamp(g, element),
        Compare => elementwise::compare(g, element),
        Complex => elementwise::complex(g, element),
        Constant => Some(elementwise::constant(g, element)),
        Convert => elementwise::convert(g, element),
        IsFinite => elementwise::is_finite(g, element),
        Map => elementwise::map(g, element),
        ReducePrecision => elementwise::reduce_precision(g, element),
        Select => Some(elementwise::select(g, element)),
        UniformDequantize => elementwise::dequantize(g, element),
        UniformQuantize => elementwise::quantize(g, element),

        Broadcast => Some(shapes::broadcast(g, element)),
        BroadcastInDim => Some(shapes::broadcast_in_dim(g, element)),
        Concatenate => Some(shapes::concatenate(g, element)),
        // MLIR's verifier accepts it, but the specification does not.
        DynamicIota | Iota if element.kind() == ElementKind::Boolean => None,
        DynamicBroadcastInDim => Some(shapes::dynamic_broadcast_in_dim(g, element)),
        DynamicIota => Some(shapes::dynamic_iota(g, element)),
        DynamicPad => Some(shapes::dynamic_pad(g, element)),
        DynamicReshape => Some(shapes::dynamic_reshape(g, element)),
        DynamicSlice => Some(shapes::dynamic_slice(g, element)),
        DynamicUpdateSlice => Some(shapes::dynamic_update_slice(g, element)),
        GetDimensionSize => Some(shapes::get_dimension_size(g, element)),
        Iota => Some(shapes::iota(g, element)),
        Pad => Some(shapes::pad(g, element)),
        RealDynamicSlice => Some(shapes::real_dynamic_slice(g, element)),
        Reshape => Some(shapes::reshape(g, element)),
        Reverse => Some(shapes::reverse(g, element)),
        RngBitGenerator => shapes::rng_bit_generator(g, element),
        SetDimensionSize => Some(shapes::set_dimension_size(g, element)),
        Slice => Some(shapes::slice(g, element)),
        Transpose => Some(shapes::transpose(g, element)),

        BatchNormGrad | BatchNormInference | BatchNormTraining => products::batch_norm(g, code, element),
        Cholesky => products::cholesky(g, element),
        Convolution => Some(products::convolution(g, element, false)),
        DynamicConv => Some(products::convolution(g, element, true)),
        Dot => Some(products::dot(g, element)),
        DotGeneral => Some(products::dot_general(g, element)),
        Einsum => Some(products::einsum(g, element)),
        Fft => products::fft(g, element),
        TriangularSolve => products::triangular_solve(g, element),
        UnaryEinsum => Some(products::unary_einsum(g, element)),

        Reduce => reductions::reduce(g, element),
        ReduceWindow => reductions::reduce_window(g, element),
        SelectAndScatter => reductions::select_and_scatter(g, element),
        Sort => reductions::sort(g, element),

        DynamicGather => Some(indexing::gather(g, element, true)),
        Gather => Some(indexing::gather(g, element, false)),
        Scatter => indexing::scatter(g, element),
        TorchIndexSelect => Some(indexing::torch_index_select(g, element)),

        Case => Some(control::case(g, element)),
        Composite => Some(control::composite(g, element)),
        FuncCall => Some(control::call(g, element)),
        If => Some(control::if_(g, element)),
        OptimizationBarrier if g.random.percent(25) => Some(control::tokens(g, element)),
        OptimizationBarrier => Some(control::optimization_barrier(g, element)),
        Tuple | GetTupleElement => Some(control::tuple(g, element)),
        While => Some(control::while_(g, element)),
        PartitionId | ReplicaId => Some(control::process_id(g, info.name)),
        _ => None,
    }
}

/// Returns the reason why no program contains an operation of the table.
pub(crate) fn reason(code: OpCode) -> &'static str {
    use OpCode::*;
    match code {
        Infeed | Outfeed | Send | Recv => "communicates with the host",
        AfterAll | CreateToken => "has no elements; it is in programs about optimization_barrier",
        Rng => "its numbers are not determined",
        CustomCall => "its meaning is the target's",
        AsyncStart | AsyncDone => "only collectives are asynchronous",
        Return | FuncReturn => "is in every program",
        Reshard | ShardingConstraint | ManualComputation | SdyReturn => "is about several devices",
        _ if code.info().has(Trait::Collective) || code == CrossReplicaSum => "is about several devices",
        _ => "",
    }
}

/// Chooses an operation and an element type. The types of existing values are more frequent.
pub(crate) fn any(g: &mut Generator) -> (OpCode, Element) {
    let element = g.some_element();
    // Most operations of a program can be fused. The others end fused regions.
    let common = [
        OpCode::Add,
        OpCode::Multiply,
        OpCode::Subtract,
        OpCode::Maximum,
        OpCode::Negate,
        OpCode::Select,
        OpCode::Compare,
        OpCode::Convert,
        OpCode::BroadcastInDim,
        OpCode::Transpose,
        OpCode::Reshape,
        OpCode::Slice,
        OpCode::Pad,
        OpCode::Reduce,
        OpCode::Concatenate,
        OpCode::Reverse,
        OpCode::And,
        OpCode::Abs,
        OpCode::Exponential,
        OpCode::DynamicSlice,
        OpCode::DynamicUpdateSlice,
    ];
    let code = if g.random.percent(60) { g.random.pick(&common) } else { g.random.pick(OpCode::ALL) };
    if g.depth > 0 && !code.info().regions.is_empty() && !g.may_nest() {
        return (OpCode::Reverse, element);
    }
    let allowed = crate::table::is_allowed(code, element);
    (if allowed { code } else { OpCode::Reshape }, element)
}

/// Returns `count` values of one type.
fn operands(g: &mut Generator, element: Element, count: usize) -> Vec<Value> {
    let fill = g.fill();
    let first = g.some(element, 0..=4, fill);
    let mut all = vec![first];
    while all.len() < count {
        let ty = all[0].ty.clone();
        all.push(g.operand(&ty, fill));
    }
    all
}

/// Returns the type of a scalar of the element type.
fn scalar(element: Element) -> Ty {
    Ty::new(element, &[])
}

/// Returns whether numbers of the type are ordered.
fn is_ordered(element: Element) -> bool {
    !matches!(element.kind(), ElementKind::Complex)
}

/// Returns the kind of elements whose sums and products are exact, or nearly so.
fn tame(element: Element) -> Fill {
    if element.is_float() || element.kind() == ElementKind::Complex { Fill::Tame } else { Fill::Any }
}
