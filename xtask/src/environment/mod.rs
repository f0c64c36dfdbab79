//! The environment of the tasks: the repository, the commands that they run, and Python.

mod debian;
pub(crate) mod python;
pub(crate) mod run;
pub(crate) mod tool;
pub(crate) mod venv;
pub(crate) mod workspace;
