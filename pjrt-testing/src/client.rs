//! Clients.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pjrt_sys::PJRT_Api;

use crate::array::Array;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::host::{self, CreateOption, Error, HostArray, Memory, Plugin, Result};
use crate::program::Program;
use crate::protobuf::CompileOptions;

/// A client of a plugin (`PJRT_Client`). Dropping it destroys it.
///
/// A plugin can have several clients, and tests that run concurrently can each create their own.
#[derive(Debug)]
pub struct Client(host::Client);

/// The tables of the plugins that were initialized, by address. Hosts initialize a plugin once.
static INITIALIZED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

impl Client {
    /// Creates a client of a plugin that is part of this program.
    ///
    /// `table` is the plugin's function table. With `pjrt-plugin`, `pjrt_plugin::api_table!(MyClient)` returns it; the package
    /// of the plugin then needs the crate type `rlib` next to `cdylib`, so that tests can use `MyClient`.
    ///
    /// ```
    /// use pjrt_testing::{Client, CreateOption, Value};
    ///
    /// let client = Client::of(pjrt_plugin::api_table!(hello_pjrt::Hello), &[])?;
    /// assert_eq!(client.platform_name()?, "hello");
    ///
    /// let unknown = CreateOption::new("speed", Value::Int64(2));
    /// let error = Client::of(pjrt_plugin::api_table!(hello_pjrt::Hello), &[unknown]).unwrap_err();
    /// assert!(error.message.contains("speed"));
    /// # Ok::<(), pjrt_testing::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn of(table: &'static PJRT_Api, options: &[CreateOption]) -> Result<Self> {
        let plugin = Plugin::linked(table).map_err(|reason| Error::of_caller("GetPjrtApi", reason))?;
        Self::create(plugin, options)
    }

    /// Loads the shared library of a plugin as hosts do, and creates a client. The library stays loaded until the process
    /// ends.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT, with the path and the reason, if the file is not a plugin, or the plugin's error.
    pub fn load(library: impl AsRef<Path>, options: &[CreateOption]) -> Result<Self> {
        let library = library.as_ref();
        let refused = |error| Error::of_caller("GetPjrtApi", format!("{}: {error}", library.display()));
        Self::create(Plugin::load(library).map_err(refused)?, options)
    }

    fn create(plugin: Plugin, options: &[CreateOption]) -> Result<Self> {
        // Held during the call, so that no test uses the plugin before it is initialized.
        let mut initialized = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
        if !initialized.contains(&plugin.address()) {
            plugin.initialize()?;
            initialized.insert(plugin.address());
        }
        drop(initialized);
        plugin.create_client(options).map(Self)
    }

    /// Returns the name of the platform (`PJRT_Client_PlatformName`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn platform_name(&self) -> Result<String> {
        self.0.platform_name()
    }

    /// Returns the version of the platform (`PJRT_Client_PlatformVersion`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn platform_version(&self) -> Result<String> {
        self.0.platform_version()
    }

    /// Returns the devices that this process can use (`PJRT_Client_AddressableDevices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn devices(&self) -> Result<Vec<Device<'_>>> {
        Ok(self.0.addressable_devices()?.into_iter().map(Device).collect())
    }

    /// Copies an array to the default memory of the first device (`PJRT_Client_BufferFromHostBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, from the call or from the transfer.
    pub fn upload(&self, array: &Array) -> Result<Buffer> {
        self.transfer(array, self.0.device()?, None)
    }

    /// Copies an array to the default memory of a device.
    ///
    /// # Errors
    ///
    /// The same as for [`upload`](Self::upload).
    pub fn upload_to(&self, array: &Array, device: Device<'_>) -> Result<Buffer> {
        self.transfer(array, device.0, None)
    }

    /// Copies an array to the memory of a device that has this kind, such as `pinned_host`.
    ///
    /// # Errors
    ///
    /// The same as for [`upload`](Self::upload), and INVALID_ARGUMENT if the device has no memory of this kind.
    pub fn upload_to_memory(&self, array: &Array, device: Device<'_>, kind: &str) -> Result<Buffer> {
        self.transfer(array, device.0, Some(device.memory(kind)?))
    }

    fn transfer(
        &self,
        array: &Array,
        device: host::Device<'_>,
        memory: Option<Memory<'_>>,
    ) -> Result<Buffer> {
        let lent = HostArray::new(&array.bytes, array.element_type, &array.dims);
        let uploaded = self.0.upload(&lent, Some(device), memory)?;
        uploaded.done.wait()?;
        Ok(Buffer(uploaded.buffer))
    }

    /// Compiles a StableHLO program, as text or bytecode, for one device (`PJRT_Client_Compile`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, such as UNIMPLEMENTED for an operation that it does not support.
    pub fn compile(&self, program: impl AsRef<[u8]>) -> Result<Program> {
        self.compile_with(program, &CompileOptions::default())
    }

    /// Compiles a StableHLO program with compile options, such as the number of replicas.
    ///
    /// # Errors
    ///
    /// The same as for [`compile`](Self::compile).
    pub fn compile_with(&self, program: impl AsRef<[u8]>, options: &CompileOptions) -> Result<Program> {
        self.0.compile(&host::Program::mlir(&program), &options.encode()).map(Program)
    }

    /// Loads a program that [`Program::serialize`] returned (`PJRT_Executable_DeserializeAndLoad`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn load_serialized(&self, serialized: &[u8]) -> Result<Program> {
        self.0.deserialize(serialized).map(Program)
    }

    /// Compiles a program, executes it with these arguments on the first device, and returns the outputs.
    ///
    /// ```
    /// use pjrt_testing::{Array, Client};
    ///
    /// let client = Client::of(pjrt_plugin::api_table!(hello_pjrt::Hello), &[])?;
    /// let double = "func.func @main(%x: tensor<i32>) -> tensor<i32> {
    ///     %0 = stablehlo.add %x, %x : tensor<i32>
    ///     return %0 : tensor<i32>
    /// }";
    /// assert_eq!(client.evaluate(double, &[Array::scalar(21)])?, [Array::scalar(42)]);
    /// # Ok::<(), pjrt_testing::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first error of the plugin.
    pub fn evaluate(&self, program: impl AsRef<[u8]>, arguments: &[Array]) -> Result<Vec<Array>> {
        let program = self.compile(program)?;
        let arguments = arguments.iter().map(|array| self.upload(array)).collect::<Result<Vec<_>>>()?;
        let outputs = program.run(&arguments.iter().collect::<Vec<_>>())?;
        outputs.iter().map(Buffer::to_array).collect()
    }
}
