//! The client, which is the entry point for hosts.

use std::sync::Arc;

use pjrt_plugin::{
    ClientConfig, CompileRequest, CopyToHost, DeserializeRequest, DeviceAssignment, DeviceDescription,
    Execution, HostBuffer, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, Placement, PluginAttributes,
    Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose};

use crate::compiler;
use crate::executable::Executable;
use crate::options::compiler_options;

/// The plugin.
pub struct Vendor {
    devices: [Device; 1],
}

/// The only device, which is the host's processor.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
}

/// An array on the device: its elements, dense and row-major.
pub struct Storage(Vec<u8>);

#[pjrt_plugin]
impl PjrtClient for Vendor {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "vendor";

    /// Returns the attributes of the plugin. JAX sends programs in the newest version of StableHLO that both
    /// sides support. If your compiler reads the host's bytes, report the versions that it reads.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(_: ClientConfig) -> Result<Self> {
        let memories = [Memory::new(0, Memory::DEVICE)];
        Ok(Self { devices: [Device { description: DeviceDescription::new(0, "vendor"), memories }] })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        let options = compiler_options(request.options)?;
        let module = request.program.parse()?;
        let signature = Signature::of(&module)?;
        // Calls are inlined, and other dialects become StableHLO. List the operations of your compiler in
        // `CoreOps::from_ops` if it needs fewer. A compiler over MLIR can also take the program as it arrived:
        // `request.program.code()` is a portable artifact of StableHLO.
        let module = decompose(&module, &CoreOps::default().without(OpCode::FuncCall))?;
        // `{:#}` prints locations, with which the compiler's errors name the line of the user's program.
        let code = compiler::compile(format!("{module:#}").as_bytes(), "mlir", &options)?;
        Ok(Executable { code, signature })
    }

    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Executable> {
        let signature = Signature::of(&request.compile.program.parse()?)?;
        Ok(Executable { code: request.serialized.to_vec(), signature })
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Storage>) -> Result<()> {
        let executable = Arc::clone(loaded);
        // The inputs may not be ready yet. The closure runs when they are, on this or another thread.
        execution.when_ready(move |mut ready| {
            let inputs = ready.take_inputs();
            let run = |inputs: &Vec<_>| run(&executable, inputs);
            match inputs.iter().map(run).collect() {
                Ok(outputs) => ready.complete(outputs),
                Err(error) => ready.fail(error),
            }
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
        Ok(Pending::from(Storage(data.to_vec()?)))
    }
}

/// Executes a program on one device.
fn run(executable: &Executable, inputs: &[pjrt_plugin::Input<Storage>]) -> Result<Vec<Storage>> {
    let arguments: Vec<&[u8]> = inputs.iter().map(|input| &*input.get().0).collect();
    Ok(executable.run(&arguments)?.into_iter().map(Storage).collect())
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }
}

impl PjrtBuffer for Storage {
    fn size_in_bytes(&self) -> usize {
        self.0.len()
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        copy.finish_with(&self.0);
    }
}
