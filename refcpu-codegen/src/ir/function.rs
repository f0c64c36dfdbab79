//! The intermediate representation: a function over typed registers and byte arrays.
//!
//! Registers are variables: an instruction may assign a register that already has a value. Memory consists of arrays whose sizes
//! a function declares. Every access names an array, a constant offset, and indices with their limits; an index beyond its limits
//! is moved to the nearest one inside. An access whose offset and limits are in bounds therefore never leaves its array, whatever
//! the values of the registers are.

use std::fmt;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// A boolean: one byte in memory, 0 or 1.
    Bool,
    /// A 32-bit integer. Operations determine the sign.
    I32,
    /// A 64-bit integer.
    I64,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
    /// An 8-bit integer, which can only be moved and converted.
    I8,
    /// A 16-bit integer, which can only be moved and converted.
    I16,
}

impl Scalar {
    /// Returns the size of an element in memory in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns whether the type is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns whether the type has only moves and conversions.
    pub const fn is_narrow(self) -> bool {
        matches!(self, Self::I8 | Self::I16)
    }

    /// Returns the bits of the number 1.
    pub(crate) const fn one(self) -> u64 {
        match self {
            Self::Bool | Self::I32 | Self::I64 | Self::I8 | Self::I16 => 1,
            Self::F32 => 1f32.to_bits() as u64,
            Self::F64 => 1f64.to_bits(),
        }
    }
}

/// The instruction set that a function needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstructionSet {
    /// AVX2, FMA and BMI2: vectors of up to 32 bytes.
    #[default]
    Avx2,
    /// AVX-512 F, VL, DQ and BW as well: vectors of up to 64 bytes, and more operations on vectors.
    Avx512,
}

impl InstructionSet {
    /// Returns the size of the longest vector in bytes.
    pub const fn vector(self) -> usize {
        match self {
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        }
    }
}

/// The type of a register: one element, or a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type {
    /// The element type.
    pub scalar: Scalar,
    /// The number of elements: 1, or a power of two that makes the vector 8, 16, 32 or 64 bytes long; at most 16 of less than 4
    /// bytes.
    pub lanes: u8,
}

/// The size of the longest vector of all instruction sets in bytes.
pub(crate) const MAX_VECTOR: usize = InstructionSet::Avx512.vector();

impl Type {
    /// Returns the type of one element.
    pub const fn one(scalar: Scalar) -> Self {
        Self { scalar, lanes: 1 }
    }

    /// Returns the type of a vector.
    pub const fn vector(scalar: Scalar, lanes: u8) -> Self {
        Self { scalar, lanes }
    }

    /// Returns the size in memory in bytes.
    pub const fn size(self) -> usize {
        self.scalar.size() * self.lanes as usize
    }

    /// Returns whether values are in general-purpose registers.
    pub(crate) const fn is_general(self) -> bool {
        self.lanes == 1 && !self.scalar.is_float()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => write!(f, "{:?}", self.scalar),
            n => write!(f, "{:?}x{n}", self.scalar),
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub(crate) u32);

/// A basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block(pub(crate) u32);

/// An array in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array(pub(crate) u32);

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// The value itself.
    Copy,
    /// The negative value; of floats, the other sign.
    Negate,
    /// The absolute value of a float.
    Abs,
    /// The correctly rounded square root of a float.
    Sqrt,
    /// The largest integral float that is not above.
    Floor,
    /// The smallest integral float that is not below.
    Ceil,
    /// The nearest integral float; the even one of two.
    RoundEven,
    /// The value converted to the type of the result. Integers are signed; floats are truncated and saturate, and NaN becomes 0.
    /// Without AVX-512, only vectors of booleans become vectors of any type, and vectors of I32 become those of F32.
    Convert,
    /// An unsigned integer as a wider one; vectors with AVX-512.
    Extend,
    /// The bits of the value as a type of the same size.
    Reinterpret,
    /// A vector of copies of one element.
    Splat,
    /// The first half of a vector.
    Low,
    /// The second half of a vector.
    High,
}

