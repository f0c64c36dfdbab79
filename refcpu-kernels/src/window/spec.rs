//! The geometry of windows: sizes, strides, dilations, padding, and the positions of the elements of a
//! window.

/// The window of `reduce_window` and `select_and_scatter`, with one entry per dimension of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WindowSpec {
    /// The number of elements of the window.
    pub size: Vec<usize>,
    /// The distance between windows, at least 1.
    pub strides: Vec<usize>,
    /// The distance between elements of the dilated input, at least 1. The holes between them are padding.
    pub base_dilations: Vec<usize>,
    /// The distance between the elements of a window, at least 1.
    pub window_dilations: Vec<usize>,
    /// The padding before and after the (dilated) input. Negative padding crops.
    pub padding: Vec<(i64, i64)>,
}

impl WindowSpec {
    /// Creates a window of this size with strides and dilations 1 and no padding.
    pub fn new(size: Vec<usize>) -> Self {
        let rank = size.len();
        Self {
            size,
            strides: vec![1; rank],
            base_dilations: vec![1; rank],
            window_dilations: vec![1; rank],
            padding: vec![(0, 0); rank],
        }
    }

    /// Returns the number of windows along each dimension of an input.
    ///
    /// # Errors
    /// Returns an error if a list does not have one entry per dimension, if a size, stride or dilation is
    /// zero, or if a sum overflows.
    pub fn output_dims(&self, input: &[usize]) -> Result<Vec<usize>, String> {
        let rank = input.len();
        let lens = [
            self.size.len(),
            self.strides.len(),
            self.base_dilations.len(),
            self.window_dilations.len(),
            self.padding.len(),
        ];
        if lens.iter().any(|n| *n != rank) {
            return Err(format!("a window with lists of lengths {lens:?} over an input of rank {rank}"));
        }
        (0..rank)
            .map(|d| {
                Axis::new(
                    input[d],
                    self.size[d],
                    self.strides[d],
                    self.base_dilations[d],
                    self.window_dilations[d],
                    self.padding[d],
                )
                .map(|axis| axis.outputs)
                .ok_or_else(|| format!("the window {self:?} does not fit dimension {d} of {input:?}"))
            })
            .collect()
    }

    /// Returns the sizes of an input after base dilation and padding.
    pub fn padded_dims(&self, input: &[usize]) -> Vec<usize> {
        (0..input.len())
            .map(|d| {
                let holes = input[d].saturating_sub(1) * (self.base_dilations[d] - 1);
                let (low, high) = self.padding[d];
                ((input[d] + holes) as i64 + low + high).max(0) as usize
            })
            .collect()
    }

    /// Returns the axes of the windows over an input.
    ///
    /// # Panics
    /// Panics if [`Self::output_dims`] returns an error.
    pub(crate) fn axes(&self, input: &[usize]) -> Vec<Axis> {
        if let Err(message) = self.output_dims(input) {
            panic!("{message}");
        }
        (0..input.len())
            .map(|d| {
                Axis::new(
                    input[d],
                    self.size[d],
                    self.strides[d],
                    self.base_dilations[d],
                    self.window_dilations[d],
                    self.padding[d],
                )
                .expect("checked by output_dims")
            })
            .collect()
    }

    /// Calls `visit` for each element of the window at `window` (an index into [`Self::output_dims`]), in
    /// row-major order, with its flat row-major position in the input, or `None` if it is padding or a hole
    /// of base dilation.
    ///
    /// # Panics
    /// Panics if the window is not valid for the input, or if `window` has a different rank.
    pub fn for_each_position(&self, input: &[usize], window: &[usize], mut visit: impl FnMut(Option<usize>)) {
        let axes = self.axes(input);
        assert_eq!(window.len(), axes.len(), "a window index of a different rank than the input {input:?}");
        if self.size.contains(&0) {
            return;
        }
        let mut at = vec![0; axes.len()];
        loop {
            let position = axes
                .iter()
                .zip(&at)
                .zip(window)
                .zip(input)
                .try_fold(0, |flat, (((axis, k), o), n)| axis.position(*o, *k).map(|i| flat * n + i));
            visit(position);
            let Some(d) = (0..at.len()).rev().find(|d| at[*d] + 1 < self.size[*d]) else { return };
            at[d] += 1;
            at[d + 1..].fill(0);
        }
    }
}

/// Windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The size of the input.
    pub input: usize,
    /// The number of windows.
    pub outputs: usize,
    /// The number of elements of a window.
    pub size: usize,
    /// The distance between windows.
    pub stride: usize,
    /// The distance between elements of the dilated input.
    pub base_dilation: usize,
    /// The distance between the elements of a window.
    pub window_dilation: usize,
    /// The padding before the input. Negative padding crops.
    pub low: i64,
}

