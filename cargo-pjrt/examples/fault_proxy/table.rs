//! The function table that forwards with a fault, which contains the FFI of this example. Its accesses to
//! memory are those that a plugin with the fault would make.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use pjrt_sys::*;

use crate::fault::{Action, Condition, Fault, Path, Then, Value, args_of, name_of};
use crate::{
    bits, combined, elsewhere, executions, extension, lent, linked, memory, metadata, profiler, returned,
    special, threads,
};

pub(crate) type Function = unsafe extern "C" fn(*mut u8) -> *mut PJRT_Error;

pub(crate) struct Inner(pub(crate) *const PJRT_Api);
// SAFETY: the table lives until the process ends, and does not change.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

pub(crate) static INNER: LazyLock<Inner> = LazyLock::new(|| {
    let path = std::env::var("FAULT_PROXY_INNER").expect("FAULT_PROXY_INNER names the good plugin");
    // SAFETY: the good plugin is a PJRT plugin, and its function takes no arguments. The library stays
    // loaded.
    unsafe {
        let library = Box::leak(Box::new(libloading::Library::new(path).expect("the good plugin loads")));
        let entry: libloading::Symbol<'_, unsafe extern "C" fn() -> *const PJRT_Api> =
            library.get(b"GetPjrtApi\0").expect("the good plugin is one");
        Inner(entry())
    }
});

pub(crate) static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
    let text = std::env::var("FAULT_PROXY").ok().filter(|text| !text.is_empty())?;
    Some(Fault::parse(&text).unwrap_or_else(|error| panic!("FAULT_PROXY={text}: {error}")))
});

/// `true` if each occurrence of the fault is printed.
static NOTES: LazyLock<bool> = LazyLock::new(|| std::env::var_os("FAULT_PROXY_NOTES").is_some());

/// The errors of this plugin, and the history that faults depend on.
#[derive(Default)]
pub(crate) struct State {
    errors: HashSet<usize>,
    /// The functions that were called with each object.
    called: HashMap<usize, HashSet<usize>>,
    /// The functions that were called since the newest client was created.
    since: HashSet<usize>,
    /// The functions that failed since the newest client was created.
    failed: HashSet<usize>,
    destroyed_events: HashSet<usize>,
    clients: i64,
    /// The thread that created the newest client.
    creator: Option<ThreadId>,
    /// The client of the newest view.
    pub(crate) viewing: usize,
    pub(crate) last_error: usize,
    pub(crate) last_value: i64,
    pub(crate) dependency: usize,
    /// Arrays of the good plugin, and the changed copies that hosts receive. Each array has one copy.
    pub(crate) changed: HashMap<i64, i64>,
    /// The saved contents of fields that a fault leaves unwritten, by the address of the host's struct.
    pub(crate) kept: HashMap<usize, Vec<u8>>,
    /// Buffers, and the host memory that they are read from late.
    pub(crate) late: HashMap<i64, i64>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
static CALLS: AtomicU64 = AtomicU64::new(0);
/// The number of threads in the faulty function.
static INSIDE: AtomicU64 = AtomicU64::new(0);

/// The time for which a call waits for others, if a fault depends on calls at the same time.
pub(crate) const OVERLAP: Duration = Duration::from_millis(1);

/// A call of the faulty function.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// An error of this plugin.
#[repr(C)]
struct OwnError {
    vtable: *const PJRT_Error_FunctionTable,
    code: u32,
    message: String,
}

pub(crate) fn own_error(code: u32, message: impl Into<String>) -> *mut PJRT_Error {
    let error = OwnError { vtable: ptr::null(), code, message: message.into() };
    let raw = Box::into_raw(Box::new(error)).cast::<PJRT_Error>();
    state().errors.insert(raw.addr());
    raw
}

/// Calls the good plugin's function.
///
/// # Safety
///
/// The struct is that of the slot.
unsafe fn forward(slot: usize, args: *mut u8) -> *mut PJRT_Error {
    // SAFETY: the slot is a function of this type, or one that returns nothing, whose result is not used; see
    // `call`.
    unsafe {
        let function = match SLOTS.get(slot) {
            Some(slot) => INNER.0.byte_add(slot.offset).cast::<Option<Function>>().read(),
            None => extension::good(slot - SLOTS.len()),
        };
        function.expect("a function of the good plugin")(args)
    }
}

/// Calls a function of the good plugin with a struct of this plugin.
macro_rules! inner {
    ($slot:ident $args:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        let mut args = $args { $($field: $value,)* ..$args::zeroed() };
        #[allow(unused_unsafe, reason = "some callers are already in unsafe blocks")]
        // SAFETY: the struct is filled in as the interface requires.
        let error = unsafe { ((*INNER.0).$slot.expect("a function of the good plugin"))(&raw mut args) };
        (args, error)
    }};
}
pub(crate) use inner;

