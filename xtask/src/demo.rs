//! `cargo xtask demo`: JAX trains a classifier on refcpu or another plugin.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::environment::run::run;
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::{iree, wheel};

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// The plugin, which the task builds
    #[arg(long, value_enum, default_value_t = Plugin::Refcpu)]
    plugin: Plugin,
    /// The kind of devices of the plugin around IREE
    #[arg(long, default_value = "local-task")]
    device: String,
    /// Use this wheel of the plugin instead of building it
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
}

/// The plugins that the task can build.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Plugin {
    Refcpu,
    Iree,
}

/// Builds the wheel, installs it with JAX, and trains on the plugin and on XLA's CPU backend.
pub(crate) fn train_digits(options: &Options) -> Result<()> {
    let root = workspace::root();
    let wheel = match (&options.wheel, options.plugin) {
        (Some(wheel), _) => std::path::absolute(wheel)?,
        (None, Plugin::Refcpu) => wheel::build(wheel::Profile::Release, &root.join("dist"))?,
        (None, Plugin::Iree) => iree::wheel()?,
    };
    let (name, picture) = match options.plugin {
        Plugin::Refcpu => ("refcpu", "digits.png".to_owned()),
        Plugin::Iree => ("iree", format!("digits-iree-{}.png", options.device)),
    };
    let venv = Venv::with_requirements_file("demo", "examples/refcpu/python/demo/requirements.txt")?;
    if options.plugin == Plugin::Iree {
        // The wheel requires the compiler.
        venv.pip_install(&[&wheel.to_string_lossy()])?;
    }
    venv.install_wheel(&wheel)?;
    let out = root.join("demo-out");
    std::fs::create_dir_all(&out)?;
    let mut command = venv.python();
    command.arg(root.join("examples/refcpu/python/demo/digits.py"));
    command.arg("--platforms").arg(format!("{name},cpu")).arg("--picture").arg(out.join(picture));
    if options.plugin == Plugin::Iree {
        command.env("JAX_PJRT_CLIENT_CREATE_OPTIONS", format!("device:{}", options.device));
    }
    run(&mut command)
}
