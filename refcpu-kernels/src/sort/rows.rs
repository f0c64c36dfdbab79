//! Sorting rows by keys.

use super::key::{KeyCodec, KeyOrder, KeyPart, SortKey, encode_narrow, encode_wide, read_bits};
use super::radix::{Item, Narrow, Packed, Wide, WidePacked, radix_sort};
use crate::copy::transpose;
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use std::ptr::NonNull;

/// The number of elements of a chunk.
const CHUNK: usize = 8192;
/// Keys that are encoded at a time.
const BLOCK: usize = 512;

/// The rows along one dimension of an array.
pub(super) struct Rows {
    /// The number of rows.
    pub(super) count: usize,
    /// The number of elements of each row.
    pub(super) len: usize,
    /// The distance between neighbors of a row, in elements.
    pub(super) inner: usize,
}

impl Rows {
    /// Returns the number of a row's first element, and the distance to the next.
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
    assert!(dimension < dims.len(), "{what}: there is no dimension {dimension} in {dims:?}");
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

/// Writes a row of `operand` in the given order.
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

/// Sorts all `operands` along `dimension` together by `keys`, of which the first one takes precedence. The
/// sort is stable. Allocates memory for a few copies of a row per thread, and for a copy of all arrays if
/// `dimension` is not the last one.
///
/// # Panics
/// Panics if shapes or types differ, if the dimension or a key's operand does not exist, or if the type does
/// not have a key's part.
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
/// Panics in the same cases as [`sort`], and for complex types, which have no order.
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
        // SAFETY: the vector holds the array's bytes, which are initialized and aligned for every type, and
        // stays borrowed.
        unsafe { Src::from_raw(NonNull::from(&self.words[..]).cast(), self.dtype, &self.dims) }
    }

    fn dst(&mut self) -> Dst<'_> {
        // SAFETY: as above, borrowed mutably.
        unsafe { Dst::from_raw(NonNull::from(&mut self.words[..]).cast(), self.dtype, &self.dims) }
    }
}

/// Consecutive rows of an operand and of its result.
#[derive(Clone, Copy)]
struct Column {
    from: SyncPtr,
    to: SyncPtr,
    size: usize,
}

impl Column {
    /// Returns the part of the column that begins at element `first`.
    fn skip(self, first: usize) -> Self {
        let bytes = first * self.size;
        Self {
            from: SyncPtr::from_raw(self.from.get().wrapping_add(bytes)),
            to: SyncPtr::from_raw(self.to.get().wrapping_add(bytes)),
            size: self.size,
        }
    }
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
        let first = chunk * part;
        let columns: Vec<Column> = columns.iter().map(|c| c.skip(first * rows.len)).collect();
        let sorter = Sorter { keys, columns: &columns, rows: part.min(rows.count - first), len: rows.len };
        // SAFETY: the columns are rows of operands and results, which stay borrowed and are aligned for their
        // types; chunks have different rows.
        unsafe { sorter.sort() };
    });
}

/// Sorts some rows.
///
/// # Safety
/// For every column, `from` must be readable and `to` writable for `rows * len` elements of `size` bytes.
/// Nothing may overlap, and nothing else may write these elements. The keys' parts must are in their columns'
/// elements. All unsafe methods below require this.
struct Sorter<'a> {
    keys: &'a [(usize, KeyCodec)],
    columns: &'a [Column],
    rows: usize,
    len: usize,
}

