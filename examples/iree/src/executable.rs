//! Compiled programs as hosts see them.

use std::sync::{Arc, OnceLock};

use iree_runtime::Program;
use pjrt_plugin::{
    CompileRequest, DeserializeRequest, DeviceAssignment, DeviceId, Error, ErrorCode, PjrtClient,
    PjrtExecutable, Result, Signature, ext,
};

use crate::client::Iree;
use crate::device::Device;
use crate::options::{Settings, compiler_flags};
use crate::{compilation, convert, library};

/// A compiled program. It contains no device, because it can run on any device of its kind.
pub struct Executable {
    code: Vec<u8>,
    signature: Signature,
    replicas: usize,
    /// The beginning of the saved program.
    header: String,
}

impl Executable {
    /// Compiles a program.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program is invalid, or UNIMPLEMENTED if IREE does not compile it; the error names the
    /// operation and its location in the user's program.
    pub(crate) fn compile(request: CompileRequest<'_, Iree>) -> Result<Self> {
        let module = request.program.parse()?;
        let signature = signature(&module)?;
        let flags = compiler_flags(request.options)?;
        with_settings(&request, |settings| {
            let code = compilation::compile(&module, settings, &flags)?;
            Ok(Self { code, signature, replicas: request.options.num_replicas, header: header(settings) })
        })
    }

    /// Restores a program that [`serialize`](PjrtExecutable::serialize) has saved. This does not start the compiler.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION if it was saved for another version of IREE, kind of devices or processor.
    pub(crate) fn deserialize(request: DeserializeRequest<'_, Iree>) -> Result<Self> {
        let (module, options) = (request.compile.program.parse()?, request.compile.options);
        let header = with_settings(&request.compile, |settings| Ok(header(settings)))?;
        let code = request.serialized.strip_prefix(header.as_bytes()).ok_or_else(|| {
            let header = header.trim_end();
            let message =
                format!("the program is of another version, device or processor; expected '{header}'");
            Error::failed_precondition(message).with_hint("compile the program again")
        })?;
        let (code, signature) = (code.to_vec(), signature(&module)?);
        Ok(Self { code, signature, replicas: options.num_replicas, header })
    }
}

/// Returns the signature of a program, whose arrays IREE can have.
fn signature(module: &pjrt_stablehlo::Module) -> Result<Signature> {
    let signature = Signature::of(module)?;
    for spec in signature.parameters.iter().chain(&signature.outputs) {
        convert::element_type(spec.element_type())?;
    }
    Ok(signature)
}

/// Calls a function with the settings of the client that a program is for, or those for the devices of its topology.
fn with_settings<T>(
    request: &CompileRequest<'_, Iree>,
    run: impl FnOnce(&Settings) -> Result<T>,
) -> Result<T> {
    match (request.client, request.topology.devices().first()) {
        (Some(client), _) => run(&client.settings),
        (None, device) => run(&Settings::for_kind(device.map_or("", |device| device.kind()))?),
    }
}

/// Returns the beginning of a saved program.
fn header(settings: &Settings) -> String {
    let (kind, code) = (settings.target.driver, settings.code);
    format!("iree {} {kind} {code} {}\n", library::VERSION, env!("CARGO_PKG_VERSION"))
}

/// Programs have one partition, so no shardings are reported. JAX compiles faster if a plugin reports this.
impl ext::Shardings for Iree {}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn num_replicas(&self) -> usize {
        self.replicas
    }

    /// Replicas do not communicate, because collectives are not supported.
    fn devices_communicate(&self) -> bool {
        false
    }

    fn serialize(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some([self.header.as_bytes(), &self.code].concat()))
    }

    fn generated_code_size_in_bytes(&self) -> i64 {
        self.code.len() as i64
    }
}

/// A program that is loaded on devices.
pub struct Loaded {
    pub(crate) executable: Arc<Executable>,
    /// The program on each device of the client, in their order, once it is loaded there.
    programs: Vec<OnceLock<Arc<Program>>>,
}

impl Loaded {
    /// Loads a program on the devices of an assignment.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION if the code does not fit to the device.
    pub(crate) fn load(
        client: &Iree,
        executable: &Arc<Executable>,
        assignment: &DeviceAssignment,
    ) -> Result<Self> {
        let programs = client.devices().iter().map(|_| OnceLock::new()).collect();
        let loaded = Self { executable: Arc::clone(executable), programs };
        for id in assignment.devices() {
            loaded.program(client.device(*id)?, *id)?;
        }
        Ok(loaded)
    }

    /// Returns the program on a device, which is loaded there if necessary.
    ///
    /// # Errors
    ///
    /// Returns FAILED_PRECONDITION if the code does not fit to the device.
    pub(crate) fn program(&self, device: &Device, id: DeviceId) -> Result<Arc<Program>> {
        let place = usize::try_from(id).ok().and_then(|index| self.programs.get(index));
        let place = place.ok_or_else(|| Error::internal(format!("the client has no device {id}")))?;
        if let Some(program) = place.get() {
            return Ok(Arc::clone(program));
        }
        let program = Program::load(device.iree(), &self.executable.code).map_err(|error| {
            let error = convert::error(error);
            // The compiler does not check how many arrays a kernel has.
            if error.code() != ErrorCode::OutOfRange {
                return error;
            }
            Error::unimplemented(format!("a kernel of the program has too many arrays: {}", error.message()))
        })?;
        Ok(Arc::clone(place.get_or_init(|| Arc::new(program))))
    }
}
