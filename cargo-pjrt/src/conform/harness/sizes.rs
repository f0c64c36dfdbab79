//! The sizes of the arrays with which every way to move bytes is checked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::comparison::Expected;
use super::verdict::{Finding, Verdict};
use pjrt_testing::host::ElementType;

/// Sizes in bytes: small ones, powers of two at which plugins divide copies, and sizes just beyond them, so that
/// the last part of a divided copy is incomplete.
pub(crate) const SIZES: &[usize] = &[
    1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 257, 1000, 4095, 4096, 4097, 4100,
    16_388, 65_535, 65_536, 65_540, 131_076, 262_143, 262_148, 524_296, 1_048_588, 4_194_308, 16_777_220,
    20_971_528,
];

/// Types of each width. The values of integers are copied unchanged by all plugins.
const TYPES: [ElementType; 4] = [ElementType(9), ElementType(8), ElementType(7), ElementType::U8];

/// The largest size that is tried with all types. Larger arrays have the widest type that divides their size.
const ALL_TYPES: usize = 65_540;

/// An array with which a copy is checked: no two words of its bytes are equal, and no other array has the
/// same bytes, so that parts that were not copied, or were copied from elsewhere, are detected.
pub(crate) struct Sample {
    pub(crate) element_type: ElementType,
    pub(crate) dims: [i64; 1],
    pub(crate) bytes: &'static [u8],
}

impl Sample {
    /// Returns an array of one-byte elements.
    pub(crate) fn new(size: usize) -> Self {
        Self::of_type(size, ElementType::U8)
    }

    fn of_type(size: usize, element_type: ElementType) -> Self {
        static WORDS: OnceLock<Vec<u8>> = OnceLock::new();
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        const STARTS: usize = 4096;
        let words = WORDS.get_or_init(|| {
            let most = SIZES.iter().max().copied().unwrap_or(0).div_ceil(4) + 2 * STARTS;
            (1..=most as u32).flat_map(|word| word.wrapping_mul(0x9E37_79B1).to_le_bytes()).collect()
        });
        let start = 8 * (NEXT.fetch_add(1, Ordering::Relaxed) % STARTS);
        let dims = [(size / element_type.byte_size()) as i64];
        Self { element_type, dims, bytes: &words[start..start + size] }
    }

    /// Compares bytes that were copied from this array.
    pub(crate) fn check(&self, what: &str, read: &[u8]) -> Verdict {
        if read == self.bytes {
            return Ok(());
        }
        let what = format!("{what} of {}{:?}", self.element_type, self.dims);
        Expected::new(&what, self.bytes, self.element_type, &self.dims).check(read)
    }
}

/// Runs a check with arrays of all sizes. Types that the plugin does not support are omitted, unless it
/// supports none.
pub(crate) fn for_each_size(work: impl Fn(&Sample) -> Verdict) -> Verdict {
    let mut unsupported = None;
    let mut supported = false;
    for &size in SIZES {
        let types = TYPES.into_iter().filter(|element_type| size % element_type.byte_size() == 0);
        for element_type in types.take(if size <= ALL_TYPES { TYPES.len() } else { 1 }) {
            match work(&Sample::of_type(size, element_type)) {
                Err(Finding::Unsupported(why)) => unsupported = Some(Finding::Unsupported(why)),
                outcome => {
                    outcome?;
                    supported = true;
                }
            }
            // A function that the plugin lacks is tried once.
            if unsupported.is_some() && !supported && element_type == ElementType::U8 {
                return Err(unsupported.take().unwrap_or_else(|| Finding::Unsupported(String::new())));
            }
        }
    }
    Ok(())
}