impl UnaryOp {
    /// Every operation.
    pub const ALL: &'static [Self] = &[
        Self::Copy,
        Self::Negate,
        Self::Abs,
        Self::Sqrt,
        Self::Floor,
        Self::Ceil,
        Self::RoundEven,
        Self::Convert,
        Self::Extend,
        Self::Reinterpret,
        Self::Splat,
        Self::Low,
        Self::High,
    ];

    /// Returns whether the operation is defined from values of one type to values of another.
    pub fn is_defined(self, from: Type, to: Type, set: InstructionSet) -> bool {
        use Scalar::{Bool, F32, F64, I8, I16, I32, I64};
        let avx512 = set == InstructionSet::Avx512;
        match self {
            Self::Copy => from == to,
            Self::Negate => {
                let integer = from.is_general() && matches!(from.scalar, I32 | I64);
                from == to && (from.scalar.is_float() || integer)
            }
            Self::Abs | Self::Sqrt | Self::Floor | Self::Ceil | Self::RoundEven => {
                from == to && from.scalar.is_float()
            }
            Self::Convert if from.lanes > 1 => {
                from.lanes == to.lanes
                    && match (from.scalar, to.scalar) {
                        (Bool, I32 | I64 | F32 | F64) | (I32, F32) => true,
                        (I32, I8 | I16 | I64 | F64) | (I8 | I16, I32) => avx512,
                        (I64, I32 | F64) | (F32, F64 | I32) | (F64, F32 | I64) => avx512,
                        _ => false,
                    }
            }
            Self::Convert => {
                from.lanes == 1
                    && to.lanes == 1
                    && matches!(
                        (from.scalar, to.scalar),
                        (Bool, I32 | I64 | F32 | F64)
                            | (I32, I8 | I16 | I64 | F32 | F64)
                            | (I8 | I16, I32)
                            | (I64, I32 | F32 | F64)
                            | (F32, F64 | I32)
                            | (F64, F32 | I64)
                    )
            }
            Self::Extend => {
                from.lanes == to.lanes
                    && (from.lanes == 1 || avx512)
                    && matches!((from.scalar, to.scalar), (I32, I64) | (I8 | I16, I32))
            }
            Self::Reinterpret => {
                from.lanes == to.lanes
                    && matches!((from.scalar, to.scalar), (I32, F32) | (F32, I32) | (I64, F64) | (F64, I64))
            }
            Self::Splat => from == Type::one(to.scalar) && to.lanes > 1,
            Self::Low | Self::High => from == Type::vector(to.scalar, to.lanes.saturating_mul(2)),
        }
    }
}

/// An operation on two values of one type, which is also the type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// The sum; integers wrap.
    Add,
    /// The difference; integers wrap.
    Subtract,
    /// The product; integers wrap.
    Multiply,
    /// The quotient; signed for integers: -1 for the divisor 0, and the negative dividend for the divisor -1.
    Divide,
    /// The unsigned quotient; all ones for the divisor 0.
    DivideUnsigned,
    /// The signed remainder; the dividend for the divisor 0.
    Remainder,
    /// The unsigned remainder; the dividend for the divisor 0.
    RemainderUnsigned,
    /// The larger value; integers are signed. NaN if an operand is NaN; +0 is larger than -0.
    Maximum,
    /// The smaller value; integers are signed. NaN if an operand is NaN; -0 is smaller than +0.
    Minimum,
    /// The first float if it is NaN or not above the second, otherwise the second.
    Least,
    /// The first float if it is NaN or not below the second, otherwise the second.
    Greatest,
    /// Bitwise and; also of the bits of floats.
    And,
    /// Bitwise or; also of the bits of floats.
    Or,
    /// Bitwise exclusive or; also of the bits of floats.
    Xor,
    /// The value shifted left; 0 if the distance is at least the width.
    ShiftLeft,
    /// The value shifted right; 0 if the distance is at least the width.
    ShiftRight,
    /// The value shifted right with copies of the sign; distances of at least the width leave only these.
    ShiftRightSigned,
}

