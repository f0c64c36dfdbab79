//! The observations of a plugin, one area per file.

mod buffer;
mod client;
mod compile;
mod contents;
mod errors;
mod events;
mod executable;
pub(crate) mod fact;
mod observer;
mod program;
mod session;
mod table;

pub(super) use observer::Observer;

/// A part of the interface, which consists of named subjects.
pub(super) struct Area {
    pub(super) name: &'static str,
    pub(super) names: fn() -> Vec<String>,
    observe: fn(&Observer, &str),
}

/// The area of the function table, the only one whose subjects call no function.
pub(super) const TABLE: &str = "table";
/// The fact whether a program can be compiled.
pub(super) const COMPILATION: &str = "compilation";

/// The area of programs.
pub(super) const PROGRAM: &str = "program";
/// The area of recorded sessions.
pub(super) const SESSION: &str = "session";
/// The area of the end of the process.
pub(super) const PROCESS: &str = "process";

/// The areas that consist of fixed subjects, in the order in which they are observed.
pub(super) const AREAS: &[Area] = &[
    Area { name: TABLE, names: table::names, observe: table::observe },
    Area { name: "plugin", names: client::of_plugin, observe: client::observe },
    Area { name: "client", names: client::of_client, observe: client::observe },
    Area { name: "compile", names: compile::names, observe: compile::observe },
    Area { name: "executable", names: executable::names, observe: executable::observe },
    Area { name: "buffer", names: buffer::names, observe: buffer::observe },
    Area { name: "error", names: errors::names, observe: errors::observe },
    Area { name: "events", names: events::names, observe: events::observe },
];

/// Observes a plugin in one subject.
pub(super) fn observe(observer: &Observer, area: &str, name: &str) {
    match area {
        PROGRAM => program::observe(observer, name),
        SESSION => session::observe(observer, name),
        // The objects are destroyed, and the process ends, after the last subject.
        PROCESS => {}
        _ => {
            if let Some(area) = AREAS.iter().find(|known| known.name == area) {
                (area.observe)(observer, name);
            }
        }
    }
}
