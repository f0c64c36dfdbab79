//! The typed front end that builds regions.

use super::lower::lower;
use super::native::Native;
use super::node::Node;
use super::schedule::compacted;
use super::{Access, InputSpec, OutputSpec, Region, RegionError};
use crate::tile::{self, Direction, Opcode, Order, TileOp};
use crate::{ComputeType, DType, ReduceOp, convert};
use std::collections::HashMap;

/// A value of a region under construction: one element for each point of the iteration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Val {
    pub(crate) id: u32,
    pub(crate) dtype: DType,
}

impl Val {
    /// Returns the element type.
    pub fn dtype(self) -> DType {
        self.dtype
    }
}

/// Builds a [`Region`] value by value.
///
/// Arithmetic on f16, bf16 and smaller floats is performed in f32, and rounded to the type after every operation. Integers
/// narrower than a byte wrap to their width. Equal values are computed once, and values that depend only on constants are
/// computed while the region is built. A method that adds a value returns an error if the region would have more than
/// [`MAX_NODES`] values.
#[derive(Debug)]
pub struct Builder {
    pub(crate) dims: Vec<usize>,
    pub(crate) inputs: Vec<InputSpec>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<OutputSpec>,
    pub(crate) trailing: Option<usize>,
    known: HashMap<Node, u32>,
}

/// The maximum number of values of a region. Larger programs must be split.
pub const MAX_NODES: usize = 4096;

fn fail<T>(message: String) -> Result<T, RegionError> {
    Err(RegionError(message))
}

impl Builder {
    /// Creates a builder for an iteration space of these dimensions, outermost first.
    pub fn new(dims: &[usize]) -> Self {
        Self {
            dims: dims.to_vec(),
            inputs: vec![],
            nodes: vec![],
            outputs: vec![],
            trailing: None,
            known: HashMap::new(),
        }
    }

    /// Returns the dimensions of the iteration space.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Adds an input: an array of `dtype` elements, of which each point of the iteration space reads the one
    /// that `access` specifies.
    ///
    /// # Errors
    /// Returns an error if the access does not have one stride for each dimension, or if it reads before the
    /// first element.
    pub fn input(&mut self, dtype: DType, access: Access) -> Result<Val, RegionError> {
        if access.strides.len() != self.dims.len() {
            return fail(format!(
                "{} strides for an iteration space of rank {}",
                access.strides.len(),
                self.dims.len()
            ));
        }
        if access.bounds(&self.dims).is_none() {
            return fail(format!("access {access:?} over {:?} is out of bounds for every array", self.dims));
        }
        let index = self.inputs.len() as u32;
        self.inputs.push(InputSpec { dtype, access });
        let raw = self.push(Node::Input { index, ty: dtype.raw_type() })?;
        let id = self.decoded(raw, dtype)?;
        Ok(Val { id, dtype })
    }

    /// Adds an input that has the shape of the iteration space, in row-major order.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::input`].
    pub fn linear_input(&mut self, dtype: DType) -> Result<Val, RegionError> {
        self.input(dtype, Access::linear(&self.dims))
    }

    /// Adds an input of one element, which every point reads.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::input`].
    pub fn scalar_input(&mut self, dtype: DType) -> Result<Val, RegionError> {
        self.input(dtype, Access::scalar(self.dims.len()))
    }

    /// Returns the coordinate along dimension `dim`, converted to `dtype`.
    ///
    /// # Errors
    /// Returns an error if there is no such dimension, or if `dtype` is `Pred`.
    pub fn iota(&mut self, dtype: DType, dim: usize) -> Result<Val, RegionError> {
        if dim >= self.dims.len() || dtype == DType::Pred {
            return fail(format!(
                "cannot create an iota of {dtype:?} along dimension {dim} of {:?}",
                self.dims
            ));
        }
        let ty = match dtype.compute() {
            ComputeType::C64 => ComputeType::F32,
            ComputeType::C128 => ComputeType::F64,
            other => other,
        };
        let base = self.push(Node::Iota { dim: dim as u32, ty })?;
        let id =
            if dtype.is_complex() { self.op_node(Opcode::Convert, dtype.compute(), &[base])? } else { base };
        let id = self.fitted(id, dtype)?;
        Ok(Val { id, dtype })
    }

