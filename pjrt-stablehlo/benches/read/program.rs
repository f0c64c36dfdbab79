//! Writes programs of any size in VHLO bytecode, the form that frameworks send.

use std::collections::HashMap;

/// The codes of VHLO's attributes and types and of `builtin`'s locations, as in the sources of StableHLO and MLIR.
mod code {
    pub(super) const ARRAY: u64 = 1;
    pub(super) const COMPARISON_DIRECTION: u64 = 3;
    pub(super) const COMPARISON_TYPE: u64 = 4;
    pub(super) const STRING: u64 = 14;
    pub(super) const TENSOR: u64 = 15;
    pub(super) const TYPE: u64 = 17;

    pub(super) const TYPE_I1: u64 = 0;
    pub(super) const TYPE_F32: u64 = 4;
    pub(super) const TYPE_FUNCTION: u64 = 8;
    pub(super) const TYPE_I64: u64 = 14;
    pub(super) const TYPE_RANKED_TENSOR: u64 = 20;
    pub(super) const TYPE_NONE: u64 = 33;

    pub(super) const BUILTIN_STRING: u64 = 2;
    pub(super) const LOCATION_FILE: u64 = 11;
    pub(super) const LOCATION_NAME: u64 = 14;
    pub(super) const LOCATION_UNKNOWN: u64 = 15;
}

const BUILTIN: u64 = 0;
const VHLO: u64 = 1;

/// The names of operations that programs use, with their dialects.
const OPS: &[(u64, &str)] = &[
    (BUILTIN, "module"),
    (VHLO, "func_v1"),
    (VHLO, "return_v1"),
    (VHLO, "constant_v1"),
    (VHLO, "broadcast_in_dim_v1"),
    (VHLO, "dot_general_v2"),
    (VHLO, "add_v1"),
    (VHLO, "tanh_v1"),
    (VHLO, "reduce_v1"),
    (VHLO, "compare_v1"),
    (VHLO, "transpose_v1"),
];

fn varint(bytes: &mut Vec<u8>, value: u64) {
    let further = (0..8u32).find(|further| value >> (7 * (further + 1)) == 0);
    match further {
        Some(further) => {
            let word = u128::from(value) << (further + 1) | 1 << further;
            bytes.extend(&word.to_le_bytes()[..=further as usize]);
        }
        None => {
            bytes.push(0);
            bytes.extend(value.to_le_bytes());
        }
    }
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| varint(&mut bytes, value));
    bytes
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    varint(&mut bytes, contents.len() as u64);
    bytes.extend(contents);
    bytes
}

/// Entries that the file contains once and refers to by index.
#[derive(Default)]
struct Table(HashMap<Vec<u8>, u64>, Vec<Vec<u8>>);

impl Table {
    fn index(&mut self, entry: Vec<u8>) -> u64 {
        *self.0.entry(entry).or_insert_with_key(|entry| {
            self.1.push(entry.clone());
            self.1.len() as u64 - 1
        })
    }
}

/// The writer of a file.
#[derive(Default)]
struct Writer {
    strings: Table,
    /// The attributes. The first byte of each is its dialect.
    attributes: Table,
    /// The types of VHLO.
    types: Table,
    properties: Table,
}

/// The operands, attributes and so on of an operation.
struct Op<'a> {
    name: &'static str,
    location: u64,
    /// The attributes in the order of their names.
    properties: &'a [u64],
    results: &'a [u64],
    operands: &'a [u64],
    /// The regions, and whether each is isolated from above.
    regions: Option<(&'a [u8], bool)>,
}

impl Writer {
    fn string(&mut self, text: &str) -> u64 {
        self.strings.index(text.as_bytes().to_vec())
    }

    fn attribute(&mut self, dialect: u64, values: &[u64]) -> u64 {
        self.attributes.index([vec![dialect as u8], varints(values)].concat())
    }

    fn ty(&mut self, values: &[u64]) -> u64 {
        self.types.index(varints(values))
    }

