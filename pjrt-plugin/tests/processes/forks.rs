//! Children that are forked before and after the plugin is used.

use std::ptr;

use pjrt_plugin::ErrorCode;

use crate::child;
use crate::dummy::run_queue;
use crate::host::*;

/// The queue of a program that does not run while there are children.
const QUEUE: i64 = 900;

pub(crate) fn before_the_first_client() {
    let client = Client::new(&[]);
    let executable = client.compile("negate").unwrap();
    let buffer = client.upload(0, &[1.0; 4]);
    assert_eq!(executable.run(&[&buffer]).unwrap().outputs[0][0].numbers().unwrap(), [-1.0; 4]);
}

/// The objects of a process that forks.
pub(crate) struct Parent {
    client: Client,
    executable: Executable,
    buffer: Buffer,
    /// The result of a program that has not run yet.
    pending: Launch,
}

fn is_refused<T>(outcome: Result<T>) {
    let error = outcome.err().expect("this works in a forked child");
    assert_eq!(error.code, ErrorCode::FailedPrecondition as u32, "{error:?}");
    for text in ["forked", "dummy", "spawn"] {
        assert!(error.message.contains(text), "{error:?}");
    }
}

impl Parent {
    pub(crate) fn new() -> Self {
        let client = Client::new(&[]);
        let executable = client.compile(&format!("later {QUEUE}")).unwrap();
        let buffer = client.upload(0, &[1.0; 4]);
        let pending = executable.run(&[&buffer]).unwrap();
        Self { client, executable, buffer, pending }
    }

    pub(crate) fn work_is_refused(&self) {
        is_refused(self.executable.run(&[&self.buffer]));
        is_refused(self.client.compile("negate"));
        is_refused(Upload::new(&[1.0_f32]).to(&self.client));
        is_refused(self.buffer.numbers());
        is_refused(call!(PJRT_Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args {
            buffer: self.buffer.0
        })));
        let memory = self.client.memories(1)[0];
        is_refused(call!(PJRT_Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args {
            buffer: self.buffer.0,
            dst_memory: memory,
        })));
        is_refused(call!(PJRT_Client_CreateBuffersForAsyncHostToDevice(
            PJRT_Client_CreateBuffersForAsyncHostToDevice_Args { client: self.client.0, memory }
        )));
    }

    pub(crate) fn nothing_is_waited_for(&self) {
        let event = self.pending.events[0];
        is_refused(await_event(event));
        is_refused(on_ready(event).try_recv().unwrap());
        is_refused(self.pending.outputs[0][0].wait());
        is_refused(self.buffer.wait());
    }

    pub(crate) fn no_second_client() {
        is_refused(Client::try_new(&[]));
    }

    /// Calls the functions that hosts call when they exit, and those whose errors end hosts.
    pub(crate) fn getters_and_destruction(&self) {
        assert_eq!(self.client.devices().len(), 2);
        assert_eq!(self.client.memories(0).len(), 2);
        assert_eq!(self.executable.num_outputs(), 1);
        assert!(!self.buffer.is_deleted());
        let dims =
            call!(PJRT_Buffer_Dimensions(PJRT_Buffer_Dimensions_Args { buffer: self.buffer.0 })).unwrap();
        assert_eq!(array(dims.dims, dims.num_dims), [4]);
        self.buffer.delete();
        // Each is destroyed as its owner would, which the parent does too.
        drop(Buffer(self.buffer.0));
        drop(Buffer(self.pending.outputs[0][0].0));
        destroy_event(self.pending.events[0]);
        drop(Executable(self.executable.0));
        drop(Client(self.client.0));
        call!(PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args { buffer: ptr::null_mut() })).unwrap();
    }

    /// Checks that a child of a child is also recognized as a child.
    pub(crate) fn forked_again(&self) {
        child::test("a_child_of_a_forked_child", || is_refused(self.buffer.numbers()));
    }

    /// Checks that the children have not changed this process.
    pub(crate) fn goes_on(self) {
        assert_eq!(run_queue(QUEUE), 1);
        assert_eq!(self.pending.outputs[0][0].numbers().unwrap(), [-1.0; 4]);
        println!("ok: the_parent_goes_on");
    }
}
