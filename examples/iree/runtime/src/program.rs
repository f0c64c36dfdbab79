//! Loaded programs.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::array::Array;
use crate::device::Device;
use crate::fence::Fence;
use crate::handle::Handle;
use crate::instance::instance;
use crate::status::{Code as StatusCode, Error, Result, check};
use crate::strings::{text_of, view};

/// The code of a program, loaded for a device.
pub struct Program {
    device: Device,
    function: sys::iree_vm_function_t,
    /// The state of the program. It is not thread-safe, so calls are started one at a time.
    context: Mutex<Handle<sys::iree_vm_context_t>>,
    is_waiting: bool,
    _module: Handle<sys::iree_vm_module_t>,
}

// SAFETY: The function consists of pointers into the module, which is immutable. The context is used under its lock.
unsafe impl Send for Program {}
// SAFETY: As above.
unsafe impl Sync for Program {}

/// A call that a device executes.
pub struct Call {
    /// The results. They have memory, but may not be written yet.
    pub results: Vec<Array>,
    /// The point in time at which the call is done.
    pub done: Fence,
}

impl Program {
    /// The flags of the compiler that programs need: their calls wait for fences and signal fences.
    pub const COMPILER_FLAGS: [&'static str; 1] = ["--iree-execution-model=async-external"];

    /// Loads code of the compiler. The function that [`call`](Self::call) calls is `main`.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the bytes are not code of the compiler, INCOMPATIBLE or another error if the code does not
    /// fit to the runtime or the device, NOT_FOUND if it has no function `main`, or FAILED_PRECONDITION if it was compiled
    /// without [these flags](Self::COMPILER_FLAGS).
    pub fn load(device: &Device, code: &[u8]) -> Result<Self> {
        let module = module(code)?;
        let mut function = sys::iree_vm_function_t::default();
        let export = sys::iree_vm_function_linkage_e_IREE_VM_FUNCTION_LINKAGE_EXPORT;
        let mut modules = [device.module(), module.as_ptr()];
        let mut context = ptr::null_mut();
        // SAFETY: Instance and modules are alive, the list has this length, and the pointers are valid for writes. The
        // attribute is alive as long as the module. The context has references of its own to the modules, and belongs to the
        // handle.
        let context = unsafe {
            let name = view("main");
            let (instance, count) = (instance()?.as_ptr(), modules.len());
            check(sys::iree_vm_module_lookup_function_by_name(module.as_ptr(), export, name, &mut function))?;
            let model = sys::iree_vm_function_lookup_attr_by_name(&function, view("iree.abi.model"));
            if text_of(model.data, model.size) != "coarse-fences" {
                let message = format!("the code was compiled without {}", Self::COMPILER_FLAGS[0]);
                return Err(Error::new(StatusCode::FailedPrecondition, message));
            }
            check(sys::iree_vm_context_create_with_modules(
                instance,
                0,
                count,
                modules.as_mut_ptr(),
                allocator(),
                &mut context,
            ))?;
            Handle::own(context)?
        };
        let is_waiting = imports(&module, "hal.fence.await")?;
        Ok(Self {
            device: device.clone(),
            function,
            context: Mutex::new(context),
            is_waiting,
            _module: module,
        })
    }

    /// Returns `true` if [`call`](Self::call) may wait for the device, because the program needs results of the device in order
    /// to continue.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Starts a call. The device begins when the arguments are written. The function returns before the call is done, unless the
    /// program needs results of the device in order to continue, for example in the condition of a loop.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the arguments are not those of the program, RESOURCE_EXHAUSTED if there is not enough
    /// memory, or any other error that prevents the start. Errors that occur later are those of [`Call::done`].
    pub fn call(&self, arguments: &[&Array]) -> Result<Call> {
        let pending: Vec<&Fence> = arguments.iter().filter_map(|argument| argument.pending()).collect();
        let (wait, done) = (Fence::join(&pending)?, Fence::new(&self.device)?);
        let inputs = list(arguments.len() + 2)?;
        for argument in arguments {
            // SAFETY: The view is alive; the reference that is created belongs to the list.
            unsafe { push(&inputs, sys::iree_hal_buffer_view_retain_ref(argument.view().as_ptr()))? };
        }
        for fence in [&wait, &done] {
            // SAFETY: As above.
            unsafe { push(&inputs, sys::iree_hal_fence_retain_ref(fence.as_ptr()))? };
        }
        let outputs = list(4)?;
        {
            let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: Context and lists are alive, the function is one of a module of the context, and no other thread uses the
            // context. The call holds references to its arguments as long as the device needs them.
            unsafe {
                check(sys::iree_vm_invoke(
                    context.as_ptr(),
                    self.function,
                    0,
                    ptr::null(),
                    inputs.as_ptr(),
                    outputs.as_ptr(),
                    allocator(),
                ))?;
            }
        }
        // SAFETY: The list is alive.
        let count = unsafe { sys::iree_vm_list_size(outputs.as_ptr()) };
        let result = |index| {
            // SAFETY: The list is alive and has this index. The reference that is created belongs to the handle.
            let view =
                unsafe { Handle::own(sys::iree_vm_list_get_buffer_view_retain(outputs.as_ptr(), index)) };
            view.map(|view| Array::of_view(&self.device, view, Some(done.clone())))
        };
        Ok(Call { results: (0..count).map(result).collect::<Result<_>>()?, done })
    }
}

/// Returns whether a module calls this function of another module.
fn imports(module: &Handle<sys::iree_vm_module_t>, name: &str) -> Result<bool> {
    let mut function = sys::iree_vm_function_t::default();
    let import = sys::iree_vm_function_linkage_e_IREE_VM_FUNCTION_LINKAGE_IMPORT;
    // SAFETY: Module and name are alive, and the pointer is valid for writes.
    let found = unsafe {
        let (module, name) = (module.as_ptr(), view(name));
        check(sys::iree_vm_module_lookup_function_by_name(module, import, name, &mut function))
    };
    match found {
        Ok(()) => Ok(true),
        Err(error) if error.code() == StatusCode::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a list of values of any type.
fn list(capacity: usize) -> Result<Handle<sys::iree_vm_list_t>> {
    let mut list = ptr::null_mut();
    // SAFETY: The pointer is valid for writes. The new list belongs to the handle.
    unsafe {
        check(sys::iree_vm_list_create(
            sys::iree_vm_type_def_t::default(),
            capacity,
            allocator(),
            &mut list,
        ))?;
        Handle::own(list)
    }
}

/// Adds a reference to a list.
///
/// # Safety
///
/// The reference must be valid. It belongs to the list.
unsafe fn push(list: &Handle<sys::iree_vm_list_t>, mut value: sys::iree_vm_ref_t) -> Result<()> {
    // SAFETY: List and reference are alive, and the list takes the reference.
    let pushed = unsafe { check(sys::iree_vm_list_push_ref_move(list.as_ptr(), &mut value)) };
    // SAFETY: The reference is null if the list has taken it.
    unsafe { sys::iree_vm_ref_release(&mut value) };
    pushed
}

/// A part of code. Constants in code are aligned to it, so that devices can read them in place.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Chunk([u8; 64]);

/// The code of a module, which the module and this crate share.
struct Code {
    chunks: Vec<Chunk>,
    /// `true` if the module has given up its share.
    is_freed: AtomicBool,
}

/// Creates the module of code, of which it owns a copy.
fn module(bytes: &[u8]) -> Result<Handle<sys::iree_vm_module_t>> {
    // First, because an error must not leave a share of the code behind.
    let instance = instance()?.as_ptr();
    let mut chunks = vec![Chunk([0; 64]); bytes.len().div_ceil(64)];
    for (chunk, bytes) in chunks.iter_mut().zip(bytes.chunks(64)) {
        chunk.0[..bytes.len()].copy_from_slice(bytes);
    }
    let code = Arc::new(Code { chunks, is_freed: AtomicBool::new(false) });
    let contents =
        sys::iree_const_byte_span_t { data: code.chunks.as_ptr().cast(), data_length: bytes.len() };
    let share = Arc::into_raw(Arc::clone(&code));
    let archive = sys::iree_allocator_t { self_: share.cast_mut().cast(), ctl: Some(free_code) };
    let mut module = ptr::null_mut();
    // SAFETY: The instance is alive and the pointer valid for writes. The bytes are valid until the module calls `free_code`,
    // when it is destroyed. The new module belongs to the handle.
    unsafe {
        let created =
            sys::iree_vm_bytecode_module_create(instance, 0, contents, archive, allocator(), &mut module);
        let created = check(created).and_then(|()| Handle::own(module));
        if created.is_err() && !code.is_freed.load(Ordering::Acquire) {
            // IREE has destroyed no module that would have given up its share.
            drop(Arc::from_raw(share));
        }
        created.map_err(|error| Error::new(error.code(), format!("the code cannot be loaded: {error}")))
    }
}

/// The allocator that frees the code of a module.
unsafe extern "C" fn free_code(
    code: *mut c_void,
    command: sys::iree_allocator_command_t,
    _: *const c_void,
    _: *mut *mut c_void,
) -> sys::iree_status_t {
    if command == sys::iree_allocator_command_e_IREE_ALLOCATOR_COMMAND_FREE {
        // SAFETY: `module` made the pointer from a share of this type, and the module frees its code once.
        let code = unsafe { Arc::from_raw(code.cast::<Code>()) };
        code.is_freed.store(true, Ordering::Release);
    }
    ptr::null_mut()
}