macro_rules! shims {
    ($($index:literal $slot:ident $args:ident $shim:ident $returns:ident;)*) => {
        $(shims!(@shim $index $args $shim $returns);)*

        fn table(inner: &PJRT_Api) -> PJRT_Api {
            PJRT_Api {
                struct_size: inner.struct_size,
                extension_start: inner.extension_start,
                pjrt_api_version: inner.pjrt_api_version,
                $($slot: if inner.$slot.is_some() { Some($shim) } else { None },)*
            }
        }
    };
    (@shim $index:literal $args:ident $shim:ident error) => {
        unsafe extern "C" fn $shim(args: *mut $args) -> *mut PJRT_Error {
            // SAFETY: the host calls this slot with this struct.
            unsafe { call($index, args.cast()) }
        }
    };
    (@shim $index:literal $args:ident $shim:ident nothing) => {
        unsafe extern "C" fn $shim(args: *mut $args) {
            // SAFETY: as above.
            unsafe { call($index, args.cast()) };
        }
    };
}
for_each_slot!(shims);

const ERROR_DESTROY: usize = 0;
const ERROR_MESSAGE: usize = 1;
const ERROR_GET_CODE: usize = 2;
const EVENT_DESTROY: usize = 5;
const EVENT_ON_READY: usize = 9;
const CLIENT_CREATE: usize = 10;
const CLIENT_DESTROY: usize = 11;
const CLIENT_DEVICES: usize = 15;
const BUFFER_DESTROY: usize = 58;
const BUFFER_TO_HOST: usize = 70;
const CREATE_VIEW: usize = 93;
const ERROR_FOR_EACH_PAYLOAD: usize = 132;

/// Handles a call of the host.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn call(slot: usize, args: *mut u8) -> *mut PJRT_Error {
    // SAFETY: the host calls this slot with this struct.
    let object = unsafe { object_of(args) };
    let fault = FAULT.as_ref().filter(|fault| fault.slot == Some(slot));
    let _inside = fault.map(|_| Inside::enter());
    threads::before_call(name_of(slot));
    linked::before_call(name_of(slot), object);
    // SAFETY: the host calls this slot with this struct.
    let happens = fault.is_some_and(|fault| unsafe { happens(fault, args, object) });
    {
        let mut state = state();
        if slot == CLIENT_CREATE {
            state.since.clear();
            state.failed.clear();
            state.clients += 1;
            state.creator = Some(std::thread::current().id());
        }
        state.clients -= i64::from(slot == CLIENT_DESTROY && object != 0);
        // Calls are counted per client. The calls that create clients are counted as long as no other
        // function is called.
        let counts_clients = FAULT.as_ref().is_some_and(|fault| fault.slot == Some(CLIENT_CREATE));
        let restart = if counts_clients { slot > CLIENT_DEVICES } else { slot == CLIENT_CREATE };
        if restart {
            CALLS.store(0, Ordering::SeqCst);
        }
        if slot == CREATE_VIEW {
            state.viewing = object;
        }
        state.since.insert(slot);
        state.called.entry(object).or_default().insert(slot);
        if name_of(slot).ends_with("_Destroy") {
            state.called.remove(&object);
            returned::destroyed(object);
            executions::destroyed(object);
        }
        if slot == BUFFER_DESTROY {
            state.late.remove(&(object as i64));
        }
        if slot == EVENT_DESTROY {
            state.destroyed_events.insert(object);
        }
    }
    let error = match fault.filter(|_| happens) {
        Some(fault) => {
            if *NOTES {
                eprintln!("an injected fault occurs");
            }
            // SAFETY: the host calls this slot with this struct.
            unsafe { faulty(fault, slot, args) }
        }
        None => {
            // SAFETY: the host calls this slot with this struct.
            let error = unsafe { executions::later(slot, args, object, good(slot, args, object)) };
            if slot == BUFFER_TO_HOST && error.is_null() {
                // SAFETY: the call succeeded.
                unsafe { special::read_late(args.cast()) };
            }
            if fault.is_some() {
                // SAFETY: as above.
                unsafe { remember(slot, args, error) };
            }
            error
        }
    };
    if !error.is_null() {
        state().failed.insert(slot);
    }
    if FAULT.is_some() && error.is_null() {
        // SAFETY: the call succeeded.
        unsafe {
            memory::after_call(name_of(slot), args, object);
            lent::after_call(name_of(slot), args, object);
            combined::after_call(name_of(slot), object);
            bits::after_call(name_of(slot), args, object);
        }
    }
    error
}