    fn tensor(&mut self, element: u64, dims: &[u64]) -> u64 {
        let element = self.ty(&[element]);
        // Sizes are signed numbers.
        let sizes = dims.iter().map(|size| size << 1);
        let values: Vec<u64> =
            [code::TYPE_RANKED_TENSOR, dims.len() as u64].into_iter().chain(sizes).chain([element]).collect();
        self.ty(&values)
    }

    fn elements(&mut self, ty: u64, bytes: &[u8]) -> u64 {
        let head = varints(&[code::TENSOR, ty, bytes.len() as u64]);
        self.attributes.index([&[VHLO as u8][..], &head, bytes].concat())
    }

    fn integers(&mut self, values: &[i64]) -> u64 {
        let ty = self.tensor(code::TYPE_I64, &[values.len() as u64]);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.elements(ty, &bytes)
    }

    fn text(&mut self, text: &str) -> u64 {
        let string = self.string(text);
        self.attribute(VHLO, &[code::STRING, string])
    }

    /// Returns the location `"name"("model.py":line:1)`.
    fn location(&mut self, name: &str, line: u64) -> u64 {
        let file = self.string("model.py");
        let file = self.attribute(BUILTIN, &[code::BUILTIN_STRING, file]);
        let place = self.attribute(BUILTIN, &[code::LOCATION_FILE, file, line, 1]);
        let name = self.string(name);
        let name = self.attribute(BUILTIN, &[code::BUILTIN_STRING, name]);
        self.attribute(BUILTIN, &[code::LOCATION_NAME, name, place])
    }

    fn op(&mut self, code: &mut Vec<u8>, op: &Op<'_>) {
        const RESULTS: u8 = 2;
        const OPERANDS: u8 = 4;
        const REGIONS: u8 = 16;
        const PROPERTIES: u8 = 64;
        let name = OPS.iter().position(|(_, name)| *name == op.name).expect("the operation is listed");
        varint(code, name as u64);
        let part = |present: bool, bit: u8| if present { bit } else { 0 };
        let has_properties = !op.properties.is_empty();
        code.push(
            part(!op.results.is_empty(), RESULTS)
                | part(!op.operands.is_empty(), OPERANDS)
                | part(op.regions.is_some(), REGIONS)
                | part(has_properties, PROPERTIES),
        );
        varint(code, op.location);
        if has_properties {
            varint(code, self.properties.index(varints(op.properties)));
        }
        for list in [op.results, op.operands].into_iter().filter(|list| !list.is_empty()) {
            varint(code, list.len() as u64);
            code.extend(varints(list));
        }
        if let Some((region, isolated)) = op.regions {
            varint(code, 1 << 1 | u64::from(isolated));
            code.extend(if isolated { section(4, region) } else { region.to_vec() });
        }
    }

    /// Returns a region of one block from its arguments, the number of its values, and its operations.
    fn region(&mut self, arguments: &[u64], values: u64, ops: u64, code: &[u8]) -> Vec<u8> {
        let has_arguments = !arguments.is_empty();
        let mut region = varints(&[1, values, ops << 1 | u64::from(has_arguments)]);
        if has_arguments {
            varint(&mut region, arguments.len() as u64);
            // No locations, and no orders of uses.
            arguments.iter().for_each(|ty| varint(&mut region, ty << 1));
            region.push(0);
        }
        region.extend(code);
        region
    }

    /// Returns a module of one function with this region as its body.
    fn module(mut self, arguments: &[u64], results: &[u64], body: &[u8]) -> Vec<u8> {
        let unknown = self.attribute(BUILTIN, &[code::LOCATION_UNKNOWN]);
        let function_type: Vec<u64> = [code::TYPE_FUNCTION, arguments.len() as u64]
            .into_iter()
            .chain(arguments.iter().copied())
            .chain([results.len() as u64])
            .chain(results.iter().copied())
            .collect();
        let function_type = self.ty(&function_type);
        let nothing = self.attribute(VHLO, &[code::ARRAY, 0]);
        let function_type = self.attribute(VHLO, &[code::TYPE, function_type]);
        let (name, visibility) = (self.text("main"), self.text("public"));
        let properties = [nothing, function_type, nothing, name, visibility];
        let mut function = Vec::new();
        let op = Op {
            name: "func_v1",
            location: unknown,
            properties: &properties,
            results: &[],
            operands: &[],
            regions: Some((body, true)),
        };
        self.op(&mut function, &op);
        let module = self.region(&[], 0, 1, &function);
        let mut code = varints(&[1 << 1]);
        let op = Op { name: "module", properties: &[], regions: Some((&module, true)), ..op };
        self.op(&mut code, &op);
        self.finish(&code)
    }

