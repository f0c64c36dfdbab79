//! The subjects that a plugin is observed in.

use std::path::{Path, PathBuf};

use super::observe::{AREAS, PROCESS, PROGRAM, SESSION};

/// A subject: a part of the interface, a program, or a recorded session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    /// The area.
    pub(super) area: String,
    /// The name in the area, or the path of a program or session.
    pub(super) name: String,
}

impl Subject {
    pub(super) fn new(area: &str, name: impl Into<String>) -> Self {
        Self { area: area.to_owned(), name: name.into() }
    }

    /// Parses `area/name`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.split_once('/').map(|(area, name)| Self::new(area, name))
    }

    /// Returns `area/name`.
    pub(super) fn text(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }

    /// Returns the name for a reader: the last part of a path.
    pub(super) fn title(&self) -> String {
        let path = Path::new(&self.name);
        let name = path.file_name().filter(|_| path.is_absolute() || self.is_file());
        name.map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned())
    }

    pub(super) fn is_file(&self) -> bool {
        [PROGRAM, SESSION].contains(&self.area.as_str())
    }
}

/// Returns all subjects, in the order in which they are observed.
pub(super) fn subjects(programs: &[PathBuf], sessions: &[PathBuf]) -> Vec<Subject> {
    let of_files = |area: &'static str, paths: &[PathBuf]| -> Vec<Subject> {
        paths.iter().map(|path| Subject::new(area, path.to_string_lossy())).collect()
    };
    let of_areas = AREAS.iter().flat_map(|area| {
        (area.names)().into_iter().map(|name| Subject::new(area.name, name)).collect::<Vec<_>>()
    });
    let of_programs = of_areas.chain(of_files(PROGRAM, programs)).chain(of_files(SESSION, sessions));
    of_programs.chain([Subject::new(PROCESS, "end")]).collect()
}
