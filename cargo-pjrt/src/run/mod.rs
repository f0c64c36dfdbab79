//! Runs a program on a plugin.

mod arguments;
pub(crate) mod features;
mod programs;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use arguments::replayed_arguments;
use arguments::{argument, arguments};
pub(crate) use programs::programs;

use crate::array::{Array, array_text, npy};
use crate::process::{child, output, usable_folder};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, CreateOption, ElementType, ExecuteOptions, HostArray, Launched, LoadedExecutable, Plugin,
    Program,
};

/// The arguments of `cargo pjrt run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Program to run: StableHLO as text or bytecode, a serialized export of JAX, or a serialized HloModuleProto
    #[arg(required_unless_present = "replay")]
    pub program: Option<PathBuf>,
    /// Path of the plugin's shared library
    #[arg(long, env = "PJRT_PLUGIN")]
    pub plugin: PathBuf,
    /// Arguments: "zeros", "ones" or "random" for all parameters, or one .npy file per parameter
    #[arg(long, num_args = 1.., default_value = "zeros", value_parser = argument)]
    pub args: Vec<String>,
    /// Write the results to this folder, as result_0.npy and so on, instead of printing them
    #[arg(long)]
    pub dump: Option<PathBuf>,
    /// Repeat a failed run from the folder that it left, which contains the program, its options and
    /// arguments
    #[arg(long, conflicts_with = "program")]
    pub replay: Option<PathBuf>,
    /// Format of the program: mlir, hlo or hlo_with_config; detected by default
    #[arg(long, value_parser = ["mlir", "hlo", "hlo_with_config"])]
    pub format: Option<String>,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<CreateOption>,
    /// Number of times to run the program
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: u64,
    /// Time limit of each step, such as one execution, in seconds
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// The names of the files in a folder for `--replay`.
pub mod folder {
    /// The program's bytes.
    pub const PROGRAM: &str = "program";
    /// The program's format, as text.
    pub const FORMAT: &str = "format";
    /// The host's compile options.
    pub const OPTIONS: &str = "options.pb";
    /// The arguments: `arguments/0.npy` and so on. Absent if the program failed to compile.
    pub const ARGUMENTS: &str = "arguments";
}

/// A program with its compile options.
pub(crate) struct Job {
    path: PathBuf,
    pub(crate) code: Vec<u8>,
    pub(crate) format: String,
    pub(crate) options: Vec<u8>,
}

/// Compiles a program, runs it, and prints or writes its results.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written, if an argument does not fit its parameter, or if the plugin cannot be
/// loaded or reports an error. The error names the file or the parameter, or contains the plugin's message.
pub fn run(options: &Options) -> Result<(), String> {
    let job = match &options.replay {
        Some(folder) => Job::of_folder(folder)?,
        None => Job::of_file(&options.program.clone().unwrap_or_default(), options.format.as_deref())?,
    };
    let parameters = job.parameters()?;
    if let Some(folder) = &options.dump {
        usable_folder(folder)?;
    }
    let arguments = match &options.replay {
        Some(folder) => replayed_arguments(&folder.join(folder::ARGUMENTS), &parameters)?,
        None => arguments(&options.args, &parameters)?,
    };
    child::next("loading the plugin");
    let plugin = Plugin::load(&options.plugin).map_err(|error| located(&options.plugin, &error))?;
    let text = |error: pjrt_testing::host::Error| error.to_string();
    child::next("initializing the plugin");
    plugin.initialize().map_err(text)?;
    child::next("creating a client");
    let client = plugin.create_client(&options.options).map_err(text)?;
    child::next("compiling the program");
    let executable = client.compile(&job.program(), &job.options).map_err(text)?;
    child::next("running the program");
    let mut results = execute(&client, &executable, &arguments).map_err(text)?;
    for _ in 1..options.repeat {
        child::next("running the program");
        results = execute(&client, &executable, &arguments).map_err(text)?;
    }
    match &options.dump {
        Some(folder) => write_all(folder, &results)?,
        None => {
            let lines = results.iter().enumerate();
            let lines = lines.map(|(index, result)| format!("result {index}: {}\n", array_text(result)));
            output::print(&lines.collect::<String>())?;
        }
    }
    child::next("destroying the program and the client");
    drop((executable, client));
    Ok(())
}

fn located(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| located(path, &error))
}

impl Job {
    /// Reads a folder for `--replay`.
    pub(crate) fn of_folder(from: &Path) -> Result<Self, String> {
        let format = String::from_utf8_lossy(&read(&from.join(folder::FORMAT))?).trim().to_owned();
        let options = read(&from.join(folder::OPTIONS))?;
        let path = from.join(folder::PROGRAM);
        Ok(Self { code: read(&path)?, path, format, options })
    }

    /// Reads a program, in this format or in the one that it appears to have, with the compile options of the file beside
    /// it that ends with `.options.pb`, or with default options.
    pub(crate) fn of_file(path: &Path, format: Option<&str>) -> Result<Self, String> {
        let code = read(path)?;
        // Plugins accept programs, not exports.
        let code = match pjrt_stablehlo::program_of_jax_export(&code.as_slice().into()) {
            Some(program) => program.to_vec(),
            None => code,
        };
        let text = std::str::from_utf8(&code).is_ok_and(|text| !text.contains('\0'));
        if text && code.starts_with(b"HloModule ") {
            return Err(located(
                path,
                &"this is HLO text, which plugins do not accept; pass a serialized HloModuleProto",
            ));
        }
        let guessed = if text || code.starts_with(b"ML\xefR") { "mlir" } else { "hlo" };
        let options = match programs::options_beside(path) {
            Some(options) => read(&options)?,
            None => CompileOptions::default().encode(),
        };
        let (path, format) = (path.to_owned(), format.unwrap_or(guessed).to_owned());
        Ok(Self { path, code, format, options })
    }

