//! Input that attacks a reader: deep nesting, cycles, and counts without the corresponding data.

use pjrt_stablehlo::limits::{MAX_LOCATION_NESTING, MAX_NESTING, MAX_REGION_DEPTH};
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
const CODE_TYPE_ATTRIBUTE: u64 = 6;
const CODE_CALL_SITE: u64 = 10;
const CODE_UNKNOWN_LOCATION: u64 = 15;
const CODE_FUNCTION_TYPE: u64 = 2;
const CODE_TUPLE_TYPE: u64 = 15;

/// Bits of the byte that specifies which parts of an operation follow.
const WITH_ATTRIBUTES: u8 = 1;
const WITH_REGIONS: u8 = 16;

const SECTION_CODE: u8 = 4;

/// Parts of a file.
struct Parts<'a> {
    strings: &'a [&'a str],
    /// Dialects by the index of their name, each with indices of its operations' names.
    dialects: &'a [(u64, &'a [u64])],
    /// Attributes in the encoding of `builtin`.
    attributes: &'a [Vec<u64>],
    /// Types in the encoding of `builtin`.
    types: &'a [Vec<u64>],
    code: Vec<u8>,
}

impl Parts<'_> {
    fn write(&self) -> Vec<u8> {
        let mut strings = varints(&[self.strings.len() as u64]);
        strings.extend(self.strings.iter().rev().flat_map(|string| varint(string.len() as u64 + 1)));
        strings.extend(self.strings.iter().flat_map(|string| [string.as_bytes(), &[0]].concat()));
        // Dialects without version, operations that the writer knew.
        let mut dialects = varints(&[self.dialects.len() as u64]);
        dialects.extend(self.dialects.iter().flat_map(|(name, _)| varint(name << 1)));
        dialects.extend(varint(self.dialects.iter().map(|(_, ops)| ops.len() as u64).sum()));
        for (index, (_, ops)) in self.dialects.iter().enumerate() {
            dialects.extend(varints(&[index as u64, ops.len() as u64]));
            dialects.extend(ops.iter().flat_map(|name| varint(name << 1 | 1)));
        }
        let mut offsets = varints(&[self.attributes.len() as u64, self.types.len() as u64]);
        let mut entries = Vec::new();
        for table in [self.attributes, self.types].into_iter().filter(|table| !table.is_empty()) {
            offsets.extend(varints(&[0, table.len() as u64]));
            for entry in table {
                let encoded = varints(entry);
                offsets.extend(varint((encoded.len() as u64) << 1 | 1));
                entries.extend(encoded);
            }
        }
        let sections =
            [(0, &strings), (1, &dialects), (2, &entries), (3, &offsets), (SECTION_CODE, &self.code)];
        let mut program = b"ML\xefR".to_vec();
        program.extend(varint(6));
        program.extend(b"test\0");
        program.extend(sections.iter().flat_map(|(id, contents)| section(*id, contents)));
        program
    }
}

/// Returns the beginning of an operation: the name, the parts, location 0 and the given numbers.
fn op(name: u64, parts: u8, rest: &[u64]) -> Vec<u8> {
    [varint(name), vec![parts], varints(&[0]), varints(rest)].concat()
}

/// A module whose one attribute `m.a` is entry 3 of a table: 0 is the unknown location, 1 the name, 2 the dictionary.
/// The module's location is entry `location`.
fn program_with(entries: &[Vec<u64>], types: &[Vec<u64>], location: u64) -> Vec<u8> {
    let mut table = vec![vec![CODE_UNKNOWN_LOCATION], vec![CODE_STRING, 2], vec![CODE_DICTIONARY, 1, 1, 3]];
    table.extend(entries.iter().cloned());
    // A block of one operation with attributes and an empty isolated region.
    let mut code = varints(&[1 << 1, 0]);
    code.push(WITH_ATTRIBUTES | WITH_REGIONS);
    code.extend(varints(&[location, 2, 1 << 1 | 1]));
    code.extend(section(SECTION_CODE, &varints(&[0])));
    let parts = Parts {
        strings: &["builtin", "module", "m.a", ""],
        dialects: &[(0, &[1])],
        attributes: &table,
        types,
        code,
    };
    parts.write()
}

fn module_with(entries: &[Vec<u64>], location: u64) -> Result<Module, Error> {
    parse(program_with(entries, &[], location))
}

