//! The smallest complete PJRT plugin: a device called "hello", which can add.
//!
//! Build it with `cargo build`, and configure JAX to load the library:
//!
//! ```console
//! $ export PJRT_NAMES_AND_LIBRARY_PATHS=hello:$PWD/target/debug/libhello_pjrt.so JAX_PLATFORMS=hello
//! $ python -c 'import jax.numpy as jnp; print(jnp.add(1, 1))'
//! 2
//! ```

#![forbid(unsafe_code)]

use std::sync::Arc;

use pjrt_plugin::{
    ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, ElementType,
    Error, Execution, HostBuffer, Input, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable,
    Placement, PluginAttributes, Result, pjrt_plugin,
};
use pjrt_stablehlo::ir::{self, Function, Op, OpCode};
use pjrt_stablehlo::passes::{CoreOps, decompose};
use pjrt_stablehlo::{ErrorKind, versions};

/// The plugin. A host creates one client, and obtains all other objects from it.
pub struct Hello {
    devices: [Device; 1],
}

/// The only device. It has one memory, which the host can access only through copies, as with most hardware.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
}

/// An array on the device: its elements, dense and row-major.
pub struct Storage(Vec<u8>);

/// A compiled program. Compiling consists of reading the program and checking that all its operations are
/// supported.
pub struct Executable {
    name: String,
    main: Function,
    parameters: Vec<ArraySpec>,
    outputs: Vec<ArraySpec>,
}

#[pjrt_plugin]
impl PjrtClient for Hello {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "hello";

    fn plugin_attributes() -> PluginAttributes {
        // Without this version, hosts send programs of an old version.
        PluginAttributes::new().with_stablehlo_current_version(versions::CURRENT_VERSION.components())
    }

    fn create(_: ClientConfig) -> Result<Self> {
        let memories = [Memory::new(0, Memory::DEVICE)];
        Ok(Self { devices: [Device { description: DeviceDescription::new(0, "hello"), memories }] })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        let module = pjrt_stablehlo::parse(request.program.code().to_vec());
        // The error names the operation and its location, which is the line of the user's Python program.
        let module =
            module.and_then(|module| decompose(&module, &core_ops())).map_err(|error| match error.kind {
                ErrorKind::Unsupported => {
                    Error::unimplemented(error.to_string()).with_hint("hello can only add")
                }
                _ => Error::invalid_argument(error.to_string()),
            })?;
        let main =
            module.main().ok_or_else(|| Error::invalid_argument("the program has no function main"))?;
        Ok(Executable {
            name: module.name.as_deref().unwrap_or("main").to_owned(),
            parameters: main.argument_types().iter().map(array_spec).collect::<Result<_>>()?,
            outputs: main.result_types().iter().map(array_spec).collect::<Result<_>>()?,
            main: main.clone(),
        })
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Storage>) -> Result<()> {
        let executable = Arc::clone(loaded);
        // The inputs may not be ready yet. The closure runs when they are, on this or another thread.
        execution.when_ready(move |mut ready| {
            let inputs = ready.take_inputs();
            ready.complete(inputs.iter().map(|of_device| run(&executable.main, of_device)).collect());
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
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
        copy.finish_with(&self.0);
    }
}

impl PjrtExecutable for Executable {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> &[ArraySpec] {
        &self.parameters
    }

    fn outputs(&self) -> &[ArraySpec] {
        &self.outputs
    }
}

/// Returns the operations that the device supports. A compiler adds its own here; `cargo pjrt needs` lists those that
/// programs need.
fn core_ops() -> CoreOps {
    let elements = [ir::ElementType::F32, ir::ElementType::I32];
    CoreOps::from_ops([OpCode::Add]).named("hello").for_elements(elements)
}

/// Returns the array type of a parameter or result. The device supports f32 and i32, with static shapes.
fn array_spec(ty: &ir::Type) -> Result<ArraySpec> {
    let unsupported =
        || Error::unimplemented(format!("hello has no arrays of type {ty}, only of f32 and i32"));
    let tensor = ty.as_tensor().ok_or_else(unsupported)?;
    let element_type = match tensor.element_type() {
        ir::ElementType::F32 => ElementType::F32,
        ir::ElementType::I32 => ElementType::S32,
        _ => return Err(unsupported()),
    };
    Ok(ArraySpec::new(element_type, tensor.static_dims().ok_or_else(unsupported)?))
}

/// Executes a compiled program on one device.
fn run(main: &Function, inputs: &[Input<Storage>]) -> Vec<Storage> {
    // The values of the program, by number.
    let mut values = vec![Vec::new(); main.body.num_values()];
    for (argument, input) in main.arguments().iter().zip(inputs) {
        values[argument.index()].clone_from(&input.0);
    }
    for (_, op) in main.ops() {
        match op.kind {
            Op::Add(_) => {
                let [x, y] = [0, 1].map(|operand| &values[op.operand(operand).index()]);
                values[op.result().index()] = add(x, y, main.body.ty(op.result()));
            }
            Op::FuncReturn(_) => {}
            // A panic becomes an error of this execution; the host keeps running.
            _ => unreachable!("compile accepts no {}", op.kind),
        }
    }
    main.returned().iter().map(|value| Storage(values[value.index()].clone())).collect()
}

/// Adds arrays of the same type element by element.
fn add(x: &[u8], y: &[u8], ty: &ir::Type) -> Vec<u8> {
    let float = ty.as_tensor().is_some_and(|tensor| tensor.element_type() == ir::ElementType::F32);
    let sum = |(x, y): (&[u8; 4], &[u8; 4])| match float {
        true => (f32::from_le_bytes(*x) + f32::from_le_bytes(*y)).to_le_bytes(),
        false => i32::from_le_bytes(*x).wrapping_add(i32::from_le_bytes(*y)).to_le_bytes(),
    };
    x.as_chunks().0.iter().zip(y.as_chunks().0).flat_map(sum).collect()
}
