//! Lowers communication with the host: `send` and `recv` with `is_host_transfer`.

use super::{CompileError, Result, Scope};
use crate::graph::{Op as Core, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{ChannelHandle, Op, OpId, Operation};

/// The type of a channel from a device to the host.
const DEVICE_TO_HOST: i64 = 2;

/// The type of a channel from the host to a device.
const HOST_TO_DEVICE: i64 = 3;

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn host_op(&mut self, _id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        match &op.kind {
            Op::Send(o) => {
                let channel = host_channel(o.channel_handle, o.is_host_transfer, DEVICE_TO_HOST)?;
                let operands = self.flat(&op.operands)?;
                if operands.len() != 2 {
                    return Err(CompileError::unimplemented(
                        "a send of several arrays to the host is not supported; use one send for each",
                    ));
                }
                let shapes = self.result_shapes(op)?;
                Ok(Some(self.b.node(Core::HostSend(core_ops::HostSend { channel }), operands, shapes)))
            }
            Op::Recv(o) => {
                let channel = host_channel(o.channel_handle, o.is_host_transfer, HOST_TO_DEVICE)?;
                let operands = self.flat(&op.operands)?;
                let shapes = self.result_shapes(op)?;
                if shapes.len() != 2 {
                    return Err(CompileError::unimplemented(
                        "a recv of several arrays from the host is not supported; use one recv for each",
                    ));
                }
                Ok(Some(self.b.node(Core::HostReceive(core_ops::HostReceive { channel }), operands, shapes)))
            }
            _ => Ok(None),
        }
    }
}

/// Returns the channel of an operation, which must be between a device and the host.
fn host_channel(channel: ChannelHandle, is_host_transfer: bool, wanted: i64) -> Result<i64> {
    if is_host_transfer && channel.channel_type == wanted {
        return Ok(channel.handle);
    }
    Err(CompileError::unimplemented(format!(
        "a channel of type {} {} is not supported: a transfer to the host requires type {DEVICE_TO_HOST}, and one \
         from the host type {HOST_TO_DEVICE}, both with is_host_transfer",
        channel.channel_type,
        if is_host_transfer { "with is_host_transfer" } else { "without is_host_transfer" }
    )))
}