/// Remembers a value that a fault may return again.
///
/// # Safety
///
/// The struct is that of the slot.
unsafe fn remember(slot: usize, args: *mut u8, error: *mut PJRT_Error) {
    let words = FAULT.iter().flat_map(|fault| &fault.actions).find_map(|action| match action {
        Action::Special(name, words) if name == "stale" => Some(words),
        _ => None,
    });
    state().last_error = error.addr();
    if let Some(name) = words.and_then(|words| words.first()) {
        let path = field(slot, name);
        // SAFETY: the host calls this slot with this struct.
        state().last_value = unsafe { place(args, &path).map_or(0, |place| read(place, &path)) };
    }
}

/// Calls the good plugin, and handles errors of this plugin and callbacks.
///
/// # Safety
///
/// The struct is that of the slot.
unsafe fn good(slot: usize, args: *mut u8, object: usize) -> *mut PJRT_Error {
    let own = state().errors.contains(&object);
    // SAFETY: the host calls these slots with these structs. An error of this plugin is a box that it
    // allocated.
    unsafe {
        match slot {
            ERROR_DESTROY if own => {
                state().errors.remove(&object);
                let args = args.cast::<PJRT_Error_Destroy_Args>();
                drop(Box::from_raw((*args).error.cast::<OwnError>()));
                ptr::null_mut()
            }
            ERROR_MESSAGE if own => {
                let args = args.cast::<PJRT_Error_Message_Args>();
                let message = &(*(*args).error.cast::<OwnError>()).message;
                (*args).message = message.as_ptr().cast();
                (*args).message_size = message.len();
                ptr::null_mut()
            }
            ERROR_GET_CODE if own => {
                let args = args.cast::<PJRT_Error_GetCode_Args>();
                (*args).code = PJRT_Error_Code((*(*args).error.cast::<OwnError>()).code);
                ptr::null_mut()
            }
            ERROR_FOR_EACH_PAYLOAD if own => ptr::null_mut(),
            EVENT_ON_READY if uses_callbacks() => on_ready(args.cast(), Mode::Once),
            ERROR_DESTROY | ERROR_MESSAGE => {
                forward(slot, args);
                ptr::null_mut()
            }
            _ => {
                let places = memory::before_good(name_of(slot), args, object);
                let error = forward(slot, args);
                for (place, old) in places {
                    place.write(old);
                }
                error
            }
        }
    }
}

/// Returns the object of a call. In most Args structs it is the third word, which is the error in those for
/// errors.
///
/// # Safety
///
/// The struct is one that the host passed.
unsafe fn object_of(args: *mut u8) -> usize {
    let words = args.cast::<usize>();
    // SAFETY: an Args struct begins with its size.
    unsafe { if words.read() >= 3 * size_of::<usize>() { words.add(2).read() } else { 0 } }
}

/// Returns `true` if a fault depends on whether a callback of the host is running.
fn uses_callbacks() -> bool {
    let of_fault = |fault: &Fault| {
        let inside = fault.conditions.iter().any(|condition| matches!(condition, Condition::InsideCallback));
        inside
            || fault
                .actions
                .iter()
                .any(|action| matches!(action, Action::Special(name, _) if name == "forget_callbacks"))
    };
    FAULT.as_ref().is_some_and(of_fault)
}

