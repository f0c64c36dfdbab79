//! Adapts the host's callbacks and handlers to the interfaces of the engine.

use crate::buffer::RefcpuBuffer;
use crate::cluster::Spanning;
use crate::config::PLATFORM_NAME;
use crate::element_type::to_pjrt;
use pjrt_plugin::ext::ffi::{Array, ArrayMut, Attribute, Call, Handler};
use pjrt_plugin::{Error, ReadyExecution};
use refcpu_engine::exec::{ForeignHandlers, HostTransfer, Process, RunError, RunErrorKind};
use refcpu_engine::graph::{ForeignAttribute, ForeignCall};
use refcpu_kernels::{Dst, Src};
use std::cell::{Cell, RefCell};

thread_local! {
    /// The number of nested calls of the host's functions on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Returns whether this thread is inside a call of a host's function.
pub(crate) fn is_inside_callback() -> bool {
    DEPTH.get() > 0
}

/// A guard that marks this thread as inside a call of a host's function.
struct Inside;

impl Inside {
    fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// The host's callbacks and handlers during an execution.
pub(crate) struct Host<'a> {
    execution: &'a ReadyExecution<RefcpuBuffer>,
    /// The number of partitions of each replica.
    partitions: usize,
    /// The processes of the devices, if they are several.
    spanning: Option<&'a Spanning>,
    failure: RefCell<Option<Error>>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(
        execution: &'a ReadyExecution<RefcpuBuffer>,
        partitions: usize,
        spanning: Option<&'a Spanning>,
    ) -> Self {
        Self { execution, partitions, spanning, failure: RefCell::new(None) }
    }

    /// Takes the error of the host, with its code and payloads, that made an execution fail.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure.take()
    }

    /// Returns the position of a process among the devices of the launch.
    fn device(&self, process: Process) -> usize {
        if self.execution.devices().len() == 1 {
            return 0;
        }
        let lane = process.replica * self.partitions + process.partition;
        self.spanning.map_or(lane, |spanning| spanning.position(lane))
    }

    fn failed(&self, error: Error) -> RunError {
        let message = error.message().to_owned();
        self.failure.replace(Some(error));
        RunError::new(RunErrorKind::Host, message)
    }
}

impl HostTransfer for Host<'_> {
    fn send(&self, process: Process, channel: i64, array: Vec<u8>) -> Result<(), RunError> {
        let _inside = Inside::enter();
        let callbacks = self.execution.host_callbacks();
        callbacks.send(self.device(process), channel, array).map_err(|error| self.failed(error))
    }

    fn receive(&self, process: Process, channel: i64, bytes: usize) -> Result<Vec<u8>, RunError> {
        let _inside = Inside::enter();
        let stream = self.execution.host_callbacks().receive(self.device(process), channel, bytes, 1);
        stream.and_then(|stream| stream.wait()).map_err(|error| self.failed(error))
    }
}

impl ForeignHandlers for Host<'_> {
    fn call(
        &self,
        process: Process,
        call: &ForeignCall,
        operands: &[Src<'_>],
        results: &mut [Dst<'_>],
    ) -> Result<(), RunError> {
        let Some(handler) = Handler::find(PLATFORM_NAME, &call.target) else {
            return Err(RunError::new(
                RunErrorKind::FailedPrecondition,
                format!("the program calls the handler {:?}, which the host has not registered", call.target),
            ));
        };
        let _inside = Inside::enter();
        let arguments = operands.iter().zip(&call.operand_dims);
        let results = results.iter_mut().zip(&call.result_dims);
        let outcome = handler.call(Call {
            arguments: arguments
                .map(|(array, dims)| Array {
                    element_type: to_pjrt(array.dtype()),
                    dims,
                    data: array.bytes(),
                })
                .collect(),
            results: results
                .map(|(array, dims)| ArrayMut {
                    element_type: to_pjrt(array.dtype()),
                    dims,
                    data: array.bytes_mut(),
                })
                .collect(),
            attributes: &call.attributes.iter().map(entry).collect::<Vec<_>>(),
            user_data: self.execution.user_data(),
            device_ordinal: self.execution.devices().get(self.device(process)).copied().unwrap_or(0),
            run_id: i64::from(self.execution.launch_id()),
        });
        outcome.map_err(|error| self.failed(error.context(format!("in the handler {:?}", call.target))))
    }
}

fn entry((name, attribute): &(String, ForeignAttribute)) -> (String, Attribute) {
    let attribute = match attribute {
        ForeignAttribute::Scalar(dtype, bytes) => Attribute::Scalar(to_pjrt(*dtype), bytes.clone()),
        ForeignAttribute::Array(dtype, bytes) => Attribute::Array(to_pjrt(*dtype), bytes.clone()),
        ForeignAttribute::String(text) => Attribute::String(text.clone()),
        ForeignAttribute::Dictionary(entries) => Attribute::Dictionary(entries.iter().map(entry).collect()),
    };
    (name.clone(), attribute)
}
