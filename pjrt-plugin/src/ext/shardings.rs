//! The Shardings extension, which returns the shardings of a program's parameters and outputs.

use std::ptr;

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_Shardings, PJRT_Shardings_Extension,
    PJRT_Shardings_PJRT_Executable_OutputShardings_Args,
    PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, SizedStruct,
};

use crate::abi::args::{View, handle, output};
use crate::abi::c_arrays::Strings;
use crate::abi::executable::ExecutableState;
use crate::abi::guard::shim;
use crate::client::PjrtClient;
use crate::error::{Error, Result};
use crate::sharding::Sharding;

/// Returns the shardings of parameters and outputs to hosts (`PJRT_Shardings_Extension`). See the
/// [example](crate::ext#example).
///
/// If programs have a single partition, `impl Shardings for MyClient {}` is sufficient. Without this extension, hosts convert the optimized program to HLO and search that for shardings, several times for each
/// program that they compile.
pub trait Shardings: PjrtClient {
    /// Returns the sharding of each parameter, or `None` if they are not known, as for programs with a single partition. The
    /// SDK calls it at most once for each executable. The default returns `None`.
    fn parameter_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>> {
        let _ = executable;
        None
    }

    /// Returns the sharding of each output, or `None` if they are not known. The SDK calls it at most once for each
    /// executable. For a program without outputs, the SDK replaces the empty list with the single sharding that hosts expect.
    /// The default returns `None`.
    fn output_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>> {
        let _ = executable;
        None
    }
}

pub(super) fn link<C: Shardings>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_Shardings_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Shardings_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Shardings,
            next,
        },
        PJRT_Shardings_PJRT_Executable_ParameterShardings: Some(shim(parameter_shardings::<C>)),
        PJRT_Shardings_PJRT_Executable_OutputShardings: Some(shim(output_shardings::<C>)),
    })
}

/// Returns the shardings of the parameters, which the executable owns.
fn parameter_shardings<C: Shardings>(
    args: View<'_, PJRT_Shardings_PJRT_Executable_ParameterShardings_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let (program, count) = (&executable.executable, executable.parameters.shapes.len());
    let shardings = executable.parameter_shardings.get_or_init(|| encode(C::parameter_shardings(program)));
    let shardings = check(shardings.as_ref(), count, "parameters")?;
    output!(args.num_parameters = shardings.map_or(0, |_| count));
    output!(args.shardings = shardings.map_or(ptr::null(), |strings| strings.pointers().as_ptr()));
    output!(args.sharding_sizes = shardings.map_or(ptr::null(), |strings| strings.lengths().as_ptr()));
    Ok(())
}

/// Returns the shardings of the outputs, which the executable owns.
fn output_shardings<C: Shardings>(
    args: View<'_, PJRT_Shardings_PJRT_Executable_OutputShardings_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let (program, count) = (&executable.executable, executable.outputs.shapes.len());
    // XLA's hosts expect one sharding for the empty tuple of outputs.
    let of_outputs = || match C::output_shardings(program) {
        Some(list) if count == 0 && list.is_empty() => Some(vec![Sharding::Replicated]),
        list => list,
    };
    let shardings = executable.output_shardings.get_or_init(|| encode(of_outputs()));
    let count = count.max(1);
    let shardings = check(shardings.as_ref(), count, "outputs")?;
    output!(args.num_outputs = shardings.map_or(0, |_| count));
    output!(args.shardings = shardings.map_or(ptr::null(), |strings| strings.pointers().as_ptr()));
    output!(args.sharding_sizes = shardings.map_or(ptr::null(), |strings| strings.lengths().as_ptr()));
    Ok(())
}

fn encode(shardings: Option<Vec<Sharding>>) -> Option<Strings> {
    shardings.map(|shardings| Strings::new(shardings.iter().map(Sharding::encode)))
}

/// Returns an error if there is not one sharding for each array, because the host assumes that.
fn check<'a>(shardings: Option<&'a Strings>, count: usize, of: &str) -> Result<Option<&'a Strings>> {
    match shardings {
        Some(strings) if strings.lengths().len() != count => Err(Error::internal(format!(
            "the plugin's implementation of Shardings returned {} shardings for {count} {of}; expected one for each",
            strings.lengths().len()
        ))),
        shardings => Ok(shardings),
    }
}
