//! Pseudo-random choices of mutators. libFuzzer gives the seed, so runs repeat.

/// A generator of pseudo-random numbers (xorshift).
pub struct Random(u64);

impl Random {
    /// A generator that libFuzzer's seed determines.
    pub fn new(seed: u32) -> Self {
        Random(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}
