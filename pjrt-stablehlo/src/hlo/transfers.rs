//! Transfers between devices, and between devices and the host.

use super::attributes::source_target_pairs;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::ir::{ChannelHandle, IntPairs, Str, Type, ValueId, ops};
use crate::{Error, ErrorKind};

const DEVICE_TO_DEVICE: i64 = 1;
const DEVICE_TO_HOST: i64 = 2;
const HOST_TO_DEVICE: i64 = 3;

/// The frontend attribute in which XLA stores the pairs of sending and receiving process.
const SOURCE_TARGET_PAIRS: &str = "_xla_send_recv_source_target_pairs";

impl Reader {
    pub(super) fn infeed(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Infeed { infeed_config: config(at, &at.proto.infeed_config)?, layout: None };
        Ok(self.code.op_of_types(op, &at.leaves(), at.shape.leaves()))
    }

    pub(super) fn outfeed(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Outfeed { outfeed_config: config(at, &at.proto.outfeed_config)? };
        Ok(self.code.op_of_types(op, &at.leaves(), at.shape.leaves()))
    }

    pub(super) fn send(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Send {
            channel_handle: channel(at, DEVICE_TO_HOST),
            is_host_transfer: at.proto.is_host_transfer,
            source_target_pairs: pairs(at)?,
        };
        Ok(self.code.op_of_types(op, &at.leaves(), [Type::Token]))
    }

    pub(super) fn recv(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Recv {
            channel_handle: channel(at, HOST_TO_DEVICE),
            is_host_transfer: at.proto.is_host_transfer,
            source_target_pairs: pairs(at)?,
        };
        // The shape consists of the data, a context and the token.
        let data = at.shape.elements().first().map(|data| data.leaves()).unwrap_or_default();
        Ok(self.code.op_of_types(op, &at.leaves(), data.into_iter().chain([Type::Token])))
    }
}

fn config(at: &Instruction, bytes: &[u8]) -> Result<Str, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(Str::from).map_err(|_| at.error(ErrorKind::Malformed, "expected a configuration in UTF-8"))
}

fn channel(at: &Instruction, with_host: i64) -> ChannelHandle {
    let channel_type = if at.proto.is_host_transfer { with_host } else { DEVICE_TO_DEVICE };
    ChannelHandle { handle: at.proto.channel_id, channel_type }
}

/// Returns the pairs in `{{0,1},{1,2}}`.
fn pairs(at: &Instruction) -> Result<IntPairs, Error> {
    let attributes = at.proto.frontend_attributes.as_ref();
    let Some(text) = attributes.and_then(|attributes| attributes.map.get(SOURCE_TARGET_PAIRS)) else {
        return Ok(source_target_pairs(at));
    };
    let numbers = text.split(['{', '}', ',']).map(str::trim).filter(|number| !number.is_empty());
    let numbers: Option<Vec<i64>> = numbers.map(|number| number.parse().ok()).collect();
    let pairs = numbers.filter(|numbers| numbers.len().is_multiple_of(2));
    let pairs = pairs.ok_or_else(|| {
        at.error(
            ErrorKind::Malformed,
            format!("{SOURCE_TARGET_PAIRS}: expected a list of pairs such as {{{{0,1}}}}, found '{text}'"),
        )
    })?;
    Ok(pairs.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}
