//! Sorting rows by keys.

use super::key::{KeyCodec, KeyOrder, KeyPart, SortKey, read_bits};
use crate::{Dst, Pool, Src};

/// The rows along one dimension of an array.
pub(super) struct Rows {
    /// How many.
    pub(super) count: usize,
    /// Elements in each.
    pub(super) len: usize,
    /// Elements between neighbours of one row.
    inner: usize,
}

impl Rows {
    /// The number of a row's first element, and the distance to the next.
    pub(super) fn place(&self, row: usize) -> (usize, usize) {
        ((row / self.inner) * self.len * self.inner + row % self.inner, self.inner)
    }
}

/// Checks that operands and results are alike.
#[track_caller]
pub(super) fn check(what: &str, operands: &[Src<'_>], outs: &[Dst<'_>], dimension: usize) -> Rows {
    assert!(
        !operands.is_empty() && operands.len() == outs.len(),
        "{what}: {} to {}",
        operands.len(),
        outs.len()
    );
    let dims = operands[0].dims();
    assert!(dimension < dims.len(), "{what}: along {dimension} of {dims:?}");
    for (operand, out) in operands.iter().zip(outs) {
        let fits = operand.dims() == dims && out.dims() == dims && operand.dtype() == out.dtype();
        assert!(
            fits,
            "{what}: {:?}{:?} to {:?}{:?} beside {dims:?}",
            operand.dtype(),
            operand.dims(),
            out.dtype(),
            out.dims()
        );
    }
    let len = dims[dimension];
    assert!(u32::try_from(len).is_ok(), "{what}: more than 2^32 - 1 elements along {dimension} of {dims:?}");
    let inner = dims[dimension + 1..].iter().product();
    let count = if operands[0].is_empty() { 0 } else { operands[0].len() / len };
    Rows { count, len, inner }
}

/// Writes one row of `operand` in the given order.
pub(super) fn apply(operand: &Src<'_>, out: &mut Dst<'_>, rows: &Rows, row: usize, order: &[u32]) {
    let size = operand.dtype().size();
    let (first, step) = rows.place(row);
    let (from, to) = (operand.bytes(), out.bytes_mut());
    for (i, o) in order.iter().enumerate() {
        let source = (first + *o as usize * step) * size;
        let target = (first + i * step) * size;
        to[target..target + size].copy_from_slice(&from[source..source + size]);
    }
}

/// Sorts all `operands` along `dimension` together by `keys`, the first key deciding first. Elements whose keys are all
/// equal stay in their order. Takes memory for a few copies of a row.
///
/// # Panics
/// If shapes or types differ, the dimension or a key's operand does not exist, or a key's part does not suit its type.
pub fn sort(pool: &Pool, keys: &[SortKey], operands: &[Src<'_>], outs: &mut [Dst<'_>], dimension: usize) {
    let rows = check("sort", operands, outs, dimension);
    let codecs: Vec<KeyCodec> = keys.iter().map(|k| KeyCodec::new(operands[k.operand].dtype(), k)).collect();
    for row in 0..rows.count {
        let (first, step) = rows.place(row);
        let mut order: Vec<u32> = (0..rows.len as u32).collect();
        order.sort_by_cached_key(|i| {
            let element = first + *i as usize * step;
            keys.iter()
                .zip(&codecs)
                .map(|(key, codec)| {
                    let operand = &operands[key.operand];
                    let at = element * operand.dtype().size() + codec.offset;
                    codec.encode(read_bits(&operand.bytes()[at..], codec.size))
                })
                .collect::<Vec<u64>>()
        });
        for (operand, out) in operands.iter().zip(outs.iter_mut()) {
            apply(operand, out, &rows, row, &order);
        }
    }
    let _ = pool;
}

/// Sorts `input` along `dimension`.
///
/// # Panics
/// As [`sort`]; complex types have no order of their own.
pub fn sort_keys(
    pool: &Pool,
    input: Src<'_>,
    out: Dst<'_>,
    order: KeyOrder,
    descending: bool,
    dimension: usize,
) {
    let key = SortKey { operand: 0, part: KeyPart::Whole, order, descending };
    sort(pool, &[key], &[input], &mut [out], dimension);
}
