//! Arrays and structs that a host passes to a function, which are overwritten after the call.
//!
//! A host may free or reuse the memory of everything that it passes once the function returns, except of data
//! that the interface lends for longer. Each call therefore receives copies of its struct, of its lists (such
//! as dimensions, strides, options and messages) and of the structs that it points to. After the call, the
//! copies are overwritten, and remain allocated for a while, so that a plugin that still reads them gets wrong
//! values instead of freed memory. Before that, texts and lists are compared with the originals, because the plugin
//! may only read them. The fields are found by the layouts of the structs, so that new functions need no code here.
//!
//! The interface passes texts with their sizes, and without a terminating zero byte. Each copy of a text or a list
//! is therefore followed by the bytes [`PAST_END`], so that a plugin that reads a text up to a zero byte finds a
//! different text.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::{LazyLock, Mutex, PoisonError};

use pjrt_sys::*;

use super::error::Error;
use super::fence;

/// The value of the bytes of copies after the call.
pub const PASSED_OVERWRITTEN: u8 = 0xA7;

/// The bytes after the end of each text and list.
pub const PAST_END: &str = "PAST_END";

thread_local! {
    /// The name of the field whose texts are followed by a zero byte instead.
    static TERMINATED_FIELD: Cell<&'static str> = const { Cell::new("") };
    /// `true` while [`keep_passed`] runs.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run`, and ends the texts in fields of this name, such as `error_message`, with a zero byte.
///
/// Only calls on this thread are affected.
pub fn with_terminated<T>(field: &'static str, run: impl FnOnce() -> T) -> T {
    let outer = TERMINATED_FIELD.replace(field);
    let result = run();
    TERMINATED_FIELD.set(outer);
    result
}

/// The number of bytes of overwritten copies that remain allocated.
const KEPT: usize = 1 << 16;

/// The overwritten copies, from the oldest to the newest.
static OLD: Mutex<(VecDeque<Vec<u64>>, usize)> = Mutex::new((VecDeque::new(), 0));

/// Fields that contain the length of a list, if their name is not formed from that of the list with `num_` or
/// `_size`.
const LENGTHS: &[(&str, &str)] = &[
    ("create_options", "num_options"),
    ("shape_dims", "shape_num_dims"),
    ("task_ids", "num_tasks"),
    ("incarnation_ids", "num_tasks"),
    ("argument_lists", "num_devices"),
    ("output_lists", "num_devices"),
];

/// Lists of lists that functions only read, and the fields that contain the length of each inner list.
const LISTS_OF_LISTS: &[(&str, &str)] = &[("argument_lists", "num_args")];

/// Lists that functions only read, although the pointer allows them to write.
const ONLY_READ: &[&str] = &["task_ids", "incarnation_ids", "process_infos"];

/// Texts that functions only read, and that end with a zero.
const TERMINATED: &[&str] = &["call_location"];

/// Structs that functions only read, and that functions point to without a length.
const STRUCTS_READ: &[&str] =
    &["*mutPJRT_Buffer_MemoryLayout", "*constPJRT_Program", "*mutPJRT_ExecuteOptions"];

/// Runs `run` as in a host that keeps the memory which it passes to functions as it is, to find out whether a failure depends on
/// that.
///
/// Only calls on this thread are affected.
pub fn keep_passed<T>(run: impl FnOnce() -> T) -> T {
    KEEPS.set(true);
    let result = run();
    KEEPS.set(false);
    result
}

/// Runs `run` with a copy of the struct and of what it points to, which is overwritten afterwards. Also returns the name of
/// the field that refers to memory which `run` wrote to, although the function may only read it.
pub(super) fn with_copies<A: SizedStruct, R>(
    args: &mut A,
    run: impl FnOnce(&mut A) -> R,
) -> (R, Option<&'static str>) {
    let function = A::NAME.strip_suffix("_Args").unwrap_or(A::NAME);
    let mut copies = Copies { nulls_lists: fence::nulls_lists(function), ..Copies::default() };
    let original = ptr::from_mut(args);
    // SAFETY: the copy has the size and alignment of the struct. The wrappers of this module fill in the
    // structs, so that each list has the length in its field. The pointers that are replaced are restored
    // before the struct is copied back.
    unsafe {
        let copy = copies.of(original.cast(), size_of::<A>(), "", "").cast::<A>();
        copies.replace_lists(copy.cast(), A::LAYOUT);
        let result = run(&mut *copy);
        for (place, old, new) in copies.replaced.drain(..) {
            if place.read() == new {
                place.write(old);
            }
        }
        let written = copies.written();
        ptr::copy_nonoverlapping(copy.cast::<u8>(), original.cast::<u8>(), size_of::<A>());
        if KEEPS.get() {
            std::mem::forget(copies);
        } else {
            copies.overwrite();
        }
        (result, written)
    }
}

/// Returns the error of a function that wrote to the memory to which a field refers.
pub(super) fn wrote(function: &'static str, field: &str) -> Error {
    let message = format!(
        "it wrote to the host's memory to which `{field}` refers. The plugin may only read this memory"
    );
    Error::broken(function, message)
}

/// A copy of memory of the host.
struct Block {
    memory: Vec<u64>,
    original: *const u8,
    size: usize,
    /// The name of the field that refers to the memory, or nothing if it contains structs, some of which have outputs.
    field: &'static str,
}

/// The copies for a call.
#[derive(Default)]
struct Copies {
    blocks: Vec<Block>,
    /// The pointers that were replaced: their places, and the old and the new pointers.
    replaced: Vec<(*mut usize, usize, usize)>,
    /// `true` to replace the pointers to lists of no elements with null, also in structs that the struct points to.
    nulls_lists: bool,
}

impl Copies {
    /// Copies `size` bytes, to which the field with this name refers, and returns the address of the copy. `after` follows the
    /// bytes, and then a zero byte.
    ///
    /// # Safety
    ///
    /// The pointer is valid for reads of `size` bytes, as long as this value exists.
    unsafe fn of(&mut self, start: *const u8, size: usize, field: &'static str, after: &str) -> *mut u8 {
        let mut memory = vec![0_u64; (size + after.len()) / 8 + 1];
        let copy = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: guaranteed by the caller; the block has room for the bytes and for a zero byte. Its address does not
        // change when the block is moved.
        unsafe {
            ptr::copy_nonoverlapping(start, copy, size);
            ptr::copy_nonoverlapping(after.as_ptr(), copy.add(size), after.len());
        }
        self.blocks.push(Block { memory, original: start, size, field });
        copy
    }

    /// Returns the field whose memory differs from the original, once all pointers are restored.
    ///
    /// # Safety
    ///
    /// The originals are valid, and are not changed at the same time.
    unsafe fn written(&self) -> Option<&'static str> {
        let is_written = |block: &&Block| {
            // SAFETY: guaranteed by the caller; the copy has at least as many bytes.
            let (now, before) = unsafe {
                (
                    std::slice::from_raw_parts(block.memory.as_ptr().cast::<u8>(), block.size),
                    std::slice::from_raw_parts(block.original, block.size),
                )
            };
            now != before
        };
        self.blocks.iter().filter(|block| !block.field.is_empty()).find(is_written).map(|block| block.field)
    }

    /// Replaces the pointer at `place`, which is in the field with this name, with that of a copy, and returns the
    /// copy.
    ///
    /// # Safety
    ///
    /// The place holds a pointer that is null or valid for reads of `size` bytes.
    unsafe fn replace(&mut self, place: *mut u8, field: &'static str, size: usize) -> Option<*mut u8> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let old = place.cast::<*const u8>().read();
            if old.is_null() {
                return None;
            }
            if self.nulls_lists && size == 0 {
                self.replaced.push((place.cast(), old.expose_provenance(), 0));
                place.cast::<*mut u8>().write(ptr::null_mut());
                return None;
            }
            let after = if field == TERMINATED_FIELD.get() { "" } else { PAST_END };
            let copy = self.of(old, size, field, after);
            self.replaced.push((place.cast(), old.expose_provenance(), copy.expose_provenance()));
            place.cast::<*mut u8>().write(copy);
            Some(copy)
        }
    }

    /// Replaces the lists and the structs that a struct points to with copies.
    ///
    /// # Safety
    ///
    /// The struct has this layout, and each of its pointers is null or valid for the length in its field.
    unsafe fn replace_lists(&mut self, args: *mut u8, layout: &'static StructLayout) {
        for Pointer { field, to } in pointers_of(layout) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let place = args.add(field.offset);
                match to {
                    PointsTo::Struct(layout) => self.replace_struct(place, layout),
                    PointsTo::Text => self.replace_text(place, field.name),
                    PointsTo::List(list) => self.replace_list(args, place, field.name, list),
                }
            }
        }
        if layout.name == "PJRT_NamedValue" {
            // SAFETY: guaranteed by the caller. The type of a value says which field of the union is set.
            unsafe { self.replace_value(args.cast()) };
        }
    }

    /// Replaces the list at `place`, which is in a field of a struct, and what its elements point to.
    ///
    /// # Safety
    ///
    /// As for [`replace_lists`](Self::replace_lists); `place` is in the struct.
    unsafe fn replace_list(&mut self, args: *mut u8, place: *mut u8, field: &'static str, list: &List) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let len = args.add(list.len).cast::<usize>().read();
            let field = if list.of_element.is_some() { "" } else { field };
            let Some(copy) = self.replace(place, field, len.saturating_mul(list.element_size)) else {
                return;
            };
            if let Some(inner) = list.inner_len {
                let inner_size = args.add(inner).cast::<usize>().read() * size_of::<usize>();
                for index in 0..len {
                    self.replace(copy.add(index * list.element_size), field, inner_size);
                }
            } else if let Some(of_element) = list.of_element {
                (0..len)
                    .for_each(|index| self.replace_lists(copy.add(index * list.element_size), of_element));
            }
        }
    }

    /// Replaces the text or the list of a named value.
    ///
    /// # Safety
    ///
    /// The value's pointer, if it has one, is valid for the length in its field.
    unsafe fn replace_value(&mut self, value: *mut PJRT_NamedValue) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (size, field) = match (*value).type_ {
                kind if kind == PJRT_NamedValue_kString => (1, "string_value"),
                kind if kind == PJRT_NamedValue_kInt64List => (size_of::<i64>(), "int64_array_value"),
                _ => return,
            };
            let len = (*value).value_size;
            self.replace((&raw mut (*value).u).cast(), field, size * len);
        }
    }

    /// Replaces the pointer to a text that ends with a zero.
    ///
    /// # Safety
    ///
    /// The place holds a pointer that is null or refers to such a text.
    unsafe fn replace_text(&mut self, place: *mut u8, field: &'static str) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let text = place.cast::<*const c_char>().read();
            if !text.is_null() {
                let size = CStr::from_ptr(text).to_bytes_with_nul().len();
                self.replace(place, field, size);
            }
        }
    }

    /// Replaces a pointer to a struct, and the lists of the struct.
    ///
    /// # Safety
    ///
    /// The place holds a pointer that is null or refers to a struct with this layout.
    unsafe fn replace_struct(&mut self, place: *mut u8, layout: &'static StructLayout) {
        // SAFETY: guaranteed by the caller. A struct before an inaccessible page stays there. The type of a memory
        // layout says which field of the union is set.
        unsafe {
            if fence::is_guarded(place.cast::<*const u8>().read()) {
                return;
            }
            let Some(copy) = self.replace(place, "", layout.size) else { return };
            self.replace_lists(copy, layout);
            if let Some(code) = layout.field("code").filter(|_| layout.name == "PJRT_Program") {
                let size = (*copy.cast::<PJRT_Program>()).code_size;
                self.replace(copy.add(code.offset), code.name, size);
            }
            if layout.name == "PJRT_Buffer_MemoryLayout" {
                let memory = copy.cast::<PJRT_Buffer_MemoryLayout>();
                if (*memory).type_ == PJRT_Buffer_MemoryLayout_Type_Tiled {
                    let tiled = (&raw mut (*memory).u.tiled).cast::<u8>();
                    self.replace_lists(tiled, PJRT_Buffer_MemoryLayout_Tiled::LAYOUT);
                } else {
                    let strides = (&raw mut (*memory).u.strides).cast::<u8>();
                    self.replace_lists(strides, PJRT_Buffer_MemoryLayout_Strides::LAYOUT);
                }
            }
        }
    }

    /// Overwrites the copies, and frees the oldest ones.
    fn overwrite(self) {
        let mut old = OLD.lock().unwrap_or_else(PoisonError::into_inner);
        for Block { mut memory, .. } in self.blocks {
            memory.fill(u64::from_ne_bytes([PASSED_OVERWRITTEN; 8]));
            old.1 += 8 * memory.len();
            old.0.push_back(memory);
        }
        while old.1 > KEPT {
            let Some(block) = old.0.pop_front() else { break };
            old.1 -= 8 * block.len();
        }
    }
}