    /// Returns a constant with the bytes of its element in memory order.
    ///
    /// # Errors
    /// Returns an error if the number of bytes is not the element's size.
    pub fn constant_bytes(&mut self, dtype: DType, bytes: &[u8]) -> Result<Val, RegionError> {
        if bytes.len() != dtype.size() {
            return fail(format!("a constant of {dtype:?} cannot have {} bytes", bytes.len()));
        }
        let mut all = [0u8; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        self.constant(dtype, u128::from_le_bytes(all))
    }

    /// Returns a constant with the bits of its element (little-endian, in the low bits).
    ///
    /// # Errors
    /// Returns an error if the region is too large.
    pub fn constant(&mut self, dtype: DType, bits: u128) -> Result<Val, RegionError> {
        let raw = self.const_node(dtype.raw_type(), bits)?;
        let id = self.decoded(raw, dtype)?;
        Ok(Val { id, dtype })
    }

    /// Returns the constant nearest to `value` in `dtype` (for integers, truncated and saturated).
    ///
    /// # Errors
    /// Returns an error if the region is too large.
    pub fn constant_f64(&mut self, dtype: DType, value: f64) -> Result<Val, RegionError> {
        let id = self.const_node(ComputeType::F64, u128::from(value.to_bits()))?;
        self.convert(Val { id, dtype: DType::F64 }, dtype)
    }

    /// Returns the result of an elementwise operation on operands of one type.
    ///
    /// # Errors
    /// Returns an error if the number of operands is wrong, their types differ, or the operation is not
    /// defined for the type.
    pub fn op(&mut self, op: TileOp, args: &[Val]) -> Result<Val, RegionError> {
        let Some(&first) = args.first().filter(|_| args.len() == op.arity()) else {
            return fail(format!("{op:?} cannot have {} operands", args.len()));
        };
        let dtype = first.dtype;
        if args.iter().any(|a| a.dtype != dtype) {
            return fail(format!(
                "operands of {op:?} have types {:?}",
                args.iter().map(|a| a.dtype).collect::<Vec<_>>()
            ));
        }
        for a in args {
            self.check(*a)?;
        }
        if matches!(op, TileOp::Real | TileOp::Conj) && !dtype.is_complex() {
            return Ok(first);
        }
        if op == TileOp::Imag && dtype.is_float() {
            return self.constant_f64(dtype, 0.0);
        }
        let ct = dtype.compute();
        let Some(result) = op.result(ct) else {
            return fail(format!("{op:?} is not defined for {}", dtype.mlir_name()));
        };
        if op == TileOp::Complex && !dtype.is_computed_directly() {
            return fail(format!("no complex type has parts of {}", dtype.mlir_name()));
        }
        let ids: Vec<u32> = args.iter().map(|a| a.id).collect();
        if ct == ComputeType::Pred {
            return self.logical(op, &ids);
        }
        if !dtype.is_computed_directly() && !dtype.is_float() {
            let id = self.sub_byte(op, dtype, &ids)?;
            return Ok(Val { id, dtype });
        }
        let id = self.op_node(Opcode::Tile(op), result, &ids)?;
        let out = match result {
            r if r == ct => dtype,
            ComputeType::Pred => DType::Pred,
            ComputeType::F32 => DType::F32,
            ComputeType::F64 => DType::F64,
            ComputeType::C64 => DType::C64,
            _ => DType::C128,
        };
        let picks_an_operand = matches!(op, TileOp::Maximum | TileOp::Minimum);
        let exact = picks_an_operand || (op.is_exact() && matches!(dtype, DType::F16 | DType::BF16));
        let id = if exact || out != dtype { id } else { self.fitted(id, dtype)? };
        Ok(Val { id, dtype: out })
    }

    /// Returns `v` converted to another type. Conversions from floats to integers truncate and saturate (NaN
    /// becomes 0), integers wrap, complex to real takes the real part, and nonzero values become true.
    ///
    /// # Errors
    /// Returns an error if the region is too large.
    pub fn convert(&mut self, v: Val, dtype: DType) -> Result<Val, RegionError> {
        self.check(v)?;
        if v.dtype == dtype {
            return Ok(v);
        }
        let from = v.dtype.compute();
        let to = dtype.compute();
        let sub_byte = !dtype.is_computed_directly() && !dtype.is_float();
        let mut id = v.id;
        if sub_byte && (from.is_float() || from.is_complex()) {
            // The value is saturated to the narrow range first, because the conversion alone saturates to
            // eight bits.
            let wide = self.op_node(Opcode::Convert, to, &[id])?;
            let (low, high) = match dtype {
                DType::S2 => (-2i8, 1),
                DType::S4 => (-8, 7),
                DType::U2 => (0, 3),
                _ => (0, 15),
            };
            let low = self.const_node(to, u128::from(low as u8))?;
            let high = self.const_node(to, u128::from(high as u8))?;
            id = self.op_node(Opcode::Clamp, to, &[low, wide, high])?;
            return Ok(Val { id, dtype });
        }
        if from != to {
            id = self.op_node(Opcode::Convert, to, &[id])?;
        }
        id = self.fitted(id, dtype)?;
        Ok(Val { id, dtype })
    }

    /// Returns the bits of `v` as a value of another type of the same size in memory.
    ///
    /// # Errors
    /// Returns an error if the sizes differ.
    pub fn bitcast(&mut self, v: Val, dtype: DType) -> Result<Val, RegionError> {
        self.check(v)?;
        if v.dtype == dtype {
            return Ok(v);
        }
        if v.dtype.bits() != dtype.bits() || v.dtype.size() != dtype.size() {
            return fail(format!("cannot bitcast {} to {}", v.dtype.mlir_name(), dtype.mlir_name()));
        }
        let raw = self.encoded(v)?;
        let mut id = raw;
        let to = dtype.raw_type();
        if self.nodes[raw as usize].ty() != to {
            id = self.op_node(Opcode::Reinterpret, to, &[raw])?;
        }
        let id = if dtype.is_float() || dtype.is_computed_directly() {
            self.decoded(id, dtype)?
        } else {
            self.op_node(Opcode::Wrap(dtype), dtype.compute(), &[id])?
        };
        Ok(Val { id, dtype })
    }

    /// Returns the boolean result of a comparison. Integers and booleans ignore `order`; complex numbers only
    /// support `Eq` and `Ne`.
    ///
    /// # Errors
    /// Returns an error if the types differ, or do not support the comparison.
    pub fn compare(
        &mut self,
        direction: Direction,
        order: Order,
        a: Val,
        b: Val,
    ) -> Result<Val, RegionError> {
        self.check(a)?;
        self.check(b)?;
        let ct = a.dtype.compute();
        if a.dtype != b.dtype || (ct.is_complex() && !matches!(direction, Direction::Eq | Direction::Ne)) {
            return fail(format!(
                "{direction:?} is not defined for {} and {}",
                a.dtype.mlir_name(),
                b.dtype.mlir_name()
            ));
        }
        let order = if ct.is_float() { order } else { Order::Partial };
        let id = self.op_node(Opcode::Compare(direction, order), ComputeType::Pred, &[a.id, b.id])?;
        Ok(Val { id, dtype: DType::Pred })
    }

    /// Returns `a` where `p` is true, and `b` elsewhere.
    ///
    /// # Errors
    /// Returns an error if `p` is not a boolean, or if the types of `a` and `b` differ.
    pub fn select(&mut self, p: Val, a: Val, b: Val) -> Result<Val, RegionError> {
        for v in [p, a, b] {
            self.check(v)?;
        }
        if p.dtype != DType::Pred || a.dtype != b.dtype {
            return fail(format!(
                "select is not defined for {:?} with a predicate of type {:?}",
                (a.dtype, b.dtype),
                p.dtype
            ));
        }
        let id = self.op_node(Opcode::Select, a.dtype.compute(), &[p.id, a.id, b.id])?;
        Ok(Val { id, dtype: a.dtype })
    }

    /// Returns `min(max(x, low), high)`, or NaN if any operand is NaN.
    ///
    /// # Errors
    /// Returns an error if the types differ or are complex.
    pub fn clamp(&mut self, low: Val, x: Val, high: Val) -> Result<Val, RegionError> {
        for v in [low, x, high] {
            self.check(v)?;
        }
        if low.dtype != x.dtype || high.dtype != x.dtype || x.dtype.is_complex() {
            return fail(format!(
                "clamp is not defined for {:?} with bounds of types {:?}",
                x.dtype,
                (low.dtype, high.dtype)
            ));
        }
        let id = self.op_node(Opcode::Clamp, x.dtype.compute(), &[low.id, x.id, high.id])?;
        Ok(Val { id, dtype: x.dtype })
    }

    /// Returns `v` rounded to a float format with this number of exponent and mantissa bits, in the type of
    /// `v`. If the format has at least as many bits of either as the type, this aspect of the value does not
    /// change.
    ///
    /// # Errors
    /// Returns an error if `v` is not a float, or if there are no exponent bits.
    pub fn reduce_precision(
        &mut self,
        v: Val,
        exponent_bits: u32,
        mantissa_bits: u32,
    ) -> Result<Val, RegionError> {
        self.check(v)?;
        if !v.dtype.is_float() || exponent_bits == 0 {
            return fail(format!(
                "reduce_precision is not defined for {} and e{exponent_bits}m{mantissa_bits}",
                v.dtype.mlir_name()
            ));
        }
        let (mut exponent, mut mantissa, mut gradual) = (exponent_bits.min(255), mantissa_bits.min(255), 0);
        if let Some(own) = convert::format(v.dtype) {
            // Registers have a larger exponent range than the type, so that its subnormal numbers are normal
            // in them.
            if mantissa >= own.mantissa_bits() {
                mantissa = 255;
            }
            if exponent >= own.exponent_bits() {
                // If the format has more exponent bits than the type, the type's subnormal numbers are normal
                // in it. f16 keeps its subnormal numbers, as in XLA.
                let deeper = exponent > own.exponent_bits() && v.dtype.bits() < 16;
                gradual = if deeper { 0 } else { own.smallest_normal().to_bits() >> 23 };
                exponent = 255;
            }
            if (exponent, mantissa) == (255, 255) {
                return Ok(v);
            }
        }
        let format = u128::from(exponent | mantissa << 8 | gradual << 16);
        let format = self.const_node(ComputeType::U32, format)?;
        let id = self.op_node(Opcode::ReducePrecision, v.dtype.compute(), &[v.id, format])?;
        let id = self.fitted(id, v.dtype)?;
        Ok(Val { id, dtype: v.dtype })
    }

    /// Adds an output with value `v` and the shape of the region, and returns its index.
    ///
    /// # Errors
    /// Returns an error if `v` is not a value of the region, or if the region is too large.
    pub fn output(&mut self, v: Val) -> Result<usize, RegionError> {
        self.check(v)?;
        let node = self.encoded(v)?;
        self.outputs.push(OutputSpec { dtype: v.dtype, node, reduce: None });
        Ok(self.outputs.len() - 1)
    }

    /// Adds an output that is the reduction of `v` over the innermost `trailing` dimensions, and returns its
    /// index. Its shape consists of the remaining dimensions. An empty reduction returns the operation's
    /// identity.
    ///
    /// Narrow floats are accumulated in f32 and rounded once. All reductions of a region are over the same
    /// dimensions.
    ///
    /// # Errors
    /// Returns an error if there are fewer dimensions, if an earlier reduction was over other dimensions, or
    /// if `op` is not defined for the type.
    pub fn reduce_output(&mut self, v: Val, op: ReduceOp, trailing: usize) -> Result<usize, RegionError> {
        self.check(v)?;
        if trailing > self.dims.len() || self.trailing.is_some_and(|t| t != trailing) {
            return fail(format!(
                "cannot reduce over {trailing} of the dimensions {:?}; other reductions are over {:?}",
                self.dims, self.trailing
            ));
        }
        let ct = v.dtype.compute();
        let ordered = matches!(op, ReduceOp::Maximum | ReduceOp::Minimum);
        if TileOp::combining(op).result(ct).is_none() || (ordered && ct.is_complex()) {
            return fail(format!("the reduction {op:?} is not defined for {}", v.dtype.mlir_name()));
        }
        let rank = self.dims.len();
        let reduced: usize = self.dims[rank - trailing..].iter().product();
        if reduced == 1 && !ct.is_float() && !ct.is_complex() {
            // The reduction of one element is the element, except for floats: a sum that starts from zero
            // changes -0.
            return self.output(v);
        }
        self.trailing = Some(trailing);
        self.outputs.push(OutputSpec { dtype: v.dtype, node: v.id, reduce: Some(op) });
        Ok(self.outputs.len() - 1)
    }

    /// Returns the finished region, with dead values removed, instructions selected and registers assigned.
    ///
    /// # Errors
    /// Returns an error if the region has no output, or if an operation is not implemented for its type.
    pub fn finish(self) -> Result<Region, RegionError> {
        let Self { dims, inputs, nodes, outputs, trailing, .. } = self;
        if outputs.is_empty() {
            return fail("the region has no outputs".into());
        }
        if dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).is_none() {
            return fail(format!("the size of the iteration space {dims:?} overflows"));
        }
        let (nodes, outputs) = compacted(nodes, outputs);
        let program = lower(&dims, trailing, &inputs, nodes.clone(), &outputs, None)?;
        let input_lens = inputs
            .iter()
            .map(|i| match i.access.bounds(&dims) {
                Some((_, high)) if !dims.contains(&0) => high + 1,
                _ => 0,
            })
            .collect();
        let native = std::sync::Arc::new(Native::new(&nodes));
        Ok(Region { dims, inputs, outputs, trailing, nodes, program, native, input_lens })
    }

