//! Builds Python wheels of plugins.
//!
//! A wheel contains the plugin's library, the modules by which JAX and PyTorch/XLA find it, and a private copy of
//! the Python package that all plugins share (`python/pjrt_plugin_support` in the sources of this crate).

mod archive;
mod companions;
mod library;
pub(crate) mod linux;
mod manifest;
mod metadata;
pub(crate) mod modules;
mod smoke;

use std::path::{Path, PathBuf};

use archive::Archive;
use manifest::Package;
pub(crate) use smoke::venv;

/// The arguments of `cargo pjrt wheel`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Package of the plugin; by default, the package of the current folder
    #[arg(long, short)]
    pub package: Option<String>,
    /// Manifest of the plugin or of its workspace
    #[arg(long, value_name = "Cargo.toml")]
    pub manifest_path: Option<PathBuf>,
    /// Cargo profile of the build
    #[arg(long, default_value = "release")]
    pub profile: String,
    /// Build with the profile release, which is the default
    #[arg(long, conflicts_with_all = ["profile", "library"])]
    pub release: bool,
    /// Put this library into the wheel instead of building the plugin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "glibc"])]
    pub library: Option<PathBuf>,
    /// Put this library beside the plugin's, with the libraries that it loads and that not every Linux has
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    /// Build for Linux with this version of glibc or newer, with cargo-zigbuild and zig from PyPI
    #[arg(long, value_name = "2.N", value_parser = library::glibc_minor)]
    pub glibc: Option<u32>,
    /// Folder for the wheel
    #[arg(long, default_value = "dist")]
    pub out: PathBuf,
    /// Hosts in which to try the wheel, each in a new virtual environment with its release from PyPI
    #[arg(long, value_enum, value_name = "HOST", default_values_t = [smoke::Host::Jax])]
    pub test: Vec<smoke::Host>,
    /// Do not try the wheel
    #[arg(long, conflicts_with = "test")]
    pub no_test: bool,
    /// Python for the virtual environments
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    pub python: PathBuf,
}

/// Builds the plugin and its wheel, and tries the wheel in hosts.
///
/// # Errors
///
/// Returns an error if the package is not a plugin, if the build fails, if the library exports other symbols than
/// `GetPjrtApi` or requires a newer glibc than requested, if the folder cannot be written, or if a host cannot use
/// the wheel.
pub fn wheel(options: &Options) -> Result<(), String> {
    let package = Package::read(options.manifest_path.as_deref(), options.package.as_deref())?;
    let library = match &options.library {
        Some(library) => library.clone(),
        None => library::build(&package, &options.profile, options.glibc, &options.python)?,
    };
    let wheel = pack(&package, &library, &options.with, options.glibc, &options.out)?;
    println!("Wheel: {}", wheel.display());
    if !options.no_test {
        for host in &options.test {
            smoke::test(&package, &wheel, *host, &options.python)?;
        }
    }
    Ok(())
}

/// Builds the plugin of the current folder with a Cargo profile, and returns the path of its library.
///
/// # Errors
///
/// Returns an error if the folder contains no plugin, or if the build fails.
pub(crate) fn build_current(profile: &str) -> Result<PathBuf, String> {
    let package = Package::read(None, None)
        .map_err(|error| format!("{error}\n(hint: or pass the path of the plugin's library)"))?;
    library::build(&package, profile, None, Path::new("python3"))
}

/// Writes the wheel of a library that is already built, and returns the wheel's path. `with` are libraries that the plugin loads
/// from its folder. With `glibc`, no library may require a newer glibc 2 than this minor version.
///
/// # Errors
///
/// Returns an error if the library is not a plugin for Linux or macOS, or if a file cannot be read or written.
fn pack(
    package: &Package,
    library: &Path,
    with: &[PathBuf],
    glibc: Option<u32>,
    out: &Path,
) -> Result<PathBuf, String> {
    let code = std::fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
    let companions = companions::read(with)?;
    let tag =
        library::tag(&code, &companions, glibc).map_err(|error| format!("{}: {error}", library.display()))?;
    let version = metadata::python_version(&package.version)?;
    let mut archive = Archive::new(package.distribution(), &version, &format!("py3-none-{tag}"));
    modules::add(package, &mut archive)?;
    let folder = format!("jax_plugins/{}", package.settings.name);
    archive.add_library(&format!("{folder}/{}", package.library_file()), code);
    metadata::add(package, &companions, &version, &mut archive)?;
    for companion in companions {
        archive.add_library(&format!("{folder}/{}", companion.name), companion.code);
    }
    archive.write(out)
}