impl Sorter<'_> {
    /// Sorts all rows.
    ///
    /// # Safety
    /// The type's.
    unsafe fn sort(&self) {
        // SAFETY: guaranteed by the caller, in all arms; the sizes are those that the arms' methods expect.
        unsafe {
            match (self.keys, self.columns) {
                ([(0, codec)], [column]) if codec.size == column.size => match column.size {
                    1 => self.sort_alone::<Narrow, u8>(codec, *column),
                    2 => self.sort_alone::<Narrow, u16>(codec, *column),
                    4 => self.sort_alone::<Narrow, u32>(codec, *column),
                    _ => self.sort_alone::<Wide, u64>(codec, *column),
                },
                ([(0, codec)], [key, payload]) if codec.size == key.size && payload.size == 4 => {
                    let done = match key.size {
                        1 => self.sort_with_payload::<u8>(codec, *key, *payload),
                        2 => self.sort_with_payload::<u16>(codec, *key, *payload),
                        4 => self.sort_with_payload::<u32>(codec, *key, *payload),
                        _ => false,
                    };
                    if !done {
                        self.sort_by_order();
                    }
                }
                _ => self.sort_by_order(),
            }
        }
    }

    /// Sorts each row of items.
    ///
    /// # Safety
    /// There must be `rows * len` items, and room for as many at `spare`.
    unsafe fn sort_items<T: Item>(&self, items: *mut T, spare: *mut T, bits: u32) {
        let mut counts = Vec::new();
        for row in 0..self.rows {
            // SAFETY: guaranteed by the caller.
            unsafe { radix_sort(items.add(row * self.len), spare, self.len, bits, &mut counts) };
        }
    }

    /// Sorts rows that are their own keys, of type `E`.
    ///
    /// # Safety
    /// The type's; the column is the key's, and `T` is for keys of its size.
    unsafe fn sort_alone<T: KeyItem, E: Narrowed>(&self, codec: &KeyCodec, column: Column) {
        let total = self.rows * self.len;
        let (mut items, mut spare) = (Scratch::new::<T>(total), Scratch::new::<T>(self.len));
        let items = items.ptr::<T>();
        // SAFETY: the rows are readable, and there is room for as many items, all of which are then
        // initialized. The rows of the result are writable.
        unsafe {
            let lost = T::encode(codec, column.from.get(), column.size, items, total);
            self.sort_items(items, spare.ptr::<T>(), 8 * codec.size as u32);
            for i in 0..total {
                column.to.get().cast::<E>().add(i).write(E::narrowed(codec.decode((*items.add(i)).key())));
            }
            if lost {
                for row in 0..self.rows {
                    self.restore_lost(codec, column.skip(row * self.len));
                }
            }
        }
    }

    /// Rewrites the elements of a row that share a key with different elements (zeros, NaNs), in the order of
    /// the input. After decoding, the result contains the same one of them in each of their positions.
    ///
    /// # Safety
    /// See the type. In addition, the column must be a row of the key's, and its result must contain decoded
    /// keys in order.
    unsafe fn restore_lost(&self, codec: &KeyCodec, column: Column) {
        let size = column.size;
        // SAFETY: guaranteed by the caller: `len` elements on both sides, which do not overlap.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(column.from.get().cast_const(), self.len * size),
                std::slice::from_raw_parts_mut(column.to.get(), self.len * size),
            )
        };
        let key = |bytes: &[u8], i: usize| codec.encode(read_bits(&bytes[i * size..], size));
        // For each shared key that occurs, the position of its next element.
        let mut next: Vec<(u64, usize)> = Vec::new();
        for i in 0..self.len {
            let k = key(from, i);
            if !codec.is_shared(k) {
                continue;
            }
            let at = match next.iter().position(|(known, _)| *known == k) {
                Some(at) => at,
                None => {
                    // Decoding and encoding returns the same key, so the result is sorted by keys.
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

    /// Sorts keys of type `E`, up to 4 bytes, together with a payload of 4 bytes; false, with nothing
    /// written, if keys do not determine their elements.
    ///
    /// # Safety
    /// The type's; the columns are the key's and the payload's.
    unsafe fn sort_with_payload<E: Narrowed>(&self, codec: &KeyCodec, key: Column, payload: Column) -> bool {
        let total = self.rows * self.len;
        let (mut items, mut spare) = (Scratch::new::<Packed>(total), Scratch::new::<Packed>(self.len));
        let items = items.ptr::<Packed>();
        let mut block = [0u32; BLOCK];
        // SAFETY: element numbers are below `total` throughout, and all items are initialized before they are
        // read.
        unsafe {
            let (payload_from, payload_to) =
                (payload.from.get().cast::<u32>(), payload.to.get().cast::<u32>());
            for first in (0..total).step_by(BLOCK) {
                let count = BLOCK.min(total - first);
                let from = key.from.get().add(first * key.size);
                if encode_narrow(codec, from, key.size, block.as_mut_ptr(), count) {
                    return false;
                }
                for (i, k) in block[..count].iter().enumerate() {
                    items.add(first + i).write(Packed::new(*k, *payload_from.add(first + i)));
                }
            }
            self.sort_items(items, spare.ptr::<Packed>(), 8 * codec.size as u32);
            for i in 0..total {
                let item = *items.add(i);
                key.to.get().cast::<E>().add(i).write(E::narrowed(codec.decode(item.key())));
                payload_to.add(i).write(item.0 as u32);
            }
        }
        true
    }

    /// Sorts any rows: finds each one's order, last key first, then moves every column's elements.
    ///
    /// # Safety
    /// The type's.
    unsafe fn sort_by_order(&self) {
        let len = self.len;
        let (mut order, mut counts) = (Vec::with_capacity(len), Vec::new());
        let (mut encoded, mut items) = (Scratch::new::<u64>(len), Scratch::new::<WidePacked>(len));
        let mut spare = Scratch::new::<WidePacked>(len);
        for row in 0..self.rows {
            order.clear();
            order.extend(0..len as u32);
            for (operand, codec) in self.keys.iter().rev() {
                let column = self.columns[*operand].skip(row * len);
                // SAFETY: the parts are in the row's elements. The blocks have room for `len` of the items
                // each, which are initialized from the numbers of the order, all below `len`, before they are
                // sorted and read.
                unsafe {
                    let from = column.from.get().add(codec.offset);
                    if codec.is_narrow() {
                        let keys = encoded.ptr::<u32>();
                        encode_narrow(codec, from, column.size, keys, len);
                        let items = items.ptr::<Packed>();
                        for (i, o) in order.iter().enumerate() {
                            items.add(i).write(Packed::new(*keys.add(*o as usize), *o));
                        }
                        radix_sort(items, spare.ptr::<Packed>(), len, 8 * codec.size as u32, &mut counts);
                        for (i, o) in order.iter_mut().enumerate() {
                            *o = (*items.add(i)).0 as u32;
                        }
                    } else {
                        let keys = encoded.ptr::<u64>();
                        encode_wide(codec, from, column.size, keys, len);
                        let items = items.ptr::<WidePacked>();
                        for (i, o) in order.iter().enumerate() {
                            items.add(i).write(WidePacked { key: *keys.add(*o as usize), position: *o });
                        }
                        radix_sort(items, spare.ptr::<WidePacked>(), len, 64, &mut counts);
                        for (i, o) in order.iter_mut().enumerate() {
                            *o = (*items.add(i)).position;
                        }
                    }
                }
            }
            for column in self.columns {
                let column = column.skip(row * len);
                // SAFETY: the order contains numbers of elements of the row.
                unsafe {
                    match column.size {
                        1 => permute::<u8>(column, &order),
                        2 => permute::<u16>(column, &order),
                        4 => permute::<u32>(column, &order),
                        8 => permute::<u64>(column, &order),
                        _ => permute::<[u64; 2]>(column, &order),
                    }
                }
            }
        }
    }
}

/// Keys that are sorted without anything attached.
trait KeyItem: Item {
    /// Writes the keys of elements, as [`encode_narrow`] does.
    ///
    /// # Safety
    /// See `encode_narrow`.
    unsafe fn encode(codec: &KeyCodec, from: *const u8, step: usize, out: *mut Self, count: usize) -> bool;
}

impl KeyItem for Narrow {
    unsafe fn encode(codec: &KeyCodec, from: *const u8, step: usize, out: *mut Self, count: usize) -> bool {
        // SAFETY: guaranteed by the caller; the type is a transparent `u32`.
        unsafe { encode_narrow(codec, from, step, out.cast(), count) }
    }
}

impl KeyItem for Wide {
    unsafe fn encode(codec: &KeyCodec, from: *const u8, step: usize, out: *mut Self, count: usize) -> bool {
        // SAFETY: guaranteed by the caller; the type is a transparent `u64`.
        unsafe { encode_wide(codec, from, step, out.cast(), count) }
    }
}

/// Integers that are the low bits of a `u64`.
trait Narrowed {
    /// Returns the low bits.
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
unsafe fn permute<T: Copy>(column: Column, order: &[u32]) {
    for (i, o) in order.iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let value = column.from.get().cast::<T>().add(*o as usize).read_unaligned();
            column.to.get().cast::<T>().add(i).write_unaligned(value);
        }
    }
}
