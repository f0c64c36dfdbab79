//! The types of generated values, and their elements.

use crate::random::Random;
use pjrt_stablehlo::ir::{ElementKind, ElementType};

/// A tensor type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ty {
    pub(crate) dims: Vec<i64>,
    pub(crate) element: Element,
}

/// An element type, which includes the parameters of quantized types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Plain(ElementType),
    /// An index into [`QUANTIZED`].
    Quantized(usize),
}

/// The quantized types that programs use: their MLIR text and storage types. All are signed, because the other implementations
/// compute unsigned ones with the wrong storage type.
pub(crate) const QUANTIZED: [(&str, ElementType); 4] = [
    ("!quant.uniform<i8:f32, 5.000000e-01:3>", ElementType::I8),
    ("!quant.uniform<i8:f32, 1.250000e-01:-5>", ElementType::I8),
    ("!quant.uniform<i4:f32, 1.000000e+00>", ElementType::I4),
    ("!quant.uniform<i32:f32, 6.250000e-02>", ElementType::I32),
];

/// The indices of the quantized types whose zero point is zero.
pub(crate) const SYMMETRIC: [usize; 2] = [2, 3];

/// The kind of an input's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Any values, many of which are special.
    Any,
    /// Numbers around one with short mantissas. Their sums and products hardly depend on the order.
    Tame,
    /// Positive numbers around one.
    Positive,
    /// Integers from the first number to the second, inclusive.
    Range(i64, i64),
    /// The smallest number, which is negative infinity if the type has it.
    Lowest,
    /// The largest number, which is infinity if the type has it.
    Highest,
}

/// Returns every element type of tensors.
pub(crate) fn elements() -> Vec<Element> {
    let none =
        [ElementType::Tf32, ElementType::Ui1, ElementType::Si1, ElementType::Index, ElementType::Quantized];
    let plain = ElementType::ALL.iter().filter(|ty| !none.contains(ty)).map(|&ty| Element::Plain(ty));
    plain.chain((0..QUANTIZED.len()).map(Element::Quantized)).collect()
}

impl Element {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Element::Plain(ty) => ty.name(),
            Element::Quantized(n) => QUANTIZED[n].0,
        }
    }

    /// Returns the name in the table of counts.
    pub(crate) fn family(self) -> &'static str {
        match self {
            Element::Plain(ty) => ty.name(),
            Element::Quantized(_) => "quantized",
        }
    }

    /// Returns the type of the stored elements.
    pub(crate) fn storage(self) -> ElementType {
        match self {
            Element::Plain(ty) => ty,
            Element::Quantized(n) => QUANTIZED[n].1,
        }
    }

    pub(crate) fn kind(self) -> ElementKind {
        match self {
            Element::Plain(ty) => ty.kind(),
            Element::Quantized(_) => ElementKind::Quantized,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        self.kind() == ElementKind::Float
    }
}

impl Ty {
    pub(crate) fn new(element: Element, dims: &[i64]) -> Self {
        Self { dims: dims.to_vec(), element }
    }

    pub(crate) fn plain(ty: ElementType, dims: &[i64]) -> Self {
        Self::new(Element::Plain(ty), dims)
    }

    /// Returns the type with the same elements in a different shape.
    pub(crate) fn with_dims(&self, dims: &[i64]) -> Self {
        Self::new(self.element, dims)
    }

    /// Returns the type with other elements in the same shape.
    pub(crate) fn with_element(&self, element: Element) -> Self {
        Self::new(element, &self.dims)
    }

    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }

    pub(crate) fn count(&self) -> usize {
        self.dims.iter().product::<i64>() as usize
    }

    pub(crate) fn text(&self) -> String {
        let dims: String = self.dims.iter().map(|d| format!("{d}x")).collect();
        format!("tensor<{dims}{}>", self.element.text())
    }
}

