//! Arrays in memory: shared, immutable to everybody but a sole owner.

use super::allocator::{Allocator, Block, OutOfMemory};
use refcpu_kernels::{DType, Dst, Src};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Arrays of more bytes than this cannot be addressed; shapes that large are refused before anything is allocated.
pub const HUGE_ARRAY: usize = isize::MAX as usize / 2;

/// Bytes of a dense array, or None if that is more than [`HUGE_ARRAY`].
pub fn byte_len(dtype: DType, dims: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d)).filter(|n| *n <= HUGE_ARRAY)
}

/// Memory of somebody else that an [`Array`] may stand on. Dropped when the last such array is.
pub trait ForeignBytes: Send + Sync + 'static {
    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// A dense row-major array, or a window of one. Clones share the memory.
#[derive(Clone)]
pub struct Array {
    dtype: DType,
    dims: Arc<[usize]>,
    storage: Arc<Storage>,
}

enum Storage {
    /// Memory of ours: writable while there is one holder.
    Owned(Block),
    /// Memory of somebody else: never written.
    Foreign(Box<dyn ForeignBytes>),
    /// A box cut out of a larger array; made dense when somebody needs it so.
    Window(Window),
}

struct Window {
    parent: Array,
    starts: Box<[usize]>,
    dense: OnceLock<Array>,
}

impl Array {
    /// An array of ours with unspecified contents.
    ///
    /// # Errors
    /// If the shape is too large for the allocator.
    pub fn allocate(allocator: &Allocator, dtype: DType, dims: Arc<[usize]>) -> Result<Self, OutOfMemory> {
        let bytes = byte_len(dtype, &dims).unwrap_or(usize::MAX);
        let block = allocator.allocate(bytes)?;
        Ok(Self { dtype, dims, storage: Arc::new(Storage::Owned(block)) })
    }

    /// A copy of `bytes` as an array.
    ///
    /// # Errors
    /// If the allocator has no room.
    ///
    /// # Panics
    /// If `bytes` is not as long as the array.
    pub fn from_bytes(
        allocator: &Allocator,
        dtype: DType,
        dims: &[usize],
        bytes: &[u8],
    ) -> Result<Self, OutOfMemory> {
        let mut array = Self::allocate(allocator, dtype, dims.into())?;
        array.bytes_mut().expect("a new array has one holder").copy_from_slice(bytes);
        Ok(array)
    }

    /// An array on memory of somebody else, without a copy.
    ///
    /// # Errors
    /// Gives the memory back if its length is not the array's, or it is not aligned for its elements.
    pub fn foreign(
        memory: Box<dyn ForeignBytes>,
        dtype: DType,
        dims: &[usize],
    ) -> Result<Self, Box<dyn ForeignBytes>> {
        let bytes = memory.bytes();
        let fits = Some(bytes.len()) == byte_len(dtype, dims);
        if !fits || !bytes.as_ptr().addr().is_multiple_of(dtype.align()) {
            return Err(memory);
        }
        Ok(Self { dtype, dims: dims.into(), storage: Arc::new(Storage::Foreign(memory)) })
    }

    /// Returns the box of `sizes` elements that begins at `starts` in `parent`. Nothing is copied. The box may reach beyond
    /// the parent, as the last shard of an uneven split does: the elements outside are zeros.
    ///
    /// # Panics
    /// If the box begins outside of the parent.
    pub fn window(parent: &Array, starts: &[usize], sizes: &[usize]) -> Self {
        let dims = parent.dims();
        assert!(
            starts.len() == dims.len()
                && sizes.len() == dims.len()
                && starts.iter().zip(dims).all(|(start, size)| start <= size),
            "window at {starts:?} of {sizes:?} in {dims:?}"
        );
        if sizes == dims && starts.iter().all(|start| *start == 0) {
            return parent.clone();
        }
        let window = Window { parent: parent.clone(), starts: starts.into(), dense: OnceLock::new() };
        Self { dtype: parent.dtype, dims: sizes.into(), storage: Arc::new(Storage::Window(window)) }
    }

