//! Faults of plugins that manage memory: objects that share memory, and memory that is reused too early.
//!
//! The good plugin makes no such mistake. The proxy imitates the mistake: it records which objects use the
//! memory of a buffer, and when the memory gets other contents, it replaces these objects.

use std::collections::{HashMap, HashSet};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pjrt_sys::*;
use pjrt_testing::host::ElementType;

use crate::table::{INNER, inner, state};

/// An object that uses the memory of a buffer.
#[derive(Clone)]
enum User {
    /// A buffer whose elements are in this memory.
    Buffer(usize),
    /// A readback that has not read the memory yet: the address and the size of its destination.
    Readback(usize, usize),
    /// An execution that has not read this argument yet: the program, its arguments and its output.
    Execution(usize, Vec<usize>, usize),
    /// A buffer that frees its memory a second time when it is destroyed.
    Owner(usize),
}

/// The memory of a buffer: its size, and the objects that use it.
#[derive(Clone, Default)]
struct Block {
    size: usize,
    users: Vec<User>,
}

#[derive(Default)]
struct Memory {
    /// The memory of buffers that other objects use too.
    blocks: HashMap<usize, Block>,
    /// The memory that is free although it is in use. New arrays of the same size get it.
    free: Vec<Block>,
    /// Buffers, and the buffers whose elements they have instead of their own.
    instead: HashMap<usize, usize>,
    /// The newest buffer of each program or size.
    newest: HashMap<usize, usize>,
    /// Donated arguments that report that they are not deleted.
    undeleted: HashSet<usize>,
}

static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(Mutex::default);

fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

const BUFFER_DESTROY: &str = "PJRT_Buffer_Destroy";
const BUFFER_DELETE: &str = "PJRT_Buffer_Delete";
const BUFFER_IS_DELETED: &str = "PJRT_Buffer_IsDeleted";
const EXECUTE: &str = "PJRT_LoadedExecutable_Execute";
const UPLOAD: &str = "PJRT_Client_BufferFromHostBuffer";

fn object<T>(address: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(address)
}

/// Returns the size of an array on the host.
fn size_of_array(buffer: usize) -> usize {
    let buffer = object::<PJRT_Buffer>(buffer);
    let (dims, _) = inner!(PJRT_Buffer_Dimensions PJRT_Buffer_Dimensions_Args { buffer: buffer });
    let (type_, _) = inner!(PJRT_Buffer_ElementType PJRT_Buffer_ElementType_Args { buffer: buffer });
    // SAFETY: the good plugin returned the array, which lives as long as the buffer.
    let elements: i64 = (0..dims.num_dims).map(|dim| unsafe { dims.dims.add(dim).read() }).product();
    elements as usize * ElementType(type_.type_.0).byte_size()
}

fn is_deleted(buffer: usize) -> bool {
    let (args, _) =
        inner!(PJRT_Buffer_IsDeleted PJRT_Buffer_IsDeleted_Args { buffer: object::<PJRT_Buffer>(buffer) });
    args.is_deleted
}

/// Executes a program on one device, and returns its first output.
fn execute(program: usize, arguments: &[usize]) -> usize {
    let list: Vec<*mut PJRT_Buffer> = arguments.iter().map(|buffer| object(*buffer)).collect();
    let mut outputs = [ptr::null_mut::<PJRT_Buffer>(); 64];
    let (lists, output_lists) = ([list.as_ptr()], [outputs.as_mut_ptr()]);
    let mut options = PJRT_ExecuteOptions::zeroed();
    let kept: Vec<i64> = (0..list.len() as i64).collect();
    options.non_donatable_input_indices = kept.as_ptr();
    options.num_non_donatable_input_indices = kept.len();
    inner!(PJRT_LoadedExecutable_Execute PJRT_LoadedExecutable_Execute_Args {
        executable: object::<PJRT_LoadedExecutable>(program),
        options: &raw mut options,
        argument_lists: lists.as_ptr(),
        num_devices: 1,
        num_args: list.len(),
        output_lists: output_lists.as_ptr(),
    });
    outputs[0].expose_provenance()
}

/// Copies the elements of an array to host memory.
///
/// # Safety
///
/// The destination is memory of the host with this size.
unsafe fn read_into(buffer: usize, to: usize, size: usize) {
    let (args, _) = inner!(PJRT_Buffer_ToHostBuffer PJRT_Buffer_ToHostBuffer_Args {
        src: object::<PJRT_Buffer>(buffer),
        dst: object(to),
        dst_size: size,
    });
    inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: args.event });
}

