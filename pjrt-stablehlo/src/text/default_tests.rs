//! Attributes that programs may leave out are read, wherever texts have them, when they are there.
//!
//! The tests are about every such attribute of the op table.

use crate::ir::{AttributeSpec, OpCode, OpInfo, Operation};

use super::assembly_types::TypeForm;
use super::{Places, parse, parse_dictionary, read};

/// Returns an attribute that is not the default, by what the op table expects.
fn text_of(spec: &AttributeSpec) -> &'static str {
    match (spec.expected, spec.name) {
        ("a boolean", _) => "true",
        ("unit", _) => "unit",
        ("an integer of type i64", _) => "7 : i64",
        ("an integer of type i32", _) => "7 : i32",
        ("a float of type f32", _) => "2.500000e-01 : f32",
        ("a string", _) | ("a string or a dictionary", _) => "\"text\"",
        ("a symbol reference", _) => "@f",
        ("an array of symbol references", _) => "[@f]",
        ("integers of type i64", _) => "array<i64: 2, 3>",
        ("booleans", _) => "array<i1: true, false>",
        ("pairs of integers of type i64", _) => "dense<[[1, 2]]> : tensor<1x2xi64>",
        ("a matrix of integers of type i64, or mesh axes", _) => "dense<0> : tensor<1x1xi64>",
        ("a channel handle", _) => "#stablehlo.channel_handle<handle = 3, type = 1>",
        ("an array of precisions", _) => "[#stablehlo<precision HIGH>]",
        ("a dot algorithm", _) => {
            "#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, \
             lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, \
             allow_imprecise_accumulation = false>"
        }
        ("dot dimension numbers", _) => {
            "#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>"
        }
        ("convolution dimension numbers", _) => "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>",
        ("gather dimension numbers", _) => "#stablehlo.gather<index_vector_dim = 1>",
        ("scatter dimension numbers", _) => "#stablehlo.scatter<index_vector_dim = 1>",
        ("a result accuracy", _) => {
            "#stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
        }
        ("a comparison type", _) => "#stablehlo<comparison_type TOTALORDER>",
        ("a custom call API version", _) => "2 : i32",
        ("dense elements", _) => "dense<1> : tensor<i32>",
        ("a dictionary", _) => "{a = 1 : i64}",
        ("an array of layouts", _) => "[dense<[1, 0]> : tensor<2xindex>]",
        ("an array of tilings", _) => "[[dense<[8, 128]> : tensor<2xindex>]]",
        ("an array of output operand aliases", _) => {
            "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, \
             operand_tuple_indices = []>]"
        }
        ("an array", _) => "[{x.y = 1 : i64}]",
        ("a case of its enumeration", "comparison_direction") => "#stablehlo<comparison_direction LT>",
        (expected, name) => panic!("there is no sample of attribute '{name}', {expected}"),
    }
}

/// Returns the attributes in which an operation is written, as `name = value`.
fn entry(spec: &AttributeSpec) -> String {
    format!("{} = {}", spec.name, text_of(spec))
}

/// Returns the attribute of an operation in which `text` is read, printed.
#[track_caller]
fn read_attribute(text: &str, info: &OpInfo, spec: &AttributeSpec) -> String {
    let program = format!("func.func @f(%x: tensor<4x4xf32>) {{\n{text}\nreturn\n}}");
    let module = read(&program, Places::Nowhere).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let is_it = |op: &&Operation| op.kind.name() == info.name;
    let body = &module.functions()[0].body;
    let op = body.all_ops().map(|(_, op)| op).find(is_it).unwrap_or_else(|| panic!("no operation\n{text}"));
    assert!(op.attributes.is_empty(), "{}: its own attributes are among the others\n{text}", info.name);
    let attributes = op.kind.attributes();
    let found = attributes.into_iter().find(|(name, _)| **name == *spec.name);
    found.unwrap_or_else(|| panic!("{}: '{}' has its default\n{text}", info.name, spec.name)).1.to_string()
}

/// Operations with attributes that may be left out, and these.
fn optional() -> impl Iterator<Item = (OpCode, &'static OpInfo, &'static AttributeSpec)> {
    let ops = OpCode::ALL.iter().map(|&code| (code, code.info()));
    ops.flat_map(|(code, info)| {
        info.attributes.iter().filter(|spec| !spec.required).map(move |spec| (code, info, spec))
    })
}

/// Returns the attribute as it is printed.
fn expected(spec: &AttributeSpec) -> String {
    parse_dictionary(&format!("{{{}}}", entry(spec))).unwrap().get(spec.name).unwrap().to_string()
}