    fn finish(mut self, code: &[u8]) -> Vec<u8> {
        let dialects: Vec<u64> = ["builtin", "vhlo"].map(|name| self.string(name)).to_vec();
        let names: Vec<u64> = OPS.iter().map(|(_, name)| self.string(name)).collect();
        let mut dialect_section = varints(&[dialects.len() as u64]);
        dialects.iter().for_each(|name| varint(&mut dialect_section, name << 1));
        varint(&mut dialect_section, OPS.len() as u64);
        for dialect in [BUILTIN, VHLO] {
            let own: Vec<u64> =
                (0..OPS.len()).filter(|&op| OPS[op].0 == dialect).map(|op| names[op]).collect();
            dialect_section.extend(varints(&[dialect, own.len() as u64]));
            own.iter().for_each(|name| varint(&mut dialect_section, name << 1 | 1));
        }
        let strings = &self.strings.1;
        let mut string_section = varints(&[strings.len() as u64]);
        strings.iter().rev().for_each(|string| varint(&mut string_section, string.len() as u64 + 1));
        strings.iter().for_each(|string| string_section.extend([&string[..], &[0]].concat()));
        let mut offsets = varints(&[self.attributes.1.len() as u64, self.types.1.len() as u64]);
        let mut entries = Vec::new();
        let mut entry = |dialect: u64, encoded: &[u8]| {
            offsets.extend(varints(&[dialect, 1, (encoded.len() as u64) << 1 | 1]));
            entries.extend(encoded);
        };
        self.attributes.1.iter().for_each(|attribute| entry(u64::from(attribute[0]), &attribute[1..]));
        self.types.1.iter().for_each(|ty| entry(VHLO, ty));
        let mut properties = varints(&[self.properties.1.len() as u64]);
        for encoded in &self.properties.1 {
            varint(&mut properties, encoded.len() as u64);
            properties.extend(encoded);
        }
        let sections = [
            (0, &*string_section),
            (1, &dialect_section),
            (2, &entries),
            (3, &offsets),
            (4, code),
            (8, &properties),
        ];
        let mut file = b"ML\xefR".to_vec();
        varint(&mut file, 6);
        file.extend(b"StableHLO_v1.13.7\0");
        sections.iter().for_each(|(id, contents)| file.extend(section(*id, contents)));
        file
    }
}