impl Memory {
    /// Records that an object uses the memory of a buffer.
    fn uses(&mut self, buffer: usize, user: User) {
        let size = size_of_array(buffer);
        self.blocks.entry(buffer).or_insert(Block { size, users: Vec::new() }).users.push(user);
    }

    /// Replaces the elements of `old` with those of `new` for the users of its memory.
    fn fill(&mut self, users: &[User], old: usize, new: usize) {
        for user in users {
            match user {
                User::Buffer(buffer) if *buffer != new => drop(self.instead.insert(*buffer, new)),
                User::Buffer(_) => {}
                // SAFETY: hosts of this example never free the memory that they read to.
                User::Readback(to, size) => unsafe { read_into(new, *to, *size) },
                User::Execution(program, arguments, output) => {
                    let is_gone = |buffer: usize| buffer == old || !self.exists(buffer);
                    let arguments: Vec<usize> =
                        arguments.iter().map(|buffer| if is_gone(*buffer) { new } else { *buffer }).collect();
                    let other = execute(*program, &arguments);
                    self.instead.insert(*output, other);
                }
                User::Owner(owner) => {
                    let size = size_of_array(new);
                    self.blocks.insert(*owner, Block { size, users: vec![User::Buffer(new)] });
                }
            }
        }
    }

    /// Returns `true` if a recorded argument was neither deleted nor destroyed.
    fn exists(&self, buffer: usize) -> bool {
        self.blocks.contains_key(&buffer) && !is_deleted(buffer)
    }

    /// Forgets a buffer that is being destroyed.
    fn forget(&mut self, buffer: usize) {
        self.instead.remove(&buffer);
        self.instead.retain(|_, other| *other != buffer);
        self.newest.retain(|_, newest| *newest != buffer);
        self.undeleted.remove(&buffer);
        let stays = |user: &User| match user {
            User::Buffer(user) | User::Execution(_, _, user) | User::Owner(user) => *user != buffer,
            User::Readback(..) => true,
        };
        for block in self.blocks.values_mut().chain(&mut self.free) {
            block.users.retain(stays);
        }
        self.free.retain(|block| !block.users.is_empty());
    }

    /// Frees the memory of a buffer, although other objects use it.
    fn release(&mut self, buffer: usize) {
        if let Some(block) = self.blocks.remove(&buffer) {
            self.free.push(block);
        }
    }
}

/// Returns the program, the arguments and the first output of an execution on the first device.
///
/// # Safety
///
/// The struct is that of a successful call.
unsafe fn launched(args: *mut u8) -> (usize, Vec<usize>, usize) {
    let args = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let list = (*args).argument_lists.read();
        let arguments = (0..(*args).num_args).map(|index| list.add(index).read().expose_provenance());
        let arguments = arguments.collect();
        let output = (*args).output_lists.read().read().expose_provenance();
        ((*args).executable.expose_provenance(), arguments, output)
    }
}

