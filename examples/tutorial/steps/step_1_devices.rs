//! Step 1 of the tutorial: a client with a device, which hosts list.

#![forbid(unsafe_code)]

use std::sync::Arc;

use pjrt_plugin::{
    ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, Error, Execution,
    HostBuffer, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement,
    PluginAttributes, Result, Signature, pjrt_plugin,
};

/// The plugin. A host creates one client, and obtains all other objects from it.
pub struct Tutorial {
    devices: Vec<Device>,
}

/// A device as hosts see it.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
}

/// An array on the device. There are none yet, so the type has no values.
pub enum Buffer {}

/// A compiled program. There are none yet.
pub enum Executable {}

#[pjrt_plugin]
impl PjrtClient for Tutorial {
    type Device = Device;
    type Buffer = Buffer;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "tutorial";

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(_: ClientConfig) -> Result<Self> {
        Ok(Self { devices: vec![Device::new(0)] })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn compile(_: CompileRequest<'_, Self>) -> Result<Executable> {
        Err(Error::unimplemented("the tutorial device cannot run programs yet"))
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        match **executable {}
    }

    fn execute(&self, loaded: &Arc<Executable>, _: Execution<Buffer>) -> Result<()> {
        match **loaded {}
    }

    fn buffer_from_host(&self, _: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        Err(Error::unimplemented("the tutorial device cannot store arrays yet"))
    }
}

impl Device {
    fn new(id: i32) -> Self {
        let memories = [Memory::new(id, Memory::DEVICE)];
        Self { description: DeviceDescription::new(id, "tutorial"), memories }
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

impl PjrtBuffer for Buffer {
    fn size_in_bytes(&self) -> usize {
        match *self {}
    }

    fn copy_to_host(self: Arc<Self>, _: CopyToHost) {
        match *self {}
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        match *self {}
    }
}
