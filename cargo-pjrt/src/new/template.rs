//! The templates, which are the examples of the repository.

/// The code that a new plugin begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// The smallest complete plugin, in one file: a device that adds, on the host's thread
    Hello,
    /// Devices with their own memories and command queues, and a compiler for StableHLO's core
    Queue,
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
        }
    }

    /// Returns the name of the example in the sources.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Queue => "accelerator",
        }
    }

    /// Returns the description of the new package.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Hello => "A PJRT plugin",
            Self::Queue => "A PJRT plugin for devices with memories and command queues",
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
                 by\nyour driver and your compiler. The others show how allocation, queues, copies, donation and errors fit together."
            }
        }
    }

    /// Returns the source files.
    pub(super) fn sources(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Hello => sources!("hello": "lib.rs"),
            Self::Queue => sources!("queue":
                "arithmetic.rs" "array.rs" "buffer.rs" "chip.rs" "client.rs" "commands.rs" "contraction.rs"
                "cost.rs" "device.rs" "element_type.rs" "executable.rs" "fusion.rs" "indexing.rs" "kernel.rs"
                "launch.rs" "lib.rs" "lowering.rs" "movement.rs" "operations.rs" "options.rs" "planner.rs"
                "processor.rs" "ram.rs" "timeline.rs"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn templates_have_all_files_of_their_examples() {
        for template in [Template::Hello, Template::Queue] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../examples")
                .join(template.example())
                .join("src");
            let mut files: Vec<(String, String)> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap())
                .map(|entry| {
                    (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
                })
                .collect();
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
