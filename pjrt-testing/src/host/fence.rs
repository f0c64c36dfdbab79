//! Args structs with guarded surroundings, which detect a plugin that accesses bytes past the caller's
//! `struct_size`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Range;
use std::ptr;

use pjrt_sys::{SizedStruct, Slot, StructLayout};

/// A way to guard the struct of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The struct ends at this byte, according to its `struct_size`, and an inaccessible page follows it: a
    /// read or a write past the end kills the process.
    Guarded(usize),
    /// The `struct_size` is 64 bytes larger than in this version of the interface, as if the host were newer.
    /// The additional bytes are compared after the call.
    Enlarged,
    /// `extension_start` is an invalid pointer, as some hosts leave it.
    WildExtension,
    /// The pointers to lists of no elements are null, also in the structs that the struct points to.
    NullLists,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guarded(size) => {
                write!(f, "a struct with a struct_size of {size} bytes before an inaccessible page")
            }
            Self::Enlarged => {
                write!(f, "a struct_size that is {MORE} bytes larger than the function expects")
            }
            Self::NullLists => write!(f, "null pointers to lists of no elements"),
            Self::WildExtension => write!(f, "an extension_start that is an invalid pointer"),
        }
    }
}

/// The maximum size of a guarded struct.
const PAGE: usize = 4096;

/// The value of bytes that a plugin must not change.
const PATTERN: u8 = 0xA5;

/// The number of bytes by which the struct of a newer host is larger.
const MORE: usize = 64;

thread_local! {
    static ACTIVE: Cell<Option<(&'static str, Fence)>> = const { Cell::new(None) };
    static TOUCHED: Cell<Option<usize>> = const { Cell::new(None) };
    static USED: Cell<bool> = const { Cell::new(false) };
    static HOST_SIZES: Cell<HostSizes> = const { Cell::new(&[]) };
    /// The address of the guarded struct that is in use.
    static GUARDED: Cell<usize> = const { Cell::new(0) };
    static PREFILLED: RefCell<Option<Prefilled>> = const { RefCell::new(None) };
}

/// The functions whose structs are smaller in an older host than in this version, with the size of their
/// structs in that host.
pub type HostSizes = &'static [(&'static str, usize)];

/// Runs `run` with the structs of an older host. An inaccessible page follows each of these structs.
///
/// Only calls on this thread are affected.
pub fn with_host_sizes<T>(sizes: HostSizes, run: impl FnOnce() -> T) -> T {
    HOST_SIZES.set(sizes);
    let result = run();
    HOST_SIZES.set(&[]);
    result
}

/// An output of a function: its range in the struct, and the range of the field that must be nonzero for the
/// output to have a meaning, if there is such a field.
pub type Watched = (Range<usize>, Option<Range<usize>>);

/// Outputs that are filled with a pattern before each call.
struct Prefilled {
    function: &'static str,
    pattern: u8,
    outputs: Vec<Watched>,
    /// The bytes of each output that at least one call did not write.
    unwritten: Vec<Vec<usize>>,
}

/// Runs `run`, and fills the outputs of one function with a pattern before every call of it, as in a host
/// that does not clear its structs. Also returns the bytes of each output that hold the pattern after a call,
/// as offsets in the struct, and whether the function was called. The caller of the function sees an output
/// that holds only the pattern as zero.
///
/// Only calls on this thread are affected.
pub fn prefilled<T>(
    function: &'static str,
    pattern: u8,
    outputs: &[Watched],
    run: impl FnOnce() -> T,
) -> (T, Vec<Vec<usize>>, bool) {
    let unwritten = vec![Vec::new(); outputs.len()];
    PREFILLED.set(Some(Prefilled { function, pattern, outputs: outputs.to_vec(), unwritten }));
    USED.set(false);
    let result = run();
    let unwritten = PREFILLED.take().map_or_else(Vec::new, |prefilled| prefilled.unwritten);
    (result, unwritten, USED.get())
}

