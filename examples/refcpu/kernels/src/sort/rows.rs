//! Sorting rows by keys.

use super::key::{KeyCodec, KeyOrder, KeyPart, SortKey, encode_narrow, encode_wide, read_bits};
use super::radix::{Narrow, Packed, Wide, WidePacked, radix_sort};
use crate::copy::transpose;
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use std::ptr::NonNull;

/// Elements that are worth a chunk of their own.
const CHUNK: usize = 8192;
/// Keys that are encoded at a time.
const BLOCK: usize = 512;

/// The rows along one dimension of an array.
pub(super) struct Rows {
    /// How many.
    pub(super) count: usize,
    /// Elements in each.
    pub(super) len: usize,
    /// Elements between neighbours of one row.
    pub(super) inner: usize,
}

impl Rows {
    /// The number of a row's first element, and the distance to the next.
    pub(super) fn place(&self, row: usize) -> (usize, usize) {
        ((row / self.inner) * self.len * self.inner + row % self.inner, self.inner)
    }
}

/// Checks that operands and results are alike.
#[track_caller]
pub(super) fn check(what: &str, operands: &[Src<'_>], outs: &[Dst<'_>], dimension: usize) -> Rows {
    assert!(
        !operands.is_empty() && operands.len() == outs.len(),
        "{what}: {} to {}",
        operands.len(),
        outs.len()
    );
    let dims = operands[0].dims();
    assert!(dimension < dims.len(), "{what}: along {dimension} of {dims:?}");
    for (operand, out) in operands.iter().zip(outs) {
        let fits = operand.dims() == dims && out.dims() == dims && operand.dtype() == out.dtype();
        assert!(
            fits,
            "{what}: {:?}{:?} to {:?}{:?} beside {dims:?}",
            operand.dtype(),
            operand.dims(),
            out.dtype(),
            out.dims()
        );
    }
    let len = dims[dimension];
    assert!(u32::try_from(len).is_ok(), "{what}: more than 2^32 - 1 elements along {dimension} of {dims:?}");
    let inner = dims[dimension + 1..].iter().product();
    let count = if operands[0].is_empty() { 0 } else { operands[0].len() / len };
    Rows { count, len, inner }
}

/// Writes one row of `operand` in the given order.
pub(super) fn apply(operand: &Src<'_>, out: &mut Dst<'_>, rows: &Rows, row: usize, order: &[u32]) {
    let size = operand.dtype().size();
    let (first, step) = rows.place(row);
    let (from, to) = (operand.bytes(), out.bytes_mut());
    for (i, o) in order.iter().enumerate() {
        let source = (first + *o as usize * step) * size;
        let target = (first + i * step) * size;
        to[target..target + size].copy_from_slice(&from[source..source + size]);
    }
}

/// Sorts all `operands` along `dimension` together by `keys`, the first key deciding first. Elements whose keys are all
/// equal stay in their order. Takes memory for a few copies of a row per thread, and where `dimension` is not the last
/// one, for a copy of all arrays.
///
/// # Panics
/// If shapes or types differ, the dimension or a key's operand does not exist, or a key's part does not suit its type.
pub fn sort(pool: &Pool, keys: &[SortKey], operands: &[Src<'_>], outs: &mut [Dst<'_>], dimension: usize) {
    let rows = check("sort", operands, outs, dimension);
    let codecs: Vec<(usize, KeyCodec)> =
        keys.iter().map(|k| (k.operand, KeyCodec::new(operands[k.operand].dtype(), k))).collect();
    if rows.count == 0 {
        return;
    }
    if rows.inner == 1 {
        return sort_rows(pool, &codecs, operands, outs, &rows);
    }
    let outer = rows.count / rows.inner;
    let (given, turned) = ([outer, rows.len, rows.inner], [outer, rows.inner, rows.len]);
    let mut from: Vec<Owned> = operands.iter().map(|o| Owned::new(o.dtype(), turned)).collect();
    let mut to: Vec<Owned> = operands.iter().map(|o| Owned::new(o.dtype(), turned)).collect();
    for (operand, copy) in operands.iter().zip(&mut from) {
        transpose(pool, operand.reshape(&given), copy.dst(), &[0, 2, 1]);
    }
    let sources: Vec<Src<'_>> = from.iter().map(Owned::src).collect();
    let mut targets: Vec<Dst<'_>> = to.iter_mut().map(Owned::dst).collect();
    sort_rows(pool, &codecs, &sources, &mut targets, &rows);
    for (copy, out) in to.iter().zip(outs.iter_mut()) {
        transpose(pool, copy.src(), out.reborrow().reshape(&given), &[0, 2, 1]);
    }
}