/// A field of a struct that is a pointer to something that functions only read.
struct Pointer {
    field: &'static FieldLayout,
    to: PointsTo,
}

/// The thing that a pointer refers to.
enum PointsTo {
    Struct(&'static StructLayout),
    /// A text that ends with a zero.
    Text,
    List(List),
}

/// A list whose length is in another field of the struct.
struct List {
    element_size: usize,
    /// The offset of the length in the struct.
    len: usize,
    /// The offset of the length of each inner list, if this is a list of lists.
    inner_len: Option<usize>,
    /// The layout of the elements, if they are structs.
    of_element: Option<&'static StructLayout>,
}

/// Returns the pointers of a struct. They are found once for each layout, because every call needs them.
fn pointers_of(layout: &'static StructLayout) -> &'static [Pointer] {
    type Found = HashMap<&'static str, &'static [Pointer]>;
    static FOUND: LazyLock<Found> = LazyLock::new(|| {
        let pointers = |layout: &'static StructLayout| {
            let found = layout
                .fields
                .iter()
                .filter_map(|field| points_to(layout, field).map(|to| Pointer { field, to }));
            &*Vec::leak(found.collect())
        };
        STRUCTS.iter().map(|layout| (layout.name, pointers(layout))).collect()
    });
    FOUND.get(layout.name).copied().unwrap_or_default()
}

/// Returns the thing that a field refers to, or `None` if the field is no pointer to something that functions only read.
fn points_to(layout: &StructLayout, field: &FieldLayout) -> Option<PointsTo> {
    let ty: String = field.ty.split_whitespace().collect();
    let ty = if ONLY_READ.contains(&field.name) { ty.replacen("*mut", "*const", 1) } else { ty };
    if STRUCTS_READ.contains(&ty.as_str()) {
        return struct_of(&ty).map(PointsTo::Struct);
    }
    if TERMINATED.contains(&field.name) {
        return Some(PointsTo::Text);
    }
    let inner = LISTS_OF_LISTS.iter().find(|(name, _)| *name == field.name);
    Some(PointsTo::List(List {
        element_size: element_size(&ty)?,
        len: length_of(layout, field.name)?.offset,
        inner_len: inner.and_then(|(_, len)| layout.field(len)).map(|len| len.offset),
        of_element: struct_of(&ty),
    }))
}

/// Returns the layout of the struct that a pointer of this type refers to.
fn struct_of(ty: &str) -> Option<&'static StructLayout> {
    let name = ty.strip_prefix("*const").or_else(|| ty.strip_prefix("*mut"))?;
    STRUCTS.iter().find(|layout| layout.name == name)
}