/// Calls a function, and fills its outputs with the pattern if this is enabled.
fn with_prefilled<A: SizedStruct, R>(slot: &Slot, args: &mut A, function: impl FnOnce(*mut A) -> R) -> R {
    let wanted = PREFILLED.with_borrow(|prefilled| {
        prefilled
            .as_ref()
            .filter(|prefilled| prefilled.function == slot.name)
            .map(|prefilled| (prefilled.pattern, prefilled.outputs.clone()))
    });
    let Some((pattern, outputs)) = wanted else { return function(args) };
    USED.set(true);
    let args = ptr::from_mut(args);
    let inside = |range: &Range<usize>| range.end <= A::STRUCT_SIZE;
    assert!(outputs.iter().all(|(range, _)| inside(range)), "outputs are in the struct");
    // SAFETY: the ranges are in the struct, whose bytes are written and read as bytes through the pointer to
    // it. Outputs that the plugin did not write are set to zero, which is a valid value of all fields, before
    // they are read with their types.
    unsafe {
        let bytes = args.cast::<u8>();
        for (range, _) in &outputs {
            bytes.add(range.start).write_bytes(pattern, range.len());
        }
        let result = function(args);
        let read =
            |range: &Range<usize>| std::slice::from_raw_parts(bytes.add(range.start), range.len()).to_vec();
        let means_something = |when: &Option<Range<usize>>| {
            when.as_ref().is_none_or(|when| read(when).iter().any(|byte| *byte != 0))
        };
        let unwritten: Vec<Vec<usize>> = outputs
            .iter()
            .map(|(range, when)| match means_something(when) {
                true => range.clone().filter(|at| bytes.add(*at).read() == pattern).collect(),
                false => Vec::new(),
            })
            .collect();
        for (range, _) in &outputs {
            if read(range).iter().all(|byte| *byte == pattern) {
                bytes.add(range.start).write_bytes(0, range.len());
            }
        }
        PREFILLED.with_borrow_mut(|prefilled| {
            for (all, of_call) in
                prefilled.iter_mut().flat_map(|prefilled| &mut prefilled.unwritten).zip(unwritten)
            {
                all.extend(of_call);
            }
        });
        result
    }
}

/// Runs `run`, and guards the struct of every call of one function, such as `PJRT_Device_MemoryStats`. Also
/// returns the offset of an invalid write, as a number of bytes after the end of the struct, and whether the
/// function was called.
///
/// Only calls on this thread are guarded.
pub fn fenced<T>(function: &'static str, fence: Fence, run: impl FnOnce() -> T) -> (T, Option<usize>, bool) {
    ACTIVE.set(Some((function, fence)));
    TOUCHED.set(None);
    USED.set(false);
    let result = run();
    ACTIVE.set(None);
    (result, TOUCHED.take(), USED.get())
}

/// Calls a function, and guards its struct if the active fence applies to it.
pub(super) fn call<A: SizedStruct, R>(slot: &Slot, args: &mut A, function: impl FnOnce(*mut A) -> R) -> R {
    if let Some((_, size)) = HOST_SIZES.get().iter().find(|(name, _)| *name == slot.name) {
        return guarded(args, *size, function);
    }
    let Some((_, fence)) = ACTIVE.get().filter(|(name, _)| *name == slot.name) else {
        return with_prefilled(slot, args, function);
    };
    USED.set(true);
    match fence {
        Fence::Guarded(size) => guarded(args, size.min(A::STRUCT_SIZE), function),
        Fence::Enlarged => enlarged(args, function),
        Fence::NullLists => null_lists(A::LAYOUT, args, function),
        Fence::WildExtension => wild_extension(A::LAYOUT, args, function),
    }
}

/// Calls `run` with a copy of a struct that ends at `size` and is followed by an inaccessible page.
pub(super) fn with_guarded<A: SizedStruct, R>(args: &mut A, size: usize, run: impl FnOnce(*mut A) -> R) -> R {
    guarded(args, size.min(A::STRUCT_SIZE), run)
}