/// Returns `true` if the fault occurs in this call.
///
/// # Safety
///
/// The struct is that of the fault's slot.
unsafe fn happens(fault: &Fault, args: *mut u8, object: usize) -> bool {
    for condition in &fault.conditions {
        let holds = match condition {
            Condition::Field { path, divisor, value, equal } => {
                // SAFETY: the host calls this slot with this struct.
                let old = unsafe { place(args, path).map(|place| read(place, path)) };
                old.is_some_and(|old| {
                    (divisor.map_or(old, |divisor| old.rem_euclid(divisor)) == *value) == *equal
                })
            }
            Condition::Call(wanted) => CALLS.fetch_add(1, Ordering::SeqCst) + 1 == *wanted,
            Condition::Clients(least) => state().clients >= *least,
            Condition::AtOnce => {
                // Calls that began at the same time are in the function together.
                std::thread::sleep(OVERLAP);
                INSIDE.load(Ordering::SeqCst) > 1
            }
            Condition::InAnotherMemory => elsewhere::is_in_another_memory(object),
            Condition::AnotherThread => {
                state().creator.is_some_and(|creator| creator != std::thread::current().id())
            }
            Condition::InsideCallback => DEPTH.get() > 0,
            Condition::After(slot) => state().called.get(&object).is_some_and(|called| called.contains(slot)),
            Condition::Since(slot) => state().since.contains(slot),
            Condition::Without(slot) => !state().since.contains(slot),
            Condition::Failed(slot) => state().failed.contains(slot),
            Condition::OfType(wanted) => {
                // SAFETY: the host calls this slot with this struct.
                let array = unsafe { array_of(fault.slot, args) };
                array.is_some_and(|array| type_and_rank(array).0 == *wanted)
            }
            Condition::OfRank(wanted) => {
                // SAFETY: as above.
                let array = unsafe { array_of(fault.slot, args) };
                array.is_some_and(|array| type_and_rank(array).1 == *wanted)
            }
            Condition::RankFrom(least) => {
                // SAFETY: as above.
                let array = unsafe { array_of(fault.slot, args) };
                array.is_some_and(|array| type_and_rank(array).1 >= *least)
            }
            Condition::Least(path, least) => {
                // SAFETY: as above.
                unsafe { place(args, path).is_some_and(|place| read(place, path) >= *least) }
            }
            Condition::OnAnotherDevice => {
                // SAFETY: as above.
                fault.slot.is_some_and(|slot| unsafe { elsewhere::is_on_another_device(slot, args, object) })
            }
        };
        if !holds {
            return false;
        }
    }
    true
}

/// Returns the array of a call, or the first argument of an execution.
///
/// # Safety
///
/// The struct is that of the slot, which is an execution or a function of arrays.
unsafe fn array_of(slot: Option<usize>, args: *mut u8) -> Option<*mut PJRT_Buffer> {
    // SAFETY: guaranteed by the caller.
    let array = unsafe {
        if slot.is_some_and(|slot| name_of(slot) == "PJRT_LoadedExecutable_Execute") {
            let execute = &*args.cast::<PJRT_LoadedExecutable_Execute_Args>();
            if execute.num_args == 0 { ptr::null_mut() } else { execute.argument_lists.read().read() }
        } else {
            ptr::with_exposed_provenance_mut(object_of(args))
        }
    };
    Some(array).filter(|array| !array.is_null())
}

/// Returns the element type and the number of dimensions of an array of the good plugin.
pub(crate) fn type_and_rank(array: *mut PJRT_Buffer) -> (i64, i64) {
    let (type_, _) = inner!(PJRT_Buffer_ElementType PJRT_Buffer_ElementType_Args { buffer: array });
    let (dims, _) = inner!(PJRT_Buffer_Dimensions PJRT_Buffer_Dimensions_Args { buffer: array });
    (i64::from(type_.type_.0), dims.num_dims as i64)
}

/// The lowest address that can be mapped.
const FIRST_PAGE: usize = 4096;

