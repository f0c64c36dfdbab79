//! Compile options (`CompileOptionsProto`).

use super::message::Message;
use crate::preferred::preferred;

/// The fields of `CompileOptionsProto` that this crate uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileOptions {
    /// The number of replicas.
    pub replicas: i64,
    /// The number of partitions of each replica.
    pub partitions: i64,
    /// `true` if the program is partitioned by Shardy. This also requests SPMD partitioning, even of one
    /// partition, as ZML does.
    pub shardy: bool,
    /// `true` if each execution names its device.
    pub portable: bool,
    /// The ids of the devices, replica by replica. If empty, the plugin chooses the devices.
    pub devices: Vec<i64>,
    /// Compiler options, by name.
    pub overrides: Vec<(String, String)>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            replicas: 1,
            partitions: 1,
            shardy: false,
            portable: false,
            devices: Vec::new(),
            overrides: Vec::new(),
        }
    }
}

impl CompileOptions {
    /// Returns the ids of the devices. Of a program for one device that names none, it is the device that the host prefers.
    fn device_ids(&self) -> Vec<i64> {
        if self.devices.is_empty() && self.replicas == 1 && self.partitions == 1 && !self.portable {
            preferred().map(|device| device.id).into_iter().collect()
        } else {
            self.devices.clone()
        }
    }

    /// Returns the encoded message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut build = Message::default().int(1, -1).int(4, self.replicas).int(5, self.partitions);
        if self.partitions > 1 || self.shardy {
            build = build.int(6, 1);
        }
        let devices = self.device_ids();
        if !devices.is_empty() {
            let mut assignment = Message::default().int(1, self.replicas).int(2, self.partitions);
            for partition in 0..self.partitions as usize {
                let of_partition = devices.iter().skip(partition).step_by(self.partitions as usize);
                let ids = of_partition.fold(Message::default(), |ids, id| ids.int(1, *id));
                assignment = assignment.message(3, &ids);
            }
            build = build.message(9, &assignment);
        }
        if self.shardy {
            build = build.int(19, 1);
        }
        let mut options = Message::default().message(3, &build);
        if self.portable {
            options = options.int(4, 1);
        }
        for (name, value) in &self.overrides {
            let value = Message::default().bytes(1, value.as_bytes());
            options = options.message(7, &Message::default().bytes(1, name.as_bytes()).message(2, &value));
        }
        options.encode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_the_bytes_that_protobuf_would_write() {
        let options = CompileOptions { portable: true, ..CompileOptions::default() };
        let build = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x20, 1, 0x28, 1];
        let expected = [&[0x1a, build.len() as u8][..], &build, &[0x20, 1]].concat();
        assert_eq!(options.encode(), expected);
    }
}