/// Sorts `input` along `dimension`.
///
/// # Panics
/// As [`sort`]; complex types have no order of their own.
pub fn sort_keys(
    pool: &Pool,
    input: Src<'_>,
    out: Dst<'_>,
    order: KeyOrder,
    descending: bool,
    dimension: usize,
) {
    let key = SortKey { operand: 0, part: KeyPart::Whole, order, descending };
    sort(pool, &[key], &[input], &mut [out], dimension);
}

/// A temporary array.
struct Owned {
    words: Vec<u128>,
    dtype: DType,
    dims: [usize; 3],
}

impl Owned {
    fn new(dtype: DType, dims: [usize; 3]) -> Self {
        let bytes = dims.iter().product::<usize>() * dtype.size();
        Self { words: vec![0; bytes.div_ceil(16)], dtype, dims }
    }

    fn src(&self) -> Src<'_> {
        // SAFETY: the vector holds the array's bytes, initialised and aligned for every type, and stays borrowed.
        unsafe { Src::from_raw(NonNull::from(&self.words[..]).cast(), self.dtype, &self.dims) }
    }

    fn dst(&mut self) -> Dst<'_> {
        // SAFETY: as above, borrowed mutably.
        unsafe { Dst::from_raw(NonNull::from(&mut self.words[..]).cast(), self.dtype, &self.dims) }
    }
}

/// One operand of a sort over contiguous rows.
#[derive(Clone, Copy)]
struct Column {
    from: SyncPtr,
    to: SyncPtr,
    size: usize,
}