/// Returns the little-endian bytes of one element, which occupies whole bytes.
pub(crate) fn bytes(random: &mut Random, element: Element, fill: Fill) -> Vec<u8> {
    let ty = element.storage();
    if let Some(part) = ty.complex_part() {
        let part = Element::Plain(part);
        // An integer has no imaginary part.
        let imaginary = if matches!(fill, Fill::Range(..)) { Fill::Range(0, 0) } else { fill };
        return [bytes(random, part, fill), bytes(random, part, imaginary)].concat();
    }
    let bits = match (ty.kind(), fill) {
        (ElementKind::Boolean, Fill::Range(low, high)) => u64::from(random.between(low, high) != 0),
        (ElementKind::Boolean, Fill::Lowest) => 0,
        (ElementKind::Boolean, Fill::Highest) => 1,
        (ElementKind::Boolean, _) => random.next() & 1,
        (ElementKind::Float, Fill::Lowest | Fill::Highest) => extreme(ty, fill == Fill::Lowest),
        (ElementKind::Float, Fill::Range(low, high)) => small_float(ty, random.between(low, high)),
        (ElementKind::Float, _) => float(random, ty, fill),
        _ => integer(random, ty, fill) as u64,
    };
    let mask = if ty.bits() >= 64 { u64::MAX } else { (1 << ty.bits()) - 1 };
    let bits = bits & mask;
    let extended = if ty.kind() == ElementKind::SignedInteger && ty.bits() < 8 {
        let unused = 64 - ty.bits();
        ((bits << unused) as i64 >> unused) as u64
    } else {
        bits
    };
    extended.to_le_bytes()[..ty.byte_width()].to_vec()
}

fn integer(random: &mut Random, ty: ElementType, fill: Fill) -> i64 {
    match fill {
        Fill::Range(low, high) => random.between(low, high),
        Fill::Lowest | Fill::Highest => {
            let top = 1i64.wrapping_shl(ty.bits() - 1);
            match (ty.kind(), fill) {
                (ElementKind::SignedInteger, Fill::Lowest) => top,
                (ElementKind::SignedInteger, _) => top.wrapping_sub(1),
                (_, Fill::Lowest) => 0,
                _ => -1,
            }
        }
        Fill::Positive => random.between(1, 7),
        Fill::Tame => random.between(-4, 7),
        Fill::Any => match random.below(10) {
            0 => 0,
            1 => -1,
            2 => 1,
            3 => 1i64.wrapping_shl(ty.bits() - 1),
            4 => 1i64.wrapping_shl(ty.bits() - 1).wrapping_sub(1),
            5 | 6 => random.between(-12, 12),
            7 => 1i64.wrapping_shl(random.below(ty.bits() as usize) as u32),
            _ => random.next() as i64,
        },
    }
}

/// Returns the bits of the exponent of the number one.
fn bias(ty: ElementType) -> u64 {
    match ty {
        ElementType::F8E8M0FNU => 127,
        ElementType::F8E4M3FNUZ => 8,
        ElementType::F8E4M3B11FNUZ => 11,
        ElementType::F8E5M2FNUZ => 16,
        _ => (1 << (ty.exponent_bits() - 1)) - 1,
    }
}

