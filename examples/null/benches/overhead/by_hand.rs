//! Functions of the C API that are written by hand, as the author of a plugin in C would write them for one host: they neither
//! check struct sizes nor catch panics. They do what every plugin must do: they check arguments against the program, share
//! storage with the executions that read it, and take a share under a lock, because another thread may delete the buffer.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pjrt_sys::*;

struct Buffer {
    dims: Vec<i64>,
    element_type: PJRT_Buffer_Type,
    /// The data; `None` after the buffer is deleted.
    storage: Mutex<Option<Arc<Storage>>>,
    /// `true` if the data is ready, which it always is in this program.
    ready: AtomicUsize,
    device: *mut PJRT_Device,
}

enum Storage {
    /// The address of the host's memory, and the event that is complete when the plugin no longer uses it.
    Lent(usize, Arc<AtomicBool>),
    Zeros([u8; 16]),
}

impl Drop for Storage {
    fn drop(&mut self) {
        match self {
            Self::Lent(address, released) => {
                std::hint::black_box(*address);
                released.store(true, Ordering::Release);
            }
            Self::Zeros(zeros) => drop(std::hint::black_box(*zeros)),
        }
    }
}

struct Event {
    done: Option<Arc<AtomicBool>>,
}

struct Program {
    parameters: Vec<(PJRT_Buffer_Type, Vec<i64>)>,
}

static ONLY_CLIENT: u64 = 0;
static ONLY_DEVICE: u64 = 0;

fn device() -> *mut PJRT_Device {
    (&raw const ONLY_DEVICE).cast_mut().cast()
}

/// Returns a dangling pointer in place of a new error. No call of this program fails.
fn refuse() -> *mut PJRT_Error {
    ptr::dangling_mut()
}

unsafe extern "C" fn client_create(args: *mut PJRT_Client_Create_Args) -> *mut PJRT_Error {
    // SAFETY: the caller passes a whole struct, as all callers here do.
    unsafe { (*args).client = (&raw const ONLY_CLIENT).cast_mut().cast() };
    ptr::null_mut()
}

unsafe extern "C" fn client_devices(args: *mut PJRT_Client_Devices_Args) -> *mut PJRT_Error {
    let devices = Box::leak(Box::new([device()]));
    // SAFETY: as above.
    unsafe {
        (*args).devices = devices.as_ptr();
        (*args).num_devices = 1;
    }
    ptr::null_mut()
}

unsafe extern "C" fn client_compile(args: *mut PJRT_Client_Compile_Args) -> *mut PJRT_Error {
    // SAFETY: as above; the program is text.
    let text = unsafe {
        let program = &*(*args).program;
        std::slice::from_raw_parts(program.code.cast::<u8>(), program.code_size)
    };
    // The list of parameters ends with the first closing parenthesis.
    let list = text.split(|byte| *byte == b')').next().unwrap();
    let number = list.iter().filter(|byte| **byte == b'%').count();
    let program = Program { parameters: vec![(PJRT_Buffer_Type_F32, vec![4]); number] };
    // SAFETY: as above.
    unsafe { (*args).executable = Box::into_raw(Box::new(program)).cast() };
    ptr::null_mut()
}

unsafe extern "C" fn buffer_from_host(args: *mut PJRT_Client_BufferFromHostBuffer_Args) -> *mut PJRT_Error {
    // SAFETY: as above; the host lends its memory until the event is complete.
    unsafe {
        let args = &mut *args;
        let dims = std::slice::from_raw_parts(args.dims, args.num_dims).to_vec();
        let size: i64 = dims.iter().product();
        if args.device != device() || size < 0 || args.data.is_null() {
            return refuse();
        }
        let released = Arc::new(AtomicBool::new(false));
        let storage = Arc::new(Storage::Lent(args.data.addr(), Arc::clone(&released)));
        args.buffer = new_buffer(dims, args.type_, storage);
        args.done_with_host_buffer = Box::into_raw(Box::new(Event { done: Some(released) })).cast();
    }
    ptr::null_mut()
}

