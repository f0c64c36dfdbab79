//! Faults of plugins that use host memory too long: executions that read it late, and outputs that are
//! written to it.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pjrt_sys::*;

use crate::table::{INNER, inner, state};

/// An argument of an execution.
#[derive(Clone)]
enum Argument {
    Buffer(usize),
    /// An array whose elements are in host memory: its address, type and dimensions.
    Late(usize, PJRT_Buffer_Type, Vec<i64>),
}

/// An execution that reads arguments in host memory late.
#[derive(Clone)]
struct Launch {
    program: usize,
    arguments: Vec<Argument>,
    device: usize,
}

#[derive(Default)]
struct Lent {
    client: usize,
    /// The host memory of buffers, if the host lent it without a copy.
    memory: HashMap<usize, usize>,
    /// The launches that outputs come from.
    launches: HashMap<usize, Launch>,
}

static LENT: LazyLock<Mutex<Lent>> = LazyLock::new(Mutex::default);

fn lent() -> MutexGuard<'static, Lent> {
    LENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn object<T>(address: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(address)
}

/// Describes an argument, whose elements may still be in host memory.
fn argument(buffer: usize) -> Argument {
    let Some(data) = state().late.get(&(buffer as i64)).copied() else { return Argument::Buffer(buffer) };
    let buffer = object::<PJRT_Buffer>(buffer);
    let (dims, _) = inner!(PJRT_Buffer_Dimensions PJRT_Buffer_Dimensions_Args { buffer: buffer });
    let (type_, _) = inner!(PJRT_Buffer_ElementType PJRT_Buffer_ElementType_Args { buffer: buffer });
    // SAFETY: the good plugin returned the array, which lives as long as the buffer.
    let dims = (0..dims.num_dims).map(|dim| unsafe { dims.dims.add(dim).read() }).collect();
    Argument::Late(data as usize, type_.type_, dims)
}

impl Argument {
    /// Returns a buffer with the present contents of the host's memory.
    fn now(&self, client: usize, device: usize) -> *mut PJRT_Buffer {
        let (data, type_, dims) = match self {
            Self::Buffer(buffer) => return object(*buffer),
            Self::Late(data, type_, dims) => (*data, *type_, dims),
        };
        let (args, _) = inner!(
            PJRT_Client_BufferFromHostBuffer PJRT_Client_BufferFromHostBuffer_Args {
                client: object::<PJRT_Client>(client),
                data: object(data),
                type_: type_,
                dims: dims.as_ptr(),
                num_dims: dims.len(),
                device: object::<PJRT_Device>(device),
            }
        );
        args.buffer
    }
}

/// Executes a program with the present contents of the host's memory, and writes the output to the
/// destination of a readback.
///
/// # Safety
///
/// The struct is that of a successful call of `PJRT_Buffer_ToHostBuffer`.
unsafe fn read_launch(client: usize, launch: &Launch, args: *mut u8) {
    // SAFETY: guaranteed by the caller. The good plugin's objects are still alive.
    unsafe {
        let read = &*args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
        if read.dst.is_null() {
            return;
        }
        inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: read.event });
        let now: Vec<_> =
            launch.arguments.iter().map(|argument| argument.now(client, launch.device)).collect();
        let mut outputs = [ptr::null_mut::<PJRT_Buffer>(); 64];
        let (lists, output_lists) = ([now.as_ptr()], [outputs.as_mut_ptr()]);
        let mut options = PJRT_ExecuteOptions::zeroed();
        inner!(PJRT_LoadedExecutable_Execute PJRT_LoadedExecutable_Execute_Args {
            executable: object::<PJRT_LoadedExecutable>(launch.program),
            options: &raw mut options,
            argument_lists: lists.as_ptr(),
            num_devices: 1,
            num_args: now.len(),
            output_lists: output_lists.as_ptr(),
        });
        let (copy, _) = inner!(PJRT_Buffer_ToHostBuffer PJRT_Buffer_ToHostBuffer_Args {
            src: outputs[0],
            dst: read.dst,
            dst_size: read.dst_size,
        });
        inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: copy.event });
    }
}

/// Performs an action after a successful call. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of an execution.
pub(crate) unsafe fn after(name: &str, words: &[String], args: *mut u8) -> bool {
    if name != "write_lent" {
        return false;
    }
    // SAFETY: guaranteed by the caller. Hosts of this example never free their memory.
    unsafe {
        let index = words[0].parse::<usize>().expect("an index");
        let args = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
        let buffer = (*args).argument_lists.read().add(index).read().expose_provenance();
        if let Some(data) = lent().memory.get(&buffer) {
            object::<u8>(*data).write_bytes(0x55, 4);
        }
    }
    true
}

/// Follows a successful call of the host.
///
/// # Safety
///
/// The struct is that of the function.
pub(crate) unsafe fn after_call(function: &str, args: *mut u8, buffer: usize) {
    const ZERO_COPY: u32 = 2;
    let mut lent = lent();
    // SAFETY: guaranteed by the caller.
    unsafe {
        match function {
            "PJRT_Client_BufferFromHostBuffer" => {
                let args = &*args.cast::<PJRT_Client_BufferFromHostBuffer_Args>();
                lent.client = args.client.expose_provenance();
                if args.host_buffer_semantics.0 >= ZERO_COPY {
                    lent.memory.insert(args.buffer.expose_provenance(), args.data.expose_provenance());
                }
            }
            "PJRT_LoadedExecutable_Execute" if !state().late.is_empty() => {
                let args = &*args.cast::<PJRT_LoadedExecutable_Execute_Args>();
                let list = args.argument_lists.read();
                let arguments: Vec<Argument> =
                    (0..args.num_args).map(|at| argument(list.add(at).read().expose_provenance())).collect();
                if arguments.iter().any(|argument| matches!(argument, Argument::Late(..))) {
                    let output = args.output_lists.read().read();
                    let (device, _) = inner!(PJRT_Buffer_Device PJRT_Buffer_Device_Args { buffer: output });
                    let (program, device) =
                        (args.executable.expose_provenance(), device.device.expose_provenance());
                    lent.launches.insert(output.expose_provenance(), Launch { program, arguments, device });
                }
            }
            "PJRT_Buffer_ToHostBuffer" => {
                if let Some(launch) = lent.launches.get(&buffer).cloned() {
                    read_launch(lent.client, &launch, args);
                }
            }
            "PJRT_Buffer_Destroy" => {
                lent.memory.remove(&buffer);
                lent.launches.remove(&buffer);
            }
            _ => {}
        }
    }
}