/// Returns the address of a field, or `None` if the host's struct ends before it or a pointer on the path is
/// null.
///
/// # Safety
///
/// The struct is that of the fault's slot.
pub(crate) unsafe fn place(args: *mut u8, path: &Path) -> Option<*mut u8> {
    // SAFETY: an Args struct begins with its size. Within it, fields are at the offsets of the layout.
    unsafe {
        if args.cast::<usize>().read() < path.field.end {
            return None;
        }
        let field = args.add(path.field.offset);
        // The pointer of an empty array may be dangling, as Rust's are.
        let target = || Some(field.cast::<*mut u8>().read()).filter(|target| target.addr() >= FIRST_PAGE);
        match &path.then {
            Then::Nothing => Some(field),
            Then::Field(inner, is_sized) => {
                let target = target()?;
                let has_field = !is_sized || target.cast::<usize>().read() >= inner.end;
                has_field.then(|| target.add(inner.offset))
            }
            Then::Element(index) => Some(target()?.add(index * 8)),
        }
    }
}

fn width(path: &Path) -> usize {
    match &path.then {
        Then::Nothing => path.field.end - path.field.offset,
        Then::Field(inner, _) => inner.end - inner.offset,
        Then::Element(_) => 8,
    }
}

/// Reads a field.
///
/// # Safety
///
/// The address is that of the field of this path.
pub(crate) unsafe fn read(place: *mut u8, path: &Path) -> i64 {
    // SAFETY: the address is that of a field of this width.
    unsafe {
        match width(path) {
            1 => i64::from(place.read()),
            4 => i64::from(place.cast::<i32>().read_unaligned()),
            _ => place.cast::<i64>().read_unaligned(),
        }
    }
}

/// Writes a field.
///
/// # Safety
///
/// The address is that of the field of this path.
pub(crate) unsafe fn write(place: *mut u8, path: &Path, value: i64) {
    // SAFETY: the address is that of a field of this width.
    unsafe {
        match width(path) {
            1 => place.write(value as u8),
            4 => place.cast::<i32>().write_unaligned(value as i32),
            _ => place.cast::<i64>().write_unaligned(value),
        }
    }
}

impl Value {
    fn over(&self, old: i64) -> i64 {
        static ZEROS: OnceLock<usize> = OnceLock::new();
        match self {
            Self::Number(number) => *number,
            Self::Plus(more) => old + more,
            Self::Zeros => *ZEROS.get_or_init(|| Vec::leak(vec![0_u8; 32 << 20]).as_ptr().addr()) as i64,
            Self::Scratch => Vec::leak(vec![0_u8; 1 << 20]).as_mut_ptr().expose_provenance() as i64,
            Self::Text(text) => text.clone().leak().as_ptr().addr() as i64,
            Self::Never | Self::Complete => event(matches!(self, Self::Complete)).addr() as i64,
        }
    }
}

/// Creates an event of the good plugin.
pub(crate) fn event(complete: bool) -> *mut PJRT_Event {
    let (args, _) = inner!(PJRT_Event_Create PJRT_Event_Create_Args {});
    if complete {
        inner!(PJRT_Event_Set PJRT_Event_Set_Args { event: args.event });
    }
    args.event
}

/// Performs a call with the fault.
///
/// # Safety
///
/// The struct is that of the slot.
unsafe fn faulty(fault: &Fault, slot: usize, args: *mut u8) -> *mut PJRT_Error {
    // SAFETY: the host calls this slot with this struct. Fields that are changed are restored.
    unsafe {
        let object = object_of(args);
        let mut restore = Vec::new();
        for action in &fault.actions {
            match action {
                Action::Give(path, value) => {
                    if let Some(place) = place(args, path) {
                        let old = read(place, path);
                        write(place, path, value.over(old));
                        restore.push((place, path, old));
                    }
                }
                Action::Fail(code) => return own_error(*code, "an injected fault"),
                Action::Skip => return ptr::null_mut(),
                Action::Special(name, words) => {
                    if let Some(error) = special::before(name, words, args) {
                        return error;
                    }
                }
                _ => {}
            }
        }
        let mut error = good(slot, args, object);
        for (place, path, old) in restore {
            write(place, path, old);
        }
        for action in &fault.actions {
            match action {
                Action::Set(path, value) if error.is_null() => {
                    if let Some(place) = place(args, path) {
                        write(place, path, value.over(read(place, path)));
                    }
                }
                Action::Accept if !error.is_null() => error = ptr::null_mut(),
                Action::Code(_) | Action::NoMessage if !error.is_null() => {
                    let (code, message) = parts(error);
                    error = match action {
                        Action::Code(other) => own_error(*other, message),
                        _ => own_error(code, ""),
                    };
                }
                Action::Special(name, words) => {
                    error = special::after(name, words, slot, args, error);
                }
                _ => {}
            }
        }
        error
    }
}

