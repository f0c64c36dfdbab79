//! A loaded plugin and its function table.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pjrt_sys::*;

use super::error::{self, Error, Result};
use super::values::{NamedValue, named_values};
use super::{extension, fence};

/// A loaded plugin. It stays loaded until the process ends, as in hosts that have run a program, because
/// plugins have threads and exit handlers.
#[derive(Clone, Copy)]
pub struct Plugin {
    pub(crate) table: *const PJRT_Api,
}

// SAFETY: the table belongs to the plugin, lives until the process ends, and may be used on every thread.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

/// The reason why a shared library cannot be used as a plugin.
#[derive(Debug)]
pub enum LoadError {
    /// The dynamic loader refused the library, with this message.
    Open(String),
    /// The library exports no function `GetPjrtApi`.
    NoEntry(String),
    /// `GetPjrtApi` returned a null pointer, or a table that is too small to have a version.
    NoTable(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(why) => write!(f, "cannot load the library: {why}"),
            Self::NoEntry(why) => write!(
                f,
                "not a PJRT plugin: the library exports no function GetPjrtApi ({why}). With pjrt-plugin, #[pjrt_plugin] exports it from a \
                 crate of the type cdylib"
            ),
            Self::NoTable(what) => {
                write!(f, "GetPjrtApi returned {what}; expected a pointer to a PJRT_Api that does not change")
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// The state of a slot of the table, as far as it is known without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// The table ends before the slot: the plugin is older than the function.
    Absent,
    /// A null pointer.
    Null,
    /// A function.
    Function,
}

/// An extension in the plugin's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionInfo {
    /// The type, one of `PJRT_Extension_Type`.
    pub type_: u32,
    /// The size of the struct, as the plugin reports it.
    pub struct_size: usize,
}

impl ExtensionInfo {
    /// Returns the name of the type in the C header, or `None` if the header does not have it.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        EXTENSION_NAMES.get(self.type_ as usize).copied()
    }
}

/// The names of `PJRT_Extension_Type`, in order.
const EXTENSION_NAMES: &[&str] = &[
    "Gpu_Custom_Call",
    "Profiler",
    "Custom_Partitioner",
    "Stream",
    "Layouts",
    "FFI",
    "MemoryDescriptions",
    "Triton",
    "RawBuffer",
    "PhaseCompile",
    "Example",
    "Unknown",
    "CrossHostTransfers",
    "ExecutableMetadata",
    "Callback",
    "HostAllocator",
    "TpuTopology",
    "TpuExecutable",
    "Megascale",
    "Shardings",
    "AbiVersion",
    "Collectives",
    "MultiSlice",
    "HostMemoryAllocator",
    "XlaTransform",
];

/// For each slot, whether it was called since the last [`take_called`].
static CALLED: [AtomicBool; SLOTS.len()] = [const { AtomicBool::new(false) }; SLOTS.len()];

/// Returns the functions that were called since the last call of this function, on any thread and any plugin.
pub(crate) fn take_called() -> Vec<&'static str> {
    let called = SLOTS.iter().zip(&CALLED).filter(|(_, called)| called.swap(false, Ordering::Relaxed));
    called.map(|(slot, _)| slot.name).chain(extension::take_called()).collect()
}

const ATTRIBUTES: &str = "PJRT_Plugin_Attributes";

/// The largest credible length of the chain of extensions. A longer chain is a cycle.
const MAX_EXTENSIONS: usize = 256;

/// The Args struct of a slot.
pub(crate) trait SlotArgs: SizedStruct {
    /// The index of the slot in the table.
    const INDEX: usize;
}

macro_rules! slot_args {
    ($($index:literal $slot:ident $args:ident $shim:ident $returns:ident;)*) => {
        $(impl SlotArgs for $args { const INDEX: usize = $index; })*
    };
}
for_each_slot!(slot_args);

