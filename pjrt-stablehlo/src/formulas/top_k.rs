//! The greatest elements of a tensor.

use crate::build::Builder;
use crate::ir::ops::{Compare, Sort};
use crate::ir::{ComparisonDirection, ComparisonType, ElementType, TensorType, ValueId};

/// `chlo.top_k`: the `k` greatest elements along the last dimension (the least if `is_largest` is `false`), and their
/// indices. Of equal elements, the first comes first.
///
/// The last dimension must have at least `k` elements.
pub(crate) fn top_k(
    b: &mut Builder,
    x: ValueId,
    k: i64,
    index: ElementType,
    is_largest: bool,
) -> [ValueId; 2] {
    let ty = b.tensor(x);
    let last = ty.rank().saturating_sub(1);
    let positions = b.iota(index, ty.dims(), last as i64);
    let element = ty.element_type();
    let scalars = [element, element, index, index].map(|element| TensorType::new(element, []).into());
    let comparison_direction = if is_largest { ComparisonDirection::Gt } else { ComparisonDirection::Lt };
    let compare_type = if element.is_float() { ComparisonType::TotalOrder } else { ComparisonType::NoType };
    let kind = Sort { dimension: last as i64, is_stable: true };
    let sort = b.op_with_regions(kind, &[x, positions], |b, sort| {
        b.region(sort, scalars, |b, arguments| {
            vec![b.op(Compare { comparison_direction, compare_type }, &arguments[..2])]
        });
    });
    let mut limit = ty.dims().to_vec();
    limit[last] = k;
    b.results::<2>(sort).map(|sorted| b.slice(sorted, &vec![0; limit.len()], &limit))
}
