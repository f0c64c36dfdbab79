//! Copies of many runs of bytes of equal lengths.

use crate::isa::{Isa, multiversion};

/// The maximum length of runs that are not copied with the system's function.
const LONGEST: usize = 1024;
/// The number of bytes of runs that are prefetched ahead of the current one, to hide the latency of memory.
const AHEAD: usize = 4096;
/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Prefetches an address.
#[inline(always)]
pub(super) fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address is harmless.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

multiversion! {
    /// Copies `bytes` bytes from each offset in `from` to the corresponding offset in `to`.
    ///
    /// # Safety
    /// All the runs must are in their arrays, those in `target` must be pairwise different, and the arrays
    /// must not overlap.
    pub(super) unsafe fn copy_runs(bytes: usize, source: *const u8, from: &[isize], target: *mut u8, to: &[isize]) = copy_runs_body
}

/// # Safety
/// See [`copy_runs`].
#[inline(always)]
unsafe fn copy_runs_body<I: Isa>(
    bytes: usize,
    source: *const u8,
    from: &[isize],
    target: *mut u8,
    to: &[isize],
) {
    // SAFETY: guaranteed by the caller; `whole` is for runs of its length, `ends` for those of its length to
    // twice that.
    unsafe {
        match bytes {
            0 => {}
            1 => whole::<1>(source, from, target, to),
            2 => whole::<2>(source, from, target, to),
            4 => whole::<4>(source, from, target, to),
            8 => whole::<8>(source, from, target, to),
            16 => whole::<16>(source, from, target, to),
            32 => whole::<32>(source, from, target, to),
            64 => whole::<64>(source, from, target, to),
            3 => ends::<2>(bytes, source, from, target, to),
            5..8 => ends::<4>(bytes, source, from, target, to),
            9..16 => ends::<8>(bytes, source, from, target, to),
            17..32 => ends::<16>(bytes, source, from, target, to),
            33..64 => ends::<32>(bytes, source, from, target, to),
            65..=128 => ends::<64>(bytes, source, from, target, to),
            _ => long(bytes, source, from, target, to),
        }
    }
}

/// Copies runs of `N` bytes.
///
/// # Safety
/// See [`copy_runs`].
#[inline(always)]
unsafe fn whole<const N: usize>(source: *const u8, from: &[isize], target: *mut u8, to: &[isize]) {
    for (f, t) in from.iter().zip(to) {
        // SAFETY: a run that the caller guarantees.
        unsafe { copy::<N>(source.wrapping_offset(*f), target.wrapping_offset(*t)) };
    }
}

/// Copies runs of `N` to `2 * N` bytes as their first and their last `N` bytes, which may overlap.
///
/// # Safety
/// See [`copy_runs`].
#[inline(always)]
unsafe fn ends<const N: usize>(
    bytes: usize,
    source: *const u8,
    from: &[isize],
    target: *mut u8,
    to: &[isize],
) {
    let last = bytes - N;
    for (f, t) in from.iter().zip(to) {
        let (f, t) = (source.wrapping_offset(*f), target.wrapping_offset(*t));
        // SAFETY: parts of a run that the caller guarantees.
        unsafe {
            copy::<N>(f, t);
            copy::<N>(f.add(last), t.add(last));
        }
    }
}

/// Copies runs of more than two lines.
///
/// # Safety
/// See [`copy_runs`].
#[inline(always)]
unsafe fn long(bytes: usize, source: *const u8, from: &[isize], target: *mut u8, to: &[isize]) {
    let ahead = (AHEAD / bytes).max(1);
    for (i, (f, t)) in from.iter().zip(to).enumerate() {
        if let Some(next) = from.get(i + ahead) {
            for line in (0..bytes.min(AHEAD)).step_by(LINE) {
                prefetch(source.wrapping_offset(*next).wrapping_add(line));
            }
        }
        let (f, t) = (source.wrapping_offset(*f), target.wrapping_offset(*t));
        // SAFETY: parts of a run that the caller guarantees; the last one may overlap the one before.
        unsafe {
            if bytes > LONGEST {
                std::ptr::copy_nonoverlapping(f, t, bytes);
            } else {
                for at in (0..bytes - LINE).step_by(LINE) {
                    copy::<LINE>(f.add(at), t.add(at));
                }
                copy::<LINE>(f.add(bytes - LINE), t.add(bytes - LINE));
            }
        }
    }
}

/// Copies `N` bytes.
///
/// # Safety
/// The bytes must be readable and writable, and must not overlap.
#[inline(always)]
unsafe fn copy<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: guaranteed by the caller; arrays of bytes need no alignment.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}
