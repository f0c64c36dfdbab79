//! A plugin that does not declare that several processes can run one computation.

use std::sync::Arc;

use pjrt_plugin::{
    ClientConfig, CompileRequest, DeviceAssignment, Error, ErrorCode, Execution, HostBuffer, Options,
    Pending, PjrtClient, Placement, Result,
};
use pjrt_sys::*;

use crate::dummy::{Device, Dummy, Program, Storage};
use crate::host::{HostError, option, take_error};

/// The dummy, which declares nothing and computes nothing.
struct Alone(Dummy);

impl PjrtClient for Alone {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Program;
    type Loaded = ();

    const PLATFORM_NAME: &'static str = "alone";

    fn create(_: ClientConfig) -> Result<Self> {
        Ok(Self(Dummy::create(ClientConfig::new(Options::new(Dummy::CREATE_OPTIONS, Vec::new())?))?))
    }

    fn devices(&self) -> &[Device] {
        self.0.devices()
    }

    fn platform_version(&self) -> String {
        self.0.platform_version()
    }

    fn compile(_: CompileRequest<'_, Self>) -> Result<Program> {
        Err(Error::unimplemented("programs"))
    }

    fn load(&self, _: &Arc<Program>, _: &DeviceAssignment) -> Result<()> {
        Err(Error::unimplemented("programs"))
    }

    fn execute(&self, _: &(), _: Execution<Self::Buffer>) -> Result<()> {
        Err(Error::unimplemented("programs"))
    }

    fn buffer_from_host(&self, _: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
        Err(Error::unimplemented("arrays"))
    }
}

fn create(options: &[PJRT_NamedValue]) -> std::result::Result<(), HostError> {
    let api = pjrt_plugin::api_table!(Alone);
    let mut args = PJRT_Client_Create_Args {
        create_options: options.as_ptr(),
        num_options: options.len(),
        ..SizedStruct::zeroed()
    };
    // SAFETY: the struct is filled in as the API says.
    take_error(unsafe { (api.PJRT_Client_Create.unwrap())(&raw mut args) })?;
    let mut args = PJRT_Client_Destroy_Args { client: args.client, ..SizedStruct::zeroed() };
    // SAFETY: the client is the one that was just made.
    take_error(unsafe { (api.PJRT_Client_Destroy.unwrap())(&raw mut args) })
}

#[test]
fn a_client_for_several_processes_is_refused_unless_the_plugin_declares_them() {
    for (node_id, num_nodes) in [(0, 2), (1, 2), (1, 1), (3, 4)] {
        // A distributed host has options that only plugins for several processes know.
        let options =
            [option("num_nodes", num_nodes), option("node_id", node_id), option("partition_index", 0)];
        let error = create(&options).unwrap_err();
        assert_eq!(error.code, ErrorCode::Unimplemented as u32, "{error:?}");
        for text in ["'alone'", &format!("process {node_id} of {num_nodes}"), "in one process"] {
            assert!(error.message.contains(text), "{error:?}");
        }
    }
}

#[test]
fn a_distributed_host_of_one_process_has_a_client() {
    create(&[]).unwrap();
    create(&[option("num_nodes", 1), option("node_id", 0)]).unwrap();
}

#[test]
fn numbers_that_no_process_has_are_refused() {
    for (node_id, num_nodes) in [(2, 2), (-1, 2), (0, 0), (0, -1)] {
        let options = [option("num_nodes", num_nodes), option("node_id", node_id)];
        let error = crate::host::Client::try_new(&options).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArgument as u32, "{error:?}");
    }
}

#[test]
fn a_client_that_implements_no_extension_has_those_of_every_plugin() {
    let mut types = Vec::new();
    let mut next = pjrt_plugin::api_table!(Alone).extension_start.cast_const();
    while !next.is_null() {
        // SAFETY: the plugin made the chain, which lives as long as the process.
        let base = unsafe { &*next };
        types.push(base.type_);
        next = base.next;
    }
    assert_eq!(types, [PJRT_Extension_Type_MemoryDescriptions, PJRT_Extension_Type_Layouts]);
}