/// Returns a function with operations that are nested in regions to this depth.
fn program_with_regions(depth: usize) -> Vec<u8> {
    let strings =
        ["builtin", "module", "func", "func", "return", "test", "op", "sym_name", "main", "function_type"];
    let attributes = [
        vec![CODE_UNKNOWN_LOCATION],
        vec![CODE_STRING, 7],
        vec![CODE_STRING, 8],
        vec![CODE_STRING, 9],
        vec![CODE_TYPE_ATTRIBUTE, 0],
        vec![CODE_DICTIONARY, 2, 1, 2, 3, 4],
    ];
    const MODULE: u64 = 0;
    const FUNCTION: u64 = 1;
    const RETURN: u64 = 2;
    const OTHER: u64 = 3;
    // One block without values and arguments, of so many operations.
    let region = |ops: u64| varints(&[1, 0, ops << 1]);
    let mut function = region(2);
    for _ in 1..depth {
        function.extend(op(OTHER, WITH_REGIONS, &[1 << 1]));
        function.extend(region(1));
    }
    function.extend(op(OTHER, 0, &[]));
    function.extend(op(RETURN, 0, &[]));
    let mut module = region(1);
    module.extend(op(FUNCTION, WITH_ATTRIBUTES | WITH_REGIONS, &[5, 1 << 1 | 1]));
    module.extend(section(SECTION_CODE, &function));
    let mut code = varints(&[1 << 1]);
    code.extend(op(MODULE, WITH_REGIONS, &[1 << 1 | 1]));
    code.extend(section(SECTION_CODE, &module));
    let parts = Parts {
        strings: &strings,
        dialects: &[(0, &[1]), (2, &[3, 4]), (5, &[6])],
        attributes: &attributes,
        types: &[vec![CODE_FUNCTION_TYPE, 0, 0]],
        code,
    };
    parts.write()
}

/// Reads, prints, copies and drops a program on a thread with a stack of 512 KiB, and returns its text.
fn on_a_small_stack(program: Vec<u8>) -> Result<String, Error> {
    const STACK: usize = 512 << 10;
    let work = move || {
        let module = parse(program)?;
        assert_eq!(module.clone().attributes, module.attributes);
        assert!(format!("{module:?}").len() > 10);
        Ok(format!("{module:#}"))
    };
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap()
}

/// Returns the text of the deepest accepted program. Programs beyond the maximum depth must be refused.
fn deepest(max_depth: usize, program: impl Fn(usize) -> Vec<u8>) -> String {
    assert_eq!(on_a_small_stack(program(max_depth + 1)).unwrap_err().kind, ErrorKind::TooLarge);
    let accepted =
        (max_depth / 4..=max_depth).rev().find_map(|depth| match on_a_small_stack(program(depth)) {
            Ok(text) => Some(text),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
                None
            }
        });
    accepted.expect("a quarter of the greatest depth is accepted")
}

