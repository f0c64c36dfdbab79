//! Input that is made to hurt a reader: deep nesting, cycles, and counts without anything behind them.

use pjrt_stablehlo::{Error, ErrorKind, Module, parse};

/// Writes the format's variable-width integers in their longest form.
fn varint(value: u64) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(value.to_le_bytes());
    bytes
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id][..], &varint(contents.len() as u64), contents].concat()
}

fn varints(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|&value| varint(value)).collect()
}

const CODE_ARRAY: u64 = 0;
const CODE_DICTIONARY: u64 = 1;
const CODE_STRING: u64 = 2;
const CODE_CALL_SITE: u64 = 10;
const CODE_UNKNOWN_LOCATION: u64 = 15;

/// A module whose one attribute `m.a` is entry 3 of a table: 0 is the unknown location, 1 the name, 2 the dictionary.
/// The module's location is entry `location`.
fn module_with(entries: &[Vec<u64>], location: u64) -> Result<Module, Error> {
    let strings: [&[u8]; 3] = [b"builtin\0", b"module\0", b"m.a\0"];
    let mut table = vec![vec![CODE_UNKNOWN_LOCATION], vec![CODE_STRING, 2], vec![CODE_DICTIONARY, 1, 1, 3]];
    table.extend(entries.iter().cloned());
    let encoded: Vec<Vec<u8>> = table.iter().map(|entry| varints(entry)).collect();
    let mut offsets = varints(&[encoded.len() as u64, 0, 0, encoded.len() as u64]);
    offsets.extend(encoded.iter().flat_map(|entry| varint((entry.len() as u64) << 1 | 1)));
    let mut string_section = varints(&[strings.len() as u64]);
    string_section.extend(strings.iter().rev().flat_map(|string| varint(string.len() as u64)));
    string_section.extend(strings.concat());
    // One dialect without version, one operation name, known to the writer.
    let dialects = varints(&[1, 0, 1, 0, 1, 1 << 1 | 1]);
    // A block of one operation with attributes and an empty isolated region.
    let mut code = varints(&[1 << 1, 0]);
    code.push(1 | 16);
    code.extend(varints(&[location, 2, 1 << 1 | 1]));
    code.extend(section(4, &varints(&[0])));
    let mut program = b"ML\xefR".to_vec();
    program.extend(varint(6));
    program.extend(b"test\0");
    program.extend(section(0, &string_section));
    program.extend(section(1, &dialects));
    program.extend(section(2, &encoded.concat()));
    program.extend(section(3, &offsets));
    program.extend(section(4, &code));
    parse(program)
}

#[test]
fn the_harness_writes_valid_programs() {
    let module = module_with(&[vec![CODE_ARRAY, 2, 1, 1]], 0).unwrap();
    assert_eq!(module.attributes.get("m.a").unwrap().to_string(), r#"["m.a", "m.a"]"#);
}

#[test]
fn deep_nesting_is_an_error() {
    let chain: Vec<_> =
        (0..100_000).map(|index| vec![CODE_ARRAY, 1, 4 + index]).chain([vec![CODE_ARRAY, 0]]).collect();
    assert_eq!(module_with(&chain, 0).unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn references_in_a_circle_are_an_error() {
    for circle in [vec![vec![CODE_ARRAY, 1, 3]], vec![vec![CODE_ARRAY, 1, 4], vec![CODE_ARRAY, 2, 1, 3]]] {
        let error = module_with(&circle, 0).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
        assert!(error.message.contains("refers to itself"), "{error}");
    }
}

#[test]
fn attributes_that_multiply_are_an_error() {
    // Each entry has the next one twice: 2^100 parts in all.
    let tree: Vec<_> = (0..100)
        .map(|index| vec![CODE_ARRAY, 2, 4 + index, 4 + index])
        .chain([vec![CODE_ARRAY, 0]])
        .collect();
    assert_eq!(module_with(&tree, 0).unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn locations_that_nest_too_deep_become_unknown() {
    let mut chain = vec![vec![CODE_ARRAY, 0]];
    chain.extend((0..10_000).map(|index| vec![CODE_CALL_SITE, 0, 5 + index]));
    chain.push(vec![CODE_UNKNOWN_LOCATION]);
    let module = module_with(&chain, 4).unwrap();
    assert!(module.location.to_string().len() < 100_000);
}

#[test]
fn counts_need_bytes_behind_them() {
    for count in [1 << 20, 1 << 40, u64::MAX] {
        let error = module_with(&[vec![CODE_ARRAY, count]], 0).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
        assert!(error.offset.is_some());
    }
}

#[test]
fn indices_have_to_exist() {
    let error = module_with(&[vec![CODE_ARRAY, 1, 77]], 0).unwrap_err();
    assert!(error.message.contains("expected the index of one of 4 attributes, found 77"), "{error}");
    let error = module_with(&[vec![CODE_ARRAY, 0]], 1).unwrap_err();
    assert!(error.message.contains("expected a location, found a string"), "{error}");
}