    /// For a window: the array that it was cut from, and where.
    pub fn as_window(&self) -> Option<(&Array, &[usize])> {
        match &*self.storage {
            Storage::Window(w) => Some((&w.parent, &w.starts)),
            _ => None,
        }
    }

    /// This array as one piece of memory: itself, or the window's elements, cut out at the first call.
    ///
    /// # Errors
    /// If the allocator has no room for the copy.
    pub fn dense(&self, allocator: &Allocator) -> Result<Array, OutOfMemory> {
        let Storage::Window(window) = &*self.storage else { return Ok(self.clone()) };
        if let Some(dense) = window.dense.get() {
            return Ok(dense.clone());
        }
        let parent = window.parent.dense(allocator)?;
        let mut cut = Self::allocate(allocator, self.dtype, Arc::clone(&self.dims))?;
        let to = cut.bytes_mut().expect("a new array has one holder");
        let from = parent.bytes().expect("made dense above");
        if !lies_inside(parent.dims(), &window.starts, &self.dims) {
            to.fill(0);
        }
        for_each_run(parent.dims(), &window.starts, &self.dims, self.dtype.size(), |at, in_part| {
            to[in_part].copy_from_slice(&from[at]);
        });
        Ok(window.dense.get_or_init(|| cut).clone())
    }

    /// Returns an array put together from dense arrays, each with the place where it begins. Elements of parts beyond the
    /// whole are left out.
    ///
    /// # Errors
    /// If the allocator has no room.
    ///
    /// # Panics
    /// If a part is a window.
    pub fn assemble(
        allocator: &Allocator,
        dtype: DType,
        dims: &[usize],
        parts: &[(&Array, &[usize])],
    ) -> Result<Array, OutOfMemory> {
        let mut whole = Self::allocate(allocator, dtype, dims.into())?;
        let to = whole.bytes_mut().expect("a new array has one holder");
        for (part, starts) in parts {
            let from = part.bytes().expect("parts are dense");
            for_each_run(dims, starts, part.dims(), dtype.size(), |at, in_part| {
                to[at].copy_from_slice(&from[in_part]);
            });
        }
        Ok(whole)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes of the dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Bytes of the dense form.
    pub fn byte_len(&self) -> usize {
        byte_len(self.dtype, &self.dims).expect("checked when the array was made")
    }

    /// The bytes, row-major; None for a window, see [`Self::dense`].
    pub fn bytes(&self) -> Option<&[u8]> {
        match &*self.storage {
            Storage::Owned(block) => {
                // SAFETY: the block has at least byte_len bytes (it was allocated for them), all initialised; they are
                // written only through `bytes_mut` or a frame's view, which need the sole `Storage` handle, and that
                // borrow excludes this one.
                Some(unsafe { std::slice::from_raw_parts(block.as_ptr().as_ptr(), self.byte_len()) })
            }
            Storage::Foreign(memory) => Some(&memory.bytes()[..self.byte_len()]),
            Storage::Window(_) => None,
        }
    }

    /// The bytes to write, if this is the only holder and the memory is ours.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let len = self.byte_len();
        match Arc::get_mut(&mut self.storage)? {
            Storage::Owned(block) => {
                // SAFETY: as in `bytes`; there is no other handle (get_mut), and the slice borrows `self` mutably.
                Some(unsafe { std::slice::from_raw_parts_mut(block.as_ptr().as_ptr(), len) })
            }
            Storage::Foreign(_) | Storage::Window(_) => None,
        }
    }

