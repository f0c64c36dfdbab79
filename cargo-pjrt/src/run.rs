//! Runs a program on a plugin.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::compile_options::CompileOptions;
use crate::host::{
    Buffer, Client, CreateOption, ElementType, ExecuteOptions, HostArray, LoadedExecutable, Plugin, Program,
};
use crate::npy::{self, Array};
use crate::{child, number, output};

/// The arguments of `cargo pjrt run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Program to run: StableHLO as text or bytecode, or a serialized HloModuleProto
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

/// A program with its compile options and arguments.
struct Job {
    path: PathBuf,
    code: Vec<u8>,
    format: String,
    options: Vec<u8>,
}

/// Compiles a program, runs it, and prints or writes its results.
///
/// # Errors
///
/// Returns an error that names the file, or the parameter, or contains the plugin's message.
pub fn run(options: &Options) -> Result<(), String> {
    let job = Job::new(options)?;
    let parameters = job.parameters()?;
    let arguments = match &options.replay {
        Some(folder) => replayed_arguments(folder, &parameters)?,
        None => arguments(&options.args, &parameters)?,
    };
    child::next("loading the plugin");
    let plugin = Plugin::load(&options.plugin).map_err(|error| located(&options.plugin, &error))?;
    let text = |error: crate::host::Error| error.to_string();
    child::next("initializing the plugin");
    plugin.initialize().map_err(text)?;
    child::next("creating a client");
    let client = plugin.create_client(&options.options).map_err(text)?;
    child::next("compiling the program");
    let program = Program { code: &job.code, format: &job.format };
    let executable = client.compile(&program, &job.options).map_err(text)?;
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
            let lines = lines.map(|(index, result)| format!("result {index}: {}\n", shown(result)));
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
    fn new(options: &Options) -> Result<Self, String> {
        if let Some(from) = &options.replay {
            let format = String::from_utf8_lossy(&read(&from.join(folder::FORMAT))?).trim().to_owned();
            let compile_options = read(&from.join(folder::OPTIONS))?;
            let path = from.join(folder::PROGRAM);
            return Ok(Self { code: read(&path)?, path, format, options: compile_options });
        }
        let path = options.program.clone().unwrap_or_default();
        let code = read(&path)?;
        let text = std::str::from_utf8(&code).is_ok_and(|text| !text.contains('\0'));
        if text && code.starts_with(b"HloModule ") {
            return Err(located(
                &path,
                &"this is HLO text, which plugins do not accept; pass a serialized HloModuleProto",
            ));
        }
        let guessed = if text || code.starts_with(b"ML\xefR") { "mlir" } else { "hlo" };
        let format = options.format.clone().unwrap_or_else(|| guessed.to_owned());
        Ok(Self { path, code, format, options: CompileOptions::default().encode() })
    }

    /// Returns the types and dimensions of the program's parameters.
    fn parameters(&self) -> Result<Vec<(ElementType, Vec<i64>)>, String> {
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
        let module =
            module.map_err(|error| format!("{}: cannot read the program: {error}", self.path.display()))?;
        let main = module.main().ok_or("the program has no function main")?;
        let parameter = |(index, ty): (usize, &pjrt_stablehlo::ir::Type)| {
            let array = ty.as_tensor().and_then(|tensor| {
                let name = tensor.element_type().to_string();
                Some((ElementType::by_name(&name)?, tensor.static_dims()?.to_vec()))
            });
            array.ok_or_else(|| {
                format!("parameter {index} has type {ty}; expected an array with static dimensions")
            })
        };
        main.argument_types().iter().enumerate().map(parameter).collect()
    }
}

fn size_of((element_type, dims): &(ElementType, Vec<i64>)) -> Result<usize, String> {
    let size = dims.iter().try_fold(element_type.byte_size(), |size, dim| {
        usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
    });
    size.ok_or_else(|| format!("the array {element_type}{dims:?} is too large"))
}

/// Checks one value of `--args` on the command line.
fn argument(word: &str) -> Result<String, String> {
    if fill_by_name(word).is_some() || word.ends_with(".npy") || Path::new(word).exists() {
        return Ok(word.to_owned());
    }
    Err("neither an existing file nor one of zeros, ones, random".to_owned())
}