/// Returns the size of an element of a list that functions only read, from the type of its pointer.
fn element_size(ty: &str) -> Option<usize> {
    match ty.rsplit("::").next().unwrap_or(ty) {
        _ if ty.starts_with("*const*") => Some(size_of::<usize>()),
        _ if ty == "*mutPJRT_ShapeSpec" => struct_of(ty).map(|layout| layout.size),
        _ if !ty.starts_with("*const") => None,
        "c_char" | "*constu8" => Some(1),
        "c_int" | "*consti32" => Some(4),
        "*consti64" | "*constusize" => Some(8),
        _ => struct_of(ty).map(|layout| layout.size),
    }
}

/// Returns the field that contains the length of a list.
fn length_of(layout: &StructLayout, list: &str) -> Option<&'static FieldLayout> {
    let is_length = |name: &str| {
        name.strip_prefix("num_") == Some(list)
            || name.strip_suffix("_size") == Some(list)
            || LENGTHS.contains(&(list, name))
    };
    layout.fields.iter().find(|field| is_length(field.name) && field.ty.contains("usize"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_zero_follow_each_text() {
        let message = "a message";
        let seen = || {
            let mut args = PJRT_Event_Set_Args {
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
                ..PJRT_Event_Set_Args::zeroed()
            };
            // SAFETY: a zero byte follows the copy and the bytes after it.
            with_copies(&mut args, |args| unsafe { CStr::from_ptr(args.error_message).to_owned() }).0
        };
        assert_eq!(seen().to_bytes(), b"a messagePAST_END");
        assert_eq!(with_terminated("error_message", seen).to_bytes(), b"a message");
        assert_eq!(with_terminated("format", seen).to_bytes(), b"a messagePAST_END");
    }

    #[test]
    fn options_arguments_and_values_are_overwritten_after_the_call() {
        let arguments = [ptr::without_provenance_mut::<PJRT_Buffer>(64), ptr::without_provenance_mut(128)];
        let lists = [arguments.as_ptr()];
        let kept = [1_i64];
        let mut options = PJRT_ExecuteOptions {
            non_donatable_input_indices: kept.as_ptr(),
            num_non_donatable_input_indices: 1,
            call_location: c"here".as_ptr(),
            ..PJRT_ExecuteOptions::zeroed()
        };
        let mut args = PJRT_LoadedExecutable_Execute_Args {
            options: &raw mut options,
            argument_lists: lists.as_ptr(),
            num_devices: 1,
            num_args: 2,
            ..PJRT_LoadedExecutable_Execute_Args::zeroed()
        };
        let ((list, indices, location), _) = with_copies(&mut args, |args| {
            // SAFETY: the lists have these lengths.
            unsafe {
                let list = args.argument_lists.read();
                assert_eq!((list.read().addr(), list.add(1).read().addr()), (64, 128));
                let options = &*args.options;
                assert_eq!(options.non_donatable_input_indices.read(), 1);
                (list, options.non_donatable_input_indices, options.call_location)
            }
        });
        // SAFETY: the copies remain allocated for a while.
        unsafe {
            assert_eq!(list.cast::<i64>().read(), i64::from_ne_bytes([PASSED_OVERWRITTEN; 8]));
            assert_eq!(indices.read(), i64::from_ne_bytes([PASSED_OVERWRITTEN; 8]));
            assert_eq!(location.cast::<u8>().read(), PASSED_OVERWRITTEN);
        }
        assert_eq!(arguments.map(<*mut PJRT_Buffer>::addr), [64, 128]);
        let option = PJRT_NamedValue {
            type_: PJRT_NamedValue_kString,
            u: PJRT_NamedValue_Union { string_value: c"value".as_ptr() },
            value_size: 5,
            ..PJRT_NamedValue::zeroed()
        };
        let mut args = PJRT_Client_Create_Args {
            create_options: &raw const option,
            num_options: 1,
            ..PJRT_Client_Create_Args::zeroed()
        };
        // SAFETY: the value is a text.
        let (text, _) = with_copies(&mut args, |args| unsafe { (*args.create_options).u.string_value });
        // SAFETY: the copies remain allocated for a while.
        assert_eq!(unsafe { text.cast::<u8>().read() }, PASSED_OVERWRITTEN);
    }

    #[test]
    fn lists_and_structs_are_overwritten_after_the_call() {
        let (dims, order) = ([2_i64, 3], [1_i64, 0]);
        let mut layout = PJRT_Buffer_MemoryLayout::zeroed();
        layout.type_ = PJRT_Buffer_MemoryLayout_Type_Tiled;
        layout.u.tiled = PJRT_Buffer_MemoryLayout_Tiled {
            minor_to_major: order.as_ptr(),
            minor_to_major_size: 2,
            ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
        };
        let mut args = PJRT_Client_BufferFromHostBuffer_Args {
            dims: dims.as_ptr(),
            num_dims: 2,
            device_layout: &raw mut layout,
            ..PJRT_Client_BufferFromHostBuffer_Args::zeroed()
        };
        let ((seen, kept), written) = with_copies(&mut args, |args| {
            args.buffer = ptr::dangling_mut();
            // SAFETY: the lists have two elements each.
            unsafe {
                let order = (*args.device_layout).u.tiled.minor_to_major;
                ((args.dims.read(), order.read()), (args.dims, order))
            }
        });
        assert_eq!((seen, written), ((2, 1), None));
        assert_eq!((args.dims, args.buffer.is_null()), (dims.as_ptr(), false));
        let garbage = i64::from_ne_bytes([PASSED_OVERWRITTEN; 8]);
        // SAFETY: the copies remain allocated for a while.
        assert_eq!(unsafe { (kept.0.read(), kept.1.read()) }, (garbage, garbage));
        assert_eq!((dims, order), ([2, 3], [1, 0]));
    }

    #[test]
    fn writes_to_what_functions_may_only_read_are_noticed() {
        let code = *b"module";
        let program = PJRT_Program {
            code: code.as_ptr().cast_mut().cast(),
            code_size: code.len(),
            ..PJRT_Program::zeroed()
        };
        let mut args =
            PJRT_Client_Compile_Args { program: &raw const program, ..PJRT_Client_Compile_Args::zeroed() };
        let ((), written) = with_copies(&mut args, |args| args.executable = ptr::dangling_mut());
        assert_eq!(written, None);
        // SAFETY: the program has six bytes.
        let ((), written) = with_copies(&mut args, |args| unsafe { (*args.program).code.write(0) });
        assert_eq!((written, code), (Some("code"), *b"module"));
    }
}