fn sort_rows(
    pool: &Pool,
    keys: &[(usize, KeyCodec)],
    operands: &[Src<'_>],
    outs: &mut [Dst<'_>],
    rows: &Rows,
) {
    let columns: Vec<Column> = operands
        .iter()
        .zip(outs.iter_mut())
        .map(|(o, out)| Column {
            from: SyncPtr::from_raw(o.as_ptr().cast_mut()),
            to: SyncPtr::new(out),
            size: o.dtype().size(),
        })
        .collect();
    let part = (CHUNK / rows.len).max(1);
    pool.run(rows.count.div_ceil(part), &|chunk| {
        let mut sorter = RowSorter { len: rows.len, ..RowSorter::default() };
        for row in chunk * part..rows.count.min((chunk + 1) * part) {
            let columns = columns.iter().map(|c| RowColumn {
                // SAFETY: every operand has `rows.count` rows of `rows.len` elements.
                from: unsafe { c.from.get().add(row * rows.len * c.size) },
                // SAFETY: as above.
                to: unsafe { c.to.get().add(row * rows.len * c.size) },
                size: c.size,
            });
            sorter.columns.clear();
            sorter.columns.extend(columns);
            // SAFETY: the columns are rows of operands and results, which stay borrowed; chunks have different rows.
            unsafe { sorter.sort(keys) };
        }
    });
}

/// One row of an operand and of its result.
#[derive(Clone, Copy)]
struct RowColumn {
    from: *const u8,
    to: *mut u8,
    size: usize,
}

/// Sorts one row after the other, with memory that is used again.
#[derive(Default)]
struct RowSorter {
    len: usize,
    columns: Vec<RowColumn>,
    order: Vec<u32>,
    narrow: (Vec<Narrow>, Vec<Narrow>),
    packed: (Vec<Packed>, Vec<Packed>),
    wide: (Vec<Wide>, Vec<Wide>),
    wide_packed: (Vec<WidePacked>, Vec<WidePacked>),
    counts: Vec<u32>,
}

/// Two vectors of `len` items.
fn pair<T: Copy + Default>(vectors: &mut (Vec<T>, Vec<T>), len: usize) -> (&mut [T], &mut [T]) {
    vectors.0.resize(len, T::default());
    vectors.1.resize(len, T::default());
    (&mut vectors.0, &mut vectors.1)
}

impl RowSorter {
    /// Sorts the row that `columns` stand for.
    ///
    /// # Safety
    /// Each column's `from` can be read and `to` written for `len` elements of `size` bytes, aligned for their types;
    /// nothing overlaps. The keys' parts lie in their columns' elements.
    unsafe fn sort(&mut self, keys: &[(usize, KeyCodec)]) {
        // SAFETY: the caller's contract, in all arms.
        unsafe {
            match (keys, &self.columns[..]) {
                ([(0, codec)], [column]) if codec.size == column.size && codec.is_narrow() => {
                    self.sort_narrow_alone(codec, *column);
                }
                ([(0, codec)], [column]) if codec.size == column.size => self.sort_wide_alone(codec, *column),
                ([(0, codec)], [key, payload])
                    if codec.is_narrow() && codec.size == key.size && payload.size == 4 =>
                {
                    let (key, payload) = (*key, *payload);
                    if !self.sort_with_payload(codec, key, payload) {
                        self.sort_by_order(keys);
                    }
                }
                _ => self.sort_by_order(keys),
            }
        }
    }

    /// Sorts a row that is its own key of up to 4 bytes.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the column is the key's.
    unsafe fn sort_narrow_alone(&mut self, codec: &KeyCodec, column: RowColumn) {
        let len = self.len;
        let (items, spare) = pair(&mut self.narrow, len);
        // SAFETY: the row can be read, and there are as many items, each a transparent `u32`.
        let lost = unsafe { encode_narrow(codec, column.from, column.size, items.as_mut_ptr().cast(), len) };
        radix_sort(items, spare, 8 * codec.size as u32, &mut self.counts);
        // SAFETY: the row of the result can be written as elements of its size.
        unsafe {
            match column.size {
                1 => decode_row::<u8, _>(codec, items, column.to, |i| i.0.into()),
                2 => decode_row::<u16, _>(codec, items, column.to, |i| i.0.into()),
                _ => decode_row::<u32, _>(codec, items, column.to, |i| i.0.into()),
            }
            if lost {
                self.restore_lost(codec, column);
            }
        }
    }

    /// Sorts a row that is its own key of 8 bytes.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the column is the key's.
    unsafe fn sort_wide_alone(&mut self, codec: &KeyCodec, column: RowColumn) {
        let len = self.len;
        let (items, spare) = pair(&mut self.wide, len);
        // SAFETY: the row can be read, and there are as many items, each a transparent `u64`.
        let lost = unsafe { encode_wide(codec, column.from, column.size, items.as_mut_ptr().cast(), len) };
        radix_sort(items, spare, 64, &mut self.counts);
        // SAFETY: the row of the result can be written as elements of 8 bytes.
        unsafe {
            decode_row::<u64, _>(codec, items, column.to, |i| i.0);
            if lost {
                self.restore_lost(codec, column);
            }
        }
    }

    /// Writes the elements that share a key with different ones (zeros, NaNs) again, in the order of the input: after
    /// decoding, the result holds one of them in each of their places.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the column is the key's, and its result holds decoded keys in order.
    unsafe fn restore_lost(&mut self, codec: &KeyCodec, column: RowColumn) {
        let size = column.size;
        // SAFETY: the caller's contract: `len` elements on both sides, which do not overlap.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(column.from, self.len * size),
                std::slice::from_raw_parts_mut(column.to, self.len * size),
            )
        };
        let key = |bytes: &[u8], i: usize| codec.encode(read_bits(&bytes[i * size..], size));
        // For each shared key that occurs, where its next element goes.
        let mut next: Vec<(u64, usize)> = Vec::new();
        for i in 0..self.len {
            let k = key(from, i);
            if !codec.is_shared(k) {
                continue;
            }
            let at = match next.iter().position(|(known, _)| *known == k) {
                Some(at) => at,
                None => {
                    // Decoding and encoding again gives the same key, so the result is in order of keys.
                    let (mut low, mut high) = (0, self.len);
                    while low < high {
                        let middle = (low + high) / 2;
                        if key(to, middle) < k {
                            low = middle + 1;
                        } else {
                            high = middle;
                        }
                    }
                    next.push((k, low));
                    next.len() - 1
                }
            };
            let place = next[at].1;
            to[place * size..(place + 1) * size].copy_from_slice(&from[i * size..(i + 1) * size]);
            next[at].1 += 1;
        }
    }

    /// Sorts a narrow key together with a payload of 4 bytes; false, with nothing written, if keys do not determine
    /// their elements.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the columns are the key's and the payload's.
    unsafe fn sort_with_payload(&mut self, codec: &KeyCodec, key: RowColumn, payload: RowColumn) -> bool {
        let len = self.len;
        let (items, spare) = pair(&mut self.packed, len);
        let mut block = [0u32; BLOCK];
        for (number, items) in items.chunks_mut(BLOCK).enumerate() {
            let first = number * BLOCK;
            // SAFETY: `first..first + items.len()` lies in the row.
            let lost = unsafe {
                let from = key.from.add(first * key.size);
                encode_narrow(codec, from, key.size, block.as_mut_ptr(), items.len())
            };
            if lost {
                return false;
            }
            for (i, (item, k)) in items.iter_mut().zip(&block).enumerate() {
                // SAFETY: as above, and the payload's elements have 4 bytes.
                *item =
                    Packed::new(*k, unsafe { payload.from.cast::<u32>().add(first + i).read_unaligned() });
            }
        }
        radix_sort(items, spare, 8 * codec.size as u32, &mut self.counts);
        // SAFETY: the rows of the results can be written as elements of their sizes.
        unsafe {
            match key.size {
                1 => decode_row::<u8, _>(codec, items, key.to, |i| i.0 >> 32),
                2 => decode_row::<u16, _>(codec, items, key.to, |i| i.0 >> 32),
                _ => decode_row::<u32, _>(codec, items, key.to, |i| i.0 >> 32),
            }
            for (i, item) in items.iter().enumerate() {
                payload.to.cast::<u32>().add(i).write_unaligned(item.0 as u32);
            }
        }
        true
    }

    /// Sorts any row: finds the order, last key first, then moves every column's elements.
    ///
    /// # Safety
    /// As for [`Self::sort`].
    unsafe fn sort_by_order(&mut self, keys: &[(usize, KeyCodec)]) {
        self.order.clear();
        self.order.extend(0..self.len as u32);
        for (operand, codec) in keys.iter().rev() {
            let column = self.columns[*operand];
            // SAFETY: the caller's contract: the part lies in the column's elements.
            unsafe {
                if codec.is_narrow() {
                    self.order_by_narrow(codec, column);
                } else {
                    self.order_by_wide(codec, column);
                }
            }
        }
        for column in &self.columns {
            // SAFETY: the order holds numbers of elements of the row.
            unsafe {
                match column.size {
                    1 => permute::<u8>(*column, &self.order),
                    2 => permute::<u16>(*column, &self.order),
                    4 => permute::<u32>(*column, &self.order),
                    8 => permute::<u64>(*column, &self.order),
                    _ => permute::<[u64; 2]>(*column, &self.order),
                }
            }
        }
    }

    /// Sorts the order by a key of up to 4 bytes.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the column is the key's.
    unsafe fn order_by_narrow(&mut self, codec: &KeyCodec, column: RowColumn) {
        let len = self.len;
        self.narrow.0.resize(len, Narrow::default());
        let encoded = &mut self.narrow.0[..];
        // SAFETY: the parts lie in the row's elements, and there are as many items.
        unsafe {
            let from = column.from.add(codec.offset);
            encode_narrow(codec, from, column.size, encoded.as_mut_ptr().cast(), len);
        }
        let (items, spare) = pair(&mut self.packed, len);
        for (item, o) in items.iter_mut().zip(&self.order) {
            *item = Packed::new(encoded[*o as usize].0, *o);
        }
        radix_sort(items, spare, 8 * codec.size as u32, &mut self.counts);
        for (o, item) in self.order.iter_mut().zip(&*items) {
            *o = item.0 as u32;
        }
    }

    /// Sorts the order by a key of 8 bytes.
    ///
    /// # Safety
    /// As for [`Self::sort`]; the column is the key's.
    unsafe fn order_by_wide(&mut self, codec: &KeyCodec, column: RowColumn) {
        let len = self.len;
        self.wide.0.resize(len, Wide::default());
        let encoded = &mut self.wide.0[..];
        // SAFETY: the parts lie in the row's elements, and there are as many items.
        unsafe {
            let from = column.from.add(codec.offset);
            encode_wide(codec, from, column.size, encoded.as_mut_ptr().cast(), len);
        }
        let (items, spare) = pair(&mut self.wide_packed, len);
        for (item, o) in items.iter_mut().zip(&self.order) {
            *item = WidePacked { key: encoded[*o as usize].0, position: *o };
        }
        radix_sort(items, spare, 64, &mut self.counts);
        for (o, item) in self.order.iter_mut().zip(&*items) {
            *o = item.position;
        }
    }
}