impl BinaryOp {
    /// Every operation.
    pub const ALL: &'static [Self] = &[
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::DivideUnsigned,
        Self::Remainder,
        Self::RemainderUnsigned,
        Self::Maximum,
        Self::Minimum,
        Self::Least,
        Self::Greatest,
        Self::And,
        Self::Or,
        Self::Xor,
        Self::ShiftLeft,
        Self::ShiftRight,
        Self::ShiftRightSigned,
    ];

    /// Returns whether the operation has the same result if its operands are exchanged. That of floats may be another NaN.
    pub(crate) fn is_commutative(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::And | Self::Or | Self::Xor)
    }

    /// Returns whether the operation is defined on values of a type.
    pub fn is_defined(self, ty: Type, set: InstructionSet) -> bool {
        let (scalar, vector) = (ty.scalar, ty.lanes > 1);
        // AVX2 lacks these operations on vectors of I64.
        let lacking = vector && scalar == Scalar::I64 && set == InstructionSet::Avx2;
        let integer = matches!(scalar, Scalar::I32 | Scalar::I64);
        if scalar.is_narrow() {
            return false;
        }
        match self {
            Self::Add | Self::Subtract => scalar != Scalar::Bool,
            Self::Multiply | Self::Maximum | Self::Minimum => scalar != Scalar::Bool && !lacking,
            Self::Divide => scalar.is_float() || integer && !vector,
            Self::DivideUnsigned | Self::Remainder | Self::RemainderUnsigned => integer && !vector,
            Self::Least | Self::Greatest => scalar.is_float(),
            Self::And | Self::Or | Self::Xor => true,
            Self::ShiftLeft | Self::ShiftRight => integer,
            Self::ShiftRightSigned => integer && !lacking,
        }
    }
}

/// A relation between two values, or between the elements of two vectors. Every relation but [`Relation::Ne`] is false if a value
/// is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less; integers are signed.
    Lt,
    /// Less or equal; integers are signed.
    Le,
    /// Less, of unsigned integers.
    LtUnsigned,
    /// Less or equal, of unsigned integers.
    LeUnsigned,
}

impl Relation {
    /// Every relation.
    pub const ALL: &'static [Self] =
        &[Self::Eq, Self::Ne, Self::Lt, Self::Le, Self::LtUnsigned, Self::LeUnsigned];

    /// Returns whether the relation is defined between values of a type.
    pub fn is_defined(self, ty: Type, set: InstructionSet) -> bool {
        let unsigned = matches!(self, Self::LtUnsigned | Self::LeUnsigned);
        let lacking = ty.lanes > 1 && set == InstructionSet::Avx2;
        let has_order = ty.scalar != Scalar::Bool && !ty.scalar.is_narrow();
        has_order && !(unsigned && (ty.scalar.is_float() || lacking))
    }
}

/// An index of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    /// The register: I32 or I64, which are signed.
    pub reg: Reg,
    /// The largest index. Larger indices are replaced with it, and negative ones with 0.
    pub limit: u64,
    /// The number of bytes per unit of the index.
    pub step: u64,
}

/// The location of a value in an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The array.
    pub array: Array,
    /// The offset in bytes if all indices are zero.
    pub offset: u64,
    /// The indices.
    pub indices: Vec<Index>,
}

impl Access {
    /// Returns a location at a constant offset.
    pub fn fixed(array: Array, offset: usize) -> Self {
        Self { array, offset: offset as u64, indices: Vec::new() }
    }