/// Returns the code and the message of an error.
///
/// # Safety
///
/// The error is the good plugin's or this plugin's, and is not destroyed.
unsafe fn parts(error: *mut PJRT_Error) -> (u32, String) {
    if state().errors.contains(&error.addr()) {
        // SAFETY: this is an error of this plugin.
        let own = unsafe { &*error.cast::<OwnError>() };
        return (own.code, own.message.clone());
    }
    let (code, _) = inner!(PJRT_Error_GetCode PJRT_Error_GetCode_Args { error: error });
    let mut message = PJRT_Error_Message_Args { error, ..PJRT_Error_Message_Args::zeroed() };
    // SAFETY: this is an error of the good plugin.
    unsafe {
        ((*INNER.0).PJRT_Error_Message.expect("a function of the good plugin"))(&raw mut message);
        let bytes = std::slice::from_raw_parts(message.message.cast::<u8>(), message.message_size);
        (code.code.0, String::from_utf8_lossy(bytes).into_owned())
    }
}

pub(crate) fn field(slot: usize, name: &str) -> Path {
    let field = args_of(slot).field(name).copied().expect("a field of the struct");
    Path { field, then: Then::Nothing }
}

/// The way in which a callback of the host is called.
pub(crate) enum Mode {
    Once,
    Twice,
    /// Twice if there is an error.
    ErrorTwice,
    Never,
    NoError,
}

struct Wrapped {
    callback: PJRT_Event_OnReadyCallback,
    user_arg: *mut c_void,
    event: usize,
    mode: Mode,
}

/// Registers a callback of this plugin in place of the host's.
///
/// # Safety
///
/// The struct is one that the host passed.
pub(crate) unsafe fn on_ready(args: *mut PJRT_Event_OnReady_Args, mode: Mode) -> *mut PJRT_Error {
    // SAFETY: the struct is one that the host passed.
    unsafe {
        let args = *args;
        state().destroyed_events.remove(&args.event.addr());
        let wrapped =
            Wrapped { callback: args.callback, user_arg: args.user_arg, event: args.event.addr(), mode };
        let (_, error) = inner!(PJRT_Event_OnReady PJRT_Event_OnReady_Args {
            event: args.event,
            callback: Some(called_back),
            user_arg: Box::into_raw(Box::new(wrapped)).cast(),
        });
        error
    }
}

/// The callback that replaces the host's.
///
/// # Safety
///
/// The good plugin calls this function once, with the box of `on_ready`.
unsafe extern "C" fn called_back(error: *mut PJRT_Error, user_arg: *mut c_void) {
    // SAFETY: the argument is the box of `on_ready`, and the good plugin calls this function only once.
    let wrapped = unsafe { Box::from_raw(user_arg.cast::<Wrapped>()) };
    let forgotten = FAULT.as_ref().is_some_and(|fault| {
        fault
            .actions
            .iter()
            .any(|action| matches!(action, Action::Special(name, _) if name == "forget_callbacks"))
    }) && state().destroyed_events.contains(&wrapped.event);
    let Some(callback) = wrapped.callback.filter(|_| !forgotten) else { return };
    DEPTH.set(DEPTH.get() + 1);
    // SAFETY: these are the host's callback and its argument.
    unsafe {
        match wrapped.mode {
            Mode::Never => {}
            Mode::Once => callback(error, wrapped.user_arg),
            Mode::Twice => {
                callback(error, wrapped.user_arg);
                callback(ptr::null_mut(), wrapped.user_arg);
            }
            Mode::ErrorTwice => {
                callback(error, wrapped.user_arg);
                if !error.is_null() {
                    callback(ptr::null_mut(), wrapped.user_arg);
                }
            }
            Mode::NoError => callback(ptr::null_mut(), wrapped.user_arg),
        }
    }
    DEPTH.set(DEPTH.get() - 1);
}

