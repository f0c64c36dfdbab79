//! The Shardings extension: how a program's parameters and outputs are divided among its partitions.

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

/// Tells hosts how parameters and outputs are divided among partitions (`PJRT_Shardings_Extension`).
///
/// Without it hosts convert the optimized program to HLO and look for
/// shardings there, several times for each program that they compile.
pub trait Shardings: PjrtClient {
    /// One for each parameter; `None` where nothing is to be said, as of programs with a single partition. Called at most
    /// once for each executable.
    fn parameter_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>>;

    /// One for each output; `None` where nothing is to be said. Called at most once for each executable.
    fn output_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>>;
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

/// How the parameters are divided; the executable keeps the answer.
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

/// How the outputs are divided; the executable keeps the answer.
fn output_shardings<C: Shardings>(
    args: View<'_, PJRT_Shardings_PJRT_Executable_OutputShardings_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: ExecutableState<C>)?;
    let (program, count) = (&executable.executable, executable.outputs.shapes.len());
    let shardings = executable.output_shardings.get_or_init(|| encode(C::output_shardings(program)));
    // XLA's host takes an empty list for a mistake: it wants one sharding for the tuple of no outputs.
    let shardings = check(shardings.as_ref(), count, "outputs")?.filter(|_| count > 0);
    output!(args.num_outputs = shardings.map_or(0, |_| count));
    output!(args.shardings = shardings.map_or(ptr::null(), |strings| strings.pointers().as_ptr()));
    output!(args.sharding_sizes = shardings.map_or(ptr::null(), |strings| strings.lengths().as_ptr()));
    Ok(())
}

fn encode(shardings: Option<Vec<Sharding>>) -> Option<Strings> {
    shardings.map(|shardings| Strings::new(shardings.iter().map(Sharding::encode)))
}

/// The host takes the list to be as long as the program's own.
fn check<'a>(shardings: Option<&'a Strings>, count: usize, of: &str) -> Result<Option<&'a Strings>> {
    match shardings {
        Some(strings) if strings.lengths().len() != count => Err(Error::internal(format!(
            "the plugin gives {} shardings for {count} {of}",
            strings.lengths().len()
        ))),
        shardings => Ok(shardings),
    }
}
