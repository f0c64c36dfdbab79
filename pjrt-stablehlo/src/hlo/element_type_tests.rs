//! Arrays and constants of every element type that XLA has.

use prost::Message;

use super::{proto, read, shape};
use crate::ir::{ElementType, Op};
use crate::{text, verify};

/// The encoding of a constant's elements in their field of `LiteralProto`.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    /// Little-endian, one after the other.
    Bytes,
    Varints,
}

/// `xla_data.proto`: the number in `PrimitiveType`, the field of `LiteralProto` and how it is encoded.
const XLA: &[(ElementType, i32, u32, Wire)] = &[
    (ElementType::I1, 1, 2, Wire::Varints),
    (ElementType::I8, 2, 15, Wire::Bytes),
    (ElementType::I16, 3, 17, Wire::Bytes),
    (ElementType::I32, 4, 4, Wire::Varints),
    (ElementType::I64, 5, 5, Wire::Varints),
    (ElementType::Ui8, 6, 3, Wire::Bytes),
    (ElementType::Ui16, 7, 16, Wire::Bytes),
    (ElementType::Ui32, 8, 6, Wire::Varints),
    (ElementType::Ui64, 9, 7, Wire::Varints),
    (ElementType::F16, 10, 11, Wire::Bytes),
    (ElementType::F32, 11, 8, Wire::Bytes),
    (ElementType::F64, 12, 9, Wire::Bytes),
    (ElementType::ComplexF32, 15, 12, Wire::Bytes),
    (ElementType::BF16, 16, 13, Wire::Bytes),
    (ElementType::ComplexF64, 18, 18, Wire::Bytes),
    (ElementType::F8E5M2, 19, 19, Wire::Bytes),
    (ElementType::F8E4M3FN, 20, 20, Wire::Bytes),
    (ElementType::I4, 21, 21, Wire::Bytes),
    (ElementType::Ui4, 22, 22, Wire::Bytes),
    (ElementType::F8E4M3B11FNUZ, 23, 23, Wire::Bytes),
    (ElementType::F8E5M2FNUZ, 24, 24, Wire::Bytes),
    (ElementType::F8E4M3FNUZ, 25, 25, Wire::Bytes),
    (ElementType::I2, 26, 26, Wire::Bytes),
    (ElementType::Ui2, 27, 27, Wire::Bytes),
    (ElementType::F8E4M3, 28, 28, Wire::Bytes),
    (ElementType::F8E3M4, 29, 29, Wire::Bytes),
    (ElementType::Si1, 30, 30, Wire::Bytes),
    (ElementType::Ui1, 31, 31, Wire::Bytes),
    (ElementType::F4E2M1FN, 32, 32, Wire::Bytes),
    (ElementType::F8E8M0FNU, 33, 33, Wire::Bytes),
    (ElementType::F6E3M2FN, 35, 35, Wire::Bytes),
    (ElementType::F6E2M3FN, 36, 36, Wire::Bytes),
];

fn array(number: i32) -> proto::Shape {
    proto::Shape { element_type: number, dimensions: vec![2], ..proto::Shape::default() }
}

/// Two elements of a type: 1 and 2 as bits, truncated to the width of the type.
fn elements(ty: ElementType) -> Vec<u8> {
    let element = |bits: u8| {
        let mut bytes = vec![0; ty.byte_width()];
        bytes[0] = if ty.bits() == 1 { bits & 1 } else { bits };
        bytes
    };
    [element(1), element(2)].concat()
}

/// Returns a constant of these elements.
fn literal(ty: ElementType, number: i32, field: u32, wire: Wire) -> proto::Literal {
    let mut data = elements(ty);
    if wire == Wire::Varints {
        data = data.chunks(ty.byte_width()).map(|element| element[0]).collect();
    }
    let mut bytes =
        proto::Literal { shape: Some(array(number)), ..proto::Literal::default() }.encode_to_vec();
    prost::encoding::encode_key(field, prost::encoding::WireType::LengthDelimited, &mut bytes);
    prost::encoding::encode_varint(data.len() as u64, &mut bytes);
    bytes.extend(data);
    proto::Literal::decode(&*bytes).unwrap()
}

fn instruction(id: i64, opcode: &str, shape: proto::Shape, operands: &[i64]) -> proto::Instruction {
    proto::Instruction {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape: Some(shape),
        id,
        operand_ids: operands.into(),
        ..proto::Instruction::default()
    }
}

#[test]
fn every_element_type_has_the_number_that_xla_has_for_it() {
    for &ty in ElementType::ALL {
        let entry = XLA.iter().find(|(known, ..)| *known == ty);
        let is_absent = matches!(ty, ElementType::Index | ElementType::Tf32 | ElementType::Quantized);
        assert_eq!(entry.is_none(), is_absent, "{ty}");
        let number = entry.map_or(0, |(_, number, ..)| *number);
        assert_eq!(ty.xla_number(), number, "{ty}");
    }
}

#[test]
fn parameters_constants_and_conversions_of_every_element_type_are_read() {
    for &(ty, number, field, wire) in XLA {
        let constant = proto::Instruction {
            literal: Some(literal(ty, number, field, wire)),
            ..instruction(1, "constant", array(number), &[])
        };
        let other = if ty.is_complex() { array(18) } else { array(11) };
        let instructions = [
            instruction(0, "parameter", array(number), &[]),
            constant,
            instruction(2, "convert", other, &[0]),
            instruction(3, "convert", array(number), &[2]),
            proto::Instruction {
                shape: Some(proto::Shape {
                    element_type: 13,
                    tuple_shapes: vec![array(number), array(number)],
                    ..proto::Shape::default()
                }),
                ..instruction(4, "tuple", array(number), &[1, 3])
            },
        ];
        let computation = proto::Computation {
            name: "entry".to_owned(),
            root_id: 4,
            instructions: instructions.iter().map(|one| one.encode_to_vec().into()).collect(),
            ..proto::Computation::default()
        };
        let module = proto::Module { computations: vec![computation], ..proto::Module::default() };
        let module = read(&module.encode_to_vec().into());
        let module = module.and_then(|module| verify(&module).map(|()| module));
        if matches!(ty, ElementType::Si1 | ElementType::Ui1) {
            // StableHLO has no integers of one bit.
            let error = module.unwrap_err().to_string();
            assert!(error.contains(&format!("found tensor<2x{ty}>")), "{error}");
            continue;
        }
        let module = module.unwrap_or_else(|error| panic!("{ty}: {error}"));
        let main = module.main().unwrap();
        let tensor = format!("tensor<2x{ty}>");
        assert_eq!(main.argument_types()[0].to_string(), tensor);
        assert!(main.result_types().iter().all(|result| result.to_string() == tensor), "{ty}");
        let constant = main.body.all_ops().find_map(|(_, op)| match &op.kind {
            Op::Constant(constant) => Some(constant.value.dense_bytes().unwrap().into_owned()),
            _ => None,
        });
        assert_eq!(constant, Some(elements(ty)), "{ty}");
        let text = module.to_string();
        assert_eq!(text::parse(&text).unwrap().to_string(), text, "{ty}");
    }
}

#[test]
fn what_is_no_type_of_elements_is_refused_by_name() {
    for (number, name) in [
        (0, "no element type"),
        (13, "tuples"),
        (14, "'opaque'"),
        (17, "tokens"),
        (34, "buffers"),
        (37, "type code 37"),
    ] {
        let error = shape::element_type(number).unwrap_err();
        assert!(error.message.contains(name), "{error}");
    }
}
