//! Graphs as bytes, for storing compiled programs.
//!
//! Reading trusts nothing: lengths are bounded by what is left, numbers of cases and ids are checked, nesting is bounded.
//! What the bytes say is then checked by [`super::verify`].

use super::{
    Body, Collective, CollectiveKind, Constant, Definition, ForeignAttribute, ForeignCall, GatherDims, Graph,
    Groups, ManualSpec, Node, Op, Reducer, ScatterDims, Shape, ValueId, verify,
};
use pjrt_stablehlo::ir::Location;
use refcpu_kernels::DType;
use refcpu_kernels::conv::ConvSpec;
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::fft::FftKind;
use refcpu_kernels::linalg::{LinalgOp, SvdVectors, TransposeA, TriangularSolve};
use refcpu_kernels::reduce::{ArgReduceOp, ReduceOp};
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::rng::RngAlgorithm;
use refcpu_kernels::sort::{KeyOrder, KeyPart, SortKey};
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::{SelectOp, WindowSpec};

/// Why bytes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {at}")]
pub struct WireError {
    /// Position in the bytes.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

/// Bytes on the way in.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    pub(crate) fn fail<T>(&self, message: impl Into<String>) -> Result<T, WireError> {
        Err(WireError { at: self.at, message: message.into() })
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        if count > self.bytes.len() - self.at {
            return self.fail("the data ends too soon");
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// What can be written and read back.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError>;
}

impl Wire for u64 {
    /// Seven bits a byte, least significant first; the top bit says that more follow.
    fn put(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = r.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        r.fail("a number of more than 64 bits")
    }
}

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let value = u64::get(r)?;
        usize::try_from(value).or_else(|_| r.fail("a number that is too large"))
    }
}

impl Wire for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let value = u64::get(r)?;
        u32::try_from(value).or_else(|_| r.fail("a number that is too large"))
    }
}

impl Wire for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        (((*self << 1) ^ (*self >> 63)) as u64).put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let value = u64::get(r)?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        match r.take(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            _ => r.fail("neither true nor false"),
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let len = usize::get(r)?;
        let bytes = r.take(len)?;
        std::str::from_utf8(bytes).map(str::to_owned).or_else(|_| r.fail("text that is not UTF-8"))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|e| e.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let len = usize::get(r)?;
        // Every element takes a byte at least, so this allocates no more than a multiple of the input.
        if len > r.bytes.len() - r.at {
            return r.fail("a list that is longer than the data");
        }
        (0..len).map(|_| T::get(r)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(if bool::get(r)? { Some(T::get(r)?) } else { None })
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        T::get(r).map(Box::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok((A::get(r)?, B::get(r)?))
    }
}

/// Structs, field by field in this order.
macro_rules! wire_structs {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok($name { $($field: Wire::get(r)?),* })
            }
        }
    )*};
}

/// Enums, by the position of the case in this list. Cases are only ever added at the end.
macro_rules! wire_enums {
    ($($name:ident { $($case:ident $(($($value:ident),*))? $({$($field:ident),*})?,)* })*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                let mut number = 0u8;
                $(
                    if let $name::$case $(($($value),*))? $({$($field),*})? = self {
                        out.push(number);
                        $($($value.put(out);)*)?
                        $($($field.put(out);)*)?
                        return;
                    }
                    number += 1;
                )*
                unreachable!("case {number} is not in the list");
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
                let wanted = r.take(1)?[0];
                let mut number = 0u8;
                $(
                    if wanted == number {
                        $($(let $value = Wire::get(r)?;)*)?
                        $($(let $field = Wire::get(r)?;)*)?
                        return Ok($name::$case $(($($value),*))? $({$($field),*})?);
                    }
                    number += 1;
                )*
                r.fail(format!("case {wanted} of {number} of {}", stringify!($name)))
            }
        }
    )*};
}

/// Enums that list all their cases.
macro_rules! wire_listed {
    ($($name:ident)*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                let at = $name::ALL.iter().position(|c| c == self).expect("every case is listed");
                out.push(at as u8);
            }
            fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
                let at = usize::from(r.take(1)?[0]);
                $name::ALL.get(at).copied().map_or_else(|| r.fail(concat!("no such ", stringify!($name))), Ok)
            }
        }
    )*};
}

wire_listed! { DType TileOp }

wire_structs! {
    WindowSpec { size, strides, base_dilations, window_dilations, padding }
    DotDims { lhs_batch, rhs_batch, lhs_contract, rhs_contract }
    ConvSpec {
        input_batch, input_feature, input_spatial, kernel_input_feature, kernel_output_feature, kernel_spatial,
        output_batch, output_feature, output_spatial, strides, padding, lhs_dilation, rhs_dilation, reversal,
        feature_groups, batch_groups
    }
    GatherDims {
        offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims, start_index_map,
        index_vector_dim, slice_sizes
    }
    ScatterDims {
        update_window_dims, inserted_window_dims, input_batching_dims, scatter_indices_batching_dims,
        scatter_dims_to_operand_dims, index_vector_dim, indices_are_sorted, unique_indices
    }
    SortKey { operand, part, order, descending }
    TriangularSolve { left_side, lower, unit_diagonal, transpose_a }
    ManualSpec { mesh, axes, inputs, outputs, device_ids }
    Collective { kind, groups }
    ForeignCall { target, attributes, has_side_effect, operand_dims, result_dims, aliases, refusal }
}

