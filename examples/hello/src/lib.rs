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

use pjrt_plugin::stablehlo;
use pjrt_plugin::{
    ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, Error, Execution,
    HostBuffer, Input, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement,
    PluginAttributes, Result, Signature, pjrt_plugin,
};
use pjrt_stablehlo::ir::ElementType::{self, F32, I32};
use pjrt_stablehlo::ir::{Function, Op, OpCode, Type};
use pjrt_stablehlo::passes::{CoreOps, decompose};

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
    main: Function,
    signature: Signature,
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
        PluginAttributes::new().with_stablehlo_versions()
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
        // An error names the operation and its location, which is the line of the user's Python program.
        let module = decompose(&request.program.parse()?, &core_ops())
            .map_err(|error| Error::from(error).with_hint("hello can only add f32 and i32"))?;
        Ok(Executable { signature: Signature::of(&module)?, main: stablehlo::main(&module)?.clone() })
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
    fn signature(&self) -> &Signature {
        &self.signature
    }
}

/// Returns the operations that the device supports. A compiler adds its own here; `cargo pjrt needs` lists those that
/// programs need.
fn core_ops() -> CoreOps {
    CoreOps::from_ops([OpCode::Add]).named("hello").for_elements([F32, I32])
}

fn element_type(ty: &Type) -> Option<ElementType> {
    Some(ty.as_tensor()?.element_type())
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
fn add(x: &[u8], y: &[u8], ty: &Type) -> Vec<u8> {
    let float = element_type(ty) == Some(F32);
    let sum = |(x, y): (&[u8; 4], &[u8; 4])| match float {
        true => (f32::from_le_bytes(*x) + f32::from_le_bytes(*y)).to_le_bytes(),
        false => i32::from_le_bytes(*x).wrapping_add(i32::from_le_bytes(*y)).to_le_bytes(),
    };
    x.as_chunks().0.iter().zip(y.as_chunks().0).flat_map(sum).collect()
}
