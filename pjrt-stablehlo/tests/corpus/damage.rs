//! Damage to programs, the same in every run.

use pjrt_stablehlo::{Error, Module};

/// A small generator of pseudo-random numbers, so that failures are reproducible.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns a number below the limit, or 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Longest program that is damaged: short ones are read more often.
const MAX_LEN: usize = 100_000;

/// Reads damaged copies of binary programs. Accepted programs can be printed.
pub(crate) fn read_damaged(programs: &[Vec<u8>], read: impl Fn(Vec<u8>) -> Result<Module, Error>) {
    let mut random = Random::new();
    let mut outcomes = [0, 0];
    for round in 0..6000 {
        let mut bytes = programs[random.below(programs.len())].clone();
        if bytes.len() > MAX_LEN {
            continue;
        }
        match round % 4 {
            0 => bytes.truncate(random.below(bytes.len())),
            1 => {
                let donor = &programs[random.below(programs.len())];
                let (start, from) = (random.below(bytes.len()), random.below(donor.len()));
                let len = random.below(64).min(donor.len() - from).min(bytes.len() - start);
                bytes[start..start + len].copy_from_slice(&donor[from..from + len]);
            }
            _ => {
                for _ in 0..=random.below(8) {
                    let place = random.below(bytes.len());
                    bytes[place] ^= 1 << random.below(8);
                }
            }
        }
        let outcome = read(bytes).map(|module| module.to_string());
        outcomes[usize::from(outcome.is_ok())] += 1;
        let text = outcome.unwrap_or_else(|error| error.to_string());
        assert!(!text.is_empty());
    }
    let [errors, modules] = outcomes;
    println!("{modules} damaged programs read, {errors} gave an error");
    assert!(modules > 100 && errors > 100);
}
