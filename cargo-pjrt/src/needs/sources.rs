//! The programs whose needs are listed.

use std::collections::HashSet;
use std::path::Path;

use super::options::Options;
use super::recorded::recorded;
use super::source::Source;
use crate::run::{Job, programs};
use crate::session::log::{Entry, Log};

/// The tier of the programs that the command line names one by one.
const NAMED: &str = "programs";

/// The first bytes of a recording.
const RECORDING: &[u8] = b"{\"bytes\":";

/// Returns the programs of the arguments.
///
/// # Errors
///
/// Returns an error if a path does not exist, if a folder contains no program, or if a recording is damaged.
pub(super) fn sources(options: &Options) -> Result<Vec<Source>, String> {
    if options.programs.is_empty() {
        return Ok(recorded(&options.tiers, &options.required));
    }
    let mut all = Vec::new();
    for path in &options.programs {
        let shown = path.display();
        if path.is_dir() {
            let found = programs(path)?;
            if found.is_empty() {
                return Err(format!(
                    "{shown}: the folder contains no program; expected files that end with .mlir, .mlirbc, .bc, .pb or .hlo"
                ));
            }
            all.extend(found.iter().map(|file| Source {
                tier: shown.to_string(),
                name: file.strip_prefix(path).unwrap_or(file).display().to_string(),
                required: true,
                job: if file.is_dir() { Job::of_folder(file) } else { Job::of_file(file, None) },
            }));
        } else if begins_recording(path)? {
            all.extend(of_recording(path)?);
        } else {
            all.push(Source {
                tier: NAMED.to_owned(),
                name: shown.to_string(),
                required: true,
                job: Job::of_file(path, None),
            });
        }
    }
    Ok(all)
}

fn begins_recording(path: &Path) -> Result<bool, String> {
    use std::io::Read;
    let located = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut first = Vec::new();
    let file = std::fs::File::open(path).map_err(located)?;
    file.take(RECORDING.len() as u64).read_to_end(&mut first).map_err(located)?;
    Ok(first == RECORDING)
}

/// Returns the programs that a host compiled in a recorded session, each once.
fn of_recording(path: &Path) -> Result<Vec<Source>, String> {
    let log = Log::open(path)?;
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    for (index, entry) in log.entries.iter().enumerate() {
        let Entry::Compile { executable, format, options_size, .. } = entry else { continue };
        let mut options = log.bytes(index)?;
        if !seen.insert(options.clone()) {
            continue;
        }
        let name = format!("program {executable}");
        if *options_size > options.len() {
            return Err(format!("{}: entry {} is damaged", path.display(), index + 1));
        }
        let code = options.split_off(*options_size);
        let job = Job::of_host(path, code, format.clone(), options);
        all.push(Source { tier: path.display().to_string(), name, required: true, job: Ok(job) });
    }
    Ok(all)
}