    /// The array as a view to read; None for a window.
    pub fn src(&self) -> Option<Src<'_>> {
        Some(Src::new(self.bytes()?, self.dtype, &self.dims))
    }

    /// The address of the first byte, for hosts that ask for it; None for a window. The memory stays there while any
    /// clone of this array exists.
    pub fn as_ptr(&self) -> Option<*const u8> {
        Some(self.bytes()?.as_ptr())
    }

    /// True if the memory belongs to somebody else.
    pub fn is_foreign(&self) -> bool {
        matches!(*self.storage, Storage::Foreign(_))
    }

    /// True if this is the only holder of memory that is ours: it may then be written, or handed on as a result.
    pub fn is_writable(&mut self) -> bool {
        matches!(Arc::get_mut(&mut self.storage), Some(Storage::Owned(_)))
    }

    /// The same memory under another type and shape of as many bytes.
    ///
    /// # Panics
    /// If the number of bytes differs, or this is a window.
    pub fn reinterpret(&self, dtype: DType, dims: Arc<[usize]>) -> Self {
        assert!(self.as_window().is_none(), "a window has no dense form to reinterpret");
        assert_eq!(byte_len(dtype, &dims), Some(self.byte_len()), "{:?} as {dtype:?}{dims:?}", self.dims);
        Self { dtype, dims, storage: Arc::clone(&self.storage) }
    }

    /// This array under another type and shape of as many bytes.
    ///
    /// # Panics
    /// As [`Self::reinterpret`].
    pub fn into_reinterpreted(self, dtype: DType, dims: Arc<[usize]>) -> Self {
        assert!(self.as_window().is_none(), "a window has no dense form to reinterpret");
        assert_eq!(byte_len(dtype, &dims), Some(self.byte_len()), "{:?} as {dtype:?}{dims:?}", self.dims);
        Self { dtype, dims, ..self }
    }

    /// The array as a view to write, if this is the only holder and the memory is ours.
    pub fn dst(&mut self) -> Option<Dst<'_>> {
        let (dtype, dims) = (self.dtype, Arc::clone(&self.dims));
        let bytes = self.bytes_mut()?;
        // SAFETY: the slice is what the view stands for, borrowed mutably for as long; `dims` is kept alive by the array
        // that is borrowed, which holds the same `Arc` and cannot change it meanwhile.
        Some(unsafe { Dst::from_raw(NonNull::from(bytes).cast(), dtype, &*std::ptr::from_ref(&*dims)) })
    }

    /// For a frame: the address of memory that only this array holds, and of which every byte is ours.
    pub(super) fn exclusive_ptr(&mut self) -> Option<NonNull<u8>> {
        match Arc::get_mut(&mut self.storage)? {
            Storage::Owned(block) => Some(block.as_ptr()),
            Storage::Foreign(_) | Storage::Window(_) => None,
        }
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array {}{:?}", self.dtype.mlir_name(), self.dims)
    }
}

/// Returns true if no element of the box of shape `dims` at `starts` is outside of an array of shape `whole`.
fn lies_inside(whole: &[usize], starts: &[usize], dims: &[usize]) -> bool {
    whole.iter().zip(starts).zip(dims).all(|((whole, start), size)| start.saturating_add(*size) <= *whole)
}