#[test]
fn the_harness_writes_valid_programs() {
    let module = module_with(&[vec![CODE_ARRAY, 2, 1, 1]], 0).unwrap();
    assert_eq!(module.attributes.get("m.a").unwrap().to_string(), r#"["m.a", "m.a"]"#);
}

#[test]
fn operations_that_stablehlo_does_not_have_are_refused() {
    // A function whose one operation is the last string.
    let program = |dialect: &str, name: &str| {
        let mut inner = varints(&[1, 0, 1 << 1]);
        inner.extend(op(2, 0, &[]));
        let mut functions = varints(&[1, 0, 1 << 1]);
        functions.extend(op(1, WITH_ATTRIBUTES | WITH_REGIONS, &[4, 1 << 1 | 1]));
        functions.extend(section(SECTION_CODE, &inner));
        let mut code = varints(&[1 << 1]);
        code.extend(op(0, WITH_REGIONS, &[1 << 1 | 1]));
        code.extend(section(SECTION_CODE, &functions));
        Parts {
            strings: &["builtin", "module", "func", "sym_name", "f", "function_type", dialect, name],
            dialects: &[(0, &[1]), (2, &[2]), (6, &[7])],
            attributes: &[
                vec![CODE_UNKNOWN_LOCATION],
                vec![CODE_STRING, 3],
                vec![CODE_STRING, 4],
                vec![CODE_STRING, 5],
                vec![CODE_DICTIONARY, 2, 1, 2, 3, 5],
                vec![CODE_TYPE_ATTRIBUTE, 0],
            ],
            types: &[vec![CODE_FUNCTION_TYPE, 0, 0]],
            code,
        }
        .write()
    };
    for (dialect, name) in [("stablehlo", "foo"), ("chlo", "foo"), ("sdy", "foo"), ("func", "foo")] {
        let error = parse(program(dialect, name)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(&format!("unknown operation '{dialect}.{name}'")), "{error}");
    }
    // The rest of the program is right: what a dialect that is not known has is not known either.
    let error = parse(program("my", "foo")).unwrap_err();
    assert!(error.to_string().contains("expected func.return at the end of the block"), "{error}");
}

#[test]
fn dictionaries_are_sorted_and_have_each_name_once() {
    // Entries 1 and 4 are the strings `m.a` and `module`.
    let dictionary =
        |first: u64, second: u64| vec![vec![CODE_DICTIONARY, 2, first, 1, second, 4], vec![CODE_STRING, 1]];
    let module = module_with(&dictionary(4, 1), 0).unwrap();
    assert_eq!(module.attributes.to_string(), r#"{m.a = {m.a = "module", module = "m.a"}}"#);
    let error = module_with(&dictionary(1, 1), 0).unwrap_err();
    assert!(error.message.contains("expected one entry named 'm.a' in a dictionary, found two"), "{error}");
    let nameless = [vec![CODE_DICTIONARY, 1, 4, 1], vec![CODE_STRING, 3]];
    let error = module_with(&nameless, 0).unwrap_err();
    assert!(error.message.contains("found an empty string"), "{error}");
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

/// Copies of `open`, `inner`, and as many copies of `close`.
fn nested(depth: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn a_small_stack_is_enough_for_the_deepest_attributes_and_types_of_text() {
    let attribute = |value: String| format!("module attributes {{m.a = {value}}} {{}}").into_bytes();
    let max_depth = MAX_NESTING as usize;
    for (open, inner, close) in [
        ("[", "1", "]"),
        ("{a = ", "1", "}"),
        ("[{a = [", "tuple<f32>", "]}]"),
        ("tuple<", "f32", ">"),
        ("!stablehlo.future<", "f32", ">"),
        ("(f32, ", "i32", ") -> ()"),
        ("() -> (f32, ", "i32", ")"),
        ("tensor<*x", "f32", ">"),
        ("tensor<2xf32, ", "unit", ">"),
        ("loc(fused<", "1", ">[\"a\"])"),
    ] {
        deepest(max_depth, |depth| attribute(nested(depth, open, inner, close)));
        // An alias that is read far inside.
        let half = |depth: usize| {
            let alias = nested(depth / 2, open, inner, close);
            let sigil = if "(t!".contains(&open[..1]) { "!" } else { "#" };
            let value = nested(depth.div_ceil(2), open, &format!("{sigil}alias"), close);
            let module = String::from_utf8(attribute(value)).unwrap();
            format!("{module}\n{sigil}alias = {alias}\n").into_bytes()
        };
        deepest(max_depth, half);
    }
}

#[test]
fn a_small_stack_is_enough_for_the_deepest_attributes_and_types_of_bytecode() {
    let max_depth = MAX_NESTING as usize;
    let chain = |code: u64, depth: usize, first: u64, last: Vec<u64>| -> Vec<Vec<u64>> {
        (1..depth as u64).map(|index| vec![code, 1, first + index]).chain([last]).collect()
    };
    deepest(max_depth, |depth| program_with(&chain(CODE_ARRAY, depth, 3, vec![CODE_ARRAY, 0]), &[], 0));
    deepest(max_depth, |depth| {
        let types = chain(CODE_TUPLE_TYPE, depth, 0, vec![CODE_TUPLE_TYPE, 0]);
        program_with(&[vec![CODE_TYPE_ATTRIBUTE, 0]], &types, 0)
    });
}

#[test]
fn a_small_stack_is_enough_for_the_deepest_locations() {
    let depth = MAX_LOCATION_NESTING as usize;
    for (open, close) in
        [("callsite(\"a\" at ", ")"), ("fused[", "]"), ("\"n\"(", ")"), ("callsite(", " at \"a\")")]
    {
        for depth in [depth - 2, 100 * depth] {
            let location = nested(depth, open, "\"b\"", close);
            let text = on_a_small_stack(format!("module {{}} loc({location})").into_bytes()).unwrap();
            // What nests deeper is left out.
            assert_eq!(text.contains(&location), depth < 1000, "{open}");
            assert_eq!(on_a_small_stack(text.clone().into_bytes()).unwrap(), text);
        }
    }
    let mut chain: String =
        (0..100 * depth).map(|index| format!("#l{index} = loc(fused[#l{}])\n", index + 1)).collect();
    chain.push_str(&format!("#l{} = loc(\"b\")\nmodule {{}} loc(#l0)", 100 * depth));
    assert!(on_a_small_stack(chain.into_bytes()).unwrap().contains("fused["));
    let mut chain = vec![vec![CODE_ARRAY, 0]];
    chain.extend((0..10_000).map(|index| vec![CODE_CALL_SITE, 0, 5 + index]));
    chain.push(vec![CODE_UNKNOWN_LOCATION]);
    assert!(on_a_small_stack(program_with(&chain, &[], 4)).unwrap().contains("callsite("));
}

#[test]
fn a_small_stack_is_enough_for_the_deepest_regions() {
    let text = deepest(MAX_REGION_DEPTH, program_with_regions);
    assert_eq!(on_a_small_stack(text.clone().into_bytes()).unwrap(), text);
    deepest(MAX_REGION_DEPTH, |depth| {
        let regions = nested(depth, "\"test.op\"() ({\n", "", "\n}) : () -> ()\n");
        format!("func.func @main() {{\n{regions}\nreturn\n}}").into_bytes()
    });
}
