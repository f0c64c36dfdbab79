//! Faults of the memory that a plugin returns and still owns.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use pjrt_sys::PJRT_Error_Message_Args;

use crate::fault::args_of;
use crate::table::{field, place, read, write};

/// A block of memory: its address and its number of bytes.
type Block = (usize, usize);

#[derive(Default)]
struct Blocks {
    /// The list that the faulty function returned last.
    last: Option<Block>,
    /// The list that the faulty function returned first: its address and its length.
    first: Option<(i64, i64)>,
    /// The bytes that belong to an executable, by the executable.
    of_executable: HashMap<usize, Vec<Block>>,
}

fn blocks() -> MutexGuard<'static, Blocks> {
    static BLOCKS: LazyLock<Mutex<Blocks>> = LazyLock::new(Mutex::default);
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Overwrites a block, which another owner uses now.
fn reuse((address, size): Block) {
    // SAFETY: the block is a leaked allocation of this file of at least this size.
    unsafe { ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(0x55, size) };
}

/// Copies bytes to new memory, which is never freed.
///
/// # Safety
///
/// The address is that of this many bytes, or there are none.
unsafe fn copy(address: i64, size: usize) -> *mut u8 {
    let block = Vec::leak(vec![0_u64; size.div_ceil(8).max(1)]).as_mut_ptr().cast::<u8>();
    if size > 0 {
        // SAFETY: guaranteed by the caller; the block has at least this many bytes.
        unsafe {
            ptr::copy_nonoverlapping(ptr::with_exposed_provenance(address as usize), block, size);
        }
    }
    block
}

/// Overwrites the serialized bytes of the object that a call has destroyed. They should live longer.
pub(crate) fn destroyed(object: usize) {
    let freed = blocks().of_executable.remove(&object);
    freed.into_iter().flatten().for_each(reuse);
}

/// Performs an action after a call that succeeded.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn after(name: &str, words: &[String], slot: usize, args: *mut u8) {
    // The struct of an older host may lack a field.
    let of_struct = words.iter().filter(|word| args_of(slot).field(word).is_some());
    // SAFETY: the struct is that of the slot.
    if of_struct.clone().any(|word| unsafe { place(args, &field(slot, word)) }.is_none()) {
        return;
    }
    // SAFETY: as above, and the fields are in the struct.
    let get = |name: &str| unsafe {
        let path = field(slot, name);
        read(place(args, &path).expect("a field"), &path)
    };
    // SAFETY: as above.
    let put = |name: &str, value: i64| unsafe {
        let path = field(slot, name);
        write(place(args, &path).expect("a field"), &path, value);
    };
    let number = |index: usize| words[index].parse::<i64>().expect("a number");
    // SAFETY: the fields that an action names are a list of the good plugin and its length.
    unsafe {
        match name {
            "replace" if get(&words[0]) == number(1) => put(&words[0], number(2)),
            "exchange" => {
                let (first, second) = (get(&words[0]), get(&words[1]));
                put(&words[0], second);
                put(&words[1], first);
            }
            "low_bits" => words.iter().for_each(|word| put(word, get(word) & i64::from(u32::MAX))),
            // The numbers of a layout such as {1,0} are reversed.
            "reverse_text" => {
                let size = get("serialized_bytes_size") as usize;
                let text = std::slice::from_raw_parts_mut(copy(get("serialized_bytes"), size), size);
                if text.ends_with(b"}") && !text.contains(&b':') {
                    text[1..size - 1].reverse();
                }
                put("serialized_bytes", text.as_ptr().expose_provenance() as i64);
            }
            "reverse" => {
                let len = get(&words[1]) as usize;
                let list = copy(get(&words[0]), 8 * len).cast::<u64>();
                std::slice::from_raw_parts_mut(list, len).reverse();
                put(&words[0], list.expose_provenance() as i64);
            }
            // The numbers of a list have 32 bits.
            "low_32_bits" => {
                let len = number(1) as usize;
                let list = copy(get(&words[0]), 8 * len).cast::<u64>();
                std::slice::from_raw_parts_mut(list, len)
                    .iter_mut()
                    .for_each(|number| *number &= u64::from(u32::MAX));
                put(&words[0], list.expose_provenance() as i64);
            }
            // All elements of a list are like the first.
            "repeat_first" => {
                let (len, width) = (get(&words[1]) as usize, number(2) as usize);
                let list = copy(get(&words[0]), width * len);
                (1..len).for_each(|index| ptr::copy_nonoverlapping(list, list.add(width * index), width));
                put(&words[0], list.expose_provenance() as i64);
            }
            // The size of a text includes a zero byte at its end.
            "with_zero" => {
                let size = get(&words[1]);
                let text = ptr::with_exposed_provenance::<u8>(get(&words[0]) as usize);
                let longer = Vec::leak(vec![0_u8; size as usize + 1]).as_mut_ptr();
                ptr::copy_nonoverlapping(text, longer, size as usize);
                put(&words[0], longer.expose_provenance() as i64);
                put(&words[1], size + 1);
            }
            // All objects have the list of the first one.
            "first_list" => {
                let (list, len) = (get(&words[0]), get(&words[1]));
                let copied = || (copy(list, 8 * len as usize).expose_provenance() as i64, len);
                let (list, len) = *blocks().first.get_or_insert_with(copied);
                put(&words[0], list);
                put(&words[1], len);
            }
            // The list is freed by the next call of the function.
            "moving" => {
                let size = get(&words[1]) as usize * number(2) as usize;
                let list = copy(get(&words[0]), size).expose_provenance();
                put(&words[0], list as i64);
                let last = blocks().last.replace((list, size));
                last.into_iter().for_each(reuse);
            }
            "dies_with_the_executable" => {
                let size = get("serialized_bytes_size") as usize;
                let bytes = copy(get("serialized_bytes"), size).expose_provenance();
                put("serialized_bytes", bytes as i64);
                let object = get("executable") as usize;
                blocks().of_executable.entry(object).or_default().push((bytes, size));
            }
            "static_message" => static_message(args.cast()),
            _ => {}
        }
    }
}

/// Moves a message to a buffer that all messages share.
///
/// # Safety
///
/// The struct is that of a call of `PJRT_Error_Message`.
unsafe fn static_message(args: *mut PJRT_Error_Message_Args) {
    const SIZE: usize = 4096;
    static SHARED: OnceLock<usize> = OnceLock::new();
    let shared = *SHARED.get_or_init(|| Vec::leak(vec![0_u64; SIZE / 8]).as_mut_ptr().expose_provenance());
    let shared = ptr::with_exposed_provenance_mut::<u8>(shared);
    // SAFETY: the message has as many bytes as the good plugin says, and may be in the buffer already.
    unsafe {
        let size = (*args).message_size.min(SIZE);
        ptr::copy((*args).message.cast::<u8>(), shared, size);
        (*args).message = shared.cast();
        (*args).message_size = size;
    }
}
