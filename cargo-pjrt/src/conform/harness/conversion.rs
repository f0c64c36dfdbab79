//! Recognizes elements that were converted to another type and back.

use pjrt_testing::host::ElementType;

use crate::array::float_format::FloatFormat;

/// The type that an element is converted to, and the bits that the element has after the conversion and back.
type Conversion = (&'static str, fn(u128) -> u128);

/// Conversions of each type that loses information, by the type's name in StableHLO.
const CONVERSIONS: &[(&str, &[Conversion])] = &[
    (
        "ui64",
        &[
            ("F64", |bits| u128::from(bits as u64 as f64 as u64)),
            ("F32", |bits| u128::from(bits as u64 as f32 as u64)),
        ],
    ),
    ("ui64", &[("S64, which saturates,", |bits| bits.min(i64::MAX as u128))]),
    ("ui32", &[("S32, which saturates,", |bits| bits.min(i32::MAX as u128))]),
    (
        "ui64",
        &[("U32", |bits| u128::from(bits as u32)), ("S32", |bits| u128::from(bits as i32 as i64 as u64))],
    ),
    (
        "i64",
        &[
            ("F64", |bits| u128::from(bits as i64 as f64 as i64 as u64)),
            ("F32", |bits| u128::from(bits as i64 as f32 as i64 as u64)),
        ],
    ),
    (
        "i64",
        &[("S32", |bits| u128::from(bits as i32 as i64 as u64)), ("U32", |bits| u128::from(bits as u32))],
    ),
    (
        "ui32",
        &[("F32", |bits| u128::from(bits as u32 as f32 as u32)), ("U16", |bits| u128::from(bits as u16))],
    ),
    (
        "i32",
        &[
            ("F32", |bits| u128::from(bits as i32 as f32 as i32 as u32)),
            ("S16", |bits| u128::from(bits as i16 as i32 as u32)),
        ],
    ),
    ("ui16", &[("U8", |bits| u128::from(bits as u8)), ("S8", |bits| u128::from(bits as i8 as i16 as u16))]),
    ("i16", &[("S8", |bits| u128::from(bits as i8 as i16 as u16)), ("U8", |bits| u128::from(bits as u8))]),
    ("f64", &[("F32", through_f32), ("BF16", |bits| through_f32(through_bf16_of_f64(bits)))]),
    ("complex<f64>", &[("C64", |bits| through_f32(bits & MASK_64) | through_f32(bits >> 64) << 64)]),
    (
        "f32",
        &[("BF16, which rounds,", rounded_to_bf16), ("BF16, which truncates,", |bits| bits & 0xFFFF_0000)],
    ),
    (
        "complex<f32>",
        &[("pairs of BF16", |bits| rounded_to_bf16(bits & MASK_32) | rounded_to_bf16(bits >> 32) << 32)],
    ),
];

const MASK_64: u128 = u64::MAX as u128;
const MASK_32: u128 = u32::MAX as u128;

/// Returns the bits of an f64 after a conversion to f32 and back.
fn through_f32(bits: u128) -> u128 {
    u128::from((f64::from_bits(bits as u64) as f32 as f64).to_bits())
}

/// Returns the bits of an f64 whose value has the precision of a bf16.
fn through_bf16_of_f64(bits: u128) -> u128 {
    let single = (f64::from_bits(bits as u64) as f32).to_bits();
    let rounded = f32::from_bits(rounded_to_bf16(u128::from(single)) as u32);
    u128::from(f64::from(rounded).to_bits())
}

/// Returns the bits of an f32 after a conversion to bf16, which rounds to nearest, and back.
fn rounded_to_bf16(bits: u128) -> u128 {
    let bits = bits as u32;
    let half = 0x7FFF + (bits >> 16 & 1);
    u128::from(bits.wrapping_add(half) & 0xFFFF_0000)
}

fn bits_of(element: &[u8]) -> u128 {
    element.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

/// The beginning of the sentence about elements that were converted to another type and back, before the name of their type.
pub(crate) const CONVERTED: &str = "the elements went through a conversion: from ";

/// Returns the conversion that turned all expected elements into those that were read, for elements of this type.
pub(super) fn conversion(element_type: ElementType, pairs: &[(&[u8], &[u8])]) -> Option<String> {
    let name = element_type.stablehlo_name();
    if name == "i1" {
        return truth_values(pairs);
    }
    // A number that is neither zero, denormal nor NaN changed: other causes explain changes of these alone.
    let format = FloatFormat::of(element_type);
    let is_ordinary = |element: &[u8]| {
        format.is_none_or(|format| format.split(element).into_iter().any(|part| format.kind(part).is_none()))
    };
    if !pairs.iter().any(|(got, expected)| got != expected && is_ordinary(expected)) {
        return None;
    }
    let pairs: Vec<(u128, u128)> =
        pairs.iter().map(|(got, expected)| (bits_of(got), bits_of(expected))).collect();
    if let Some(shortened) = format.and_then(|format| shortened(element_type, format, &pairs)) {
        return Some(shortened);
    }
    let rows = CONVERSIONS.iter().filter(|(of, _)| *of == name).flat_map(|(_, all)| *all);
    let (to, _) = rows
        .into_iter()
        .find(|(_, convert)| pairs.iter().all(|(got, expected)| convert(*expected) == *got))?;
    Some(format!("{CONVERTED}{element_type} to {to} and back"))
}

/// Recognizes floats that lost the last bits of their mantissas, of which several elements show how many.
fn shortened(element_type: ElementType, format: FloatFormat, pairs: &[(u128, u128)]) -> Option<String> {
    const LEAST: usize = 2;
    if format.byte_size() != element_type.byte_size() {
        return None;
    }
    let mantissa = format.mantissa_bits();
    let lost = pairs.iter().map(|(got, _)| got.trailing_zeros()).min()?;
    let differ = pairs.iter().filter(|(got, expected)| got != expected).count();
    // A conversion to the nearest such number is at most one step away from the number.
    let is_near = |(got, expected): &(u128, u128)| got.abs_diff(*expected) >> lost == 0;
    // The other conversions have names.
    let has_name = lost >= 16;
    let kept = mantissa.checked_sub(lost).filter(|kept| *kept > 0)?;
    if has_name || lost < 2 || differ < LEAST || !pairs.iter().all(is_near) {
        return None;
    }
    let name = if kept == 10 { ", as TF32 has," } else { "" };
    Some(format!("{CONVERTED}{element_type} to numbers with {kept} bits of mantissa{name} and back"))
}

/// Recognizes truth values of which each true one is the same byte, other than 1. A single one may be a byte of another array.
fn truth_values(pairs: &[(&[u8], &[u8])]) -> Option<String> {
    const LEAST: usize = 2;
    let is_true = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    if pairs.iter().any(|(got, expected)| is_true(got) != is_true(expected)) {
        return None;
    }
    let stored: Vec<u8> =
        pairs.iter().filter(|(got, _)| is_true(got)).filter_map(|(got, _)| got.first().copied()).collect();
    let first = *stored.first().filter(|first| **first != 1)?;
    let is_one_byte = stored.len() >= LEAST && stored.iter().all(|byte| *byte == first);
    is_one_byte.then(|| {
        format!("true is stored as 0x{first:02x}: the elements of PRED are bytes, of which true is 1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(element_type: ElementType, expected: &[u8], got: &[u8]) -> Option<String> {
        let size = element_type.byte_size();
        conversion(element_type, &got.chunks(size).zip(expected.chunks(size)).collect::<Vec<_>>())
    }

    #[test]
    fn conversions_that_lose_bits_are_recognized() {
        let large = 0x1234_5678_9ABC_DEF1_u64;
        let by_double = (large as f64 as u64).to_le_bytes();
        let text = found(ElementType(9), &large.to_le_bytes(), &by_double).unwrap();
        assert!(text.contains("from U64 to F64 and back"), "{text}");
        let low = (large as i32 as i64).to_le_bytes();
        assert!(found(ElementType::S64, &large.to_le_bytes(), &low).unwrap().contains("to S32"));
        let third = 1.0_f64 / 3.0;
        let single = f64::from(third as f32).to_le_bytes();
        assert!(found(ElementType::F64, &third.to_le_bytes(), &single).unwrap().contains("to F32"));
        let third = 1.0_f32 / 3.0;
        let half = f32::from_bits(third.to_bits() & 0xFFFF_0000).to_le_bytes();
        assert!(found(ElementType::F32, &third.to_le_bytes(), &half).unwrap().contains("BF16"));
        assert_eq!(found(ElementType::F32, &1_f32.to_le_bytes(), &2_f32.to_le_bytes()), None);
    }

    #[test]
    fn truth_values_are_zero_and_one() {
        assert!(found(ElementType::PRED, &[1, 0, 1], &[0xFF, 0, 0xFF]).unwrap().contains("0xff"));
        assert_eq!(found(ElementType::PRED, &[1, 0, 1], &[1, 1, 1]), None);
        assert_eq!(found(ElementType::PRED, &[1, 0, 1], &[0x39, 0, 0x2c]), None);
        assert_eq!(found(ElementType::PRED, &[1], &[0x39]), None);
    }

    #[test]
    fn denormals_alone_are_no_conversion() {
        let (expected, got) = ([1_u64, 2].map(u64::to_le_bytes).concat(), [0; 16]);
        assert_eq!(found(ElementType::F64, &expected, &got), None);
    }
}
