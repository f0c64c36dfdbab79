//! Assigns buffers to offsets in the arena. Buffers that are not live at the same time may share memory.

use super::emitter::Buffer;
use crate::plan::{Home, Slot, Step};
use crate::storage::View;
use std::collections::{BTreeMap, BTreeSet};

/// The alignment of buffers in the arena.
const ALIGN: usize = 64;

/// Returns the slot of each buffer, and the size of the arena. `loops` are pairs of the first step and the step after the last.
/// `pairs` are buffers that exchange their memory.
pub(super) fn assign(
    steps: &[Step],
    buffers: &[Buffer],
    loops: &[(usize, usize)],
    pairs: &[(u32, u32)],
) -> (Vec<Slot>, usize) {
    let mut lives = lives(steps, buffers.len());
    extend_over_loops(&mut lives, loops);
    for _ in 0..2 {
        for (a, b) in pairs {
            let (x, y) = (lives[*a as usize], lives[*b as usize]);
            let hull = match (x, y) {
                (Some((s, t)), Some((u, v))) => Some((s.min(u), t.max(v))),
                (one, None) | (None, one) => one,
            };
            lives[*a as usize] = hull;
            lives[*b as usize] = hull;
        }
    }
    let mut order: Vec<usize> = (0..buffers.len()).filter(|b| buffers[*b].home.is_none()).collect();
    order.sort_by_key(|b| lives[*b].map_or(0, |l| l.0));
    let mut arena = Arena::default();
    let mut places = vec![0usize; buffers.len()];
    // The ends of live buffers in ascending order.
    let mut live: BTreeSet<(usize, usize)> = BTreeSet::new();
    for b in order {
        let Some((start, end)) = lives[b] else { continue };
        while let Some(&(until, other)) = live.first() {
            if until >= start {
                break;
            }
            live.pop_first();
            arena.free(places[other], buffers[other].bytes);
        }
        places[b] = arena.take(buffers[b].bytes);
        live.insert((end, b));
    }
    let slots = buffers
        .iter()
        .zip(places.iter().zip(&lives))
        .map(|(b, (place, live))| {
            // A buffer that no step uses exists only within a block of rows.
            let bytes = if b.home.is_none() && live.is_none() { 0 } else { b.bytes };
            Slot { bytes, home: b.home.unwrap_or(Home::Arena(*place)) }
        })
        .collect();
    (slots, arena.size)
}

/// Returns the first and the last step that uses each buffer.
pub(super) fn lives(steps: &[Step], buffers: usize) -> Vec<Option<(usize, usize)>> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; buffers];
    for (at, step) in steps.iter().enumerate() {
        let mut touch = |slot: u32| {
            let live = &mut lives[slot as usize];
            *live = Some(live.map_or((at, at), |(s, _)| (s, at)));
        };
        touched(step, &mut touch);
    }
    lives
}

/// Calls `touch` with every slot that a step refers to.
fn touched(step: &Step, touch: &mut dyn FnMut(u32)) {
    let mut views = |views: &[View]| views.iter().for_each(|v| touch(v.slot));
    match step {
        Step::Run(call) => {
            views(&call.reads);
            views(&call.writes);
        }
        Step::RowBlocks(step) => step.rows.parts.iter().for_each(|p| touch(p.view.slot)),
        Step::JumpIfNot { predicate, .. } => touch(predicate.slot),
        Step::Branch { index, .. } => touch(index.slot),
        Step::Swap(a, b) => {
            touch(*a);
            touch(*b);
        }
        Step::Settle(a) => touch(*a),
        Step::Collective(c) => {
            touch(c.read.slot);
            touch(c.write.slot);
        }
        Step::Manual(m) => {
            views(&m.reads);
            views(&m.writes);
        }
        Step::Send { read: view, .. } | Step::Receive { write: view, .. } => touch(view.slot),
        Step::Jump(_) => {}
    }
}

/// Extends the live range of each buffer that is written before a loop and used in it to the end of the loop.
fn extend_over_loops(lives: &mut [Option<(usize, usize)>], loops: &[(usize, usize)]) {
    // Inner loops come first, since they end first. Their extensions may reach into outer loops.
    for (top, end) in loops {
        for (start, last) in lives.iter_mut().flatten() {
            if *start < *top && *last >= *top && *last < *end {
                *last = *end;
            }
        }
    }
}

/// The free ranges of an arena that grows on demand.
#[derive(Default)]
struct Arena {
    size: usize,
    /// The sizes of the free ranges, by their start. No two of them are adjacent.
    free: BTreeMap<usize, usize>,
    /// The same ranges as (size, start).
    by_size: BTreeSet<(usize, usize)>,
}

impl Arena {
    /// Takes the start of the smallest free range that is large enough, or grows the arena.
    fn take(&mut self, bytes: usize) -> usize {
        let bytes = bytes.next_multiple_of(ALIGN);
        if bytes == 0 {
            return 0;
        }
        let found = self.by_size.range((bytes, 0)..).next().copied();
        if let Some((size, start)) = found {
            self.remove(start, size);
            if size > bytes {
                self.insert(start + bytes, size - bytes);
            }
            return start;
        }
        // Grow the last range if it is free.
        let last = self.free.last_key_value().map(|(s, n)| (*s, *n)).filter(|(s, n)| s + n == self.size);
        let start = match last {
            Some((start, size)) => {
                self.remove(start, size);
                start
            }
            None => self.size,
        };
        self.size = start + bytes;
        start
    }

    fn free(&mut self, start: usize, bytes: usize) {
        let mut size = bytes.next_multiple_of(ALIGN);
        if size == 0 {
            return;
        }
        let mut start = start;
        if let Some((s, n)) = self.free.range(..start).next_back().map(|(s, n)| (*s, *n))
            && s + n == start
        {
            self.remove(s, n);
            start = s;
            size += n;
        }
        if let Some(n) = self.free.get(&(start + size)).copied() {
            self.remove(start + size, n);
            size += n;
        }
        self.insert(start, size);
    }

    fn insert(&mut self, start: usize, size: usize) {
        self.free.insert(start, size);
        self.by_size.insert((size, start));
    }

    fn remove(&mut self, start: usize, size: usize) {
        self.free.remove(&start);
        self.by_size.remove(&(size, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_pieces_join_and_are_used_again() {
        let mut a = Arena::default();
        let x = a.take(100);
        let y = a.take(100);
        let z = a.take(10);
        assert_eq!((x, y, z), (0, 128, 256));
        a.free(x, 100);
        a.free(y, 100);
        assert_eq!(a.take(200), 0);
        assert_eq!(a.size, 320);
    }

    #[test]
    fn the_best_fit_is_taken() {
        let mut a = Arena::default();
        let (x, _, z, _) = (a.take(256), a.take(64), a.take(64), a.take(64));
        a.free(x, 256);
        a.free(z, 64);
        assert_eq!(a.take(64), z);
    }

    #[test]
    fn what_a_loop_reads_stays_until_it_ends() {
        let mut lives = vec![Some((0, 3)), Some((3, 4)), Some((0, 1))];
        extend_over_loops(&mut lives, &[(2, 6)]);
        assert_eq!(lives, [Some((0, 6)), Some((3, 4)), Some((0, 1))]);
    }
}
