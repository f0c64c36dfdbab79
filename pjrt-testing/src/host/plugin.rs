//! A loaded plugin and its function table.

use std::{fmt, ptr};

use pjrt_sys::*;

use super::error::{Error, Result};
use super::{called, fence, passed, trace};

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

/// The largest credible length of the chain of extensions. A longer chain is a cycle.
const MAX_EXTENSIONS: usize = 256;

/// The Args struct of a slot.
pub trait SlotArgs: SizedStruct {
    /// The index of the slot in the table.
    const INDEX: usize;
}

macro_rules! slot_args {
    ($($index:literal $slot:ident $args:ident $shim:ident $returns:ident;)*) => {
        $(impl SlotArgs for $args { const INDEX: usize = $index; })*
    };
}
for_each_slot!(slot_args);

impl Plugin {
    /// Wraps a table, or returns the reason why it cannot be used.
    ///
    /// # Safety
    ///
    /// The pointer is null, or points to the table of a plugin that stays loaded until the process ends.
    pub(super) unsafe fn from_table(table: *const PJRT_Api) -> std::result::Result<Self, String> {
        if table.is_null() {
            return Err("a null pointer".to_owned());
        }
        // SAFETY: a table of every version begins with its size.
        let size = unsafe { (&raw const (*table).struct_size).read() };
        if size < field_end::PJRT_Api::pjrt_api_version {
            let least = field_end::PJRT_Api::pjrt_api_version;
            return Err(format!(
                "a table with a struct_size of {size}, but {least} bytes are needed for the version"
            ));
        }
        Ok(Self { table })
    }

    /// Wraps the table of a plugin that is part of this program, or returns the reason why it cannot be used.
    ///
    /// # Errors
    ///
    /// Returns an error if the table is too small to have a version.
    pub fn linked(table: &'static PJRT_Api) -> std::result::Result<Self, String> {
        // SAFETY: a reference is not null, and lives as long as the process.
        unsafe { Self::from_table(table) }
    }

    /// Returns the address of the table, which differs between plugins.
    #[must_use]
    pub fn address(self) -> usize {
        self.table.addr()
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

    /// Returns the pointer at an offset that is in the table.
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
    pub unsafe fn forward<A: SlotArgs>(self, args: *mut A) -> *mut PJRT_Error {
        let function = self.typed_function::<A>().expect("the table has the function");
        // SAFETY: guaranteed by the caller.
        unsafe { function(args) }
    }

    /// Calls a function of the table, and returns its error as a pointer.
    pub(crate) fn call_raw<A: SlotArgs>(self, args: &mut A) -> Result<*mut PJRT_Error> {
        let slot = &SLOTS[A::INDEX];
        let Some(function) = self.typed_function::<A>() else { return Err(Error::missing(slot.name)) };
        called::note_slot(A::INDEX);
        let running = trace::begin(slot.name, object_of(args));
        // SAFETY: the wrappers of this module fill in the struct as the interface requires.
        let (error, written) =
            passed::with_copies(args, |args| fence::call(slot, args, |args| unsafe { function(args) }));
        running.end();
        called::note_end(A::INDEX);
        match written {
            None => Ok(if slot.returns_error { error } else { ptr::null_mut() }),
            // What the call returned leaks.
            Some(field) => Err(passed::wrote(slot.name, field)),
        }
    }
}

/// Returns the kind and the address of the object that a function is called for: that of the first field after the base, if
/// this is a pointer to an object.
pub(super) fn object_of<A: SizedStruct>(args: &A) -> Option<(&'static str, usize)> {
    const AFTER_BASE: usize = 2 * size_of::<usize>();
    let field = A::LAYOUT.fields.iter().find(|field| field.offset == AFTER_BASE)?;
    let kind = field.ty.strip_prefix("*mut ").filter(|kind| kind.starts_with("PJRT_"))?;
    // SAFETY: the field is in the struct, and is a pointer.
    Some((kind, unsafe { ptr::from_ref(args).byte_add(field.offset).cast::<usize>().read() }))
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.version();
        write!(f, "Plugin({major}.{minor})")
    }
}