    fn check(&self, v: Val) -> Result<(), RegionError> {
        match self.nodes.get(v.id as usize) {
            Some(n) if n.ty() == v.dtype.compute() => Ok(()),
            _ => fail(format!("{v:?} is not a value of this region")),
        }
    }

    /// Adds a node, or returns an existing equal one.
    pub(crate) fn push(&mut self, node: Node) -> Result<u32, RegionError> {
        if let Some(id) = self.known.get(&node) {
            return Ok(*id);
        }
        if self.nodes.len() >= MAX_NODES {
            return fail(format!("the region has more than {MAX_NODES} values"));
        }
        let id = self.nodes.len() as u32;
        self.known.insert(node.clone(), id);
        self.nodes.push(node);
        Ok(id)
    }

    pub(crate) fn const_node(&mut self, ty: ComputeType, bits: u128) -> Result<u32, RegionError> {
        let bits = if ty.size() == 16 { bits } else { bits & ((1 << (8 * ty.size())) - 1) };
        self.push(Node::Const { bits, ty })
    }

    /// Returns the bits of a node, if it is a constant.
    pub(super) fn constant_of(&self, id: u32) -> Option<u128> {
        match self.nodes[id as usize] {
            Node::Const { bits, .. } => Some(bits),
            _ => None,
        }
    }