    /// Returns the end of the furthest location for a value of `size` bytes, or `None` if it is too large.
    pub(crate) fn end(&self, size: usize) -> Option<u64> {
        let mut end = self.offset.checked_add(size as u64)?;
        for i in &self.indices {
            end = end.checked_add(i.limit.checked_mul(i.step)?)?;
        }
        Some(end)
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Inst {
    /// The value with these bits in each element.
    Constant {
        /// The register to assign.
        dst: Reg,
        /// The bits of an element.
        bits: u64,
    },
    /// Consecutive integers, one in each element.
    Sequence {
        /// The register to assign, of I32 or I64.
        dst: Reg,
        /// The first integer.
        first: u32,
    },
    /// An operation on one value.
    Unary {
        /// The operation.
        op: UnaryOp,
        /// The register to assign.
        dst: Reg,
        /// The operand.
        a: Reg,
    },
    /// An operation on two values.
    Binary {
        /// The operation.
        op: BinaryOp,
        /// The register to assign.
        dst: Reg,
        /// The first operand.
        a: Reg,
        /// The second operand.
        b: Reg,
    },
    /// `a * b + c` of floats, rounded once.
    Fma {
        /// The register to assign.
        dst: Reg,
        /// The first factor.
        a: Reg,
        /// The second factor.
        b: Reg,
        /// The summand.
        c: Reg,
    },
    /// Compares two values by a relation.
    Compare {
        /// The relation.
        relation: Relation,
        /// The register to assign: as many booleans as an operand has elements.
        dst: Reg,
        /// The first operand.
        a: Reg,
        /// The second operand.
        b: Reg,
    },
    /// `a` if the condition is true, otherwise `b`.
    Select {
        /// The register to assign.
        dst: Reg,
        /// The condition: a boolean, or one for each element.
        condition: Reg,
        /// The value if it is true.
        a: Reg,
        /// The value if it is false.
        b: Reg,
    },
    /// `a` where two values are in a relation, otherwise `b`. The elements of all four have one size, and none is in a
    /// general-purpose register.
    Choose {
        /// The relation.
        relation: Relation,
        /// The register to assign.
        dst: Reg,
        /// The first value of the relation.
        x: Reg,
        /// The second value of the relation.
        y: Reg,
        /// The value where the relation holds.
        a: Reg,
        /// The value elsewhere.
        b: Reg,
    },
    /// A vector of elements of two values, or one of their elements.
    Shuffle {
        /// The register to assign.
        dst: Reg,
        /// The first value.
        a: Reg,
        /// The second value. It has the element type of the first one, but maybe another number of elements.
        b: Reg,
        /// For each element of the result, the number of an element of `a` followed by those of `b`. The rest is ignored.
        lanes: [u8; 16],
    },
    /// Reads from an array.
    Load {
        /// The register to assign.
        dst: Reg,
        /// The location.
        at: Access,
    },
    /// Writes to an array.
    Store {
        /// The value.
        src: Reg,
        /// The location.
        at: Access,
    },
    /// Calls the caller of the function with a number. The call may read and write all arrays.
    Call {
        /// The register that receives the answer, an I64.
        dst: Reg,
        /// The number.
        number: u32,
    },
}

/// The end of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// Continues with a block.
    Jump(Block),
    /// Continues with `then` if two values are in a relation.
    Compare {
        /// The relation.
        relation: Relation,
        /// The first operand.
        a: Reg,
        /// The second operand.
        b: Reg,
        /// The next block if the relation holds.
        then: Block,
        /// The next block otherwise.
        otherwise: Block,
    },
    /// Continues with `then` if a boolean is true.
    If {
        /// The condition.
        condition: Reg,
        /// The next block if it is true.
        then: Block,
        /// The next block if it is false.
        otherwise: Block,
    },
    /// Adds `step` to a counter of I64, and continues with `then` if it is at most `limit`. Otherwise the counter becomes 0, and
    /// the function continues with `otherwise`.
    ///
    /// If only constants and such ends assign a register, accesses do not check it as an index whose limit is at least theirs.
    Count {
        /// The counter.
        counter: Reg,
        /// The distance between two values of the counter.
        step: u32,
        /// The largest value of the counter.
        limit: u32,
        /// The next block if there are more values.
        then: Block,
        /// The next block otherwise.
        otherwise: Block,
    },
    /// Ends the function with a value.
    Return(u32),
}

impl End {
    /// Calls a function with each block that may be next.
    pub(crate) fn targets(&self, mut f: impl FnMut(Block)) {
        self.clone().targets_mut(|b| f(*b));
    }

