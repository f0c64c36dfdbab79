//! The templates, which are the examples of the repository.

/// The code that a new plugin begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// The smallest complete plugin, in one file: a device that adds, on the host's thread
    Hello,
    /// Devices with their own memories and command queues, and a compiler for StableHLO's core
    Queue,
    /// The device of the book's tutorial, in three files: a memory and a command queue, and a small compiler
    Tutorial,
    /// A compiler in C++, behind three C functions
    Mlir,
}

/// The sources of a template: the names and the texts of its files.
macro_rules! sources {
    ($folder:literal: $($file:literal)*) => {
        &[$(($file, include_str!(concat!("../../templates/", $folder, "/", $file)))),*]
    };
}

impl Template {
    /// Returns the name in arguments and texts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Queue => "queue",
            Self::Tutorial => "tutorial",
            Self::Mlir => "mlir",
        }
    }

    /// Returns the name of the platform in the sources of the example.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Queue => "accelerator",
            Self::Tutorial => "tutorial",
            // Not "mlir", which the sources also contain as the name of the compiler framework.
            Self::Mlir => "vendor",
        }
    }

    /// Returns the name of the example's crate.
    pub(super) fn crate_name(self) -> &'static str {
        match self {
            Self::Hello => "hello_pjrt",
            Self::Queue => "accelerator_pjrt",
            Self::Tutorial => "tutorial_pjrt",
            Self::Mlir => "mlir_pjrt",
        }
    }

    /// Returns the description of the new package.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Hello => "A PJRT plugin",
            Self::Queue => "A PJRT plugin for devices with memories and command queues",
            Self::Tutorial => "A PJRT plugin for two devices with a memory and a command queue each",
            Self::Mlir => "A PJRT plugin around a compiler in C++",
        }
    }

    /// Returns the advice of the README about the files to change.
    pub(super) fn guide(self) -> &'static str {
        match self {
            Self::Hello => {
                "The plugin is one file, `src/lib.rs`, with the four traits of PJRT: the client, the device, the storage of arrays, and \
                 the compiled\nprogram. Its device adds f32 and i32. Support another operation in `compile` and in `run`."
            }
            Self::Queue => {
                "`src/lib.rs` lists the files in a good reading order, and says which of them simulate the device: these are what you replace \
                 by\nyour driver and your compiler. The others show how allocation, queues, copies, donation and errors fit together.\n\n\
                 With a compiler or an interpreter of your own, keep `client.rs`, `options.rs`, `device.rs`, `chip.rs`, `buffer.rs`, \
                 `executable.rs` and\n`launch.rs`: they call the rest in `compile` (`executable.rs`) and in `launch.rs`, which passes the \
                 commands of a program to the\nprocessor's queue. Delete the files of the compiler and of the simulated processor when \
                 nothing calls them any more."
            }
            Self::Tutorial => {
                "`src/lib.rs` is the plugin, as the book's tutorial builds it step by step. Replace `src/processor.rs`, which simulates the \
                 device,\nby your driver, and extend `src/program.rs`, the compiler, by the operations of your device.\n\n\
                 Each device has one queue, for programs and copies, and its arrays are dense. For a copy engine with a queue of \
                 its own, see the\ntemplate `queue`; for tiles and padding, the chapter \"Queues and memory\" of the book."
            }
            Self::Mlir => {
                "Replace `compiler/compiler.cc`, a small compiler without MLIR, by yours: implement the three functions of \
                 `compiler/compiler.h`, and\nlink your libraries in `build.rs`. `compile` in `src/client.rs` says how to pass the \
                 host's bytes to MLIR unchanged. Only `src/compiler.rs`\ncontains `unsafe` code."
            }
        }
    }

    /// Returns `true` if the template builds and calls code in C++.
    pub(super) fn has_foreign_code(self) -> bool {
        self == Self::Mlir
    }

    /// Returns the source files, with their paths in the package.
    pub(super) fn sources(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Hello => sources!("hello": "src/lib.rs" "tests/programs.rs"),
            Self::Queue => sources!("queue":
                "src/array.rs" "src/buffer.rs" "src/chip.rs" "src/client.rs" "src/commands.rs" "src/contraction.rs"
                "src/cost.rs" "src/device.rs" "src/executable.rs" "src/fusion.rs" "src/kernel.rs"
                "src/launch.rs" "src/lib.rs" "src/lowering.rs" "src/movement.rs" "src/operations.rs" "src/options.rs" "src/planner.rs"
                "src/processor.rs" "src/ram.rs" "src/timeline.rs" "tests/programs.rs"
            ),
            Self::Tutorial => sources!("tutorial":
                "src/lib.rs" "src/processor.rs" "src/program.rs" "tests/programs.rs"
            ),
            Self::Mlir => sources!("mlir":
                "build.rs" "compiler/compiler.cc" "compiler/compiler.h"
                "src/client.rs" "src/compiler.rs" "src/executable.rs" "src/lib.rs" "src/options.rs" "tests/programs.rs"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Adds the paths and the texts of the files below a folder, without those that `new` writes itself.
    fn read(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                read(root, &path, files);
            } else if !["Cargo.toml", "README.md"].contains(&&*name) && !name.starts_with("steps/") {
                files.push((name, fs::read_to_string(path).unwrap()));
            }
        }
    }

    #[test]
    fn templates_have_all_files_of_their_examples() {
        for (template, example) in [
            (Template::Hello, "hello"),
            (Template::Queue, "accelerator"),
            (Template::Tutorial, "tutorial"),
            (Template::Mlir, "mlir"),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(example);
            let mut files = Vec::new();
            read(&folder, &folder, &mut files);
            files.sort();
            let own: Vec<(String, String)> = template
                .sources()
                .iter()
                .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
                .collect();
            assert_eq!(own, files, "{}", template.name());
        }
    }
}
