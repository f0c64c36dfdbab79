//! Stable sorting of integers, and of integers with something attached, by least significant digit first.

/// Below this many items insertion sort is faster.
const INSERTION: usize = 40;
/// From this many items on, digits of 11 bits pay for their larger tables.
const WIDE_DIGITS: usize = 8192;

/// Something that is sorted by an integer of up to 64 bits.
pub(super) trait Item: Copy + Default {
    /// The integer.
    fn key(self) -> u64;
    /// How many bits of the integer matter.
    const BITS: u32;
}

/// A key alone.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Narrow(pub(super) u32);

/// A key in the high half, anything in the low half.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Packed(pub(super) u64);

/// A wide key alone.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Wide(pub(super) u64);

/// A wide key with a position.
#[derive(Clone, Copy, Default)]
pub(super) struct WidePacked {
    /// What is sorted by.
    pub(super) key: u64,
    /// What is attached.
    pub(super) position: u32,
}

impl Packed {
    /// A key with something attached.
    #[inline(always)]
    pub(super) fn new(key: u32, attached: u32) -> Self {
        Self(u64::from(key) << 32 | u64::from(attached))
    }
}

impl Item for Narrow {
    #[inline(always)]
    fn key(self) -> u64 {
        self.0.into()
    }
    const BITS: u32 = 32;
}

impl Item for Packed {
    #[inline(always)]
    fn key(self) -> u64 {
        self.0 >> 32
    }
    const BITS: u32 = 32;
}

impl Item for Wide {
    #[inline(always)]
    fn key(self) -> u64 {
        self.0
    }
    const BITS: u32 = 64;
}

impl Item for WidePacked {
    #[inline(always)]
    fn key(self) -> u64 {
        self.key
    }
    const BITS: u32 = 64;
}

/// Sorts `items` stably by the low `bits` bits of their keys, the others being zero. `spare` is as long; `counts` is
/// kept between calls to save allocations.
pub(super) fn radix_sort<T: Item>(items: &mut [T], spare: &mut [T], bits: u32, counts: &mut Vec<u32>) {
    assert_eq!(items.len(), spare.len());
    debug_assert!(bits <= T::BITS);
    if items.len() < INSERTION {
        return insertion_sort(items);
    }
    if items.len() < WIDE_DIGITS || bits <= 8 {
        passes::<T, 8>(items, spare, bits, counts);
    } else {
        passes::<T, 11>(items, spare, bits, counts);
    }
}

fn insertion_sort<T: Item>(items: &mut [T]) {
    for i in 1..items.len() {
        let item = items[i];
        let mut j = i;
        while j > 0 && items[j - 1].key() > item.key() {
            items[j] = items[j - 1];
            j -= 1;
        }
        items[j] = item;
    }
}

fn passes<T: Item, const DIGIT: u32>(items: &mut [T], spare: &mut [T], bits: u32, counts: &mut Vec<u32>) {
    let size = 1usize << DIGIT;
    let passes = bits.div_ceil(DIGIT) as usize;
    counts.clear();
    counts.resize(passes * size, 0);
    // All digits are counted in one reading.
    match passes {
        1 => count::<T, DIGIT, 1>(items, counts),
        2 => count::<T, DIGIT, 2>(items, counts),
        3 => count::<T, DIGIT, 3>(items, counts),
        4 => count::<T, DIGIT, 4>(items, counts),
        6 => count::<T, DIGIT, 6>(items, counts),
        8 => count::<T, DIGIT, 8>(items, counts),
        _ => unreachable!("keys have 8, 16, 32 or 64 bits"),
    }
    let (mut from, mut to) = (items, spare);
    let mut swapped = false;
    for (pass, counts) in counts.chunks_exact_mut(size).enumerate() {
        let shift = pass as u32 * DIGIT;
        let digit = |item: T| (item.key() >> shift) as usize & (size - 1);
        if counts[digit(from[0])] as usize == from.len() {
            continue;
        }
        let mut sum = 0;
        for c in counts.iter_mut() {
            sum += std::mem::replace(c, sum);
        }
        let places: &mut [u32] = counts;
        for item in from.iter() {
            let place = &mut places[digit(*item)];
            to[*place as usize] = *item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        // `from` is `spare` now.
        to.copy_from_slice(from);
    }
}

fn count<T: Item, const DIGIT: u32, const PASSES: usize>(items: &[T], counts: &mut [u32]) {
    let size = 1usize << DIGIT;
    let counts = &mut counts[..PASSES * size];
    for item in items {
        for pass in 0..PASSES {
            counts[pass * size + ((item.key() >> (pass as u32 * DIGIT)) as usize & (size - 1))] += 1;
        }
    }
}