/// Returns `true` if the lists of no elements that a call of this function passes are null pointers.
pub(super) fn nulls_lists(function: &str) -> bool {
    ACTIVE.get().is_some_and(|(name, fence)| name == function && fence == Fence::NullLists)
}

/// Returns `true` if the address is that of a struct before an inaccessible page.
pub(super) fn is_guarded(address: *const u8) -> bool {
    !address.is_null() && GUARDED.get() == address.addr()
}

/// Places the struct at the end of a page that is followed by an inaccessible one.
fn guarded<A: SizedStruct, R>(args: &mut A, size: usize, function: impl FnOnce(*mut A) -> R) -> R {
    assert!(size_of::<A>() <= PAGE, "the struct fits into a page");
    // SAFETY: two new pages are mapped, the second without access rights. `size` bytes of the struct lie at
    // the end of the first page, rounded down to the struct's alignment; at most 7 bytes of the pattern
    // follow before the page ends. The pages are unmapped after the bytes are copied back.
    unsafe {
        let pages = libc::mmap(
            ptr::null_mut(),
            2 * PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert!(pages != libc::MAP_FAILED, "two pages of memory");
        let first = pages.cast::<u8>();
        assert_eq!(libc::mprotect(first.add(PAGE).cast(), PAGE, libc::PROT_NONE), 0, "rights of a page");
        let start = (PAGE - size) & !(align_of::<A>() - 1);
        let slack = PAGE - start - size;
        first.add(start + size).write_bytes(PATTERN, slack);
        ptr::copy_nonoverlapping(ptr::from_ref(args).cast::<u8>(), first.add(start), size);
        first.add(start).cast::<usize>().write(size);
        let outer = GUARDED.replace(first.add(start).addr());
        let result = function(first.add(start).cast::<A>());
        GUARDED.set(outer);
        note_first_change(std::slice::from_raw_parts(first.add(start + size), slack));
        ptr::copy_nonoverlapping(first.add(start), ptr::from_mut(args).cast::<u8>(), size);
        libc::munmap(pages, 2 * PAGE);
        result
    }
}

/// Places the struct before additional bytes, which this version of the interface does not have.
fn enlarged<A: SizedStruct, R>(args: &mut A, function: impl FnOnce(*mut A) -> R) -> R {
    let size = A::STRUCT_SIZE;
    let mut block = vec![0_u64; (size + MORE).div_ceil(8)];
    // SAFETY: the block is larger than the struct and aligned to 8 bytes, the largest alignment of the
    // interface's structs.
    unsafe {
        let start = block.as_mut_ptr().cast::<u8>();
        ptr::copy_nonoverlapping(ptr::from_ref(args).cast::<u8>(), start, size);
        start.add(size).write_bytes(PATTERN, MORE);
        start.cast::<usize>().write(size + MORE);
        let result = function(start.cast::<A>());
        note_first_change(std::slice::from_raw_parts(start.add(size), MORE));
        ptr::copy_nonoverlapping(start, ptr::from_mut(args).cast::<u8>(), size);
        result
    }
}

fn wild_extension<A: SizedStruct, R>(
    layout: &StructLayout,
    args: &mut A,
    function: impl FnOnce(*mut A) -> R,
) -> R {
    if let Some(field) = layout.field("extension_start") {
        // SAFETY: the field is in the struct and is a pointer.
        unsafe { ptr::from_mut(args).byte_add(field.offset).cast::<usize>().write(0x6) };
    }
    function(args)
}

/// The lists of structs, with the fields of their lengths.
const LISTS: &[(&str, &str)] = &[
    ("create_options", "num_options"),
    ("dims", "num_dims"),
    ("byte_strides", "num_byte_strides"),
    ("shape_dims", "shape_num_dims"),
    ("argument_lists", "num_args"),
    ("compile_options", "compile_options_size"),
    ("overridden_serialized_compile_options", "overridden_serialized_compile_options_size"),
    ("error_message", "error_message_size"),
];

fn null_lists<A: SizedStruct, R>(
    layout: &StructLayout,
    args: &mut A,
    function: impl FnOnce(*mut A) -> R,
) -> R {
    for (list, length) in LISTS {
        let (Some(list), Some(length)) = (layout.field(list), layout.field(length)) else { continue };
        let start = ptr::from_mut(args);
        // SAFETY: both fields are in the struct; the length is a `usize`, and the list a pointer.
        unsafe {
            if start.byte_add(length.offset).cast::<usize>().read() == 0 {
                start.byte_add(list.offset).cast::<*const u8>().write(ptr::null());
            }
        }
    }
    function(args)
}

fn note_first_change(watched: &[u8]) {
    if let Some(at) = watched.iter().position(|byte| *byte != PATTERN) {
        TOUCHED.set(Some(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pjrt_sys::{PJRT_Device_MemoryStats_Args, SLOTS};

    /// Writes one byte at an offset from the start of the guarded struct.
    fn write_at(fence: Fence, byte: usize) -> Option<usize> {
        let slot = SLOTS.iter().find(|slot| slot.name == "PJRT_Device_MemoryStats").unwrap();
        let mut args = PJRT_Device_MemoryStats_Args::zeroed();
        // SAFETY: the tests write only to memory that the fence allocated.
        let write = |args: *mut PJRT_Device_MemoryStats_Args| unsafe { args.cast::<u8>().add(byte).write(1) };
        let ((), touched, used) = fenced("PJRT_Device_MemoryStats", fence, || call(slot, &mut args, write));
        assert!(used);
        touched
    }

    #[test]
    fn a_write_after_the_end_of_a_struct_is_seen() {
        assert_eq!(write_at(Fence::Enlarged, 200), None);
        assert_eq!(write_at(Fence::Enlarged, 205), Some(4));
        // 185 bytes end 7 bytes before the end of the page.
        assert_eq!(write_at(Fence::Guarded(185), 184), None);
        assert_eq!(write_at(Fence::Guarded(185), 186), Some(1));
    }

    #[test]
    fn outputs_that_a_call_leaves_as_they_were_are_seen_and_cleared() {
        let slot = SLOTS.iter().find(|slot| slot.name == "PJRT_Device_MemoryStats").unwrap();
        let field = |name| slot.args.field(name).map(|field| field.offset..field.end).unwrap();
        let (limit, is_set, pool) =
            (field("bytes_limit"), field("bytes_limit_is_set"), field("pool_bytes_is_set"));
        let outputs = [(is_set.clone(), None), (limit, Some(is_set)), (pool, None)];
        let call_with = |is_set: bool| {
            let mut args = PJRT_Device_MemoryStats_Args::zeroed();
            // SAFETY: the pointer refers to the struct above.
            let write =
                |args: *mut PJRT_Device_MemoryStats_Args| unsafe { (*args).bytes_limit_is_set = is_set };
            let run = || call(slot, &mut args, write);
            let ((), unwritten, used) = prefilled("PJRT_Device_MemoryStats", 0xA5, &outputs, run);
            assert!(used && !args.pool_bytes_is_set && args.bytes_limit == 0);
            unwritten.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(call_with(true), [0, 8, 1]);
        assert_eq!(call_with(false), [0, 0, 1]);
    }

    #[test]
    fn only_the_named_function_is_fenced() {
        let slot = SLOTS.iter().find(|slot| slot.name == "PJRT_Device_ClearMemoryStats").unwrap();
        let mut args = PJRT_Device_MemoryStats_Args::zeroed();
        // SAFETY: the pointer refers to the struct above.
        let size = |args: *mut PJRT_Device_MemoryStats_Args| unsafe { (*args).struct_size };
        let run = || call(slot, &mut args, size);
        assert_eq!(fenced("PJRT_Device_MemoryStats", Fence::Enlarged, run).0, 201);
    }
}
