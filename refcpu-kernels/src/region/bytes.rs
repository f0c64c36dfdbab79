//! The serialized form of a region, which consists of its nodes. Deserialization passes the nodes through the
//! checks of the builder, so that arbitrary bytes result either in a region that is safe to run or in an
//! error.

use super::builder::Builder;
use super::node::{Code, Direction, Node, Order, ReduceOp, raw_type};
use super::{Access, InputSpec, OutputSpec, Region, RegionError, lower};
use crate::tile::{self, TileOp};
use crate::{ComputeType, DType};

/// The first bytes, which include the version of the format.
const MAGIC: &[u8; 4] = b"RGN1";

const COMPUTE_TYPES: [ComputeType; 13] = [
    ComputeType::Pred,
    ComputeType::S8,
    ComputeType::S16,
    ComputeType::S32,
    ComputeType::S64,
    ComputeType::U8,
    ComputeType::U16,
    ComputeType::U32,
    ComputeType::U64,
    ComputeType::F32,
    ComputeType::F64,
    ComputeType::C64,
    ComputeType::C128,
];

fn bad(what: &str) -> RegionError {
    RegionError(format!("malformed region: {what}"))
}

fn number_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|x| x == one).unwrap_or(0) as u8
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], RegionError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| bad("cut short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, RegionError> {
        Ok(self.bytes::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, RegionError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn size(&mut self) -> Result<usize, RegionError> {
        usize::try_from(u64::from_le_bytes(self.bytes()?)).map_err(|_| bad("size"))
    }

    /// Reads a number of objects that occupy at least `bytes` bytes each, so that it is bounded by the size
    /// of the input.
    fn count(&mut self, bytes: usize) -> Result<usize, RegionError> {
        let n = self.u32()? as usize;
        if n.saturating_mul(bytes) > self.0.len() { Err(bad("count")) } else { Ok(n) }
    }

    fn one_of<T: Copy>(&mut self, all: &[T], what: &str) -> Result<T, RegionError> {
        all.get(usize::from(self.u8()?)).copied().ok_or_else(|| bad(what))
    }
}

impl Region {
    /// Serializes the region for [`Self::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let size = |out: &mut Vec<u8>, n: usize| out.extend((n as u64).to_le_bytes());
        let count = |out: &mut Vec<u8>, n: usize| out.extend((n as u32).to_le_bytes());
        count(&mut out, self.dims.len());
        self.dims.iter().for_each(|d| size(&mut out, *d));
        out.push(self.trailing.map_or(255, |t| t.min(254) as u8));
        count(&mut out, self.inputs.len());
        for i in &self.inputs {
            out.push(number_of(DType::ALL, &i.dtype));
            size(&mut out, i.access.offset);
            i.access.strides.iter().for_each(|s| out.extend((*s as i64).to_le_bytes()));
        }
        count(&mut out, self.nodes.len());
        for n in &self.nodes {
            let ty = number_of(&COMPUTE_TYPES, &n.ty());
            match n {
                Node::Input { index, .. } => {
                    out.extend([0, ty]);
                    out.extend(index.to_le_bytes());
                }
                Node::Iota { dim, .. } => {
                    out.extend([1, ty]);
                    out.extend(dim.to_le_bytes());
                }
                Node::Const { bits, .. } => {
                    out.extend([2, ty]);
                    out.extend(bits.to_le_bytes());
                }
                Node::Op { code, args, arity, .. } => {
                    out.extend([3, ty]);
                    out.extend(code_bytes(*code));
                    out.push(*arity);
                    n.args().iter().for_each(|a| out.extend(a.to_le_bytes()));
                    debug_assert!(args.len() >= usize::from(*arity));
                }
            }
        }
        count(&mut out, self.outputs.len());
        for o in &self.outputs {
            out.extend([
                number_of(DType::ALL, &o.dtype),
                o.reduce.map_or(255, |r| number_of(&ReduceOp::ALL, &r)),
            ]);
            out.extend(o.node.to_le_bytes());
        }
        out
    }

    /// Deserializes the bytes that [`Self::to_bytes`] returned.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a valid region: every operation is checked against the types of
    /// its operands, and every index against its range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Region, RegionError> {
        let mut r = Reader(bytes);
        if r.bytes::<4>()? != *MAGIC {
            return Err(bad("not a region, or a region of another version"));
        }
        let rank = r.count(8)?;
        if rank > 64 {
            return Err(bad("rank"));
        }
        let dims = (0..rank).map(|_| r.size()).collect::<Result<Vec<_>, _>>()?;
        let mut b = Builder::new(&dims);
        let trailing = r.u8()?;
        b.trailing = (trailing != 255).then_some(usize::from(trailing));
        if b.trailing.is_some_and(|t| t > rank) {
            return Err(bad("reduced dimensions"));
        }
        for _ in 0..r.count(9)? {
            let dtype = r.one_of(DType::ALL, "element type")?;
            let offset = r.size()?;
            let strides = (0..rank)
                .map(|_| isize::try_from(i64::from_le_bytes(r.bytes()?)).map_err(|_| bad("stride")))
                .collect::<Result<Vec<_>, _>>()?;
            let access = Access { offset, strides };
            if access.bounds(&dims).is_none() {
                return Err(bad("access out of bounds"));
            }
            b.inputs.push(InputSpec { dtype, access });
        }
        let nodes = r.count(6)?;
        if nodes > super::MAX_NODES {
            return Err(bad("too many values"));
        }
        for _ in 0..nodes {
            let node = read_node(&mut r, &b)?;
            b.nodes.push(node);
        }
        let mut reduces = false;
        for _ in 0..r.count(6)? {
            let dtype = r.one_of(DType::ALL, "element type")?;
            let reduce = match r.u8()? {
                255 => None,
                n => Some(*ReduceOp::ALL.get(usize::from(n)).ok_or_else(|| bad("reduction"))?),
            };
            let node = r.u32()?;
            let ty = b.nodes.get(node as usize).ok_or_else(|| bad("output"))?.ty();
            let fits = match reduce {
                None => ty == raw_type(dtype),
                Some(op) => {
                    reduces = true;
                    let ordered = matches!(op, ReduceOp::Max | ReduceOp::Min);
                    ty == dtype.compute()
                        && op.tile_op().result(ty).is_some()
                        && !(ordered && ty.is_complex())
                }
            };
            if !fits {
                return Err(bad("output type"));
            }
            b.outputs.push(OutputSpec { dtype, node, reduce });
        }
        if reduces != b.trailing.is_some() {
            return Err(bad("reduced dimensions"));
        }
        if !r.0.is_empty() {
            return Err(bad("trailing bytes"));
        }
        lower::lower(b)
    }
}