/// Visits the bytes that the box of shape `dims` at `starts` and a dense array of shape `whole` have in common, as runs that
/// are contiguous in both: where a run is in the array, and where in a dense box.
fn for_each_run(
    whole: &[usize],
    starts: &[usize],
    dims: &[usize],
    element: usize,
    mut visit: impl FnMut(Range<usize>, Range<usize>),
) {
    let rank = dims.len();
    let common: Vec<usize> = (0..rank).map(|d| dims[d].min(whole[d].saturating_sub(starts[d]))).collect();
    if common.contains(&0) {
        return;
    }
    // Trailing dimensions that both have whole are one run of bytes with the first one that is not.
    let equal = (0..rank).rev().take_while(|d| common[*d] == whole[*d] && common[*d] == dims[*d]).count();
    let split = (rank - equal).saturating_sub(1);
    let run: usize = common[split..].iter().product::<usize>() * element;
    let strides = |sizes: &[usize]| {
        let mut strides = vec![element; rank];
        for d in (0..rank.saturating_sub(1)).rev() {
            strides[d] = strides[d + 1] * sizes[d + 1];
        }
        strides
    };
    let (in_whole, in_box) = (strides(whole), strides(dims));
    let offset =
        |index: &[usize], strides: &[usize]| index.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
    let start = offset(starts, &in_whole);
    let mut index = vec![0usize; split];
    for _ in 0..common[..split].iter().product::<usize>() {
        let (at, part) = (start + offset(&index, &in_whole), offset(&index, &in_box));
        visit(at..at + run, part..part + run);
        for d in (0..split).rev() {
            index[d] += 1;
            if index[d] < common[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::AllocatorOptions;

    fn allocator() -> Allocator {
        Allocator::new(AllocatorOptions::default())
    }

    fn bytes_of(n: u8) -> Vec<u8> {
        (0..n).collect()
    }

    #[test]
    fn only_a_sole_holder_writes() {
        let mut a = Array::from_bytes(&allocator(), DType::U8, &[4], &[1, 2, 3, 4]).unwrap();
        let b = a.clone();
        assert!(a.bytes_mut().is_none());
        drop(b);
        a.bytes_mut().unwrap()[0] = 9;
        assert_eq!(a.bytes().unwrap(), [9, 2, 3, 4]);
    }

    #[test]
    fn a_window_is_cut_out_when_it_is_needed_dense() {
        let parent = Array::from_bytes(&allocator(), DType::U8, &[3, 4, 2], &bytes_of(24)).unwrap();
        let w = Array::window(&parent, &[1, 1, 0], &[2, 2, 2]);
        assert!(w.bytes().is_none());
        let dense = w.dense(&allocator()).unwrap();
        assert_eq!(dense.bytes().unwrap(), [10, 11, 12, 13, 18, 19, 20, 21]);
        let column = Array::window(&parent, &[0, 3, 1], &[3, 1, 1]).dense(&allocator()).unwrap();
        assert_eq!(column.bytes().unwrap(), [7, 15, 23]);
        let nested = Array::window(&w, &[1, 0, 0], &[1, 1, 2]).dense(&allocator()).unwrap();
        assert_eq!(nested.bytes().unwrap(), [18, 19]);
    }

    #[test]
    fn windows_that_cover_an_array_make_it_again() {
        let parent = Array::from_bytes(&allocator(), DType::U8, &[4, 3, 2], &bytes_of(24)).unwrap();
        let starts = [[0, 0, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0]];
        let sizes = [[2, 1, 2], [2, 2, 2], [2, 1, 2], [2, 2, 2]];
        let cut = |i: usize| Array::window(&parent, &starts[i], &sizes[i]).dense(&allocator()).unwrap();
        let parts: Vec<Array> = (0..4).map(cut).collect();
        let parts: Vec<(&Array, &[usize])> = parts.iter().zip(starts.iter().map(|s| &s[..])).collect();
        let whole = Array::assemble(&allocator(), DType::U8, &[4, 3, 2], &parts).unwrap();
        assert_eq!(whole.bytes(), parent.bytes());
    }

    struct Loan(Vec<u8>);
    impl ForeignBytes for Loan {
        fn bytes(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn foreign_memory_is_never_writable() {
        let mut a = Array::foreign(Box::new(Loan(bytes_of(4))), DType::U8, &[2, 2]).ok().unwrap();
        assert!(a.bytes_mut().is_none() && !a.is_writable() && a.is_foreign());
        assert_eq!(a.bytes().unwrap(), [0, 1, 2, 3]);
        assert!(Array::foreign(Box::new(Loan(bytes_of(4))), DType::U8, &[5]).is_err());
    }

    #[test]
    fn shapes_beyond_the_address_space_are_refused() {
        assert!(byte_len(DType::F32, &[usize::MAX, 2]).is_none());
        assert_eq!(byte_len(DType::F32, &[usize::MAX, 0, usize::MAX]), Some(0));
        assert!(Array::allocate(&allocator(), DType::F64, vec![1 << 40, 1 << 20].into()).is_err());
    }
}