    /// Adds an operation on nodes. The operation is simplified, or folded if all operands are constants, and
    /// checked to have a kernel.
    pub(crate) fn op_node(
        &mut self,
        opcode: Opcode,
        ty: ComputeType,
        args: &[u32],
    ) -> Result<u32, RegionError> {
        let types: Vec<ComputeType> = args.iter().map(|a| self.nodes[*a as usize].ty()).collect();
        if let Some(id) = self.simplified(opcode, ty, args) {
            return Ok(id);
        }
        if let Some((opcode, args)) = self.rewritten(opcode, ty, args)? {
            return self.op_node(opcode, ty, &args);
        }
        let Some(kernel) = tile::kernel(opcode, ty, &types) else {
            return fail(format!("{opcode:?} of {types:?} to {ty:?} is not implemented"));
        };
        let constants: Option<Vec<u128>> = args.iter().map(|a| self.constant_of(*a)).collect();
        if let Some(constants) = constants {
            let bits = kernel.on_scalars(&constants);
            return self.const_node(ty, bits);
        }
        let mut all = [args[0]; 3];
        all[..args.len()].copy_from_slice(args);
        self.push(Node::Op { opcode, ty, args: all, arity: args.len() as u8 })
    }

    /// Converts the bits in memory to the register value.
    pub(crate) fn decoded(&mut self, raw: u32, dtype: DType) -> Result<u32, RegionError> {
        if dtype.raw_type() == dtype.compute() {
            Ok(raw)
        } else {
            self.op_node(Opcode::FromBits(dtype), ComputeType::F32, &[raw])
        }
    }

