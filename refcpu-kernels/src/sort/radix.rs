//! Stable radix sorts of integers, optionally with attached positions, from the least significant digit.

/// Below this many items insertion sort is faster.
const INSERTION: usize = 40;
/// The minimum number of items for which digits of 11 bits justify their larger tables.
const WIDE_DIGITS: usize = 8192;

/// Something that is sorted by an integer of up to 64 bits.
pub(super) trait Item: Copy {
    /// Returns the integer.
    fn key(self) -> u64;
    /// The number of significant bits of the integer.
    const BITS: u32;
}

/// A key alone.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Narrow(pub(super) u32);

/// A key in the high half, anything in the low half.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Packed(pub(super) u64);

/// A wide key alone.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Wide(pub(super) u64);

/// A wide key with a position.
#[derive(Clone, Copy)]
pub(super) struct WidePacked {
    /// The sort key.
    pub(super) key: u64,
    /// The attached position.
    pub(super) position: u32,
}

impl Packed {
    /// Creates an item from a key and an attached number.
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

/// Sorts `items` stably by the low `bits` bits of their keys; the other bits must be zero. `spare` has room
/// for as many items, and `counts` is reused between calls to avoid allocations.
///
/// # Safety
/// `len` items can be read and written at `items`, and written at `spare`; they do not overlap.
pub(super) unsafe fn radix_sort<T: Item>(
    items: *mut T,
    spare: *mut T,
    len: usize,
    bits: u32,
    counts: &mut Vec<u32>,
) {
    debug_assert!(bits <= T::BITS);
    // SAFETY: guaranteed by the caller.
    unsafe {
        if len < INSERTION {
            insertion_sort(std::slice::from_raw_parts_mut(items, len));
        } else if len < WIDE_DIGITS || bits <= 8 {
            passes::<T, 8>(items, spare, len, bits, counts);
        } else {
            passes::<T, 11>(items, spare, len, bits, counts);
        }
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

/// Sorts by one digit of `DIGIT` bits after the other.
///
/// # Safety
/// See [`radix_sort`].
unsafe fn passes<T: Item, const DIGIT: u32>(
    items: *mut T,
    spare: *mut T,
    len: usize,
    bits: u32,
    counts: &mut Vec<u32>,
) {
    let size = 1usize << DIGIT;
    let passes = bits.div_ceil(DIGIT) as usize;
    counts.clear();
    counts.resize(passes * size, 0);
    // All digits are counted in one reading.
    // SAFETY: guaranteed by the caller: the items can be read, and nothing writes them meanwhile.
    let all = unsafe { std::slice::from_raw_parts(items, len) };
    match passes {
        1 => count::<T, DIGIT, 1>(all, counts),
        2 => count::<T, DIGIT, 2>(all, counts),
        3 => count::<T, DIGIT, 3>(all, counts),
        4 => count::<T, DIGIT, 4>(all, counts),
        6 => count::<T, DIGIT, 6>(all, counts),
        8 => count::<T, DIGIT, 8>(all, counts),
        _ => unreachable!("keys have 8, 16, 32 or 64 bits"),
    }
    let (mut from, mut to) = (items, spare);
    for (pass, counts) in counts.chunks_exact_mut(size).enumerate() {
        let shift = pass as u32 * DIGIT;
        let digit = |item: T| (item.key() >> shift) as usize & (size - 1);
        // SAFETY: there is a first item, since short arrays are sorted by insertion.
        if counts[digit(unsafe { *from })] as usize == len {
            continue;
        }
        let mut sum = 0;
        for c in counts.iter_mut() {
            sum += std::mem::replace(c, sum);
        }
        // SAFETY: the position of each digit starts at the number of items with smaller digits, and is
        // incremented for each item with the digit. These were counted above over the same items, so
        // positions are distinct and below `len`. `digit` is below `size`, the length of `counts`. The
        // previous pass wrote all of `from`.
        unsafe {
            for i in 0..len {
                let item = *from.add(i);
                let place = counts.get_unchecked_mut(digit(item));
                to.add(*place as usize).write(item);
                *place += 1;
            }
        }
        std::mem::swap(&mut from, &mut to);
    }
    if from != items {
        // SAFETY: the last pass wrote all of `from`, which is `spare`.
        unsafe { items.copy_from_nonoverlapping(from, len) };
    }
}

fn count<T: Item, const DIGIT: u32, const PASSES: usize>(items: &[T], counts: &mut [u32]) {
    let size = 1usize << DIGIT;
    let mut tables: [&mut [u32]; PASSES] = std::array::from_fn(|_| &mut [][..]);
    for (table, counts) in tables.iter_mut().zip(counts.chunks_exact_mut(size)) {
        *table = counts;
    }
    for item in items {
        for (pass, table) in tables.iter_mut().enumerate() {
            table[(item.key() >> (pass as u32 * DIGIT)) as usize & (size - 1)] += 1;
        }
    }
}
