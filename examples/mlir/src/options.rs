//! The compiler options that users set by name.

use pjrt_plugin::{CompileOptions, OptionSpec, Result};

use crate::compiler::CompilerOptions;

/// The options, which JAX sets with `jax.jit(f, compiler_options={"fuse_multiply_add": True})`.
const OPTIONS: &[OptionSpec] =
    &[OptionSpec::boolean("fuse_multiply_add", false, "whether x * y + z is rounded once instead of twice")];

/// Returns the options of a compilation.
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if the host set an option that is not declared, or a value of another type.
pub(crate) fn compiler_options(options: &CompileOptions) -> Result<CompilerOptions> {
    let options = options.compiler_options(OPTIONS)?;
    Ok(CompilerOptions { fuse_multiply_add: options.boolean("fuse_multiply_add")? })
}
