//! `cargo xtask demo`: JAX trains a classifier on refcpu.

use anyhow::Result;

use crate::environment::run::run;
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::wheel;

/// Builds the wheel, installs it with JAX, and trains on refcpu and on XLA's CPU backend.
pub(crate) fn train_digits() -> Result<()> {
    let root = workspace::root();
    let wheel = wheel::build(wheel::Profile::Release, &root.join("dist"))?;
    let venv = Venv::with_requirements_file("demo", "examples/refcpu/python/demo/requirements.txt")?;
    venv.install_wheel(&wheel)?;
    let out = root.join("demo-out");
    std::fs::create_dir_all(&out)?;
    run(venv
        .python()
        .arg(root.join("examples/refcpu/python/demo/digits.py"))
        .args(["--platforms", "refcpu,cpu", "--picture"])
        .arg(out.join("digits.png")))
}
