//! The k largest or smallest elements of each row.

use super::key::{KeyCodec, KeyOrder, KeyPart, SortKey, encode_narrow, encode_wide};
use crate::copy::check_same_type;
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};

/// Keys that are compared with the threshold at a time.
const BLOCK: usize = 128;
/// The number of elements of a chunk.
const CHUNK: usize = 32 << 10;

/// Writes the `k` largest (or smallest) elements along the last dimension of `input` to `values`, the best
/// one first, and their positions to `indices` (S32). Elements are compared in IEEE total order, as in XLA's
/// `TopK`; among equal elements, the first one comes first. Allocates memory for about `2 * k` elements per
/// thread.
///
/// # Panics
/// Panics if the shapes do not match, if `k` exceeds the last dimension, or if the type is complex.
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
            && i32::try_from(*n).is_ok()
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
    let rows = input.len() / n;
    let part = (CHUNK / n).max(1);
    let (values, indices) = (SyncPtr::new(&mut values), SyncPtr::new(&mut indices));
    pool.run(rows.div_ceil(part), &|chunk| {
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        for row in chunk * part..rows.min((chunk + 1) * part) {
            let from = &input.bytes()[row * n * size..(row + 1) * n * size];
            let best: &mut dyn Iterator<Item = usize> = if codec.is_narrow() {
                select_narrow(&codec, from, size, k, &mut narrow);
                &mut narrow.iter().map(|item| *item as u32 as usize)
            } else {
                select_wide(&codec, from, size, k, &mut wide);
                &mut wide.iter().map(|(_, index)| *index as usize)
            };
            for (slot, index) in best.enumerate() {
                let source = &from[index * size..][..size];
                // SAFETY: both results have `rows` rows of `k` elements, and `best` has `k`; chunks have
                // different rows.
                unsafe {
                    indices.get().cast::<i32>().add(row * k + slot).write(index as i32);
                    values.get().add((row * k + slot) * size).copy_from(source.as_ptr(), size);
                }
            }
        }
    });
}

/// Writes the `k` smallest items of a row to `best`, in order. The upper half of an item is the key, the
/// lower half the element's number.
fn select_narrow(codec: &KeyCodec, row: &[u8], size: usize, k: usize, best: &mut Vec<u64>) {
    let mut keys = [0u32; BLOCK];
    select(best, k, row.len() / size, &mut |first, count, worst: Option<u64>, found| {
        // SAFETY: elements `first..first + count` are in the row, and `count` is at most `BLOCK`.
        unsafe { encode_narrow(codec, row[first * size..].as_ptr(), size, keys.as_mut_ptr(), count) };
        let limit = worst.map_or(1 << 32, |w| w >> 32);
        let least = keys[..count].iter().fold(u32::MAX, |m, k| m.min(*k));
        if u64::from(least) < limit {
            let better = keys[..count].iter().enumerate().filter(|(_, k)| u64::from(**k) < limit);
            found.extend(better.map(|(i, k)| u64::from(*k) << 32 | (first + i) as u64));
        }
    });
}

/// Writes the `k` smallest items of a row to `best`, in order: keys with the numbers of elements.
fn select_wide(codec: &KeyCodec, row: &[u8], size: usize, k: usize, best: &mut Vec<(u64, u32)>) {
    let mut keys = [0u64; BLOCK];
    select(best, k, row.len() / size, &mut |first, count, worst: Option<(u64, u32)>, found| {
        // SAFETY: elements `first..first + count` are in the row, and `count` is at most `BLOCK`.
        unsafe { encode_wide(codec, row[first * size..].as_ptr(), size, keys.as_mut_ptr(), count) };
        let better = keys[..count].iter().enumerate().filter(|(_, k)| worst.is_none_or(|w| **k < w.0));
        found.extend(better.map(|(i, k)| (*k, (first + i) as u32)));
    });
}

/// Writes the `k` smallest items to `best`, in order. An item is a key with the element's number.
/// `scan(first, count, worst, found)` appends the items of elements `first..first + count` whose key is below
/// that of the item `worst`, if there is one yet.
fn select<T: Ord + Copy>(
    best: &mut Vec<T>,
    k: usize,
    n: usize,
    scan: &mut dyn FnMut(usize, usize, Option<T>, &mut Vec<T>),
) {
    best.clear();
    let mut worst = None;
    let room = 2 * k + 4 * BLOCK;
    for first in (0..n).step_by(BLOCK) {
        scan(first, BLOCK.min(n - first), worst, best);
        if best.len() + BLOCK > room {
            best.select_nth_unstable(k - 1);
            best.truncate(k);
            worst = Some(best[k - 1]);
        }
    }
    best.sort_unstable();
    best.truncate(k);
}
