//! Programs in the form of a serialized `HloModuleProto`.

use pjrt_testing::protobuf::Message;

/// The element types of `ShapeProto`.
const F32: i64 = 11;
const TUPLE: i64 = 13;

/// Returns the shape of an f32 array, row-major.
fn array(dims: &[i64]) -> Message {
    let layout = (0..dims.len()).rev().fold(Message::default(), |layout, dim| layout.int(1, dim as i64));
    let shape = dims.iter().fold(Message::default().int(2, F32), |shape, dim| shape.int(3, *dim));
    shape.message(5, &layout)
}

fn tuple(elements: &[&Message]) -> Message {
    elements.iter().fold(Message::default().int(2, TUPLE), |shape, element| shape.message(4, element))
}

/// The instructions of a computation, whose ids count from 1.
#[derive(Default)]
struct Instructions(Vec<Message>);

impl Instructions {
    /// Appends an instruction, and returns its id.
    fn add(&mut self, opcode: &str, shape: &Message, operands: &[i64], parameter: Option<i64>) -> i64 {
        let id = 1 + self.0.len() as i64;
        let name = format!("{opcode}.{id}");
        let start =
            Message::default().bytes(1, name.as_bytes()).bytes(2, opcode.as_bytes()).message(3, shape);
        let numbered = parameter.iter().fold(start, |start, number| start.int(9, *number)).int(35, id);
        self.0.push(operands.iter().fold(numbered, |start, operand| start.int(36, *operand)));
        id
    }

    /// Returns a serialized `HloModuleProto` of a program with two parameters.
    fn module(self, name: &str, parameter: &Message, result: &Message, root: i64) -> Vec<u8> {
        let program_shape = Message::default()
            .message(1, parameter)
            .message(1, parameter)
            .message(2, result)
            .bytes(3, b"p0")
            .bytes(3, b"p1");
        let start = Message::default().bytes(1, b"main");
        let computation = self
            .0
            .iter()
            .fold(start, |start, instruction| start.message(2, instruction))
            .message(4, &program_shape)
            .int(5, 1)
            .int(6, root);
        Message::default()
            .bytes(1, name.as_bytes())
            .bytes(2, b"main")
            .message(3, &computation)
            .message(4, &program_shape)
            .int(5, 1)
            .int(6, 1)
            .encode()
    }
}

/// Returns a program that adds its two parameters, f32 arrays with these dimensions, as a serialized
/// `HloModuleProto`, the format that PyTorch/XLA sends.
#[must_use]
pub fn hlo_add(dims: &[i64]) -> Vec<u8> {
    let shape = array(dims);
    let mut main = Instructions::default();
    let x = main.add("parameter", &shape, &[], Some(0));
    let y = main.add("parameter", &shape, &[], Some(1));
    let sum = main.add("add", &shape, &[x, y], None);
    main.module("add", &shape, &shape, sum)
}

/// Returns a program whose root is a tuple of x + x, x + y and y + y, as [`hlo_add`] does. If it is nested,
/// the last two are a tuple within the tuple.
#[must_use]
pub fn hlo_tuple(dims: &[i64], nested: bool) -> Vec<u8> {
    let shape = array(dims);
    let mut main = Instructions::default();
    let x = main.add("parameter", &shape, &[], Some(0));
    let y = main.add("parameter", &shape, &[], Some(1));
    let twice = main.add("add", &shape, &[x, x], None);
    let sum = main.add("add", &shape, &[x, y], None);
    let last = main.add("add", &shape, &[y, y], None);
    if !nested {
        let all = tuple(&[&shape; 3]);
        let root = main.add("tuple", &all, &[twice, sum, last], None);
        return main.module("tuple", &shape, &all, root);
    }
    let inner = tuple(&[&shape; 2]);
    let pair = main.add("tuple", &inner, &[sum, last], None);
    let all = tuple(&[&shape, &inner]);
    let root = main.add("tuple", &all, &[twice, pair], None);
    main.module("nested_tuple", &shape, &all, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hlo_program_is_one_that_a_reader_takes() {
        let module = pjrt_stablehlo::parse_hlo(hlo_add(&[2, 3])).unwrap();
        assert_eq!(module.main().unwrap().argument_types().len(), 2);
    }

    #[test]
    fn the_arrays_of_tuples_are_the_results_of_the_hlo_programs() {
        for nested in [false, true] {
            let module = pjrt_stablehlo::parse_hlo(hlo_tuple(&[4], nested)).unwrap();
            assert_eq!(module.main().unwrap().result_types().len(), 3, "nested: {nested}");
        }
    }
}