fn read_node(r: &mut Reader<'_>, b: &Builder) -> Result<Node, RegionError> {
    let kind = r.u8()?;
    let ty = r.one_of(&COMPUTE_TYPES, "type")?;
    match kind {
        0 => {
            let index = r.u32()?;
            let spec = b.inputs.get(index as usize).ok_or_else(|| bad("input"))?;
            if raw_type(spec.dtype) != ty
                || b.nodes.iter().any(|n| matches!(n, Node::Input { index: i, .. } if *i == index))
            {
                return Err(bad("input"));
            }
            Ok(Node::Input { index, ty })
        }
        1 => {
            let dim = r.u32()?;
            if dim as usize >= b.dims.len() || ty.is_complex() || ty == ComputeType::Pred {
                return Err(bad("iota"));
            }
            Ok(Node::Iota { dim, ty })
        }
        2 => Ok(Node::Const { bits: u128::from_le_bytes(r.bytes()?), ty }),
        3 => {
            let code = read_code(r)?;
            let arity = r.u8()?;
            if !(1..=3).contains(&arity) {
                return Err(bad("operands"));
            }
            let mut args = [0u32; 3];
            let mut types = [ty; 3];
            for i in 0..usize::from(arity) {
                args[i] = r.u32()?;
                types[i] = b.nodes.get(args[i] as usize).ok_or_else(|| bad("operand"))?.ty();
            }
            for i in usize::from(arity)..3 {
                args[i] = args[0];
            }
            if tile::kernel(code, ty, &types[..usize::from(arity)], tile::Shape::Full).is_none() {
                return Err(bad("operation"));
            }
            // The format operand of reduce_precision is a scalar that the loop does not check.
            if code == Code::ReducePrecision
                && !matches!(b.nodes[args[1] as usize], Node::Const { bits, .. } if bits & 0xff != 0 && bits < 1 << 24)
            {
                return Err(bad("float format"));
            }
            Ok(Node::Op { code, ty, args, arity })
        }
        _ => Err(bad("kind of value")),
    }
}

fn code_bytes(code: Code) -> [u8; 3] {
    let dtype = |d: &DType| number_of(DType::ALL, d);
    match code {
        Code::Tile(op) => [0, op as u8, 0],
        Code::Compare(d, o) => [1, number_of(&Direction::ALL, &d), u8::from(o == Order::Total)],
        Code::Select => [2, 0, 0],
        Code::Clamp => [3, 0, 0],
        Code::Convert => [4, 0, 0],
        Code::Reinterpret => [5, 0, 0],
        Code::Round(d) => [6, dtype(&d), 0],
        Code::ToBits(d) => [7, dtype(&d), 0],
        Code::FromBits(d) => [8, dtype(&d), 0],
        Code::Wrap(d) => [9, dtype(&d), 0],
        Code::ReducePrecision => [10, 0, 0],
        Code::MulAdd => [11, 0, 0],
        Code::NegMulAdd => [12, 0, 0],
        Code::MulSub => [13, 0, 0],
    }
}

fn read_code(r: &mut Reader<'_>) -> Result<Code, RegionError> {
    let [kind, a, b] = r.bytes::<3>()?;
    let dtype = || DType::ALL.get(usize::from(a)).copied().ok_or_else(|| bad("element type"));
    Ok(match kind {
        0 => Code::Tile(*TileOp::ALL.get(usize::from(a)).ok_or_else(|| bad("operation"))?),
        1 => {
            let direction = *Direction::ALL.get(usize::from(a)).ok_or_else(|| bad("comparison"))?;
            Code::Compare(direction, if b == 0 { Order::Partial } else { Order::Total })
        }
        2 => Code::Select,
        3 => Code::Clamp,
        4 => Code::Convert,
        5 => Code::Reinterpret,
        6 => Code::Round(dtype()?),
        7 => Code::ToBits(dtype()?),
        8 => Code::FromBits(dtype()?),
        9 => Code::Wrap(dtype()?),
        10 => Code::ReducePrecision,
        11 => Code::MulAdd,
        12 => Code::NegMulAdd,
        13 => Code::MulSub,
        _ => return Err(bad("operation")),
    })
}
