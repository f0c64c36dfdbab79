//! The results of an inspection.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::requirements::{Profile, table};
use pjrt_testing::host::{Code, Result};

/// The results of [`inspect`](super::inspect()).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// The path of the library.
    pub path: PathBuf,
    /// The size of the library in bytes.
    pub file_size: u64,
    /// The exported functions whose names begin like those of a plugin's entry point.
    pub exports: Vec<String>,
    /// The number of exported symbols.
    pub num_exports: usize,
    /// The error if the library could not be loaded. The remaining fields are then empty.
    pub load_error: Option<String>,
    /// The major and minor version of the C API that the plugin reports.
    pub version: (i32, i32),
    /// The size of its function table, in bytes.
    pub table_size: usize,
    /// The state of every slot of this crate's version of the table, in order.
    pub slots: Vec<(String, Slot)>,
    /// The extensions: type, name, and size of the struct.
    pub extensions: Vec<(u32, String, usize)>,
    /// `true` if the chain of extensions does not end.
    pub endless_extensions: bool,
    /// The plugin's attributes.
    pub attributes: Vec<(String, String)>,
    /// The outcome of `PJRT_Plugin_Initialize`.
    pub initialize: Step,
    /// The outcome of `PJRT_Client_Create`.
    pub client: Step,
    /// The client's platform name and version.
    pub platform: Option<String>,
    /// The client's devices.
    pub devices: Vec<String>,
    /// The faults that prevent every host from using the plugin: an invalid table, a failed initialization, a
    /// crash, or a call that takes too long. A failure to create a client is not one of them, because this
    /// machine may lack the device.
    pub faults: Vec<String>,
    /// The end of the plugin's output to standard output and standard error.
    pub printed: String,
}

/// The state of a slot of the function table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// The table ends before the slot.
    Absent,
    /// The slot is a null pointer.
    Null,
    /// A function, which was not called.
    Function,
    /// A function that returned UNIMPLEMENTED.
    Stub,
    /// A function that was called and did not return UNIMPLEMENTED.
    Real,
}

impl Slot {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Function => "not called",
            Self::Stub => "stub",
            Self::Real => "real",
        }
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The step was not reached.
    #[default]
    NotReached,
    /// The step succeeded.
    Ok,
    /// The plugin returned an error.
    Error(String),
    /// The process ended.
    Crashed(String),
    /// The step took too long.
    TimedOut,
}

impl Step {
    pub(super) fn text(&self) -> String {
        match self {
            Self::NotReached => "not reached".to_owned(),
            Self::Ok => "ok".to_owned(),
            Self::Error(error) => error.clone(),
            Self::Crashed(how) => format!("the process ended with {how}"),
            Self::TimedOut => "took too long; --timeout changes the limit".to_owned(),
        }
    }
}

impl Report {
    /// Returns the number of slots in a state.
    pub(super) fn count(&self, state: Slot) -> usize {
        self.slots.iter().filter(|(_, of_slot)| *of_slot == state).count()
    }

    /// Returns the requirements of a host that the plugin is known not to meet.
    #[must_use]
    pub fn missing_for(&self, profile: Profile) -> Vec<String> {
        let mut missing = Vec::new();
        if table::check_major(self.version).and_then(|()| table::check_minor(self.version)).is_err() {
            let (oldest, (major, minor)) = (table::OLDEST_MINOR, self.version);
            missing.push(format!(
                "a C API version of at least 0.{oldest} and below 1 (it reports {major}.{minor})"
            ));
        }
        for function in profile.functions() {
            let name = format!("PJRT_{function}");
            let state = self.slots.iter().find(|(slot, _)| *slot == name).map(|(_, state)| *state);
            // A function that is newer than the plugin's version is not called by the host.
            let newer = state == Some(Slot::Absent) && function == "LoadedExecutable_GetDeviceAssignment"
                || state == Some(Slot::Absent) && function == "Error_ForEachPayload";
            if !newer && matches!(state, None | Some(Slot::Absent | Slot::Null | Slot::Stub)) {
                missing.push(name);
            }
        }
        missing
    }

    /// Records the state of a function that was called.
    pub(super) fn mark<T>(&mut self, function: &str, outcome: &Result<T>) {
        let slot = self.slots.iter_mut().find(|(name, state)| name == function && *state == Slot::Function);
        if let Some((_, state)) = slot {
            let is_stub = outcome.as_ref().is_err_and(|error| error.code == Code::UNIMPLEMENTED);
            *state = if is_stub { Slot::Stub } else { Slot::Real };
        }
    }
}
