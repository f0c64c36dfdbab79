//! The plugin that is written with the SDK. A program is a number, that of its parameters; it has one output.

use std::sync::Arc;

use pjrt_plugin::{
    ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, ElementType,
    Error, Execution, HostBuffer, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable,
    Placement, Result,
};

pub(crate) struct Null([Device; 1]);

pub(crate) struct Device(DeviceDescription, [Memory; 1]);

pub(crate) enum Storage {
    Lent(HostBuffer),
    Zeros([u8; 16]),
}

pub(crate) struct Program(Vec<ArraySpec>, [ArraySpec; 1]);

impl PjrtClient for Null {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Program;
    type Loaded = ();

    const PLATFORM_NAME: &'static str = "null";

    fn create(_: ClientConfig) -> Result<Self> {
        let memory = Memory::new(0, Memory::DEVICE).host_accessible();
        Ok(Self([Device(DeviceDescription::new(0, "null"), [memory])]))
    }

    fn devices(&self) -> &[Device] {
        &self.0
    }

    fn platform_version(&self) -> String {
        "1".to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Program> {
        let number = std::str::from_utf8(request.program.code()).ok().and_then(|text| text.parse().ok());
        let number: usize = number.ok_or_else(|| Error::invalid_argument("not a number"))?;
        let array = ArraySpec::new(ElementType::F32, [4]);
        Ok(Program(vec![array.clone(); number], [array]))
    }

    fn load(&self, _: &Arc<Program>, _: &DeviceAssignment) -> Result<()> {
        Ok(())
    }

    fn execute(&self, _: &Arc<()>, execution: Execution<Self>) -> Result<()> {
        execution.when_ready(|mut ready| {
            let inputs = ready.take_inputs();
            ready.complete(inputs.iter().map(|_| vec![Storage::Zeros([0; 16])]).collect());
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
        Ok(Pending::from(Storage::Lent(data)))
    }
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.0
    }

    fn memories(&self) -> &[Memory] {
        &self.1
    }
}

impl PjrtBuffer for Storage {
    fn size_in_bytes(&self) -> usize {
        self.bytes().len()
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        copy.finish_with(self.bytes());
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        Ok(Some(self.bytes()))
    }
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Lent(lent) => lent.dense_bytes().unwrap_or_default(),
            Self::Zeros(zeros) => zeros,
        }
    }
}

impl PjrtExecutable for Program {
    fn name(&self) -> &str {
        "null"
    }

    fn parameters(&self) -> &[ArraySpec] {
        &self.0
    }

    fn outputs(&self) -> &[ArraySpec] {
        &self.1
    }
}
