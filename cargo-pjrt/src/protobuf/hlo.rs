//! A program in the form of a serialized `HloModuleProto`.

use super::message::Message;

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
    fn the_hlo_program_is_one_that_a_reader_takes() {
        let module = pjrt_stablehlo::parse_hlo(hlo_add(&[2, 3])).unwrap();
        assert_eq!(module.main().unwrap().argument_types().len(), 2);
    }
}