#[test]
fn attributes_are_read_from_properties_and_dictionaries() {
    assert!(optional().count() > 50, "{}", optional().count());
    for (_, info, spec) in optional() {
        let required = info.attributes.iter().filter(|spec| spec.required).map(entry);
        let required = required.collect::<Vec<_>>().join(", ");
        let both = [required.as_str(), &entry(spec)].join(if required.is_empty() { "" } else { ", " });
        let attribute = entry(spec);
        let name = info.name;
        for middle in [
            format!("<{{{both}}}>"),
            format!("{{{both}}}"),
            format!("<{{{required}}}> {{{attribute}}}"),
            format!("<{{{attribute}}}> {{{required}}}"),
        ] {
            let text = format!("\"{name}\"() {middle} : () -> ()");
            assert_eq!(read_attribute(&text, info, spec), expected(spec), "{text}");
        }
        let twice = format!("\"{name}\"() <{{{both}}}> {{{attribute}}} : () -> ()");
        let twice = format!("func.func @f() {{\n{twice}\nreturn\n}}");
        let error = read(&twice, Places::Nowhere).map(|_| ()).unwrap_err();
        assert!(error.message.contains("is given twice"), "{error}");
        let unknown = format!("\"{name}\"() <{{{both}, {}s = unit}}> : () -> ()", spec.name);
        let unknown = format!("func.func @f() {{\n{unknown}\nreturn\n}}");
        let error = read(&unknown, Places::Nowhere).map(|_| ()).unwrap_err();
        assert!(error.message.contains("unknown attribute"), "{error}");
    }
}

/// Returns the operation in its custom assembly, with `{}` for its dictionary; `None` where it has none.
fn custom(code: OpCode, name: &str) -> Option<String> {
    const T: &str = "tensor<4x4xf32>";
    let binary = format!(": ({T}, {T}) -> {T}");
    Some(match code {
        OpCode::Cholesky => format!("{name} %x {{}} : {T}"),
        OpCode::Compare => format!("{name} LT, %x, %x {{}} : ({T}, {T}) -> tensor<4x4xi1>"),
        OpCode::Composite => format!("{name} \"a.b\" %x {{decomposition = @f, }} : ({T}) -> {T}"),
        OpCode::Convolution => {
            format!(
                "{name}(%x, %x) dim_numbers = [b, f]x[o, i]->[b, f], window = {{}} \
                 {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, }} {binary}"
            )
        }
        OpCode::DynamicConv => {
            format!(
                "{name}(%x, %x, %x) dim_numbers = [b, f]x[o, i]->[b, f], window = {{}} \
                 {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, }} : ({T}, {T}, {T}) -> {T}"
            )
        }
        OpCode::DynamicBroadcastInDim => format!("{name} %x, %x, dims = [0, 1] {{}} {binary}"),
        OpCode::CustomCall | OpCode::FuncCall => format!("{name} @f(%x) {{}} : ({T}) -> {T}"),
        OpCode::Dot => format!("{name} %x, %x {{}} {binary}"),
        OpCode::DotGeneral => format!("{name} %x, %x, contracting_dims = [1] x [0] {{}} {binary}"),
        code if TypeForm::of(code) == Some(TypeForm::Same) => format!("{name} %x {{}} : {T}"),
        code => {
            assert!(TypeForm::of(code).is_none(), "there is no sample of the custom assembly of {name}");
            return None;
        }
    })
}

#[test]
fn attributes_are_read_from_dictionaries_of_custom_assembly() {
    let mut count = 0;
    for (code, info, spec) in optional() {
        let Some(text) = custom(code, info.name) else { continue };
        // The last braces are those of the dictionary.
        let (before, after) = text.rsplit_once('}').unwrap();
        let text = format!("{before}{}}}{after}", entry(spec));
        assert_eq!(read_attribute(&text, info, spec), expected(spec), "{text}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn attributes_are_read_from_fields_of_custom_assembly() {
    const T: &str = "tensor<4x4xf32>";
    let binary = format!("({T}, {T}) -> {T}");
    for (text, attribute) in [
        (format!("stablehlo.cholesky %x, lower = true : {T}"), "lower = true"),
        (
            format!("stablehlo.compare LT, %x, %x, TOTALORDER : ({T}, {T}) -> tensor<4x4xi1>"),
            "compare_type = #stablehlo<comparison_type TOTALORDER>",
        ),
        (
            format!("stablehlo.dot %x, %x, precision = [HIGH, DEFAULT] : {binary}"),
            "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]",
        ),
        (
            format!(
                "stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [HIGH, HIGHEST] : {binary}"
            ),
            "precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGHEST>]",
        ),
    ] {
        let program = format!("func.func @f(%x: {T}) {{\n%0 = {text}\nreturn\n}}");
        let printed = read(&program, Places::Nowhere).unwrap().to_string();
        assert!(printed.contains(attribute), "expected {attribute} in\n{printed}");
        assert_eq!(read(&printed, Places::Nowhere).unwrap().to_string(), printed);
    }
}

#[test]
fn outputs_of_a_scan_need_not_be_as_many_as_its_inputs() {
    let program = "func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
        %0 = chlo.scan(%x, %x) inits(%i) dimension=0 attributes {is_reverse = true} {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
          stablehlo.return %c : tensor<f32>
        } : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return
    }";
    let printed = parse(program).unwrap().to_string();
    for attribute in [
        "operandSegmentSizes = array<i32: 2, 1>",
        "resultSegmentSizes = array<i32: 0, 1>",
        "is_reverse = true",
    ] {
        assert!(printed.contains(attribute), "expected {attribute} in\n{printed}");
    }
    assert_eq!(parse(&printed).unwrap().to_string(), printed);
    let few = program.replace("-> tensor<f32>\n", "-> ()\n").replace("%0 = chlo", "chlo");
    let error = parse(&few).unwrap_err();
    assert!(error.message.contains("expected at least 1 results"), "{error}");
}