fn new_buffer(dims: Vec<i64>, element_type: PJRT_Buffer_Type, storage: Arc<Storage>) -> *mut PJRT_Buffer {
    let (storage, ready) = (Mutex::new(Some(storage)), AtomicUsize::new(1));
    Box::into_raw(Box::new(Buffer { dims, element_type, storage, ready, device: device() })).cast()
}

unsafe extern "C" fn buffer_destroy(args: *mut PJRT_Buffer_Destroy_Args) -> *mut PJRT_Error {
    // SAFETY: as above; the buffer came from `new_buffer`.
    unsafe {
        if !(*args).buffer.is_null() {
            drop(Box::from_raw((*args).buffer.cast::<Buffer>()));
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn buffer_element_type(args: *mut PJRT_Buffer_ElementType_Args) -> *mut PJRT_Error {
    // SAFETY: as above.
    unsafe { (*args).type_ = (*(*args).buffer.cast::<Buffer>()).element_type };
    ptr::null_mut()
}

unsafe extern "C" fn buffer_ready_event(args: *mut PJRT_Buffer_ReadyEvent_Args) -> *mut PJRT_Error {
    // SAFETY: as above.
    unsafe {
        let buffer = &*(*args).buffer.cast::<Buffer>();
        if buffer.storage.lock().unwrap().is_none() || buffer.ready.load(Ordering::Acquire) == 0 {
            return refuse();
        }
        (*args).event = Box::into_raw(Box::new(Event { done: None })).cast();
    }
    ptr::null_mut()
}

unsafe extern "C" fn event_destroy(args: *mut PJRT_Event_Destroy_Args) -> *mut PJRT_Error {
    // SAFETY: as above; the event came from a function here.
    unsafe {
        if !(*args).event.is_null() {
            drop(Box::from_raw((*args).event.cast::<Event>()).done);
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn execute(args: *mut PJRT_LoadedExecutable_Execute_Args) -> *mut PJRT_Error {
    // SAFETY: as above; lists and numbers describe arrays of buffers.
    unsafe {
        let args = &mut *args;
        let program = &*args.executable.cast::<Program>();
        if args.num_devices != 1 || args.num_args != program.parameters.len() {
            return refuse();
        }
        let list = std::slice::from_raw_parts(*args.argument_lists, args.num_args);
        // The program would read these, perhaps after this call has returned.
        let mut inputs = Vec::with_capacity(list.len());
        for (pointer, (element_type, dims)) in list.iter().zip(&program.parameters) {
            let buffer = &*pointer.cast::<Buffer>();
            if buffer.ready.load(Ordering::Acquire) == 0
                || buffer.device != device()
                || buffer.element_type != *element_type
                || buffer.dims != *dims
            {
                return refuse();
            }
            match &*buffer.storage.lock().unwrap() {
                Some(storage) => inputs.push(Arc::clone(storage)),
                None => return refuse(),
            }
        }
        drop(std::hint::black_box(inputs));
        let zeros = Arc::new(Storage::Zeros([0; 16]));
        **args.output_lists = new_buffer(vec![4], PJRT_Buffer_Type_F32, zeros);
        if !args.device_complete_events.is_null() {
            *args.device_complete_events = Box::into_raw(Box::new(Event { done: None })).cast();
        }
    }
    ptr::null_mut()
}

/// Returns a table that contains only these functions.
pub(crate) fn table() -> &'static PJRT_Api {
    let mut table = PJRT_Api::zeroed();
    table.pjrt_api_version = PJRT_Api_Version {
        major_version: PJRT_API_MAJOR as c_int,
        minor_version: PJRT_API_MINOR as c_int,
        ..PJRT_Api_Version::zeroed()
    };
    table.PJRT_Client_Create = Some(client_create);
    table.PJRT_Client_Devices = Some(client_devices);
    table.PJRT_Client_Compile = Some(client_compile);
    table.PJRT_Client_BufferFromHostBuffer = Some(buffer_from_host);
    table.PJRT_Buffer_Destroy = Some(buffer_destroy);
    table.PJRT_Buffer_ElementType = Some(buffer_element_type);
    table.PJRT_Buffer_ReadyEvent = Some(buffer_ready_event);
    table.PJRT_Event_Destroy = Some(event_destroy);
    table.PJRT_LoadedExecutable_Execute = Some(execute);
    Box::leak(Box::new(table))
}
