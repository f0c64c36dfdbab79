//! Encodes compile options and programs as protocol buffers. The encoder is written by hand because there are
//! few messages, and because a tool that checks plugins should not share their code.

/// A protocol buffer message that is being encoded.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Appends a field with an integer or a boolean.
    #[must_use]
    pub fn int(mut self, field: u32, value: i64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value as u64);
        self
    }

    /// Appends a field with bytes or a string.
    #[must_use]
    pub fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    /// Appends a field with a nested message.
    #[must_use]
    pub fn message(self, field: u32, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Returns the encoded message.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The fields of `CompileOptionsProto` that this crate uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileOptions {
    /// The number of replicas.
    pub replicas: i64,
    /// The number of partitions of each replica.
    pub partitions: i64,
    /// `true` if each execution names its device.
    pub portable: bool,
    /// The ids of the devices, replica by replica. If empty, the plugin chooses the devices.
    pub devices: Vec<i64>,
    /// Compiler options, by name.
    pub overrides: Vec<(String, String)>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { replicas: 1, partitions: 1, portable: false, devices: Vec::new(), overrides: Vec::new() }
    }
}

impl CompileOptions {
    /// Returns the encoded message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut build = Message::default().int(1, -1).int(4, self.replicas).int(5, self.partitions);
        if self.partitions > 1 {
            build = build.int(6, 1);
        }
        if !self.devices.is_empty() {
            let mut assignment = Message::default().int(1, self.replicas).int(2, self.partitions);
            for partition in 0..self.partitions as usize {
                let of_partition = self.devices.iter().skip(partition).step_by(self.partitions as usize);
                let ids = of_partition.fold(Message::default(), |ids, id| ids.int(1, *id));
                assignment = assignment.message(3, &ids);
            }
            build = build.message(9, &assignment);
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

/// Returns a program that adds its two parameters, f32 arrays with these dimensions, as a serialized
/// `HloModuleProto`, the format that PyTorch/XLA sends.
#[must_use]
pub fn hlo_add(dims: &[i64]) -> Vec<u8> {
    const F32: i64 = 11;
    let layout = (0..dims.len()).rev().fold(Message::default(), |layout, dim| layout.int(1, dim as i64));
    let shape = dims.iter().fold(Message::default().int(2, F32), |shape, dim| shape.int(3, *dim));
    let shape = shape.message(5, &layout);
    let parameter = |number: i64| {
        let name = format!("p{number}");
        Message::default()
            .bytes(1, name.as_bytes())
            .bytes(2, b"parameter")
            .message(3, &shape)
            .int(9, number)
            .int(35, 1 + number)
    };
    let sum = Message::default().bytes(1, b"sum").bytes(2, b"add").message(3, &shape).int(35, 3);
    let sum = sum.int(36, 1).int(36, 2);
    let program_shape = Message::default()
        .message(1, &shape)
        .message(1, &shape)
        .message(2, &shape)
        .bytes(3, b"p0")
        .bytes(3, b"p1");
    let computation = Message::default()
        .bytes(1, b"main")
        .message(2, &parameter(0))
        .message(2, &parameter(1))
        .message(2, &sum)
        .message(4, &program_shape)
        .int(5, 1)
        .int(6, 3);
    Message::default()
        .bytes(1, b"add")
        .bytes(2, b"main")
        .message(3, &computation)
        .message(4, &program_shape)
        .int(5, 1)
        .int(6, 1)
        .encode()
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

    #[test]
    fn the_hlo_program_is_one_that_a_reader_takes() {
        let module = pjrt_stablehlo::parse_hlo(hlo_add(&[2, 3])).unwrap();
        assert_eq!(module.main().unwrap().argument_types().len(), 2);
    }
}
