//! The k largest or smallest elements of each row.

use super::key::{KeyCodec, KeyOrder, KeyPart, SortKey, read_bits};
use crate::copy::check_same_type;
use crate::{DType, Dst, Pool, Src};

/// Writes the `k` largest (or smallest) elements along the last dimension of `input` to `values`, best first, and their
/// positions to `indices` (S32). Elements compare in IEEE total order, as XLA's `TopK` does; of equal ones the first
/// comes first.
///
/// # Panics
/// If the shapes do not fit, `k` exceeds the last dimension, or the type is complex.
pub fn top_k(
    pool: &Pool,
    input: Src<'_>,
    mut values: Dst<'_>,
    mut indices: Dst<'_>,
    k: usize,
    largest: bool,
) {
    check_same_type("top_k", &input, &values);
    let dims = input.dims();
    let fits = dims.split_last().is_some_and(|(n, outer)| {
        k <= *n
            && u32::try_from(*n).is_ok()
            && [values.dims(), indices.dims()].iter().all(|d| d.split_last() == Some((&k, outer)))
    });
    assert!(fits, "top_k: {k} of {dims:?} to {:?} and {:?}", values.dims(), indices.dims());
    assert_eq!(indices.dtype(), DType::S32, "top_k: type of the indices");
    if values.is_empty() {
        return;
    }
    let key = SortKey { operand: 0, part: KeyPart::Whole, order: KeyOrder::Total, descending: largest };
    let codec = KeyCodec::new(input.dtype(), &key);
    let (n, size) = (dims[dims.len() - 1], input.dtype().size());
    for (row, (values, indices)) in values
        .bytes_mut()
        .chunks_exact_mut(k * size)
        .zip(indices.as_mut_slice::<i32>().chunks_exact_mut(k))
        .enumerate()
    {
        let from = &input.bytes()[row * n * size..(row + 1) * n * size];
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_cached_key(|i| codec.encode(read_bits(&from[*i as usize * size..], size)));
        for (slot, o) in order[..k].iter().enumerate() {
            indices[slot] = *o as i32;
            values[slot * size..(slot + 1) * size]
                .copy_from_slice(&from[*o as usize * size..(*o as usize + 1) * size]);
        }
    }
    let _ = pool;
}