/// Writes the elements that keys stand for.
///
/// # Safety
/// As many elements of type `T` as there are items can be written to `to`.
unsafe fn decode_row<T: Narrowed, I: Copy>(
    codec: &KeyCodec,
    items: &[I],
    to: *mut u8,
    key: impl Fn(I) -> u64,
) {
    for (i, item) in items.iter().enumerate() {
        // SAFETY: i < items.len().
        unsafe { to.cast::<T>().add(i).write_unaligned(T::narrowed(codec.decode(key(*item)))) }
    }
}

/// Integers that are the low bits of a `u64`.
trait Narrowed {
    /// The low bits.
    fn narrowed(bits: u64) -> Self;
}

macro_rules! narrowed {
    ($($t:ty)*) => {$(
        impl Narrowed for $t {
            #[inline(always)]
            fn narrowed(bits: u64) -> $t {
                bits as $t
            }
        }
    )*};
}
narrowed!(u8 u16 u32 u64);

/// Writes a row in the given order.
///
/// # Safety
/// The column's elements have the size of `T`, and the order's numbers are those of elements.
unsafe fn permute<T: Copy>(column: RowColumn, order: &[u32]) {
    for (i, o) in order.iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            let value = column.from.cast::<T>().add(*o as usize).read_unaligned();
            column.to.cast::<T>().add(i).write_unaligned(value);
        }
    }
}
