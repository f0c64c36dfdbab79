//! The growth of a measured quantity.

/// The growth of a quantity over the rounds of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    /// The bytes per round, as the least squares of all samples.
    pub(super) slope: f64,
    /// The smaller one of the growths of the first and the second half, in bytes. A cache that fills up grows
    /// in the first half only.
    pub(super) steady: i64,
}

/// Returns the growth of samples, which are pairs of a round and a number of bytes. The first fifth is
/// ignored, because caches fill up. Returns `None` if there are fewer than three other samples.
pub(super) fn growth(samples: &[(u64, i64)]) -> Option<Growth> {
    let samples = &samples[samples.len() / 5..];
    let [first, .., last] = samples else { return None };
    let middle = samples.get(samples.len() / 2).filter(|_| samples.len() > 2)?;
    let count = samples.len() as f64;
    let mean = |of: fn(&(u64, i64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (mean_round, mean_bytes) = (mean(|sample| sample.0 as f64), mean(|sample| sample.1 as f64));
    let (mut together, mut spread) = (0.0, 0.0);
    for (round, bytes) in samples {
        let from_mean = *round as f64 - mean_round;
        together += from_mean * (*bytes as f64 - mean_bytes);
        spread += from_mean * from_mean;
    }
    Some(Growth { slope: together / spread, steady: (middle.1 - first.1).min(last.1 - middle.1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_grows_steadily_and_a_cache_does_not() {
        let leak: Vec<(u64, i64)> = (0..100).map(|round| (round, 1000 + 64 * round as i64)).collect();
        let growth_of_leak = growth(&leak).unwrap();
        assert!((growth_of_leak.slope - 64.0).abs() < 1e-6, "{growth_of_leak:?}");
        assert!(growth_of_leak.steady > 64 * 38, "{growth_of_leak:?}");
        let cache: Vec<(u64, i64)> = (0..100).map(|round| (round, 64 * (round.min(50) as i64))).collect();
        assert_eq!(growth(&cache).unwrap().steady, 0);
        assert_eq!(growth(&leak[..2]), None);
    }
}
