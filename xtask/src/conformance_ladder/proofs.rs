//! The programs of `docs/proofs`, which show bugs of plugins without the kit.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::plugins::{CORRECT, Plugin};
use crate::environment::run::run;
use crate::environment::workspace;

/// A program that shows a bug.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Proof {
    /// The name of the file in `docs/proofs`, without `.c`.
    pub(super) name: &'static str,
    pub(super) runs_in: RunsIn,
}

/// The program that runs a proof.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsIn {
    /// None. The essential line of the output begins with this text.
    Itself(&'static str),
    /// Valgrind, which reports a use of freed memory.
    Valgrind,
}

/// The proofs. They exit with status 0 if the bug occurs, and 1 if it does not.
pub(super) const ARGUMENT: Proof =
    Proof { name: "error_of_an_argument", runs_in: RunsIn::Itself("the error of the output") };
pub(super) const EXECUTABLE: Proof =
    Proof { name: "executable_after_its_loaded_executable", runs_in: RunsIn::Valgrind };
pub(super) const DESCRIPTIONS: Proof = Proof {
    name: "memory_descriptions",
    runs_in: RunsIn::Itself("PJRT_DeviceDescription_MemoryDescriptions"),
};
pub(super) const PHASES: Proof =
    Proof { name: "phase_compiler", runs_in: RunsIn::Itself("phase_compile_get_compiler") };
pub(super) const DELETED: Proof =
    Proof { name: "is_deleted", runs_in: RunsIn::Itself("PJRT_LoadedExecutable_IsDeleted") };
pub(super) const TOPOLOGY: Proof =
    Proof { name: "topology_without_a_compiler", runs_in: RunsIn::Itself("PJRT_Compile") };

pub(super) const IMPOSSIBLE: Proof = Proof {
    name: "impossible_size",
    runs_in: RunsIn::Itself("PJRT_Client_CreateUninitializedBuffer: the process ended"),
};
pub(super) const STRIDES: Proof = Proof {
    name: "too_few_strides",
    runs_in: RunsIn::Itself("PJRT_Client_BufferFromHostBuffer: the process ended"),
};
pub(super) const DEVICE_LAYOUT: Proof =
    Proof { name: "device_layout", runs_in: RunsIn::Itself("the rows of") };
pub(super) const DEFAULT_LAYOUT: Proof =
    Proof { name: "default_layout", runs_in: RunsIn::Itself("the layout of the array") };

const ALL: [Proof; 10] = [
    ARGUMENT,
    EXECUTABLE,
    DESCRIPTIONS,
    PHASES,
    DELETED,
    TOPOLOGY,
    IMPOSSIBLE,
    STRIDES,
    DEVICE_LAYOUT,
    DEFAULT_LAYOUT,
];

/// The compiled proofs.
pub(super) struct Proofs {
    pub(super) folder: PathBuf,
}

/// The outcome of a proof.
pub(super) enum Shown {
    /// The bug occurs. Contains the essential line of the output.
    Bug(String),
    /// The bug does not occur. Contains the output.
    NoBug(String),
}

