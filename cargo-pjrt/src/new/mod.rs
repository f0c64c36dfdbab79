//! Creates the repository of a new plugin from a template.

mod name;
mod sdk;
mod template;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use name::Name;
pub(crate) use sdk::Sdk;
use template::Template;

/// The arguments of `cargo pjrt new`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Folder of the plugin, which must not exist; its last part is the name of the plugin, such as my-chip
    pub path: PathBuf,
    /// Code to begin with
    #[arg(long, value_enum, default_value_t = Template::Queue)]
    pub template: Template,
    /// Depend on the published crates; otherwise on the checkout that this program was installed from, if it exists
    #[arg(long)]
    pub registry: bool,
    /// Depend on the crates of this checkout of pjrt-plugin
    #[arg(long, value_name = "FOLDER", conflicts_with = "registry")]
    pub sdk: Option<PathBuf>,
}

/// The files that all templates have.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("../../templates/README.md")),
    ("ci.sh", include_str!("../../templates/ci.sh")),
    (".gitignore", "/target/\n/dist/\n"),
    ("rustfmt.toml", "max_width = 110\nuse_small_heuristics = \"Max\"\n"),
];

/// Creates the repository, and prints the next steps.
///
/// # Errors
///
/// Returns an error if the name is invalid, if the folder exists, if there is no SDK to depend on, or if a file cannot
/// be written.
pub fn new(options: &Options) -> Result<(), String> {
    let folder = options.path.file_name().ok_or_else(|| format!("{} has no name", options.path.display()))?;
    let name = Name::new(&folder.to_string_lossy())?;
    let sdk = match (&options.sdk, options.registry) {
        (Some(folder), _) => Sdk::checkout(folder)?,
        (None, true) => Sdk::Registry,
        (None, false) => Sdk::default(),
    };
    if options.path.exists() {
        return Err(format!("{} exists already; expected the path of a new folder", options.path.display()));
    }
    write(&options.path.join("Cargo.toml"), &sdk.manifest(&name, options.template))?;
    for (file, text) in FILES {
        write(&options.path.join(file), &name.fill(text, options.template))?;
    }
    for (file, text) in options.template.sources() {
        write(&options.path.join(file), &name.apply(text, options.template))?;
    }
    make_executable(&options.path.join("ci.sh"))?;
    format_sources(&options.path);
    let has_repository = initialize_git(&options.path);
    println!(
        "Created {} from the template '{}'{}.\n\n{}",
        options.path.display(),
        options.template.name(),
        if has_repository { ", with a Git repository" } else { "" },
        next_steps(&options.path, &name)
    );
    Ok(())
}

/// Returns the commands from the new folder to a program of JAX on the plugin.
fn next_steps(folder: &Path, name: &Name) -> String {
    format!(
        "Next:\n  cd {}\n  cargo build\n  cargo pjrt conform {}\n  \
         cargo pjrt wheel --profile dev    # without --profile, the wheel contains a release build\n  \
         pip install jax dist/*.whl\n  \
         JAX_PLATFORMS={} python -c 'import jax; print(jax.jit(lambda x, y: x + y)(1.0, 1.0))'\n",
        folder.display(),
        Path::new("target/debug").join(name.library()).display(),
        name.platform
    )
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn make_executable(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot make {} executable: {error}", path.display()))
}

/// Formats the sources, whose line breaks depend on the length of the name. Without rustfmt they are left as they are.
fn format_sources(folder: &Path) {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let _ = command.arg("fmt").current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Creates a Git repository, as `cargo new` does, unless the folder is in one or Git is not installed.
fn initialize_git(folder: &Path) -> bool {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    !git(&["rev-parse", "--is-inside-work-tree"]) && git(&["init", "--quiet"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_steps_end_with_a_program_of_jax_on_the_plugin() {
        let steps = next_steps(Path::new("../my-chip"), &Name::new("my-chip").unwrap());
        let mut lines = steps.trim_end().lines().rev();
        let program = lines.next().unwrap();
        assert!(program.contains("JAX_PLATFORMS=my_chip python") && program.contains("jax.jit"), "{program}");
        assert_eq!(lines.next().unwrap().trim(), "pip install jax dist/*.whl");
    }
}