/// Returns the arrays for the parameters that the command line describes.
fn arguments(words: &[String], parameters: &[(ElementType, Vec<i64>)]) -> Result<Vec<Array>, String> {
    let all = match words {
        [word] => fill_by_name(word),
        _ => None,
    };
    if let Some(fill) = all {
        let array = |(index, parameter): (usize, &(ElementType, Vec<i64>))| {
            let mut bytes = vec![0; size_of(parameter)?];
            fill(parameter.0, index as u64, &mut bytes)
                .map_err(|why| format!("parameter {index}: {why}; pass .npy files instead"))?;
            Ok(Array { element_type: parameter.0, dims: parameter.1.clone(), bytes })
        };
        return parameters.iter().enumerate().map(array).collect();
    }
    if let Some(word) = words.iter().find(|word| fill_by_name(word).is_some()) {
        return Err(format!(
            "{word:?} applies to all parameters and must be the only argument; otherwise, pass one .npy file per parameter"
        ));
    }
    if words.len() != parameters.len() {
        return Err(format!(
            "the program has {} parameters, but {} files were given",
            parameters.len(),
            words.len()
        ));
    }
    let array = |(word, parameter): (&String, &(ElementType, Vec<i64>))| {
        let array = npy::read(Path::new(word), parameter.0).map_err(|error| format!("{word}: {error}"))?;
        matching(array, parameter).map_err(|error| format!("{word}: {error}"))
    };
    words.iter().zip(parameters).map(array).collect()
}

fn replayed_arguments(from: &Path, parameters: &[(ElementType, Vec<i64>)]) -> Result<Vec<Array>, String> {
    let from = from.join(folder::ARGUMENTS);
    if !from.exists() {
        return arguments(&["zeros".to_owned()], parameters);
    }
    let array = |(index, parameter): (usize, &(ElementType, Vec<i64>))| {
        let path = from.join(format!("{index}.npy"));
        let array = npy::read(&path, parameter.0).map_err(|error| located(&path, &error))?;
        matching(array, parameter).map_err(|error| located(&path, &error))
    };
    parameters.iter().enumerate().map(array).collect()
}

fn matching(array: Array, parameter: &(ElementType, Vec<i64>)) -> Result<Array, String> {
    if (array.element_type, &array.dims) == (parameter.0, &parameter.1) {
        return Ok(array);
    }
    let (element_type, dims) = parameter;
    Err(format!(
        "the array has type {}{:?}, but the parameter has type {element_type}{dims:?}",
        array.element_type, array.dims
    ))
}

/// A function that fills an array; its second argument, the seed, is the parameter's number.
type Fill = fn(ElementType, u64, &mut [u8]) -> Result<(), String>;

fn fill_by_name(word: &str) -> Option<Fill> {
    match word {
        "zeros" => Some(|_, _, _| Ok(())),
        "ones" => Some(|element_type, _, bytes| fill_with(element_type, bytes, || 1.0)),
        "random" => Some(|element_type, seed, bytes| {
            let mut state = seed;
            fill_with(element_type, bytes, || uniform(&mut state))
        }),
        _ => None,
    }
}

/// Returns the next number between -1 and 1 of a SplitMix64 sequence. Equal seeds give equal sequences.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Fills an array with numbers. Integers are scaled to the range from -8 to 8.
fn fill_with(
    element_type: ElementType,
    bytes: &mut [u8],
    mut next: impl FnMut() -> f64,
) -> Result<(), String> {
    let name = element_type.name();
    let integer = |number: f64| if number == 1.0 { 1 } else { (number * 8.0) as i64 };
    let part = match name {
        "complex<f32>" => 4,
        "complex<f64>" => 8,
        _ => element_type.byte_size().max(1),
    };
    for element in bytes.chunks_exact_mut(part) {
        let number = next();
        if number::set_real(name, element, number) {
            continue;
        }
        match name {
            "i1" => element[0] = (integer(number) & 1) as u8,
            _ if name.starts_with("ui") => {
                element.copy_from_slice(&integer(number).unsigned_abs().to_le_bytes()[..part]);
            }
            _ if name.starts_with('i') => element.copy_from_slice(&integer(number).to_le_bytes()[..part]),
            _ => return Err(format!("cannot generate numbers of type {name}")),
        }
    }
    Ok(())
}