/// Performs an action after a successful call. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn after(name: &str, words: &[String], args: *mut u8) -> bool {
    let mut memory = memory();
    // The third word of these structs is the buffer.
    // SAFETY: guaranteed by the caller; each action is used only with the function whose struct it accesses.
    unsafe {
        let source = args.cast::<usize>().add(2).read();
        let index = || words[0].parse::<usize>().expect("an index");
        match name {
            // A copy that has the memory of its source.
            "share_source" => {
                let copy = &*args.cast::<PJRT_Buffer_CopyToMemory_Args>();
                memory.uses(source, User::Buffer(copy.dst_buffer.expose_provenance()));
            }
            // An output that has the memory of an argument, which the argument frees when it is destroyed.
            "share_argument" => {
                let (_, arguments, output) = launched(args);
                memory.uses(arguments[index()], User::Buffer(output));
            }
            // An output that was written to the memory of an argument, which reports that it is not deleted.
            "overwrite_argument" => {
                let (_, arguments, output) = launched(args);
                memory.instead.insert(arguments[index()], output);
                memory.undeleted.insert(arguments[index()]);
            }
            // A launch that frees the memory of its arguments.
            "free_arguments" => {
                for argument in launched(args).1 {
                    let users = vec![User::Buffer(argument)];
                    memory.free.push(Block { size: size_of_array(argument), users });
                }
            }
            // An execution that reads its arguments late, although it does not keep their memory.
            "late_execution" => {
                let (program, arguments, output) = launched(args);
                for argument in &arguments {
                    memory.uses(*argument, User::Execution(program, arguments.clone(), output));
                }
            }
            // A readback that reads late, although it does not keep the memory.
            "late_readback" => {
                let read = &*args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
                if !read.dst.is_null() {
                    inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: read.event });
                    memory.uses(source, User::Readback(read.dst.expose_provenance(), read.dst_size));
                }
            }
            // All launches of a program write to the same memory.
            "same_output" => {
                let (program, _, output) = launched(args);
                if let Some(last) = memory.newest.insert(program, output) {
                    memory.instead.insert(last, output);
                }
            }
            // All arrays of a size have the same memory.
            "same_upload" => {
                let buffer = (*args.cast::<PJRT_Client_BufferFromHostBuffer_Args>()).buffer;
                let buffer = buffer.expose_provenance();
                if let Some(last) = memory.newest.insert(size_of_array(buffer), buffer) {
                    memory.instead.insert(last, buffer);
                }
            }
            // A deleted buffer frees its memory a second time when it is destroyed.
            "free_twice" => {
                let users = vec![User::Owner(source)];
                memory.free.push(Block { size: size_of_array(source), users });
            }
            _ => return false,
        }
    }
    true
}

/// Follows a call that the good plugin is about to handle, and replaces buffers whose elements were replaced.
/// Returns the changed places with their previous contents.
///
/// # Safety
///
/// The struct is that of the function.
pub(crate) unsafe fn before_good(function: &str, args: *mut u8, buffer: usize) -> Vec<(*mut usize, usize)> {
    let mut memory = memory();
    if function == BUFFER_DESTROY {
        memory.release(buffer);
        memory.forget(buffer);
        return Vec::new();
    }
    if memory.instead.is_empty() || [BUFFER_DELETE, BUFFER_IS_DELETED].contains(&function) {
        return Vec::new();
    }
    let mut places = Vec::new();
    // SAFETY: guaranteed by the caller. The host's lists are restored after the call, as is the third word.
    unsafe {
        if function == EXECUTE {
            let args = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
            for device in 0..(*args).num_devices {
                let list = (*args).argument_lists.add(device).read();
                places.extend((0..(*args).num_args).map(|at| list.add(at).cast_mut().cast::<usize>()));
            }
        } else if buffer != 0 {
            places.push(args.cast::<usize>().add(2));
        }
        places.retain(|place| memory.instead.contains_key(&place.read()));
        places
            .into_iter()
            .map(|place| {
                let old = place.read();
                place.write(memory.instead[&old]);
                (place, old)
            })
            .collect()
    }
}

/// Follows a successful call of the host.
///
/// # Safety
///
/// The struct is that of the function.
pub(crate) unsafe fn after_call(function: &str, args: *mut u8, buffer: usize) {
    let mut memory = memory();
    // SAFETY: guaranteed by the caller.
    unsafe {
        match function {
            BUFFER_DELETE => memory.release(buffer),
            BUFFER_IS_DELETED if memory.undeleted.contains(&buffer) => {
                (*args.cast::<PJRT_Buffer_IsDeleted_Args>()).is_deleted = false;
            }
            UPLOAD if !memory.free.is_empty() => {
                let new = (*args.cast::<PJRT_Client_BufferFromHostBuffer_Args>()).buffer.expose_provenance();
                let size = size_of_array(new);
                if let Some(at) = memory.free.iter().position(|block| block.size == size) {
                    let block = memory.free.remove(at);
                    memory.fill(&block.users, 0, new);
                }
            }
            EXECUTE if (*args.cast::<PJRT_LoadedExecutable_Execute_Args>()).num_devices == 1 => {
                if memory.blocks.is_empty() && state().late.is_empty() {
                    return;
                }
                let (_, arguments, output) = launched(args);
                for argument in arguments {
                    if memory.blocks.contains_key(&argument) && is_deleted(argument) {
                        let users = memory.blocks[&argument].users.clone();
                        memory.fill(&users, argument, output);
                    }
                }
            }
            _ => {}
        }
    }
}
