//! A plugin that fails on demand, to test the errors that hosts receive.
//!
//! `FAULT_PLUGIN=method:panic` makes a trait method panic, `method:error` makes it return an error; the variable is read at
//! every call, so that one process can test all of them. Without it the device works: it takes programs of arrays of
//! f32, and every result is the first argument.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "nobody depends on this library")]

use std::sync::Arc;

use pjrt_plugin::{
    ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, ElementType,
    Error, Execution, HostBuffer, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable,
    Placement, Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::ir;

/// Injects the fault that the environment specifies for a method.
fn fault(method: &str) -> Result<()> {
    let asked = std::env::var("FAULT_PLUGIN").unwrap_or_default();
    match asked.strip_prefix(method).and_then(|rest| rest.strip_prefix(':')) {
        Some("panic") => panic!("planted in {method}"),
        Some("error") => {
            Err(Error::resource_exhausted(format!("planted in {method}")).with_hint("unset FAULT_PLUGIN"))
        }
        _ => Ok(()),
    }
}

struct Faulty {
    devices: [Device; 1],
}

struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
}

#[derive(Clone)]
struct Storage(Vec<u8>);

struct Executable(Signature);

#[pjrt_plugin]
impl PjrtClient for Faulty {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Executable;
    type Loaded = usize;

    const PLATFORM_NAME: &'static str = "fault";

    fn initialize() -> Result<()> {
        fault("initialize")
    }

    fn create(_: ClientConfig) -> Result<Self> {
        fault("create")?;
        let memories = [Memory::new(0, Memory::DEVICE)];
        Ok(Self { devices: [Device { description: DeviceDescription::new(0, "fault"), memories }] })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        "1".to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        fault("compile")?;
        let module = pjrt_stablehlo::parse(request.program.code())
            .map_err(|error| Error::invalid_argument(error.to_string()))?;
        let main = module.main().ok_or_else(|| Error::invalid_argument("no main"))?;
        let specs = |types: &[ir::Type]| types.iter().map(array_spec).collect::<Result<Vec<_>>>();
        let (parameters, outputs) = (specs(main.argument_types())?, specs(main.result_types())?);
        Ok(Executable(Signature::new("fault", parameters, outputs)))
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<usize> {
        fault("load")?;
        Ok(executable.0.outputs.len())
    }

    fn execute(&self, loaded: &usize, execution: Execution<Self::Buffer>) -> Result<()> {
        fault("execute")?;
        if fault("forget").is_err() {
            return Ok(());
        }
        let count = *loaded;
        execution.when_ready(move |mut ready| {
            if let Err(error) = fault("run") {
                return ready.fail(error);
            }
            let inputs = ready.take_inputs();
            ready.complete(inputs.iter().map(|device| vec![device[0].get().clone(); count]).collect());
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
        fault("buffer_from_host")?;
        Ok(Pending::from(Storage(data.to_vec()?)))
    }
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
        match fault("copy_to_host") {
            Ok(()) => copy.finish_with(&self.0),
            Err(error) => copy.fail(error),
        }
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.0
    }
}

fn array_spec(ty: &ir::Type) -> Result<ArraySpec> {
    match ty.as_tensor().and_then(|tensor| tensor.static_dims()) {
        Some(dims) => Ok(ArraySpec::new(ElementType::F32, dims)),
        None => Err(Error::unimplemented(format!("only arrays of f32, not {ty}"))),
    }
}