impl Axis {
    /// Creates the windows of a dimension. Returns `None` if a stride or dilation is zero, or if a position
    /// would overflow.
    pub(crate) fn new(
        input: usize,
        size: usize,
        stride: usize,
        base_dilation: usize,
        window_dilation: usize,
        padding: (i64, i64),
    ) -> Option<Self> {
        if size == 0 || stride == 0 || base_dilation == 0 || window_dilation == 0 {
            return None;
        }
        // Every position is below the padded size plus one window, which this bounds to well below the
        // maximum of i64.
        let bounded = |n: i64| (n.unsigned_abs() < 1 << 60).then_some(n);
        let dilated = |n: usize, by: usize| {
            let spread = n.saturating_sub(1).checked_mul(by)?.checked_add(usize::from(n > 0))?;
            bounded(i64::try_from(spread).ok()?)
        };
        let base = dilated(input, base_dilation)?;
        let padded = bounded(base.checked_add(bounded(padding.0)?)?.checked_add(bounded(padding.1)?)?)?;
        let window = dilated(size, window_dilation)?;
        bounded(i64::try_from(stride).ok()?)?;
        let outputs = if padded < window { 0 } else { (padded - window) as usize / stride + 1 };
        Some(Self { input, outputs, size, stride, base_dilation, window_dilation, low: padding.0 })
    }

    /// Returns the position of element `k` of window `o` in the input, or `None` if it is padding or a hole
    /// of base dilation.
    #[inline(always)]
    pub(crate) fn position(&self, o: usize, k: usize) -> Option<usize> {
        let at = (o * self.stride + k * self.window_dilation) as i64 - self.low;
        if at < 0 || !(at as usize).is_multiple_of(self.base_dilation) {
            return None;
        }
        let i = at as usize / self.base_dilation;
        (i < self.input).then_some(i)
    }

    /// Returns `true` if windows are one element apart and nothing is dilated.
    pub(crate) fn is_plain(&self) -> bool {
        self.stride == 1 && self.base_dilation == 1 && self.window_dilation == 1
    }

    /// Returns `true` if no window contains padding or holes.
    pub(crate) fn is_unpadded(&self) -> bool {
        let last =
            (self.outputs.saturating_sub(1) * self.stride + (self.size - 1) * self.window_dilation) as i64;
        self.outputs == 0 || self.base_dilation == 1 && self.low <= 0 && last - self.low < self.input as i64
    }

    /// Returns the windows that lie completely inside the input, if the axis is plain.
    pub(crate) fn inside(&self) -> std::ops::Range<usize> {
        debug_assert!(self.is_plain());
        let first = self.low.max(0);
        let end = (self.input as i64 - self.size as i64 + self.low + 1).clamp(0, self.outputs as i64);
        if first < end { first as usize..end as usize } else { 0..0 }
    }

    /// Returns the elements of window `o` that are in the input, as a range, if neither side is dilated.
    #[inline(always)]
    pub(crate) fn undilated_range(&self, o: usize) -> std::ops::Range<usize> {
        debug_assert!(self.base_dilation == 1 && self.window_dilation == 1);
        let start = (o * self.stride) as i64 - self.low;
        let first = (-start).clamp(0, self.size as i64);
        let last = (self.input as i64 - start).clamp(first, self.size as i64);
        first as usize..last as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_windows_counts_padding_strides_and_dilations() {
        let mut spec = WindowSpec::new(vec![3]);
        assert_eq!(spec.output_dims(&[5]).unwrap(), [3]);
        spec.padding = vec![(1, 1)];
        spec.strides = vec![2];
        assert_eq!(spec.output_dims(&[5]).unwrap(), [3]);
        spec.base_dilations = vec![2];
        assert_eq!(spec.output_dims(&[5]).unwrap(), [5]);
        spec.window_dilations = vec![3];
        assert_eq!(spec.output_dims(&[5]).unwrap(), [3]);
        spec.padding = vec![(-4, -4)];
        assert_eq!(spec.output_dims(&[5]).unwrap(), [0]);
        assert_eq!(WindowSpec::new(vec![1]).output_dims(&[0]).unwrap(), [0]);
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let mut spec = WindowSpec::new(vec![usize::MAX]);
        spec.window_dilations = vec![usize::MAX];
        assert!(spec.output_dims(&[3]).is_err());
        let mut spec = WindowSpec::new(vec![1]);
        spec.padding = vec![(i64::MAX, i64::MAX)];
        assert!(spec.output_dims(&[3]).is_err());
    }

    #[test]
    fn positions_skip_padding_and_holes() {
        let mut spec = WindowSpec::new(vec![3]);
        spec.padding = vec![(1, 0)];
        spec.base_dilations = vec![2];
        let mut seen = vec![];
        spec.for_each_position(&[2], &[0], |p| seen.push(p));
        assert_eq!(seen, [None, Some(0), None]);
    }
}
