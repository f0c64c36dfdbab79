//! Arrays in memory. Clones share the memory, and only a sole holder can write it.

use super::allocator::{Allocator, Block, OutOfMemory};
use refcpu_kernels::{DType, Dst, Src};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// The maximum size of an array in bytes. Larger shapes are rejected before anything is allocated.
pub const HUGE_ARRAY: usize = isize::MAX as usize / 2;

/// Returns the size of a dense array in bytes; `None` if it exceeds [`HUGE_ARRAY`].
pub fn byte_len(dtype: DType, dims: &[usize]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d)).filter(|n| *n <= HUGE_ARRAY)
}

/// Memory with another owner, which an [`Array`] can refer to. The array's last clone drops it.
pub trait ForeignBytes: Send + Sync + 'static {
    /// Returns the bytes. Every call must return the same slice.
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
    /// Memory of the allocator, which is writable while there is one holder.
    Owned(Block),
    /// Memory with another owner, which is never written.
    Foreign(Box<dyn ForeignBytes>),
    /// A window of a larger array, which is copied to dense memory on demand.
    Window(Window),
}

struct Window {
    parent: Array,
    starts: Box<[usize]>,
    dense: OnceLock<Array>,
}

impl Array {
    /// Allocates an array with unspecified contents.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn allocate(allocator: &Allocator, dtype: DType, dims: Arc<[usize]>) -> Result<Self, OutOfMemory> {
        let bytes = byte_len(dtype, &dims).unwrap_or(usize::MAX);
        let block = allocator.allocate(bytes)?;
        Ok(Self { dtype, dims, storage: Arc::new(Storage::Owned(block)) })
    }

    /// Creates an array with a copy of `bytes`.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    ///
    /// # Panics
    /// Panics if the length of `bytes` is not the size of the array.
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

    /// Creates an array that refers to memory with another owner, without a copy.
    ///
    /// # Errors
    /// Returns `memory` if its length is not the size of the array, or if it is not aligned for the element type.
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

    /// Creates a window of `sizes` elements that begins at `starts` in `parent`. Nothing is copied. A window can reach beyond
    /// the end of the parent, as the last shard of an uneven split does; its elements there are zeros.
    ///
    /// # Panics
    /// Panics if the window begins outside the parent.
    pub fn window(parent: &Array, starts: &[usize], sizes: &[usize]) -> Self {
        let dims = parent.dims();
        assert!(
            starts.len() == dims.len()
                && sizes.len() == dims.len()
                && starts.iter().zip(dims).all(|(start, size)| start <= size),
            "the window at {starts:?} of size {sizes:?} exceeds the bounds of an array {dims:?}"
        );
        if sizes == dims && starts.iter().all(|start| *start == 0) {
            return parent.clone();
        }
        let window = Window { parent: parent.clone(), starts: starts.into(), dense: OnceLock::new() };
        Self { dtype: parent.dtype, dims: sizes.into(), storage: Arc::new(Storage::Window(window)) }
    }

    /// Returns the parent and the start of a window; `None` if this is not a window.
    pub fn as_window(&self) -> Option<(&Array, &[usize])> {
        match &*self.storage {
            Storage::Window(w) => Some((&w.parent, &w.starts)),
            _ => None,
        }
    }

    /// Returns this array in dense memory. For a window, the first call copies the elements.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory for the copy.
    pub fn dense(&self, allocator: &Allocator) -> Result<Array, OutOfMemory> {
        let Storage::Window(window) = &*self.storage else { return Ok(self.clone()) };
        if let Some(dense) = window.dense.get() {
            return Ok(dense.clone());
        }
        let parent = window.parent.dense(allocator)?;
        let mut cut = Self::allocate(allocator, self.dtype, Arc::clone(&self.dims))?;
        let to = cut.bytes_mut().expect("a new array has one holder");
        let from = parent.bytes().expect("the parent was made dense above");
        if !lies_inside(parent.dims(), &window.starts, &self.dims) {
            to.fill(0);
        }
        for_each_run(parent.dims(), &window.starts, &self.dims, self.dtype.size(), |at, in_part| {
            to[in_part].copy_from_slice(&from[at]);
        });
        Ok(window.dense.get_or_init(|| cut).clone())
    }

    /// Creates an array from dense parts, each with the index at which it begins. Elements of parts beyond the end of the
    /// array are ignored.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    ///
    /// # Panics
    /// Panics if a part is a window.
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

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the sizes of the dimensions, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns the size of the dense form in bytes.
    pub fn byte_len(&self) -> usize {
        byte_len(self.dtype, &self.dims).expect("the constructor checks the size")
    }

    /// Returns the bytes in row-major order; `None` for a window, see [`Self::dense`].
    pub fn bytes(&self) -> Option<&[u8]> {
        match &*self.storage {
            Storage::Owned(block) => {
                // SAFETY: the block was allocated for `byte_len` bytes, all of which are initialized. They are written only
                // through `bytes_mut` or a view of a frame. Both require the only handle of the storage, which this borrow
                // excludes.
                Some(unsafe { std::slice::from_raw_parts(block.as_ptr().as_ptr(), self.byte_len()) })
            }
            Storage::Foreign(memory) => Some(&memory.bytes()[..self.byte_len()]),
            Storage::Window(_) => None,
        }
    }

    /// Returns the bytes for writing; `None` if the array has another holder or if its memory has another owner.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let len = self.byte_len();
        match Arc::get_mut(&mut self.storage)? {
            Storage::Owned(block) => {
                // SAFETY: as in `bytes`. There is no other handle, since `get_mut` returned one, and the slice borrows `self`
                // mutably.
                Some(unsafe { std::slice::from_raw_parts_mut(block.as_ptr().as_ptr(), len) })
            }
            Storage::Foreign(_) | Storage::Window(_) => None,
        }
    }

    /// Returns the array as a view for reading; `None` for a window.
    pub fn src(&self) -> Option<Src<'_>> {
        Some(Src::new(self.bytes()?, self.dtype, &self.dims))
    }

    /// Returns the address of the first byte, for hosts that query it; `None` for a window. The address is valid while any
    /// clone of this array exists.
    pub fn as_ptr(&self) -> Option<*const u8> {
        Some(self.bytes()?.as_ptr())
    }

    /// Returns whether the memory has another owner.
    pub fn is_foreign(&self) -> bool {
        matches!(*self.storage, Storage::Foreign(_))
    }

    /// Returns whether this is the only holder of memory of the allocator, which can then be written or become that of a result.
    pub fn is_writable(&mut self) -> bool {
        matches!(Arc::get_mut(&mut self.storage), Some(Storage::Owned(_)))
    }

    /// Returns the same memory as an array of another type and shape of the same size in bytes.
    ///
    /// # Panics
    /// Panics if the sizes in bytes differ, or if this is a window.
    pub fn reinterpret(&self, dtype: DType, dims: Arc<[usize]>) -> Self {
        assert!(self.as_window().is_none(), "a window cannot be reinterpreted");
        assert_eq!(
            byte_len(dtype, &dims),
            Some(self.byte_len()),
            "cannot reinterpret {:?} as {dtype:?}{dims:?}: the sizes in bytes differ",
            self.dims
        );
        Self { dtype, dims, storage: Arc::clone(&self.storage) }
    }

    /// Converts this array to another type and shape of the same size in bytes.
    ///
    /// # Panics
    /// Panics in the same cases as [`Self::reinterpret`].
    pub fn into_reinterpreted(self, dtype: DType, dims: Arc<[usize]>) -> Self {
        assert!(self.as_window().is_none(), "a window cannot be reinterpreted");
        assert_eq!(
            byte_len(dtype, &dims),
            Some(self.byte_len()),
            "cannot reinterpret {:?} as {dtype:?}{dims:?}: the sizes in bytes differ",
            self.dims
        );
        Self { dtype, dims, ..self }
    }

    /// Returns the array as a view for writing; `None` if it has another holder or if its memory has another owner.
    pub fn dst(&mut self) -> Option<Dst<'_>> {
        let (dtype, dims) = (self.dtype, Arc::clone(&self.dims));
        let bytes = self.bytes_mut()?;
        // SAFETY: the slice contains the bytes of the view, and is borrowed mutably for the view's lifetime. The borrowed array
        // holds the same `Arc` of `dims`, and cannot change it during the borrow.
        Some(unsafe { Dst::from_raw(NonNull::from(bytes).cast(), dtype, &*std::ptr::from_ref(&*dims)) })
    }

    /// Returns the address of the memory for a frame; `None` if it has another holder or another owner.
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

/// Returns `true` if a window of shape `dims` at `starts` is inside an array of shape `whole`.
fn lies_inside(whole: &[usize], starts: &[usize], dims: &[usize]) -> bool {
    whole.iter().zip(starts).zip(dims).all(|((whole, start), size)| start.saturating_add(*size) <= *whole)
}

/// Visits the bytes that a window of shape `dims` at `starts` has in common with a dense array of shape `whole`, as runs that are
/// contiguous in both. Passes the byte range of each run in the array and in the dense window.
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
    // A run covers the trailing dimensions that are complete in both, and the dimension before them.
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