wire_enums! {
    Direction { Eq, Ne, Ge, Gt, Le, Lt, }
    Order { Partial, Total, }
    ReduceOp { Add, Multiply, Minimum, Maximum, And, Or, Xor, }
    ArgReduceOp { Minimum, Maximum, }
    SelectOp { Ge, Gt, Le, Lt, }
    KeyOrder { Numeric, Total, }
    KeyPart { Whole, Real, Imaginary, }
    TransposeA { NoTranspose, Transpose, Adjoint, }
    SvdVectors { Nothing, Thin, Full, }
    LinalgOp {
        CholeskyUpdate,
        Eig { left, right },
        Eigh { lower },
        Geqp3,
        Hessenberg,
        Lu,
        LuPivotsToPermutation { size },
        Ormqr { left, transpose },
        Schur { vectors },
        Svd(vectors),
        Tridiagonal { lower },
        TridiagonalSolve { perturb_singular },
    }
    FftKind { Fft, Ifft, Rfft, Irfft, }
    RngAlgorithm { ThreeFry, Philox, }
    Reducer { Op(op), Body(body), }
    Groups { CrossReplica(g), CrossPartition(g), CrossReplicaAndPartition(g), Flattened(g), }
    CollectiveKind {
        AllReduce(reducer),
        AllGather { dim },
        AllToAll { split, concat, count },
        ReduceScatter { reducer, dim },
        Permute { pairs },
        Broadcast,
    }
    Op {
        Constant(c),
        Iota { dim },
        Tile(op),
        Compare(direction, order),
        Select,
        Clamp,
        Convert,
        Bitcast,
        ReducePrecision { exponent, mantissa },
        Broadcast { dims },
        Reshape,
        Transpose { permutation },
        Slice { start, stride },
        Reverse { dims },
        Pad { low, high, interior },
        Concatenate { dim },
        Reduce { dims, reducer },
        ArgReduce { dim, op },
        ReduceWindow { window, reducer },
        SelectAndScatter { window, select, scatter },
        Dot(dims),
        Convolution(spec),
        Gather(dims),
        Scatter { dims, combiner },
        DynamicSlice,
        DynamicUpdateSlice,
        Sort { dim, keys },
        SortBy { dim, comparator },
        TopK { largest },
        While { carried, condition, body },
        Case { branches },
        RngBits(algorithm),
        RngUniform,
        RngNormal,
        Fft { kind, lengths },
        Cholesky { lower },
        TriangularSolve(spec),
        QrFactor,
        QrProduct,
        Map(body),
        Collective(collective),
        PartitionId,
        ReplicaId,
        Manual { spec, body },
        Barrier,
        HostSend { channel },
        HostReceive { channel },
        Linalg(op),
        Foreign(call),
    }
}

impl Wire for Shape {
    fn put(&self, out: &mut Vec<u8>) {
        self.dtype.put(out);
        self.dims.to_vec().put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let dtype = DType::get(r)?;
        let dims = Vec::<usize>::get(r)?;
        Shape::checked(dtype, &dims).map_or_else(|| r.fail("an array that is too large"), Ok)
    }
}

impl Wire for Constant {
    fn put(&self, out: &mut Vec<u8>) {
        self.shape.put(out);
        self.splat.put(out);
        out.extend_from_slice(&self.bytes);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let shape = Shape::get(r)?;
        let splat = bool::get(r)?;
        let len = if splat { shape.dtype.size() } else { shape.bytes() };
        let bytes = r.take(len)?.to_vec().into();
        Ok(Constant { shape, splat, bytes })
    }
}

impl Wire for Body {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        if r.depth >= verify::MAX_DEPTH {
            return r.fail("bodies are nested too deep");
        }
        r.depth += 1;
        let graph = Graph::get(r)?;
        r.depth -= 1;
        Ok(Body::new(graph))
    }
}

