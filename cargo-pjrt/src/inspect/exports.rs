//! The symbols that a library exports.

use std::path::Path;

use object::{Object, ObjectSymbol};

use super::report::Report;

/// Creates a report with the size of the library and the symbols that it exports.
///
/// # Errors
///
/// Returns an error if the path is no file, such as a pipe, whose end may never come, or if it cannot be read.
pub(super) fn exports(path: &Path) -> std::io::Result<Report> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    let file = std::fs::File::open(path)?;
    let file_size = file.metadata()?.len();
    let mut report = Report { path: path.to_owned(), file_size, ..Report::default() };
    let cache = object::ReadCache::new(file);
    // If the file is not a valid object file, the error of the loader describes the problem.
    if let Ok(file) = object::File::parse(&cache) {
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            report.num_exports += 1;
            let name = symbol.name().unwrap_or_default();
            if ["GetPjrtApi", "TFNPD_", "TF_Init"].iter().any(|known| name.starts_with(known)) {
                report.exports.push(name.to_owned());
            }
        }
    }
    report.exports.sort();
    Ok(report)
}
