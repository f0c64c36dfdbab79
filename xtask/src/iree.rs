//! `cargo xtask iree`: builds the plugin around IREE, in a workspace of its own, with the tools that it needs.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::environment::run::{output, run};
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::wheel;

/// The compiler, which has the version of the runtime in `eerie-sys`, and the tools that build the runtime.
const REQUIREMENTS: &str = "iree-base-compiler==3.13.0\ncmake==4.4.5\nlibclang==18.1.1\nninja==1.13.2\n";

/// The packages with the headers of CUDA and its library of device functions, for which IREE's build looks.
const CUDA_REQUIREMENTS: &str =
    "nvidia-cuda-runtime-cu12==12.9.79\nnvidia-cuda-nvcc-cu12==12.9.86\nnvidia-cuda-cccl-cu12==12.9.27\n";

/// The path of the compiler in the folder of Python's packages.
const COMPILER: &str = "iree/compiler/_mlir_libs/libIREECompiler.so";

/// The options of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// The devices besides the processor: vulkan, cuda
    #[arg(long, value_delimiter = ',', default_value = "vulkan")]
    devices: Vec<String>,
    /// Run the tests of the plugin and of its runtime layer
    #[arg(long)]
    test: bool,
    /// Run clippy and rustdoc on both, with warnings as errors
    #[arg(long)]
    lint: bool,
    /// Measure the time that the plugin adds to a call
    #[arg(long)]
    latency: bool,
    /// Build the wheel pjrt-iree into dist/
    #[arg(long)]
    wheel: bool,
}

/// Builds the plugin, and prints how to use it.
pub(crate) fn build(options: &Options) -> Result<()> {
    let start = Instant::now();
    let built = build_and_check(options)?;
    println!("Built in {} s. To use the plugin with JAX:", start.elapsed().as_secs());
    println!("export PJRT_NAMES_AND_LIBRARY_PATHS=iree:{} JAX_PLATFORMS=iree", built.library.display());
    println!("export IREE_COMPILER_LIBRARY={}", built.compiler.display());
    if options.wheel {
        pack(&built.library)?;
    }
    Ok(())
}

/// Builds the plugin with the devices of the default, and its wheel, and returns the path of the wheel.
pub(crate) fn wheel() -> Result<PathBuf> {
    let devices = vec!["vulkan".to_owned()];
    let built = build_and_check(&Options { devices, test: false, lint: false, latency: false, wheel: true })?;
    pack(&built.library)
}

/// Writes the wheel of a library into dist/.
fn pack(library: &Path) -> Result<PathBuf> {
    wheel::pack_manifest(
        "examples/iree/Cargo.toml",
        "iree-pjrt",
        library,
        &[],
        &workspace::root().join("dist"),
    )
}

/// The files that a build provides.
struct Built {
    library: PathBuf,
    compiler: PathBuf,
}

/// Builds the plugin, and runs the checks of the options.
fn build_and_check(options: &Options) -> Result<Built> {
    let venv = Venv::with_requirements("iree", REQUIREMENTS)?;
    let packages = packages(&venv)?;
    let has_cuda = options.devices.iter().any(|device| device == "cuda");
    let cuda = has_cuda.then(cuda_toolkit).transpose()?;
    let target = workspace::target().join("iree");
    if !target.exists() {
        println!(
            "Building IREE's runtime into {}; the first time, this takes 4 minutes on two cores",
            target.display()
        );
    }
    let compiler = packages.join(COMPILER);
    let cargo = |verb: &[&str]| -> Result<Command> {
        let mut command = workspace::cargo();
        command.args(verb).args(["--release", "--manifest-path", "examples/iree/Cargo.toml", "--workspace"]);
        command.arg("--target-dir").arg(&target).arg("--features").arg(options.devices.join(","));
        command.env("PATH", path_with(&venv)?).env("LIBCLANG_PATH", packages.join("clang/native"));
        command.env("BINDGEN_EXTRA_CLANG_ARGS", headers()?).env("CMAKE_GENERATOR", "Ninja");
        command.env("IREE_COMPILER_LIBRARY", &compiler);
        command.envs(cuda.iter().map(|folder| ("IREE_CUDA_DEPS_DIR", folder)));
        Ok(command)
    };
    let checked = |command: &mut Command| -> Result<()> {
        run(command)?;
        keep_build_scripts(&target)
    };
    checked(&mut cargo(&["build"])?)?;
    if options.lint {
        checked(cargo(&["clippy", "--all-targets"])?.args(["--", "-D", "warnings"]))?;
        checked(cargo(&["doc", "--no-deps"])?.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    if options.test {
        checked(&mut cargo(&["test"])?)?;
    }
    if options.latency {
        checked(&mut cargo(&["build", "--examples"])?)?;
        run(Command::new(target.join("release/examples/latency")).env("IREE_COMPILER_LIBRARY", &compiler))?;
    }
    Ok(Built { library: target.join("release").join("libiree_pjrt.so"), compiler })
}

/// Returns the folder of Python's packages.
fn packages(venv: &Venv) -> Result<PathBuf> {
    let purelib = "import sysconfig; print(sysconfig.get_path('purelib'))";
    Ok(PathBuf::from(output(venv.python().args(["-c", purelib]))?.trim()))
}

/// Returns a folder with the parts of NVIDIA's toolkit that IREE's build needs, from PyPI. IREE would download them from NVIDIA.
fn cuda_toolkit() -> Result<PathBuf> {
    let packages = packages(&Venv::with_requirements("iree-cuda", CUDA_REQUIREMENTS)?)?.join("nvidia");
    let folder = workspace::target().join("iree-cuda");
    // The headers of the runtime include those of the compiler and of the core libraries.
    for package in ["cuda_runtime/include", "cuda_nvcc/include", "cuda_cccl/include", "cuda_nvcc/nvvm"] {
        let package = packages.join(package);
        let links = folder.join(package.file_name().context("a package has a name")?);
        fs::create_dir_all(&links)?;
        for entry in fs::read_dir(&package)? {
            let entry = entry?;
            let link = links.join(entry.file_name());
            if !link.exists() {
                std::os::unix::fs::symlink(entry.path(), link)?;
            }
        }
    }
    Ok(folder)
}

/// Returns `PATH` with the programs of the environment first.
fn path_with(venv: &Venv) -> Result<OsString> {
    let programs = venv.program("cmake").parent().context("a program is in a folder")?.to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&path)))?)
}

/// Returns the option for the headers of the C compiler, which libclang's package lacks.
fn headers() -> Result<String> {
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let include =
        output(Command::new(cc).arg("-print-file-name=include")).context("a C compiler is needed")?;
    Ok(format!("-I{}", include.trim()))
}

/// Marks the build scripts as up to date. The script of `eerie-sys` lets Cargo watch headers that it generates itself, so every
/// build would begin with that of IREE's runtime.
///
/// Cargo compares the times of the headers with that of the file `output`, which is the start of the script. It becomes the end
/// of the script, the time of `root-output`: a later time would be after that of the crates that depend on the script, and Cargo
/// would build these again.
fn keep_build_scripts(target: &Path) -> Result<()> {
    let scripts = target.join("release/build");
    for entry in fs::read_dir(&scripts).with_context(|| format!("cannot read {}", scripts.display()))? {
        let folder = entry?.path();
        let (output, end) = (folder.join("output"), folder.join("root-output"));
        if output.exists() && end.exists() {
            let end = fs::metadata(&end)?.modified()?;
            File::options().append(true).open(&output)?.set_modified(end)?;
        }
    }
    Ok(())
}