impl Wire for ForeignAttribute {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            ForeignAttribute::Scalar(dtype, bytes) => {
                out.push(0);
                dtype.put(out);
                bytes.put(out);
            }
            ForeignAttribute::Array(dtype, bytes) => {
                out.push(1);
                dtype.put(out);
                bytes.put(out);
            }
            ForeignAttribute::String(text) => {
                out.push(2);
                text.put(out);
            }
            ForeignAttribute::Dictionary(entries) => {
                out.push(3);
                entries.put(out);
            }
        }
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(match u8::get(r)? {
            0 => {
                let (dtype, bytes) = <(DType, Vec<u8>)>::get(r)?;
                if bytes.len() != dtype.size() {
                    return r.fail("a number of another size than its type's");
                }
                ForeignAttribute::Scalar(dtype, bytes)
            }
            1 => {
                let (dtype, bytes) = <(DType, Vec<u8>)>::get(r)?;
                if !bytes.len().is_multiple_of(dtype.size()) {
                    return r.fail("numbers of another size than their type's");
                }
                ForeignAttribute::Array(dtype, bytes)
            }
            2 => ForeignAttribute::String(String::get(r)?),
            3 if r.depth < verify::MAX_DEPTH => {
                r.depth += 1;
                let entries = Vec::get(r)?;
                r.depth -= 1;
                ForeignAttribute::Dictionary(entries)
            }
            3 => return r.fail("dictionaries are nested too deep"),
            case => return r.fail(format!("case {case} of 4 of ForeignAttribute")),
        })
    }
}

impl Wire for ValueId {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        u32::get(r).map(ValueId)
    }
}

impl Wire for Graph {
    /// Parameters' types; nodes with their operands and results' types; results. Values are numbered as they appear.
    fn put(&self, out: &mut Vec<u8>) {
        let mut number = vec![ValueId(u32::MAX); self.num_values()];
        let mut next = 0u32;
        let mut name = |v: ValueId| {
            number[v.index()] = ValueId(next);
            next += 1;
        };
        self.parameters.iter().copied().for_each(&mut name);
        self.nodes.iter().flat_map(Node::results).for_each(&mut name);
        let renamed = |values: &[ValueId]| values.iter().map(|v| number[v.index()]).collect::<Vec<_>>();
        self.parameters.iter().map(|p| self.shape(*p).clone()).collect::<Vec<_>>().put(out);
        self.nodes.len().put(out);
        for node in &self.nodes {
            node.op.put(out);
            renamed(&node.operands).put(out);
            node.results().map(|r| self.shape(r).clone()).collect::<Vec<_>>().put(out);
        }
        renamed(&self.results).put(out);
    }

    fn get(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut graph = Graph::default();
        for (i, shape) in Vec::<Shape>::get(r)?.into_iter().enumerate() {
            graph.parameters.push(ValueId(graph.values.len() as u32));
            graph.values.push((shape, Definition::Parameter(i as u32)));
        }
        for n in 0..usize::get(r)? {
            let op = Op::get(r)?;
            let operands = Vec::<ValueId>::get(r)?;
            if operands.iter().any(|v| v.index() >= graph.values.len()) {
                return r.fail("an operand that is not there");
            }
            let first_result = ValueId(graph.values.len() as u32);
            let shapes = Vec::<Shape>::get(r)?;
            let results = shapes.len() as u32;
            for (i, shape) in shapes.into_iter().enumerate() {
                graph.values.push((shape, Definition::Result { node: n as u32, index: i as u32 }));
            }
            graph.nodes.push(Node { op, operands, first_result, results, location: Location::UNKNOWN });
        }
        graph.results = Vec::<ValueId>::get(r)?;
        if graph.results.iter().any(|v| v.index() >= graph.values.len()) {
            return r.fail("a result that is not there");
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Builder;

    fn sample() -> Graph {
        let mut inner = Builder::new();
        let i = inner.parameter(Shape::scalar(DType::S32));
        let ten = inner.constant(Constant::integer(DType::S32, 10));
        let less = inner.compare(Direction::Lt, i, ten);
        let condition = inner.finish(vec![less]);
        let mut inner = Builder::new();
        let i = inner.parameter(Shape::scalar(DType::S32));
        let one = inner.constant(Constant::integer(DType::S32, 1));
        let next = inner.tile(TileOp::Add, &[i, one]);
        let body = inner.finish(vec![next]);
        let mut b = Builder::new();
        let x = b.parameter(Shape::scalar(DType::S32));
        let op = Op::While { carried: 1, condition: Body::new(condition), body: Body::new(body) };
        let r = b.node(op, vec![x], vec![Shape::scalar(DType::S32)]);
        b.finish(r)
    }

    #[test]
    fn a_graph_comes_back_as_it_was() {
        let graph = sample();
        let mut bytes = Vec::new();
        graph.put(&mut bytes);
        let mut r = Reader::new(&bytes);
        let back = Graph::get(&mut r).unwrap();
        assert!(r.at_end());
        assert_eq!(back.to_string(), graph.to_string());
        assert_eq!(super::super::verify(&back), Ok(()));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_graph_but_no_panic() {
        let mut bytes = Vec::new();
        sample().put(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(Graph::get(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 7, 0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if let Ok(graph) = Graph::get(&mut Reader::new(&damaged)) {
                    let _ = super::super::verify(&graph);
                }
            }
        }
    }
}
