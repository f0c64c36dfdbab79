//! Compiled programs.

use crate::buffer::Buffer;
use crate::host::{ElementType, ExecuteOptions, Launched, LoadedExecutable, Result};

/// A program that was compiled and loaded (`PJRT_LoadedExecutable`). Dropping it destroys it.
#[derive(Debug)]
pub struct Program(pub(crate) LoadedExecutable);

impl Program {
    /// Returns the name (`PJRT_Executable_Name`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn name(&self) -> Result<String> {
        self.0.executable()?.name()
    }

    /// Returns the element type and the dimensions of each output (`PJRT_Executable_OutputElementTypes`,
    /// `PJRT_Executable_OutputDimensions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn outputs(&self) -> Result<Vec<(ElementType, Vec<i64>)>> {
        let executable = self.0.executable()?;
        Ok(executable.output_types()?.into_iter().zip(executable.output_dims()?).collect())
    }

    /// Executes the program on one device, waits until it has finished, and returns its outputs
    /// (`PJRT_LoadedExecutable_Execute`). Arguments that the program donates are deleted.
    ///
    /// # Errors
    ///
    /// Returns the error of the call or of the execution.
    pub fn run(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>> {
        let launched = self.0.run(&raw(arguments))?;
        Ok(finished(launched)?.into_iter().flatten().collect())
    }

    /// Executes the program on several devices, waits until all of them have finished, and returns the outputs of each.
    /// `arguments` has one list per device, in the order of the program's replicas and partitions.
    ///
    /// # Errors
    ///
    /// Returns the error of the call, or of the first device whose execution failed.
    pub fn run_on_devices(&self, arguments: &[Vec<&Buffer>]) -> Result<Vec<Vec<Buffer>>> {
        let lists: Vec<_> = arguments.iter().map(|list| raw(list)).collect();
        let launched = self.0.launch(&lists, &ExecuteOptions::default(), None, true);
        finished(launched.map_err(|refused| refused.error)?)
    }

    /// Serializes the compiled program (`PJRT_Executable_Serialize`), for
    /// [`Client::load_serialized`](crate::Client::load_serialized).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, such as UNIMPLEMENTED.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        Ok(self.0.executable()?.serialize()?.bytes)
    }
}

fn raw<'a>(arguments: &[&'a Buffer]) -> Vec<&'a crate::host::Buffer> {
    arguments.iter().map(|buffer| &buffer.0).collect()
}

/// Waits for all devices, and returns the outputs of each.
fn finished(launched: Launched) -> Result<Vec<Vec<Buffer>>> {
    let outcomes: Vec<Result<()>> = launched.done.iter().map(crate::host::Event::wait).collect();
    outcomes.into_iter().collect::<Result<()>>()?;
    Ok(launched.outputs.into_iter().map(|list| list.into_iter().map(Buffer).collect()).collect())
}