    fn targets_mut(&mut self, mut f: impl FnMut(&mut Block)) {
        match self {
            Self::Jump(b) => f(b),
            Self::Compare { then, otherwise, .. }
            | Self::If { then, otherwise, .. }
            | Self::Count { then, otherwise, .. } => {
                f(then);
                f(otherwise);
            }
            Self::Return(_) => {}
        }
    }

    /// Calls a function with each register that is read.
    pub(crate) fn uses(&self, mut f: impl FnMut(Reg)) {
        match self {
            Self::Compare { a, b, .. } => {
                f(*a);
                f(*b);
            }
            Self::If { condition, .. } => f(*condition),
            Self::Count { counter, .. } => f(*counter),
            Self::Jump(_) | Self::Return(_) => {}
        }
    }
}

impl Inst {
    /// Returns the register that is assigned.
    pub(crate) fn def(&self) -> Option<Reg> {
        match self {
            Self::Constant { dst, .. }
            | Self::Sequence { dst, .. }
            | Self::Unary { dst, .. }
            | Self::Binary { dst, .. }
            | Self::Fma { dst, .. }
            | Self::Compare { dst, .. }
            | Self::Select { dst, .. }
            | Self::Choose { dst, .. }
            | Self::Shuffle { dst, .. }
            | Self::Load { dst, .. }
            | Self::Call { dst, .. } => Some(*dst),
            Self::Store { .. } => None,
        }
    }

    /// Calls a function with each register that is read.
    pub(crate) fn uses(&self, mut f: impl FnMut(Reg)) {
        let mut all = |regs: &[Reg]| regs.iter().for_each(|r| f(*r));
        match self {
            Self::Constant { .. } | Self::Sequence { .. } | Self::Call { .. } => {}
            Self::Unary { a, .. } => all(&[*a]),
            Self::Binary { a, b, .. } | Self::Compare { a, b, .. } | Self::Shuffle { a, b, .. } => {
                all(&[*a, *b])
            }
            Self::Fma { a, b, c, .. } => all(&[*a, *b, *c]),
            Self::Choose { x, y, a, b, .. } => all(&[*x, *y, *a, *b]),
            Self::Select { condition, a, b, .. } => all(&[*condition, *a, *b]),
            Self::Load { at, .. } => at.indices.iter().for_each(|i| f(i.reg)),
            Self::Store { src, at } => {
                f(*src);
                at.indices.iter().for_each(|i| f(i.reg));
            }
        }
    }
}

/// Instructions that run one after the other.
#[derive(Clone, Debug)]
pub(crate) struct BlockBody {
    pub(crate) insts: Vec<Inst>,
    pub(crate) end: Option<End>,
}

/// A function. It begins with its first block.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The instruction set that the function needs.
    pub(crate) set: InstructionSet,
    pub(crate) regs: Vec<Type>,
    /// The sizes of the arrays in bytes.
    pub(crate) arrays: Vec<u64>,
    pub(crate) blocks: Vec<BlockBody>,
    /// The block to which instructions are added.
    at: usize,
}

impl Function {
    /// Creates a function without blocks, for AVX2.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a function without blocks, for an instruction set.
    pub fn with_instruction_set(set: InstructionSet) -> Self {
        Self { set, ..Self::default() }
    }

    /// Declares an array of a number of bytes. Callers pass the arrays in the order of their declaration.
    pub fn array(&mut self, bytes: usize) -> Array {
        self.arrays.push(bytes as u64);
        Array(self.arrays.len() as u32 - 1)
    }

    /// Creates a register.
    pub fn reg(&mut self, ty: Type) -> Reg {
        self.regs.push(ty);
        Reg(self.regs.len() as u32 - 1)
    }