fn float(random: &mut Random, ty: ElementType, fill: Fill) -> u64 {
    let (mantissa, exponent) = (ty.mantissa_bits(), ty.exponent_bits());
    let sign = if ty == ElementType::F8E8M0FNU { 0 } else { (random.next() & 1) << (exponent + mantissa) };
    if fill == Fill::Any && random.percent(45) {
        let top = (1 << exponent) - 1;
        let ones = (1 << mantissa) - 1;
        return sign
            | match random.below(12) {
                0 | 1 => 0,
                // The quiet NaN, or the value with these bits in types without it.
                2 => top << mantissa | 1 << mantissa.saturating_sub(1),
                3 => top << mantissa,
                4 => (top - 1) << mantissa | ones,
                5 => 1 << mantissa,
                6 => bias(ty) << mantissa,
                7 => (bias(ty) - 1) << mantissa,
                8 => (bias(ty) << mantissa) + 1,
                // Subnormal numbers, which are rare because XLA's CPU backend flushes them to zero.
                9 if random.percent(15) => 1,
                10 if random.percent(15) => ones,
                _ => random.next() & ((1 << (exponent + mantissa)) - 1),
            };
    }
    let sign = if fill == Fill::Positive { 0 } else { sign };
    // At most three bits of mantissa, so that products are exact if the type allows it.
    let wide = if fill == Fill::Any { mantissa } else { mantissa.min(2) };
    let fraction = (random.next() & ((1 << wide) - 1)) << (mantissa - wide);
    let shift = if exponent < 4 { random.between(-1, 1) } else { random.between(-2, 2) };
    let raised = (bias(ty) as i64 + shift).max(0) as u64;
    sign | raised << mantissa | fraction
}

/// Returns an infinity, or the finite number of largest magnitude.
fn extreme(ty: ElementType, lowest: bool) -> u64 {
    let (mantissa, exponent) = (ty.mantissa_bits(), ty.exponent_bits());
    let all = (1u64 << (exponent + mantissa)) - 1;
    let magnitude = match ty {
        ElementType::F8E8M0FNU => return if lowest { 0 } else { all - 1 },
        // The bits that are all ones are NaN.
        ElementType::F8E4M3FN => all - 1,
        ElementType::F4E2M1FN | ElementType::F6E2M3FN | ElementType::F6E3M2FN => all,
        ElementType::F8E4M3FNUZ | ElementType::F8E4M3B11FNUZ | ElementType::F8E5M2FNUZ => all,
        _ => ((1 << exponent) - 1) << mantissa,
    };
    u64::from(lowest) << (exponent + mantissa) | magnitude
}

/// Returns the float nearest to a small integer.
fn small_float(ty: ElementType, value: i64) -> u64 {
    let (mantissa, exponent) = (ty.mantissa_bits(), ty.exponent_bits());
    if value == 0 {
        return 0;
    }
    let magnitude = value.unsigned_abs();
    let log = magnitude.ilog2();
    let fraction = magnitude ^ (1 << log);
    let fraction = if log <= mantissa { fraction << (mantissa - log) } else { fraction >> (log - mantissa) };
    let top = (1u64 << exponent) - 2;
    let sign = u64::from(value < 0 && ty != ElementType::F8E8M0FNU) << (exponent + mantissa);
    sign | (bias(ty) + u64::from(log)).min(top) << mantissa | fraction
}

/// Returns the MLIR text of a constant.
pub(crate) fn literal(ty: &Ty, elements: &[Vec<u8>]) -> String {
    if elements.is_empty() {
        return format!("dense<> : {}", storage_text(ty));
    }
    if ty.element.kind() == ElementKind::Boolean {
        let words: Vec<&str> = elements.iter().map(|e| if e[0] == 1 { "true" } else { "false" }).collect();
        return format!("dense<{}> : {}", nested(&words, &ty.dims), ty.text());
    }
    let digits: String = elements.iter().flatten().map(|byte| format!("{byte:02X}")).collect();
    format!("dense<\"0x{digits}\"> : {}", storage_text(ty))
}

/// Returns the type of a constant's elements as text: for quantized types, that of the storage type.
fn storage_text(ty: &Ty) -> String {
    ty.with_element(Element::Plain(ty.element.storage())).text()
}

/// Formats the elements of a tensor as nested lists in brackets, as MLIR does.
fn nested(words: &[&str], dims: &[i64]) -> String {
    match dims {
        [] => words.first().copied().unwrap_or_default().to_owned(),
        [_, rest @ ..] => {
            let size = rest.iter().product::<i64>().max(1) as usize;
            let parts: Vec<String> = words.chunks(size).map(|part| nested(part, rest)).collect();
            format!("[{}]", parts.join(", "))
        }
    }
}