/// Creates the table, with the fault if it is one of the table.
fn exported() -> PJRT_Api {
    // SAFETY: this is the good plugin's table.
    let mut table = table(unsafe { &*INNER.0 });
    if FAULT.as_ref().and_then(|fault| fault.slot).is_some_and(|slot| slot >= SLOTS.len()) {
        // SAFETY: this is the good plugin's chain.
        table.extension_start = unsafe { extension::copies(table.extension_start, None) };
    }
    let Some(Fault { slot: None, actions, .. }) = FAULT.as_ref() else { return table };
    let Some(Action::Special(name, words)) = actions.first() else { return table };
    let number = |word: &str| {
        word.split_once('=').and_then(|(_, number)| number.parse::<i64>().ok()).expect("a number")
    };
    match name.as_str() {
        "set" if words[0].starts_with("major") => {
            table.pjrt_api_version.major_version = number(&words[0]) as i32
        }
        "set" if words[0].starts_with("minor") => {
            table.pjrt_api_version.minor_version = number(&words[0]) as i32
        }
        "set" => table.struct_size = number(&words[0]) as usize,
        "null" => {
            let slot = SLOTS.iter().find(|slot| slot.name == words[0]).expect("a function");
            // SAFETY: the slot is a nullable function of the table.
            unsafe { (&raw mut table).byte_add(slot.offset).cast::<usize>().write(0) };
        }
        "all_null" => {
            // SAFETY: all slots are nullable functions of the table, and are contiguous.
            unsafe { (&raw mut table).byte_add(SLOTS[0].offset).cast::<usize>().write_bytes(0, SLOTS.len()) };
        }
        "exit" => {
            // The program inherits the standard output.
            if let Some((program, arguments)) = words.split_first() {
                drop(std::process::Command::new(program).args(arguments).spawn());
            }
            std::process::exit(0)
        }
        "crash" => std::process::abort(),
        "extension_null" => {
            // SAFETY: this is the good plugin's chain.
            table.extension_start =
                unsafe { extension::copies(table.extension_start, Some((&words[0], &words[1]))) };
        }
        "shared_metadata" => {
            // SAFETY: this is the good plugin's chain, and then a copy of it.
            table.extension_start = unsafe { extension::copies(table.extension_start, None) };
            // SAFETY: as above.
            unsafe { metadata::with_fault(table.extension_start) };
        }
        "profiler" => {
            // SAFETY: this is the good plugin's chain, and then a copy of it.
            table.extension_start = unsafe { extension::copies(table.extension_start, None) };
            // SAFETY: as above.
            unsafe { profiler::with_fault(table.extension_start, &words[0]) };
        }
        "extension" => {
            let size = if words[0] == "small" { 8 } else { size_of::<PJRT_Extension_Base>() };
            let extension = |next| {
                let base =
                    PJRT_Extension_Base { struct_size: size, type_: PJRT_Extension_Type_Example, next };
                Box::into_raw(Box::new(base))
            };
            table.extension_start = extension(extension(table.extension_start));
        }
        _ => {}
    }
    table
}

/// The entry point that hosts look up.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "hosts look up this name")]
extern "C" fn GetPjrtApi() -> *const PJRT_Api {
    static TABLE: OnceLock<usize> = OnceLock::new();
    let fresh = || Box::into_raw(Box::new(exported()));
    let is = |wanted: &str| {
        FAULT.as_ref().is_some_and(|fault| {
            fault.slot.is_none()
                && matches!(fault.actions.first(), Some(Action::Special(name, _)) if name == wanted)
        })
    };
    if is("nothing") {
        return ptr::null();
    }
    if is("fresh") {
        return fresh();
    }
    ptr::with_exposed_provenance(*TABLE.get_or_init(|| fresh().expose_provenance()))
}

/// `c_char` is treated as a byte.
const _: () = assert!(size_of::<c_char>() == 1);