/// Formats an error with its cause, which is the message of the dynamic loader.
fn reason(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// Returns the dynamic loader's message about a file, preceded by an explanation if the file is not a
/// library.
fn not_loaded(path: &Path, error: &libloading::Error) -> String {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let is_elf = read.is_ok() && start == *b"\x7fELF";
    let what = if cfg!(target_os = "linux") && !is_elf { "not a shared library: " } else { "" };
    format!("{what}{}", reason(error))
}

impl Plugin {
    /// Loads a shared library as JAX does, and obtains its table. Calls no other function of the plugin.
    ///
    /// # Errors
    ///
    /// Returns an error if the library cannot be loaded, or is not a plugin.
    pub fn load(path: &Path) -> std::result::Result<Self, LoadError> {
        // The loader would search the system's folders for a name without a folder.
        let path = std::path::absolute(path).map_err(|error| LoadError::Open(error.to_string()))?;
        // The message of the loader would be longer.
        match path.metadata() {
            Ok(data) if data.is_file() => {}
            Ok(_) => return Err(LoadError::Open("not a file".to_owned())),
            Err(error) => return Err(LoadError::Open(error.to_string())),
        }
        // SAFETY: the caller intends to run the plugin's initializers; see the module's documentation.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.map_err(|error| LoadError::Open(not_loaded(&path, &error)))?;
        let table = {
            // SAFETY: the interface defines the type of this function.
            let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const PJRT_Api>(b"GetPjrtApi\0") };
            let entry = entry.map_err(|error| LoadError::NoEntry(reason(&error)))?;
            // SAFETY: the function takes no arguments, and may be called at any time.
            unsafe { entry() }
        };
        std::mem::forget(library);
        Self::from_table(table)
    }

    fn from_table(table: *const PJRT_Api) -> std::result::Result<Self, LoadError> {
        if table.is_null() {
            return Err(LoadError::NoTable("a null pointer"));
        }
        // SAFETY: a table of every version begins with its size.
        let size = unsafe { (&raw const (*table).struct_size).read() };
        if size < field_end::PJRT_Api::pjrt_api_version {
            return Err(LoadError::NoTable("a table that is too small to have a version"));
        }
        Ok(Self { table })
    }

    /// Loads the library and obtains its table again, as a host does that examines a plugin before it uses
    /// it: the library is opened, closed, and opened once more. Returns `true` if the table is still the
    /// same.
    ///
    /// # Errors
    ///
    /// Returns an error if the library can no longer be loaded.
    pub fn reload(self, path: &Path) -> std::result::Result<bool, LoadError> {
        let found = std::path::absolute(path).map_err(|error| LoadError::Open(error.to_string()))?;
        // SAFETY: as in `load`. The library that `load` opened stays open, so closing this one frees nothing.
        unsafe {
            let library = libloading::Library::new(found).map_err(|error| LoadError::Open(reason(&error)))?;
            library.close().map_err(|error| LoadError::Open(reason(&error)))?;
        }
        Ok(Self::load(path)?.table == self.table)
    }

    /// Returns the major and minor version of the C API that the plugin reports.
    #[must_use]
    pub fn version(self) -> (i32, i32) {
        // SAFETY: `from_table` checked that the table has a version.
        let version = unsafe { (&raw const (*self.table).pjrt_api_version).read() };
        (version.major_version, version.minor_version)
    }

    /// Returns the size of the table in bytes.
    #[must_use]
    pub fn table_size(self) -> usize {
        // SAFETY: a table begins with its size.
        unsafe { (&raw const (*self.table).struct_size).read() }
    }

    /// Returns the state of the slot with this index.
    #[must_use]
    pub fn slot(self, index: usize) -> SlotState {
        let Some(slot) = SLOTS.get(index) else { return SlotState::Absent };
        if self.table_size() < slot.offset + size_of::<usize>() {
            return SlotState::Absent;
        }
        if self.function(slot.offset).is_none() { SlotState::Null } else { SlotState::Function }
    }

    /// Returns the pointer at an offset that lies in the table.
    fn function(self, offset: usize) -> Option<unsafe extern "C" fn()> {
        // SAFETY: the caller checked that the table extends beyond the offset. All slots are nullable
        // function pointers.
        unsafe { self.table.byte_add(offset).cast::<Option<unsafe extern "C" fn()>>().read() }
    }

    /// Returns the plugin's extensions, in the order of the chain, or `None` if the chain does not end.
    #[must_use]
    pub fn extensions(self) -> Option<Vec<ExtensionInfo>> {
        // SAFETY: `from_table` checked that the table has the field.
        let mut next = unsafe { (&raw const (*self.table).extension_start).read() };
        let mut found = Vec::new();
        while !next.is_null() {
            if found.len() == MAX_EXTENSIONS {
                return None;
            }
            // SAFETY: the elements of the chain begin with this struct.
            let base = unsafe { next.read() };
            found.push(ExtensionInfo { type_: base.type_.0, struct_size: base.struct_size });
            next = base.next;
        }
        Some(found)
    }

    /// Calls a function of the table, and returns the struct after the call.
    pub(crate) fn call<A: SlotArgs>(self, args: A) -> Result<A> {
        let mut args = args;
        let error = self.call_raw(&mut args)?;
        match error::take(self, A::INDEX, error) {
            None => Ok(args),
            Some(error) => Err(error),
        }
    }

    /// Returns the function of a slot, if there is one.
    fn typed_function<A: SlotArgs>(self) -> Option<unsafe extern "C" fn(*mut A) -> *mut PJRT_Error> {
        if self.slot(A::INDEX) != SlotState::Function {
            return None;
        }
        let function = self.function(SLOTS[A::INDEX].offset)?;
        // SAFETY: the slot at this offset has this type in all versions. Two functions return nothing; the
        // value that is read for them is not used (see `call_raw`).
        Some(unsafe {
            std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(*mut A) -> *mut PJRT_Error>(
                function,
            )
        })
    }

    /// Calls a function of the table that returns errors with the struct of another host.
    ///
    /// # Safety
    ///
    /// The table has the function, and a host may pass this struct to it.
    pub(crate) unsafe fn forward<A: SlotArgs>(self, args: *mut A) -> *mut PJRT_Error {
        let function = self.typed_function::<A>().expect("the table has the function");
        // SAFETY: guaranteed by the caller.
        unsafe { function(args) }
    }

    /// Calls a function of the table, and returns its error as a pointer.
    pub(crate) fn call_raw<A: SlotArgs>(self, args: &mut A) -> Result<*mut PJRT_Error> {
        let slot = &SLOTS[A::INDEX];
        let Some(function) = self.typed_function::<A>() else { return Err(Error::missing(slot.name)) };
        CALLED[A::INDEX].store(true, Ordering::Relaxed);
        // SAFETY: the wrappers of this module fill in the struct as the interface requires.
        let error = fence::call(slot, args, |args| unsafe { function(args) });
        Ok(if slot.returns_error { error } else { std::ptr::null_mut() })
    }

    /// Initializes the plugin (`PJRT_Plugin_Initialize`). Hosts call this once, before all other functions.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn initialize(self) -> Result<()> {
        self.call(PJRT_Plugin_Initialize_Args::zeroed()).map(drop)
    }

    /// Returns the plugin's attributes (`PJRT_Plugin_Attributes`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes(self) -> Result<Vec<NamedValue>> {
        let args = self.call(PJRT_Plugin_Attributes_Args::zeroed())?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // process.
        unsafe { named_values(ATTRIBUTES, args.attributes, args.num_attributes) }
    }

    /// Returns the addresses of the attributes and of the first one's name, which must not change between
    /// calls.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes_address(self) -> Result<usize> {
        Ok(self.call(PJRT_Plugin_Attributes_Args::zeroed())?.attributes.addr())
    }

    /// Returns the attributes as a host sees them whose struct has 32 bytes, but a `struct_size` of 24, as in
    /// hosts up to 0.70. Returns `None` if the plugin does not write the number of attributes.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes_of_old_struct(self) -> Result<Option<Vec<NamedValue>>> {
        let unwritten = usize::MAX;
        let args = PJRT_Plugin_Attributes_Args {
            struct_size: 24,
            num_attributes: unwritten,
            ..PJRT_Plugin_Attributes_Args::zeroed()
        };
        let args = self.call(args)?;
        // SAFETY: the plugin wrote pointer and length of an array that lives as long as the process.
        let values = || unsafe { named_values(ATTRIBUTES, args.attributes, args.num_attributes) };
        (args.num_attributes != unwritten).then(values).transpose()
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version();
        write!(f, "Plugin({major}.{minor})")
    }
}

/// Implements `Drop` with a function of the table that destroys the object. An error of that function is
/// ignored.
macro_rules! destroyed_by {
    ($type:ident $args:ident $field:ident) => {
        impl Drop for $type {
            fn drop(&mut self) {
                let args = pjrt_sys::$args {
                    $field: self.raw,
                    ..<pjrt_sys::$args as pjrt_sys::SizedStruct>::zeroed()
                };
                drop(self.plugin.call(args));
            }
        }

        // SAFETY: the interface allows the use and destruction of its objects on every thread.
        unsafe impl Send for $type {}
        // SAFETY: as above.
        unsafe impl Sync for $type {}
    };
}
pub(crate) use destroyed_by;

/// Fills in an Args struct and calls its function: `call!(plugin, PJRT_Buffer_Delete_Args { buffer })`.
macro_rules! call {
    ($plugin:expr, $args:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        #[allow(clippy::needless_update, reason = "some structs have no other fields")]
        let args = pjrt_sys::$args { $($field $(: $value)?,)* ..<pjrt_sys::$args as pjrt_sys::SizedStruct>::zeroed() };
        $plugin.call(args)
    }};
}
pub(crate) use call;
