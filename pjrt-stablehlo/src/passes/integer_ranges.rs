//! The ranges of integers: the numbers that the elements of a tensor can have, whatever the arguments of the program are.

use crate::ir::{Body, ElementKind, ElementType, Literal, Op, Operation, ValueId, integer_value};

/// The maximum number of elements of a constant that are read.
const MAX_ELEMENTS: u64 = 1 << 16;

/// The least and the greatest number of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) least: i128,
    pub(super) greatest: i128,
}

impl Range {
    /// Returns the numbers of a type; `None` if it is no integer type.
    pub(super) fn of_type(element: ElementType) -> Option<Self> {
        let bits = element.bits();
        match element.kind() {
            ElementKind::Boolean => Some(Range { least: 0, greatest: 1 }),
            ElementKind::SignedInteger => {
                let half = 1_i128 << (bits - 1);
                Some(Range { least: -half, greatest: half - 1 })
            }
            ElementKind::UnsignedInteger => Some(Range { least: 0, greatest: (1_i128 << bits) - 1 }),
            _ => None,
        }
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.least <= other.least && other.greatest <= self.greatest
    }

    /// Returns the only number of the range.
    pub(super) fn single(self) -> Option<i128> {
        (self.least == self.greatest).then_some(self.least)
    }

    fn is_natural(self) -> bool {
        self.least >= 0
    }

    fn of(numbers: impl IntoIterator<Item = i128>) -> Option<Self> {
        let mut numbers = numbers.into_iter();
        let first = numbers.next()?;
        let start = Range { least: first, greatest: first };
        Some(numbers.fold(start, |range, number| Range {
            least: range.least.min(number),
            greatest: range.greatest.max(number),
        }))
    }

