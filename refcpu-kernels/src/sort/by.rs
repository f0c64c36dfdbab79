//! Sorting by an arbitrary comparator.

use super::rows::{apply, check};
use crate::{Dst, Pool, Src};

/// Runs that insertion sort makes before merging begins.
const RUN: usize = 8;

/// Sorts all `operands` along `dimension` together, stably, by `less`. The function receives two element numbers (row-major,
/// of the operands), and returns whether the first element must precede the second. Elements are not moved before all
/// comparisons are complete.
///
/// An inconsistent comparator results in an unspecified order, but never in a panic. Allocates memory for one
/// row of indices. Runs on the calling thread, because the comparator is not shared among threads.
///
/// # Panics
/// Panics if shapes or types differ, or if the dimension does not exist.
pub fn sort_by(
    _pool: &Pool,
    operands: &[Src<'_>],
    outs: &mut [Dst<'_>],
    dimension: usize,
    less: &mut dyn FnMut(usize, usize) -> bool,
) {
    let rows = check("sort_by", operands, outs, dimension);
    let mut order: Vec<u32> = vec![0; rows.len];
    let mut spare: Vec<u32> = vec![0; rows.len];
    for row in 0..rows.count {
        for (i, o) in order.iter_mut().enumerate() {
            *o = i as u32;
        }
        let (first, step) = rows.place(row);
        merge_sort(&mut order, &mut spare, &mut |a, b| {
            less(first + a as usize * step, first + b as usize * step)
        });
        for (operand, out) in operands.iter().zip(outs.iter_mut()) {
            apply(operand, out, &rows, row, &order);
        }
    }
}

/// Sorts `order` stably, bottom-up; `spare` is as long.
fn merge_sort(order: &mut [u32], spare: &mut [u32], less: &mut dyn FnMut(u32, u32) -> bool) {
    for run in order.chunks_mut(RUN) {
        for i in 1..run.len() {
            let mut j = i;
            while j > 0 && less(run[j], run[j - 1]) {
                run.swap(j, j - 1);
                j -= 1;
            }
        }
    }
    let mut width = RUN;
    while width < order.len() {
        for (from, to) in order.chunks(2 * width).zip(spare.chunks_mut(2 * width)) {
            let (a, b) = from.split_at(width.min(from.len()));
            let (mut i, mut j) = (0, 0);
            for t in to {
                let second = j < b.len() && (i == a.len() || less(b[j], a[i]));
                *t = if second { b[j] } else { a[i] };
                j += usize::from(second);
                i += usize::from(!second);
            }
        }
        order.copy_from_slice(spare);
        width *= 2;
    }
}