/// Returns a program of about this number of operations: layers of a constant, a product, elementwise operations, and a reduction
/// with its region. Each operation has a location in a source file.
pub(crate) fn of_many_ops(ops: usize) -> Vec<u8> {
    const OPS_OF_LAYER: usize = 10;
    const RESULTS_OF_LAYER: u64 = 8;
    let layers = ops / OPS_OF_LAYER;
    let mut writer = Writer::default();
    let scalar = writer.tensor(code::TYPE_F32, &[]);
    let (lhs, rhs) = (writer.tensor(code::TYPE_F32, &[8, 16]), writer.tensor(code::TYPE_F32, &[16, 64]));
    let (product, row) = (writer.tensor(code::TYPE_F32, &[8, 64]), writer.tensor(code::TYPE_F32, &[8]));
    let none = writer.ty(&[code::TYPE_NONE]);
    let none = writer.attribute(VHLO, &[code::TYPE, none]);
    let nothing = writer.attribute(VHLO, &[code::ARRAY, 0]);
    let [no_dims, first, second, swapped] = [&[][..], &[0], &[1], &[1, 0]].map(|dims| writer.integers(dims));
    let greater = writer.attribute(VHLO, &[code::COMPARISON_DIRECTION, 3]);
    let float = writer.attribute(VHLO, &[code::COMPARISON_TYPE, 1]);
    let dot = [none, none, no_dims, none, second, none, none, nothing, no_dims, none, first, none];
    let value_count = 2 + layers as u64 * RESULTS_OF_LAYER;
    let mut body = Vec::new();
    for layer in 0..layers as u64 {
        // Shapes and locations repeat, as in a model whose source contains each layer once.
        let width = 64 + layer % 7;
        let wide = writer.tensor(code::TYPE_F32, &[8, width]);
        let flags = writer.tensor(code::TYPE_I1, &[8, width]);
        let tall = writer.tensor(code::TYPE_F32, &[width, 8]);
        let value = writer.elements(scalar, &(layer as f32).to_le_bytes());
        let result = |index: u64| 2 + layer * RESULTS_OF_LAYER + index;
        // The region of the reduction.
        let sum = reduction(&mut writer, scalar, value_count);
        let mut op = |name: &'static str, properties: &[u64], operands: &[u64], ty: u64| {
            let place = format!("jit(model)/jit(main)/layer{}/{name}", layer % 97);
            let location = writer.location(&place, layer % 500);
            let regions = (name == "reduce_v1").then_some((&*sum, false));
            writer.op(&mut body, &Op { name, location, properties, results: &[ty], operands, regions });
        };
        op("constant_v1", &[value], &[], scalar);
        op("broadcast_in_dim_v1", &[no_dims], &[result(0)], wide);
        op("dot_general_v2", &dot, &[0, 1], product);
        op("add_v1", &[], &[result(1), result(1)], wide);
        op("tanh_v1", &[], &[result(3)], wide);
        op("reduce_v1", &[second], &[result(4), result(0)], row);
        op("compare_v1", &[float, greater], &[result(3), result(4)], flags);
        op("transpose_v1", &[swapped], &[result(4)], tall);
    }
    let unknown = writer.attribute(BUILTIN, &[code::LOCATION_UNKNOWN]);
    let end = Op {
        name: "return_v1",
        location: unknown,
        properties: &[],
        results: &[],
        operands: &[0],
        regions: None,
    };
    writer.op(&mut body, &end);
    let count = layers as u64 * RESULTS_OF_LAYER + 1;
    let body = writer.region(&[lhs, rhs], value_count, count, &body);
    writer.module(&[lhs, rhs], &[lhs], &body)
}

/// Returns the region of a sum. Its values are numbered after those of the function.
fn reduction(writer: &mut Writer, scalar: u64, first: u64) -> Vec<u8> {
    let location = writer.location("jit(model)/jit(main)/reduce_sum", 1);
    let mut ops = Vec::new();
    let add = Op {
        name: "add_v1",
        location,
        properties: &[],
        results: &[scalar],
        operands: &[first, first + 1],
        regions: None,
    };
    writer.op(&mut ops, &add);
    let operands = [first + 2];
    writer.op(&mut ops, &Op { name: "return_v1", results: &[], operands: &operands, ..add });
    writer.region(&[scalar, scalar], 3, 2, &ops)
}

/// Returns a program with one constant of this number of bytes.
pub(crate) fn of_one_constant(len: usize) -> Vec<u8> {
    let mut writer = Writer::default();
    let bytes: Vec<u8> = (0..len as u32 / 4).flat_map(|index| (index as f32).to_le_bytes()).collect();
    let ty = writer.tensor(code::TYPE_F32, &[bytes.len() as u64 / 4]);
    let value = writer.elements(ty, &bytes);
    let location = writer.location("jit(model)/jit(main)/weights", 1);
    let mut body = Vec::new();
    let constant = Op {
        name: "constant_v1",
        location,
        properties: &[value],
        results: &[ty],
        operands: &[],
        regions: None,
    };
    writer.op(&mut body, &constant);
    writer
        .op(&mut body, &Op { name: "return_v1", properties: &[], results: &[], operands: &[0], ..constant });
    let body = writer.region(&[], 1, 2, &body);
    writer.module(&[], &[ty], &body)
}
