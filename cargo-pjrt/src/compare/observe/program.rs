//! Programs of the user.

use std::path::Path;

use super::executable::observe_program;
use super::fact::skipped;
use super::observer::Observer;
use crate::run::{self, Job, folder};

/// Compiles and runs a program on random arguments, or on those of its folder.
pub(super) fn observe(observer: &Observer, path: &str) {
    let path = Path::new(path);
    let is_folder = path.is_dir();
    let job = match if is_folder { Job::of_folder(path) } else { Job::of_file(path, None) } {
        Ok(job) => job,
        Err(why) => return skipped("not read", &why),
    };
    let program = job.program();
    let stored = path.join(folder::ARGUMENTS);
    observe_program(observer, &program, &job.options, || {
        if is_folder && stored.exists() {
            return run::replayed_arguments(&stored, &job.parameters()?);
        }
        job.random_arguments()
    });
}