    /// Converts a register value to the bits in memory.
    pub(crate) fn encoded(&mut self, v: Val) -> Result<u32, RegionError> {
        let raw = v.dtype.raw_type();
        if raw == v.dtype.compute() { Ok(v.id) } else { self.op_node(Opcode::ToBits(v.dtype), raw, &[v.id]) }
    }

    /// Wraps or rounds a register value to its narrow type.
    fn fitted(&mut self, id: u32, dtype: DType) -> Result<u32, RegionError> {
        if dtype.is_computed_directly() {
            Ok(id)
        } else if dtype.is_float() {
            self.op_node(Opcode::Round(dtype), ComputeType::F32, &[id])
        } else {
            self.op_node(Opcode::Wrap(dtype), dtype.compute(), &[id])
        }
    }

    fn logical(&mut self, op: TileOp, ids: &[u32]) -> Result<Val, RegionError> {
        let p = ComputeType::Pred;
        let id = match op {
            TileOp::Add | TileOp::Maximum | TileOp::Or => self.op_node(Opcode::Tile(TileOp::Or), p, ids)?,
            TileOp::Multiply | TileOp::Minimum | TileOp::And => {
                self.op_node(Opcode::Tile(TileOp::And), p, ids)?
            }
            TileOp::Xor => self.op_node(Opcode::Tile(TileOp::Xor), p, ids)?,
            _ => {
                let one = self.const_node(p, 1)?;
                self.op_node(Opcode::Tile(TileOp::Xor), p, &[ids[0], one])?
            }
        };
        Ok(Val { id, dtype: DType::Pred })
    }

