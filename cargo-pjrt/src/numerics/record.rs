//! Records a suite: programs with the results of a plugin.

use std::path::{Path, PathBuf};

use super::options::Options;
use super::suite::{Builder, Tolerance};
use crate::process::{child, output};
use crate::run::{Job, execute};
use pjrt_testing::host::Plugin;

/// The files that a folder's programs are in.
const EXTENSIONS: [&str; 3] = ["mlir", "mlirbc", "stablehlo"];

/// Runs programs on a plugin, and writes them with their results as a suite.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written, if there is no program, or if the plugin reports an error.
pub fn record(options: &Options, to: &Path) -> Result<(), String> {
    let programs = programs(&options.programs)?;
    child::next("creating a client");
    let text = |error: pjrt_testing::host::Error| error.to_string();
    let plugin =
        Plugin::load(&options.plugin).map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    plugin.initialize().map_err(text)?;
    let client = plugin.create_client(&options.selection.create_options()?).map_err(text)?;
    let tolerance = Tolerance {
        reason: "16 ulps, or 1e-6: the distance of a recorded result, which is not known to be exact"
            .to_owned(),
        ulps: 16,
        relative: 0.0,
        absolute: 1e-6,
        any_zero: true,
    };
    let mut builder = Builder::default();
    for path in &programs {
        child::next(&format!("running {}", path.display()));
        let located = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let job = Job::of_file(path, None)?;
        if job.format != "mlir" {
            return Err(located(&"suites contain StableHLO programs, and this is another format"));
        }
        let inputs = job.random_arguments().map_err(|error| located(&error))?;
        let executable = client.compile(&job.program(), &job.options).map_err(|error| located(&error))?;
        let results = execute(&client, &executable, &inputs).map_err(|error| located(&error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        builder.add(&name, &job.code, &inputs, &results, &tolerance);
    }
    builder.write(to)?;
    output::print(&format!("{}: {} programs\n", to.display(), programs.len()))
}

/// Returns the paths of the programs: the files that are named, and those in the folders.
fn programs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = path.read_dir().map_err(|error| format!("{}: {error}", path.display()))?;
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        };
        let mut found: Vec<PathBuf> =
            entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_program).collect();
        if found.is_empty() {
            return Err(format!(
                "{} contains no file whose name ends in .mlir, .mlirbc or .stablehlo",
                path.display()
            ));
        }
        found.sort_unstable();
        all.extend(found);
    }
    Ok(all)
}
