//! Copies between dense, row-major arrays and arrays with any strides.

/// The placement of an array's elements: dimensions, byte strides, which may be negative, and the offset of the first
/// element from the start of the bytes.
#[derive(Debug, Clone)]
pub(crate) struct Strided {
    pub(crate) dims: Vec<usize>,
    pub(crate) strides: Vec<i64>,
    pub(crate) base: usize,
    pub(crate) element_size: usize,
}

/// Returns the number of bytes that an array occupies before its first element and from it on, or `None` if they overflow.
/// An array without elements occupies none.
pub(crate) fn extent(dims: &[i64], strides: &[i64], element_size: usize) -> Option<(usize, usize)> {
    if dims.contains(&0) {
        return Some((0, 0));
    }
    let (mut below, mut above) = (0_usize, element_size);
    for (dim, stride) in dims.iter().zip(strides) {
        let last = usize::try_from(*dim).ok()?.checked_sub(1)?;
        let reach = last.checked_mul(usize::try_from(stride.unsigned_abs()).ok()?)?;
        let side = if *stride < 0 { &mut below } else { &mut above };
        *side = side.checked_add(reach)?;
    }
    isize::try_from(below.checked_add(above)?).ok()?;
    Some((below, above))
}

impl Strided {
    /// Returns the dimensions, without those of size one and with contiguous neighbors joined, and the length of the
    /// innermost contiguous run in bytes, which is as long as possible.
    fn runs(&self) -> (Vec<(usize, i64)>, usize) {
        let mut axes: Vec<(usize, i64)> = Vec::with_capacity(self.dims.len());
        for (dim, stride) in self.dims.iter().copied().zip(self.strides.iter().copied()) {
            if dim == 1 {
                continue;
            }
            match axes.last_mut() {
                Some((outer, outer_stride))
                    if i64::try_from(dim).is_ok_and(|d| stride.checked_mul(d) == Some(*outer_stride)) =>
                {
                    *outer *= dim;
                    *outer_stride = stride;
                }
                _ => axes.push((dim, stride)),
            }
        }
        let mut run = self.element_size;
        if let Some((dim, stride)) = axes.last().copied()
            && usize::try_from(stride) == Ok(self.element_size)
        {
            run *= dim;
            axes.pop();
        }
        (axes, run)
    }

    /// Calls `visit(offset, dense, run)` for every contiguous run: the `run` bytes at `offset` of the strided array are
    /// those at `dense` of the dense array.
    fn for_each_run(&self, mut visit: impl FnMut(usize, usize, usize)) {
        if self.dims.contains(&0) || self.element_size == 0 {
            return;
        }
        let (axes, run) = self.runs();
        let (inner_count, inner_stride) = axes.last().copied().unwrap_or((1, 0));
        let outer = &axes[..axes.len().saturating_sub(1)];
        let mut index = vec![0_usize; outer.len()];
        let (mut offset, mut dense) = (self.base, 0);
        loop {
            let mut inner = offset;
            for _ in 0..inner_count {
                visit(inner, dense, run);
                inner = inner.wrapping_add_signed(inner_stride as isize);
                dense += run;
            }
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                let (dim, stride) = outer[axis];
                index[axis] += 1;
                if index[axis] < dim {
                    offset = offset.wrapping_add_signed(stride as isize);
                    break;
                }
                index[axis] = 0;
                offset = offset.wrapping_add_signed((stride as isize).wrapping_mul(1 - dim as isize));
            }
        }
    }

    /// Copies a strided array to a dense one. The size of `dense` must be that of the array.
    pub(crate) fn gather(&self, from: &[u8], dense: &mut [u8]) {
        self.for_each_run(|offset, at, run| copy_run(&from[offset..offset + run], &mut dense[at..at + run]));
    }

    /// Copies a dense array to a strided one. The size of `dense` must be that of the array.
    pub(crate) fn scatter(&self, dense: &[u8], to: &mut [u8]) {
        self.for_each_run(|offset, at, run| copy_run(&dense[at..at + run], &mut to[offset..offset + run]));
    }
}

/// Copies a run, with a single move if it has the size of an element.
#[inline]
fn copy_run(from: &[u8], to: &mut [u8]) {
    macro_rules! fixed {
        ($($size:literal)*) => {
            match from.len() {
                $($size => to[..$size].copy_from_slice(&from[..$size]),)*
                _ => to.copy_from_slice(from),
            }
        };
    }
    fixed!(1 2 4 8 16);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(dims: &[usize], strides: &[i64], base: usize) -> Strided {
        Strided { dims: dims.to_vec(), strides: strides.to_vec(), base, element_size: 2 }
    }

    fn gathered(array: &Strided, from: &[u8]) -> Vec<u8> {
        let mut dense = vec![0; array.dims.iter().product::<usize>() * 2];
        array.gather(from, &mut dense);
        dense
    }

    const BYTES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

    #[test]
    fn dense_arrays_are_one_run() {
        let array = strided(&[2, 1, 3], &[6, 100, 2], 0);
        assert_eq!(array.runs(), (vec![], 12));
        assert_eq!(gathered(&array, &BYTES), BYTES);
    }

    #[test]
    fn permuted_strides_transpose() {
        assert_eq!(gathered(&strided(&[3, 2], &[2, 6], 0), &BYTES), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
    }

    #[test]
    fn negative_strides_reverse() {
        assert_eq!(extent(&[3], &[-2], 2), Some((4, 2)));
        assert_eq!(gathered(&strided(&[3], &[-2], 4), &BYTES), [4, 5, 2, 3, 0, 1]);
        let both = strided(&[2, 3], &[-6, -2], 10);
        assert_eq!(gathered(&both, &BYTES), [10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1]);
    }

    #[test]
    fn zero_strides_repeat() {
        assert_eq!(gathered(&strided(&[2, 2], &[0, 2], 0), &BYTES), [0, 1, 2, 3, 0, 1, 2, 3]);
    }

    #[test]
    fn scatter_undoes_gather() {
        let array = strided(&[3, 2], &[2, 6], 0);
        let mut back = [0; 12];
        array.scatter(&gathered(&array, &BYTES), &mut back);
        assert_eq!(back, BYTES);
    }

    #[test]
    fn arrays_of_nothing_and_of_one_element_work() {
        assert_eq!(gathered(&strided(&[0, 3], &[6, 2], 0), &[]), [0; 0]);
        assert_eq!(gathered(&strided(&[], &[], 4), &BYTES), [4, 5]);
        assert_eq!(extent(&[0, i64::MAX], &[i64::MAX, i64::MAX], 2), Some((0, 0)));
    }

    #[test]
    fn extents_that_do_not_fit_are_refused() {
        assert_eq!(extent(&[i64::MAX, 2], &[4, 4], 4), None);
        assert_eq!(extent(&[3, 3], &[i64::MAX, i64::MIN], 4), None);
    }
}