impl Proofs {
    /// Compiles the proofs with the C compiler that `CC` names, or else `cc`.
    pub(super) fn compile() -> Result<Self> {
        let folder = workspace::target().join("conformance-ladder");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for Proof { name, .. } in ALL {
            let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
            compiler.args(["-g", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-I"]);
            compiler.arg(workspace::root().join("pjrt-sys/include"));
            compiler.arg(workspace::root().join(format!("docs/proofs/{name}.c")));
            run(compiler.arg("-o").arg(folder.join(name)).arg("-ldl"))?;
        }
        Ok(Self { folder })
    }

    /// Complains about the proofs that show their bug in a plugin without bugs.
    pub(super) fn check_without_bugs(&self, plugins: &[Plugin], complaints: &mut Vec<String>) -> Result<()> {
        for plugin in plugins.iter().filter(|plugin| plugin.name == CORRECT) {
            for proof in ALL {
                if let Shown::Bug(line) = self.show(proof, plugin)? {
                    complaints.push(format!("docs/proofs/{}.c shows a bug of {CORRECT}: {line}", proof.name));
                }
            }
        }
        Ok(())
    }

    /// Runs a proof on a plugin. Fails if the proof could not be made.
    pub(super) fn show(&self, proof: Proof, plugin: &Plugin) -> Result<Shown> {
        let program = self.folder.join(proof.name);
        let (status, printed) = match proof.runs_in {
            RunsIn::Itself(_) => printed(Command::new(&program).arg(&plugin.library))?,
            RunsIn::Valgrind => in_valgrind(&program, &plugin.library)?,
        };
        let line = match proof.runs_in {
            RunsIn::Itself(start) => printed.lines().find(|line| line.starts_with(start)).map(str::to_owned),
            RunsIn::Valgrind => invalid_read(&printed),
        };
        match (status, line) {
            (Some(0), Some(line)) => Ok(Shown::Bug(line)),
            (Some(1), _) => Ok(Shown::NoBug(printed)),
            _ => bail!("docs/proofs/{}.c on {} proves nothing: {printed}", proof.name, plugin.title()),
        }
    }
}

/// Runs a command, and returns its exit status and its output.
fn printed(command: &mut Command) -> Result<(Option<i32>, String)> {
    let output =
        command.output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&printed).into_owned()))
}

fn in_valgrind(program: &Path, library: &Path) -> Result<(Option<i32>, String)> {
    // Programs that read bytes which the compiler left undefined are none of this proof's business.
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--undef-value-errors=no", "--num-callers=30"]).arg(program).arg(library);
    printed(&mut valgrind)
        .context("the proofs of uses of freed memory need valgrind: install the package valgrind")
}

/// Returns the essential lines of valgrind's first report of a read of freed memory: what was read where, and
/// who freed it.
fn invalid_read(printed: &str) -> Option<String> {
    let mut lines = printed
        .lines()
        .filter_map(|line| line.strip_prefix("==")?.split_once("==").map(|(_, line)| line.trim()))
        .skip_while(|line| !line.starts_with("Invalid read"));
    let what = lines.next()?;
    let by_proof =
        |line: &str| line.split_once(": ").filter(|_| line.contains(".c:")).map(|(_, at)| at.to_owned());
    let reader = lines.by_ref().find_map(by_proof)?;
    // The first lines after those of the proof itself are of the freed block.
    let block = lines.find(|line| line.starts_with("Address ") && line.ends_with("free'd"))?;
    let block = block.split_once(" is ")?.1;
    let freer = lines.find_map(by_proof)?;
    Some(format!("{what} by {reader}, {block} by {freer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_essential_lines_of_valgrind_are_the_read_and_the_free() {
        let printed = "version 0.115 of the C API\n\
            ==12== Invalid read of size 8\n\
            ==12==    at 0x77: ??? (in plugin.so)\n\
            ==12==    by 0x10: number_of_outputs (proof.c:27)\n\
            ==12==    by 0x11: main (proof.c:53)\n\
            ==12==  Address 0x17 is 0 bytes inside a block of size 4,128 free'd\n\
            ==12==    at 0x48: operator delete(void*) (in memcheck.so)\n\
            ==12==    by 0x12: destroy_loaded_executable (proof.c:21)\n\
            ==12==  Block was alloc'd at\n\
            ==12==    by 0x13: compile (plugin.h:89)\n";
        assert_eq!(
            invalid_read(printed).unwrap(),
            "Invalid read of size 8 by number_of_outputs (proof.c:27), 0 bytes inside a block of size 4,128 free'd \
             by destroy_loaded_executable (proof.c:21)"
        );
        assert_eq!(invalid_read("PJRT_Executable_NumOutputs returned 1\n"), None);
    }

    #[test]
    fn every_program_of_the_folder_is_a_proof() {
        let folder = workspace::root().join("docs/proofs");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter_map(|name| name.strip_suffix(".c").map(str::to_owned))
            .collect();
        names.sort();
        let mut known = ALL.map(|proof| proof.name);
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