    /// Adds an operation on integers narrower than a byte, which registers hold extended to eight bits.
    fn sub_byte(&mut self, op: TileOp, dtype: DType, ids: &[u32]) -> Result<u32, RegionError> {
        use ComputeType::{S8, U8};
        let ct = dtype.compute();
        let bits = dtype.bits();
        let (signed, unsigned) = if bits == 2 { (DType::S2, DType::U2) } else { (DType::S4, DType::U4) };
        let id = match op {
            TileOp::MulHi => return fail(format!("{op:?} is not defined for {}", dtype.mlir_name())),
            TileOp::ShiftRightLogical | TileOp::Popcnt | TileOp::CountLeadingZeros => {
                let raw = self.op_node(Opcode::Reinterpret, U8, &ids[..1])?;
                let low = self.op_node(Opcode::Wrap(unsigned), U8, &[raw])?;
                let mut operands = vec![low];
                for id in &ids[1..] {
                    operands.push(self.op_node(Opcode::Reinterpret, U8, &[*id])?);
                }
                let mut r = self.op_node(Opcode::Tile(op), U8, &operands)?;
                if op == TileOp::CountLeadingZeros {
                    let spare = self.const_node(U8, 8 - bits as u128)?;
                    r = self.op_node(Opcode::Tile(TileOp::Subtract), U8, &[r, spare])?;
                }
                self.op_node(Opcode::Reinterpret, ct, &[r])?
            }
            TileOp::ShiftRightArithmetic => {
                let raw = self.op_node(Opcode::Reinterpret, S8, &ids[..1])?;
                let extended = self.op_node(Opcode::Wrap(signed), S8, &[raw])?;
                let amount = self.op_node(Opcode::Reinterpret, S8, &ids[1..])?;
                let r = self.op_node(Opcode::Tile(op), S8, &[extended, amount])?;
                self.op_node(Opcode::Reinterpret, ct, &[r])?
            }
            _ => self.op_node(Opcode::Tile(op), ct, ids)?,
        };
        if matches!(op, TileOp::Maximum | TileOp::Minimum) { Ok(id) } else { self.fitted(id, dtype) }
    }
}
