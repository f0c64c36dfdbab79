//! Measures the time that the plugin adds to a call: the same code is called directly with `iree-runtime`, and through the C API.
//!
//! ```console
//! $ cargo xtask iree --latency
//! ```
//!
//! The program is a product of matrices and a `tanh`. Each time is the best of several rounds.

use std::fs;
use std::time::{Duration, Instant};

use iree_pjrt::Iree;
use iree_runtime::{Array, Driver, ElementType, Program};
use pjrt_testing::host::{Buffer, Launched, LoadedExecutable};
use pjrt_testing::host::{Client, CreateOption, ElementType as HostType, HostArray, Plugin, Value};

/// Few, so that one of the rounds is not interrupted on a busy machine.
const CALLS: u32 = 100;
const ROUNDS: usize = 50;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    println!("{:<12}{:>8}{:>16}{:>16}{:>16}", "device", "size", "waiting for", "runtime", "plugin");
    for device in ["local-task", "local-sync"] {
        for size in [8, 64, 256] {
            for waits in [true, false] {
                let [runtime, plugin] = measure(device, size, waits)?;
                let mode = if waits { "each call" } else { "all at the end" };
                println!("{device:<12}{size:>8}{mode:>16}{:>16}{:>16}", micros(runtime), micros(plugin));
            }
        }
    }
    Ok(())
}

fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

/// Returns the times of a call with the runtime alone and through the plugin.
fn measure(device: &str, size: usize, waits: bool) -> Result<[Duration; 2], Failure> {
    let folder = std::env::temp_dir().join(format!("iree-latency-{}", std::process::id()));
    let option = |name: &str, value: &str| CreateOption::new(name, Value::String(value.to_owned()));
    let client = Plugin::linked(pjrt_plugin::api_table!(Iree))?
        .create_client(&[option("device", device), option("dump", &folder.to_string_lossy())])?;
    let text = format!(
        "func.func @main(%x: tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32> {{
           %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] :
             (tensor<{size}x{size}xf32>, tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
           %1 = stablehlo.tanh %0 : tensor<{size}x{size}xf32>
           return %1 : tensor<{size}x{size}xf32>
         }}"
    );
    let options = pjrt_testing::CompileOptions::default().encode();
    let loaded = client.compile(&pjrt_testing::host::Program::mlir(&text), &options)?;
    let code = dumped_code(&folder);
    fs::remove_dir_all(&folder)?;
    let elements = vec![0; 4 * size * size];
    let mut best = [Duration::MAX; 2];
    let direct = Direct::new(device, size, &code?, &elements)?;
    let through = Through::new(&client, loaded, size, &elements)?;
    for _ in 0..ROUNDS {
        best[0] = best[0].min(direct.time(waits)?);
        best[1] = best[1].min(through.time(waits)?);
    }
    Ok(best)
}

/// Returns the code that the plugin has written to a folder.
fn dumped_code(folder: &std::path::Path) -> Result<Vec<u8>, Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "vmfb") {
            return Ok(fs::read(path)?);
        }
    }
    Err(format!("the plugin wrote no code to {}", folder.display()).into())
}

/// The program in the runtime.
struct Direct {
    program: Program,
    x: Array,
}

impl Direct {
    fn new(device: &str, size: usize, code: &[u8], elements: &[u8]) -> Result<Self, Failure> {
        let device = Driver::open(device)?.device(0)?;
        let x = Array::upload(&device, ElementType::F32, &[size, size], elements)?;
        Ok(Self { program: Program::load(&device, code)?, x })
    }

    fn time(&self, waits: bool) -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let call = self.program.call(&[&self.x])?;
            if waits {
                call.done.wait()?;
            } else {
                calls.push(call);
            }
        }
        calls.iter().try_for_each(|call| call.done.wait())?;
        Ok(start.elapsed() / CALLS)
    }
}

/// The program in the plugin.
struct Through {
    program: LoadedExecutable,
    x: Buffer,
}

impl Through {
    fn new(
        client: &Client,
        program: LoadedExecutable,
        size: usize,
        elements: &[u8],
    ) -> Result<Self, Failure> {
        let dims = [i64::try_from(size)?; 2];
        let array = HostArray::new(elements, HostType::F32, &dims);
        let x = client.upload(&array, Some(client.device()?), None)?;
        Ok(Self { program, x: x.buffer })
    }

    fn time(&self, waits: bool) -> Result<Duration, Failure> {
        let done = |launched: &Launched| launched.done[0].wait();
        let call = || {
            let launched = self.program.launch_into(1, &[vec![&self.x]], &Default::default(), None, true);
            launched.map_err(|refused| refused.error)
        };
        let start = Instant::now();
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            let launched = call()?;
            if waits {
                done(&launched)?;
            } else {
                calls.push(launched);
            }
        }
        calls.iter().try_for_each(done)?;
        Ok(start.elapsed() / CALLS)
    }
}
