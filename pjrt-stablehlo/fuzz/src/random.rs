//! Pseudo-random choices of mutators. libFuzzer passes the seed, so runs are reproducible.

/// A generator of pseudo-random numbers (xorshift).
pub struct Random(u64);

impl Random {
    /// Creates a generator from libFuzzer's seed.
    pub fn new(seed: u32) -> Self {
        Random(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}