    fn union(self, other: Self) -> Self {
        Range { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }
}

/// Returns the range of each value of a body, by index; `None` if it is not known, or contains all numbers of the type.
///
/// Arguments of functions and of regions can have all numbers. Operations whose result could exceed their type have no range.
pub(super) fn integer_ranges(body: &Body) -> Vec<Option<Range>> {
    let mut ranges = vec![None; body.num_values()];
    for (_, op) in body.all_ops() {
        let [result] = op.results.collect::<Vec<_>>()[..] else { continue };
        let Some(element) = body.ty(result).as_tensor().map(|ty| ty.element_type()) else { continue };
        let Some(of_type) = Range::of_type(element) else { continue };
        let range = evaluate(body, op, &ranges).filter(|range| of_type.contains(*range) && *range != of_type);
        ranges[result.index()] = range;
    }
    ranges
}

/// Returns the range of a value: the one that is known, or that of its type.
fn of_value(body: &Body, ranges: &[Option<Range>], value: ValueId) -> Option<Range> {
    let element = body.ty(value).as_tensor()?.element_type();
    ranges[value.index()].or_else(|| Range::of_type(element))
}

fn evaluate(body: &Body, op: &Operation, ranges: &[Option<Range>]) -> Option<Range> {
    let operand = |index: usize| of_value(body, ranges, *op.operands.get(index)?);
    match &op.kind {
        Op::Constant(constant) => of_literal(&constant.value),
        Op::Iota(iota) => {
            let dims = body.ty(op.result()).as_tensor()?.static_dims()?;
            let size = *dims.get(usize::try_from(iota.iota_dimension).ok()?)?;
            Some(Range { least: 0, greatest: (i128::from(size) - 1).max(0) })
        }
        Op::BroadcastInDim(_)
        | Op::Convert(_)
        | Op::Reshape(_)
        | Op::Reverse(_)
        | Op::Slice(_)
        | Op::Transpose(_) => operand(0),
        Op::Concatenate(_) => {
            (1..op.operands.len()).try_fold(operand(0)?, |all, index| Some(all.union(operand(index)?)))
        }
        Op::Select(_) => Some(operand(1)?.union(operand(2)?)),
        _ => {
            let (x, y) = (operand(0)?, operand(1)?);
            let bits = body.ty(op.result()).as_tensor()?.element_type().bits();
            arithmetic(op, x, y).or_else(|| natural(op, x, y, bits))
        }
    }
}

/// Returns the range of a constant.
fn of_literal(literal: &Literal) -> Option<Range> {
    let element = literal.ty().element_type();
    // `ui64` numbers above those of `i64` wrap.
    let number = |bytes: &[u8]| match element.kind() {
        ElementKind::UnsignedInteger => i128::from(integer_value(element, bytes) as u64),
        _ => i128::from(integer_value(element, bytes)),
    };
    match literal.splat() {
        Some(bytes) => Range::of([number(&bytes)]),
        None if literal.num_elements() <= MAX_ELEMENTS => {
            Range::of(literal.dense_bytes().ok()?.chunks_exact(element.byte_width()).map(number))
        }
        None => None,
    }
}

/// Returns the range of an operation on two integers.
fn arithmetic(op: &Operation, x: Range, y: Range) -> Option<Range> {
    Some(match op.kind {
        Op::Add(_) => Range { least: x.least + y.least, greatest: x.greatest + y.greatest },
        Op::Subtract(_) => Range { least: x.least - y.greatest, greatest: x.greatest - y.least },
        Op::Multiply(_) => {
            let ends = |number: i128| [number.checked_mul(y.least), number.checked_mul(y.greatest)];
            let products = [ends(x.least), ends(x.greatest)].into_iter().flatten();
            Range::of(products.collect::<Option<Vec<_>>>()?)?
        }
        Op::Maximum(_) => Range { least: x.least.max(y.least), greatest: x.greatest.max(y.greatest) },
        Op::Minimum(_) => Range { least: x.least.min(y.least), greatest: x.greatest.min(y.greatest) },
        _ => return None,
    })
}

/// Returns the range of an operation on two integers of `width` bits, neither of which is negative.
fn natural(op: &Operation, x: Range, y: Range, width: u32) -> Option<Range> {
    if !x.is_natural() || !y.is_natural() {
        return None;
    }
    // All bits are shifted out if there are no more of them.
    let shifted = |number: i128, by: i128| if by >= i128::from(width) { 0 } else { number >> by };
    Some(match op.kind {
        Op::And(_) => Range { least: 0, greatest: x.greatest.min(y.greatest) },
        Op::Divide(_) if y.least > 0 => Range { least: x.least / y.greatest, greatest: x.greatest / y.least },
        Op::Remainder(_) if y.least > 0 => Range { least: 0, greatest: x.greatest.min(y.greatest - 1) },
        Op::ShiftRightLogical(_) => {
            Range { least: shifted(x.least, y.greatest), greatest: shifted(x.greatest, y.least) }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the range of the value that a program returns.
    fn range(ops: &str, ty: &str) -> Option<(i128, i128)> {
        let text = format!(
            "func.func @main(%x: tensor<4xi8>, %y: tensor<4xui64>, %p: tensor<4xi1>) -> {ty} {{ {ops} return %r : {ty} }}"
        );
        let module = crate::parse(text.into_bytes()).unwrap();
        let main = module.main().unwrap();
        let returned = main.returned()[0];
        integer_ranges(&main.body)[returned.index()].map(|range| (range.least, range.greatest))
    }

    #[test]
    fn ranges_follow_the_operations() {
        let wide = "tensor<4xui64>";
        let iota = "%i = stablehlo.iota dim = 0 : tensor<4xui64> %c = stablehlo.constant dense<[7, 5, 9, 6]> : tensor<4xui64>";
        let binary = |op: &str| range(&format!("{iota} %r = stablehlo.{op} %i, %c : {wide}"), wide);
        assert_eq!(binary("add"), Some((5, 12)));
        assert_eq!(binary("multiply"), Some((0, 27)));
        assert_eq!(binary("subtract"), None, "it can wrap");
        assert_eq!(binary("maximum"), Some((5, 9)));
        assert_eq!(binary("minimum"), Some((0, 3)));
        assert_eq!(binary("remainder"), Some((0, 3)));
        assert_eq!(binary("and"), Some((0, 3)));
        assert_eq!(binary("divide"), Some((0, 0)));
        assert_eq!(binary("shift_right_logical"), Some((0, 0)));
        let convert = "%r = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi64>";
        assert_eq!(range(convert, "tensor<4xi64>"), Some((-128, 127)));
        let wraps = "%r = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xui64>";
        assert_eq!(range(wraps, wide), None, "negative numbers wrap");
        let unknown = format!("{iota} %r = stablehlo.add %i, %y : {wide}");
        assert_eq!(range(&unknown, wide), None, "an argument can have all numbers");
        let select = format!("{iota} %r = stablehlo.select %p, %i, %c : tensor<4xi1>, {wide}");
        assert_eq!(range(&select, wide), Some((0, 9)));
    }

    #[test]
    fn the_highest_numbers_do_not_wrap() {
        let text = "%r = stablehlo.constant dense<18446744073709551615> : tensor<4xui64>";
        assert_eq!(range(text, "tensor<4xui64>"), Some((u64::MAX.into(), u64::MAX.into())));
        let text = "%c = stablehlo.constant dense<18446744073709551615> : tensor<4xui64> \
                    %r = stablehlo.multiply %c, %c : tensor<4xui64>";
        assert_eq!(range(text, "tensor<4xui64>"), None);
    }
}