fn execute(
    client: &Client,
    executable: &LoadedExecutable,
    arguments: &[Array],
) -> crate::host::Result<Vec<Array>> {
    let devices = executable.devices()?;
    let mut by_device: Vec<Vec<Buffer>> = Vec::new();
    for device in &devices {
        let upload = |array: &Array| {
            let array = HostArray::new(&array.bytes, array.element_type, &array.dims);
            client.upload(&array, Some(*device), None).map(|uploaded| uploaded.buffer)
        };
        by_device.push(arguments.iter().map(upload).collect::<crate::host::Result<_>>()?);
    }
    let lists: Vec<Vec<&Buffer>> = by_device.iter().map(|list| list.iter().collect()).collect();
    let launched =
        executable.launch(&lists, &ExecuteOptions::default(), None, true).map_err(|refused| refused.error)?;
    for done in &launched.done {
        done.wait()?;
    }
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

/// Formats an array for printing: its type and its first elements.
fn shown(array: &Array) -> String {
    const SHOWN: usize = 16;
    let dims: String = array.dims.iter().map(|dim| format!("{dim}x")).collect();
    let name = array.element_type.name();
    let mut text = format!("tensor<{dims}{name}> [");
    let size = array.element_type.byte_size().max(1);
    for (index, element) in array.bytes.chunks_exact(size).take(SHOWN).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{}", element_text(name, element));
    }
    let more = if array.bytes.len() / size > SHOWN { ", ..." } else { "" };
    text + more + "]"
}

/// Formats an element as a number, or as its bits if this crate does not compute with its type.
pub(crate) fn element_text(name: &str, bytes: &[u8]) -> String {
    match number::reals(name, bytes).as_deref() {
        // An f32 is printed as f32, which has fewer digits than f64.
        Some([real]) if name != "f64" => return (*real as f32).to_string(),
        Some([real]) => return real.to_string(),
        Some([real, imaginary]) if name == "complex<f32>" => {
            return format!("({}, {})", *real as f32, *imaginary as f32);
        }
        Some([real, imaginary]) => return format!("({real}, {imaginary})"),
        _ => {}
    }
    let mut wide = [0_u8; 8];
    let len = bytes.len().min(8);
    wide[..len].copy_from_slice(&bytes[..len]);
    let unsigned = u64::from_le_bytes(wide);
    let shift = 64 - 8 * len.max(1);
    match name {
        "i1" => (unsigned != 0).to_string(),
        _ if name.starts_with("ui") => unsigned.to_string(),
        _ if name.starts_with('i') => ((unsigned << shift) as i64 >> shift).to_string(),
        _ => format!("{unsigned:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_arguments_are_the_same_every_time_and_differ_between_parameters() {
        let parameters = vec![(ElementType::F32, vec![8]), (ElementType::F32, vec![8])];
        let once = arguments(&["random".into()], &parameters).unwrap();
        assert_eq!(once, arguments(&["random".into()], &parameters).unwrap());
        assert_ne!(once[0].bytes, once[1].bytes);
        let first = f32::from_le_bytes(*once[0].bytes.first_chunk().unwrap());
        assert!((-1.0..1.0).contains(&first) && first != 0.0, "{first}");
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_by_name() {
        let parameters = vec![(ElementType::F32, vec![8])];
        let error = arguments(&["a.npy".into(), "b.npy".into()], &parameters).unwrap_err();
        assert!(error.contains("1 parameters"), "{error}");
        let f8 = vec![(ElementType::by_name("f8E5M2").unwrap(), vec![1])];
        assert!(arguments(&["random".into()], &f8).unwrap_err().contains("f8E5M2"));
    }

    #[test]
    fn elements_are_shown_as_numbers() {
        let array = Array {
            element_type: ElementType::S32,
            dims: vec![2],
            bytes: [1_i32, -2].map(i32::to_le_bytes).concat(),
        };
        assert_eq!(shown(&array), "tensor<2xi32> [1, -2]");
        let truth = Array { element_type: ElementType::PRED, dims: vec![], bytes: vec![1] };
        assert_eq!(shown(&truth), "tensor<i1> [true]");
    }
}