    /// Returns the type of a register.
    pub fn type_of(&self, reg: Reg) -> Type {
        self.regs[reg.0 as usize]
    }

    /// Creates an empty block.
    pub fn block(&mut self) -> Block {
        self.blocks.push(BlockBody { insts: Vec::new(), end: None });
        Block(self.blocks.len() as u32 - 1)
    }

    /// Makes a block the one to which instructions are added.
    pub fn select(&mut self, block: Block) {
        self.at = block.0 as usize;
    }

    /// Adds an instruction to the selected block.
    ///
    /// # Panics
    /// Panics if no block exists.
    pub fn push(&mut self, inst: Inst) {
        self.blocks[self.at].insts.push(inst);
    }

    /// Removes the instructions of the selected block, and returns them.
    ///
    /// # Panics
    /// Panics if no block exists.
    pub fn take(&mut self) -> Vec<Inst> {
        std::mem::take(&mut self.blocks[self.at].insts)
    }

    /// Adds lists of instructions to the selected block in turn: the first one of each, the second one of each, and so on. The
    /// lists must be independent of each other; a processor then executes them at the same time.
    ///
    /// # Panics
    /// Panics if no block exists.
    pub fn interleave(&mut self, lists: Vec<Vec<Inst>>) {
        let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
        loop {
            let next: Vec<Inst> = lists.iter_mut().filter_map(Iterator::next).collect();
            if next.is_empty() {
                return;
            }
            self.blocks[self.at].insts.extend(next);
        }
    }

    /// Ends the selected block.
    ///
    /// # Panics
    /// Panics if no block exists.
    pub fn end(&mut self, end: End) {
        self.blocks[self.at].end = Some(end);
    }

    /// Puts blocks into this order, in front of all others, and gives them new numbers. The first one becomes the start of the
    /// function. Code is laid out in the order of the blocks, so a loop's blocks should follow each other.
    ///
    /// # Panics
    /// Panics if a block does not exist or occurs twice.
    pub fn arrange(&mut self, order: &[Block]) {
        let mut number = vec![None; self.blocks.len()];
        for (new, block) in order.iter().enumerate() {
            let old = number[block.0 as usize].replace(new as u32);
            assert!(old.is_none(), "block {} occurs twice", block.0);
        }
        let mut next = order.len() as u32;
        let number: Vec<u32> = number
            .into_iter()
            .map(|n| {
                n.unwrap_or_else(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        let mut blocks: Vec<(u32, BlockBody)> =
            number.iter().copied().zip(std::mem::take(&mut self.blocks)).collect();
        blocks.sort_by_key(|(n, _)| *n);
        self.blocks = blocks.into_iter().map(|(_, body)| body).collect();
        for end in self.blocks.iter_mut().filter_map(|b| b.end.as_mut()) {
            end.targets_mut(|b| *b = Block(number[b.0 as usize]));
        }
        self.at = 0;
    }

    /// Returns the number of instructions.
    pub fn instructions(&self) -> usize {
        self.blocks.iter().map(|b| b.insts.len() + 1).sum()
    }
}

impl Function {
    /// Returns the types of the registers and the sizes of the arrays as a line.
    pub(crate) fn header(&self) -> String {
        let regs: String = self.regs.iter().enumerate().map(|(i, ty)| format!("r{i}: {ty}; ")).collect();
        format!("{regs}arrays of {:?} bytes\n", self.arrays)
    }

    /// Returns the instructions and the ends of all blocks as text.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.blocks.iter().flat_map(|block| {
            let insts = block.insts.iter().map(|inst| format!("{inst:?}"));
            insts.chain(block.end.iter().map(|end| format!("{end:?}")))
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.header())?;
        let mut lines = self.lines();
        for (i, block) in self.blocks.iter().enumerate() {
            writeln!(f, "block {i}:")?;
            let count = block.insts.len() + usize::from(block.end.is_some());
            lines.by_ref().take(count).try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        Ok(())
    }
}
