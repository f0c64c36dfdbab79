//! The programs in a folder.

use std::path::{Path, PathBuf};

use super::folder;

/// The endings of the names of programs.
const ENDINGS: &[&str] = &["mlir", "mlirbc", "bc", "pb", "hlo"];

/// The ending of a file with the compile options of the program beside it: `f.options.pb` for `f.mlir` or `f.hlo.pb`.
pub(super) const OPTIONS_ENDING: &str = ".options.pb";

/// Returns the programs in a folder and in the folders in it: files with the ending of a program, and folders for
/// `run --replay`.
pub(crate) fn programs(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() && !path.join(folder::PROGRAM).exists() {
            found.extend(programs(&path)?);
        } else if path.is_dir()
            || ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !is_options(&path)
        {
            found.push(path);
        }
    }
    Ok(found)
}

/// Returns `true` if a file contains compile options.
fn is_options(path: &Path) -> bool {
    path.to_string_lossy().ends_with(OPTIONS_ENDING)
}

/// Returns the file with the compile options of a program, if there is one.
pub(super) fn options_beside(program: &Path) -> Option<PathBuf> {
    let name = program.file_name()?.to_str()?;
    let name = name.split_once('.').map_or(name, |(name, _)| name);
    Some(program.with_file_name(format!("{name}{OPTIONS_ENDING}"))).filter(|path| path.exists())
}
