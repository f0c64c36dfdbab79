//! The sizes of the arrays with which every way to move bytes is checked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::comparison::Expected;
use super::message::performing;
use super::types::{accepted_widths, narrowest};
use super::verdict::{Finding, Verdict};
use pjrt_testing::host::{Buffer, Client, ElementType, Result, in_traced_step};

/// Sizes in bytes: small ones, powers of two at which plugins divide copies, and sizes just beyond them, so that
/// the last part of a divided copy is incomplete.
pub(crate) const SIZES: &[usize] = &[
    1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 257, 1000, 4095, 4096, 4097, 4100,
    16_388, 65_535, 65_536, 65_540, 131_076, 262_143, 262_148, 524_296, 1_048_588, 4_194_308, 16_777_220,
];

/// The largest size that is tried with types of all widths. Larger arrays have the widest type that divides their size.
const ALL_TYPES: usize = 65_540;

/// Dimensions of arrays with more rows and more columns than 16 bits count.
const TABLES: [[usize; 2]; 2] = [[65_539, 2], [2, 65_539]];

/// The largest size that is tried when checks run again.
const AGAIN: usize = 262_148;

/// `true` while checks run again, with fewer arrays.
static IS_BRIEF: AtomicBool = AtomicBool::new(false);

/// Performs work in which checks of many arrays use fewer of them, because they ran with all before. This concerns the whole
/// process.
pub(crate) fn briefly<T>(work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            IS_BRIEF.store(false, Ordering::Relaxed);
        }
    }
    IS_BRIEF.store(true, Ordering::Relaxed);
    let _reset = Reset;
    work()
}

/// Returns `true` in work that is done [briefly].
pub(crate) fn is_brief() -> bool {
    IS_BRIEF.load(Ordering::Relaxed)
}

/// An array with which a copy is checked: no two words of its bytes are equal, and no other array has the
/// same bytes, so that parts that were not copied, or were copied from elsewhere, are detected.
pub(crate) struct Sample {
    pub(crate) element_type: ElementType,
    pub(crate) dims: Vec<i64>,
    pub(crate) bytes: &'static [u8],
}

impl Sample {
    /// Returns an array of the narrowest elements, which has at most this many bytes.
    pub(crate) fn new(client: &Client, size: usize) -> Result<Self> {
        let element_type = narrowest(client)?;
        let width = element_type.byte_size();
        Ok(Self::of_type(size / width * width, element_type))
    }

    fn of_type(size: usize, element_type: ElementType) -> Self {
        static WORDS: OnceLock<Vec<u8>> = OnceLock::new();
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        const STARTS: usize = 4096;
        let words = WORDS.get_or_init(|| {
            let most = SIZES.iter().max().copied().unwrap_or(0).div_ceil(4) + 2 * STARTS;
            let word = |at: u32| at.wrapping_mul(0x9E37_79B1).to_le_bytes();
            (1..=most as u32).map(word).collect::<Vec<_>>().into_flattened()
        });
        let start = 8 * (NEXT.fetch_add(1, Ordering::Relaxed) % STARTS);
        let dims = vec![(size / element_type.byte_size()) as i64];
        Self { element_type, dims, bytes: &words[start..start + size] }
    }

    /// Reads an array, and compares it with this one.
    pub(crate) fn check_array(&self, what: &str, array: &Buffer) -> Verdict {
        array.read_with(|read| self.check(what, read))?
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

/// Runs a check with arrays of all sizes, and with a type of each width that the plugin accepts.
pub(crate) fn for_each_size(client: &Client, work: impl Fn(&Sample) -> Verdict) -> Verdict {
    let mut supported = false;
    for sample in samples(&accepted_widths(client)?) {
        let size = sample.bytes.len();
        let outcome = match size > AGAIN {
            // Each of these takes long on a busy system.
            true => performing(format!("the size {size}"), || work(&sample)),
            false => in_traced_step(&format!("{}{:?}", sample.element_type, sample.dims), || work(&sample)),
        };
        match outcome {
            // The function may lack a type. One that the plugin lacks altogether is tried once.
            Err(Finding::Unsupported(_)) if supported => {}
            outcome => {
                outcome?;
                supported = true;
            }
        }
    }
    match supported {
        true => Ok(()),
        false => Err(Finding::Unsupported("the plugin accepts no array of numbers".to_owned())),
    }
}

/// Returns arrays of all sizes and of these types.
fn samples(types: &[ElementType]) -> Vec<Sample> {
    let (largest, all_types) = if is_brief() { (AGAIN, 0) } else { (usize::MAX, ALL_TYPES) };
    let mut samples = Vec::new();
    for &size in SIZES.iter().filter(|size| **size <= largest) {
        let fitting = types.iter().filter(|element_type| size % element_type.byte_size() == 0);
        let fitting = fitting.take(if size <= all_types { types.len() } else { 1 });
        samples.extend(fitting.map(|element_type| Sample::of_type(size, *element_type)));
    }
    if let Some(narrowest) = types.last().filter(|_| !is_brief()) {
        samples.extend(TABLES.iter().map(|dims| {
            let size = dims.iter().product::<usize>() * narrowest.byte_size();
            let dims = dims.iter().map(|dim| *dim as i64).collect();
            Sample { dims, ..Sample::of_type(size, *narrowest) }
        }));
    }
    samples
}