    /// Creates the job of a StableHLO program as text.
    pub(crate) fn of_text(text: &str) -> Self {
        let (path, format) = (PathBuf::from("program"), "mlir".to_owned());
        Self { path, code: text.into(), format, options: CompileOptions::default().encode() }
    }

    /// Returns the program for the plugin.
    pub(crate) fn program(&self) -> Program<'_> {
        Program { code: &self.code, format: &self.format }
    }

    /// Returns random arguments, the same each time.
    pub(crate) fn random_arguments(&self) -> Result<Vec<Array>, String> {
        arguments(&["random".to_owned()], &self.parameters()?)
    }

    /// Returns the job with these compile options.
    pub(crate) fn with_options(self, options: Vec<u8>) -> Self {
        Self { options, ..self }
    }

    /// Creates the job of a program that a host compiled.
    pub(crate) fn of_host(path: &Path, code: Vec<u8>, format: String, options: Vec<u8>) -> Self {
        Self { path: path.to_owned(), code, format, options }
    }

    /// Writes a folder for `--replay`, without arguments.
    pub(crate) fn write(&self, to: &Path) -> Result<(), String> {
        std::fs::create_dir_all(to).map_err(|error| located(to, &error))?;
        let files: [(&str, &[u8]); 3] = [
            (folder::PROGRAM, &self.code),
            (folder::FORMAT, self.format.as_bytes()),
            (folder::OPTIONS, &self.options),
        ];
        for (name, bytes) in files {
            let path = to.join(name);
            std::fs::write(&path, bytes).map_err(|error| located(&path, &error))?;
        }
        Ok(())
    }

    /// Reads and verifies the program.
    pub(crate) fn module(&self) -> Result<pjrt_stablehlo::Module, String> {
        let code = self.code.clone();
        let module = match self.format.as_str() {
            "mlir" => pjrt_stablehlo::parse(code),
            "hlo" => pjrt_stablehlo::parse_hlo(code),
            "hlo_with_config" => pjrt_stablehlo::parse_hlo_with_config(code),
            other => {
                return Err(format!(
                    "unknown program format {other:?}; the formats are mlir, hlo and hlo_with_config"
                ));
            }
        };
        module.map_err(|error| format!("{}: cannot read the program: {error}", self.path.display()))
    }

    /// Returns the types and dimensions of the program's parameters.
    pub(crate) fn parameters(&self) -> Result<Vec<(ElementType, Vec<i64>)>, String> {
        let module = self.module()?;
        let main = module.main().ok_or("the program has no function main")?;
        let parameter = |(index, ty): (usize, &pjrt_stablehlo::ir::Type)| {
            let array = ty.as_tensor().and_then(|tensor| {
                let name = tensor.element_type().to_string();
                Some((ElementType::by_stablehlo_name(&name)?, tensor.static_dims()?.to_vec()))
            });
            array.ok_or_else(|| {
                format!("parameter {index} has type {ty}; expected an array with static dimensions")
            })
        };
        main.argument_types().iter().enumerate().map(parameter).collect()
    }
}

/// Uploads the arguments to every device of a program, executes the program once, and waits for its end.
pub(crate) fn launch(
    client: &Client,
    executable: &LoadedExecutable,
    arguments: &[Array],
) -> pjrt_testing::host::Result<Launched> {
    let devices = executable.devices()?;
    let mut by_device: Vec<Vec<Buffer>> = Vec::new();
    for device in &devices {
        let upload = |array: &Array| {
            let array = HostArray::new(&array.bytes, array.element_type, &array.dims);
            client.upload(&array, Some(*device), None).map(|uploaded| uploaded.buffer)
        };
        by_device.push(arguments.iter().map(upload).collect::<pjrt_testing::host::Result<_>>()?);
    }
    let lists: Vec<Vec<&Buffer>> = by_device.iter().map(|list| list.iter().collect()).collect();
    let launched =
        executable.launch(&lists, &ExecuteOptions::default(), None, true).map_err(|refused| refused.error)?;
    for done in &launched.done {
        done.wait()?;
    }
    Ok(launched)
}

/// Executes a program as [`launch`] does, and reads its results.
pub(crate) fn execute(
    client: &Client,
    executable: &LoadedExecutable,
    arguments: &[Array],
) -> pjrt_testing::host::Result<Vec<Array>> {
    let launched = launch(client, executable, arguments)?;
    let result = |buffer: &Buffer| {
        Ok(Array { element_type: buffer.element_type()?, dims: buffer.dims()?, bytes: buffer.read()? })
    };
    launched.outputs.iter().flatten().map(result).collect()
}

fn write_all(to: &Path, results: &[Array]) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|error| located(to, &error))?;
    for (index, result) in results.iter().enumerate() {
        npy::write(&to.join(format!("result_{index}.npy")), result)?;
    }
    Ok(())
}
