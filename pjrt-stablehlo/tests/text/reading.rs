//! Tests of the text reader on small programs.

use pjrt_stablehlo::ir::{Location, LocationKind, Op, OpCode};
use pjrt_stablehlo::limits::{MAX_NESTING, MAX_REGION_DEPTH};
use pjrt_stablehlo::{ErrorKind, Module, parse};

/// Returns a program of one function with this body, which takes `%a: tensor<4xf32>`.
fn function(body: &str) -> String {
    format!("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n}}")
}

fn module(text: &str) -> Module {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn failure(text: &str) -> String {
    match parse(text) {
        Ok(module) => panic!("expected an error, found {module}"),
        Err(error) => error.to_string(),
    }
}

/// Returns the printed form without module and function.
fn body(text: &str) -> String {
    let printed = module(text).to_string();
    let lines: Vec<_> = printed.lines().skip(2).map(str::trim).collect();
    lines[..lines.len() - 2].join("\n")
}

#[test]
fn custom_assembly_is_the_same_as_the_generic_form() {
    for (custom, generic) in [
        (
            "%0 = stablehlo.add %a, %a {x.y = 1 : i32} : tensor<4xf32>\nreturn %0 : tensor<4xf32>",
            "%0 = \"stablehlo.add\"(%a, %a) {x.y = 1 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             \"func.return\"(%0) : (tensor<4xf32>) -> ()",
        ),
        (
            "%c = stablehlo.constant dense<0.0> : tensor<f32>
             %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
             %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4xf32>
             return %1 : tensor<4xf32>",
            "%c = \"stablehlo.constant\"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
             %0 = \"stablehlo.reduce\"(%a, %c) ({
             ^reduce(%lhs: tensor<f32>, %rhs: tensor<f32>):
               %sum = \"stablehlo.add\"(%lhs, %rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>
               \"stablehlo.return\"(%sum) : (tensor<f32>) -> ()
             }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
             %1 = \"stablehlo.broadcast_in_dim\"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<4xf32>
             \"stablehlo.return\"(%1) : (tensor<4xf32>) -> ()",
        ),
        (
            "%0:2 = stablehlo.while(%x = %a, %y = %a) : tensor<4xf32>, tensor<4xf32>
             cond {
               %t = stablehlo.constant dense<true> : tensor<i1>
               stablehlo.return %t : tensor<i1>
             } do {
               stablehlo.return %y, %x : tensor<4xf32>, tensor<4xf32>
             }
             return %0#1 : tensor<4xf32>",
            "%0, %1 = \"stablehlo.while\"(%a, %a) ({
             ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
               %t = \"stablehlo.constant\"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
               \"stablehlo.return\"(%t) : (tensor<i1>) -> ()
             }, {
             ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
               \"stablehlo.return\"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> ()
             }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
             \"func.return\"(%1) : (tensor<4xf32>) -> ()",
        ),
        (
            "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], precision = [HIGH, DEFAULT] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
             %1 = stablehlo.compare LT, %0, %0, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
             %2 = stablehlo.slice %a [0:4:1] : (tensor<4xf32>) -> tensor<4xf32>
             %3 = stablehlo.select %1, %a, %2 : tensor<i1>, tensor<4xf32>
             return %3 : tensor<4xf32>",
            "%0 = \"stablehlo.dot_general\"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
             %1 = \"stablehlo.compare\"(%0, %0) {compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
             %2 = \"stablehlo.slice\"(%a) {start_indices = array<i64: 0>, limit_indices = array<i64: 4>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
             %3 = \"stablehlo.select\"(%1, %a, %2) : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
             \"func.return\"(%3) : (tensor<4xf32>) -> ()",
        ),
    ] {
        assert_eq!(body(&function(custom)), body(&function(generic)));
    }
}

#[test]
fn constants_in_all_forms() {
    let elements = |text: &str| -> Vec<u8> {
        let text = format!("func.func @f() {{\n%0 = stablehlo.constant {text}\nreturn\n}}");
        let module = module(&text);
        let Some((_, op)) = module.functions()[0].body.all_ops().next() else {
            panic!("expected a constant")
        };
        let Op::Constant(constant) = &op.kind else { panic!("expected a constant") };
        constant.value.dense_bytes().unwrap().into_owned()
    };
    assert_eq!(elements("dense<[[1, -2], [0x7f, 4]]> : tensor<2x2xi8>"), [1, 0xfe, 0x7f, 4]);
    assert_eq!(elements("dense<7> : tensor<3xui8>"), [7, 7, 7]);
    assert_eq!(elements("dense<[true, false, 1]> : tensor<3xi1>"), [1, 0, 1]);
    assert_eq!(elements("dense<> : tensor<0x3xf32>"), []);
    assert_eq!(elements("dense<\"0x0000803F00000040\"> : tensor<2xf32>"), [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]);
    assert_eq!(elements("dense<0x7FC00000> : tensor<f32>"), [0, 0, 0xc0, 0x7f]);
    assert_eq!(elements("dense<[1.5, -0.0]> : tensor<2xbf16>"), [0xc0, 0x3f, 0, 0x80]);
    assert_eq!(elements("dense<(1.0,-2.0)> : tensor<complex<f32>>"), [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    assert_eq!(elements("dense<[-8, 7]> : tensor<2xi4>"), [8, 7]);
    assert_eq!(elements("dense<[3, -3]> : tensor<2x!quant.uniform<i8:f32, 0.5>>"), [3, 0xfd]);
}

#[test]
fn constants_that_do_not_fit_their_type() {
    for (text, message) in [
        ("dense<[1, 2]> : tensor<3xi32>", "expected 3 elements in brackets, found 2"),
        ("dense<[[1], [2, 3]]> : tensor<2x1xi32>", "expected 1 elements in brackets, found 2"),
        ("dense<[1 2]> : tensor<2xi32>", "expected ',' or ']'"),
        ("dense<[1, 2> : tensor<2xi32>", "expected ',' or ']'"),
        ("dense<300> : tensor<i8>", "expected a number of type i8, found '300'"),
        ("dense<-1> : tensor<ui8>", "expected a number of type ui8, found '-1'"),
        ("dense<1.5> : tensor<i32>", "expected a number of type i32, found '1.5'"),
        ("dense<\"0x00\"> : tensor<2xf32>", "takes 8 bytes of data, found 1"),
        ("dense<1> : tensor<?xi32>", "has a dynamic dimension"),
    ] {
        let error = failure(&format!("func.func @f() {{\n%0 = stablehlo.constant {text}\nreturn\n}}"));
        assert!(error.contains(message) && error.contains("line 2"), "{text}: {error}");
    }
}

#[test]
fn resources_come_from_the_end_of_the_text() {
    let module = module(
        "module {
           func.func @f() -> tensor<2xi32> {
             %0 = stablehlo.constant dense_resource<blob> : tensor<2xi32>
             return %0 : tensor<2xi32>
           }
         }
         {-#
           dialect_resources: { builtin: { blob: \"0x040000000100000002000000\" } },
           external_resources: { mlir_reproducer: { verify: true } }
         #-}",
    );
    assert!(module.to_string().contains("dense<[1, 2]>"));
}

#[test]
fn resources_are_not_made_of_resources() {
    let text = "module attributes {a.b = dense_resource<x> : tensor<1xi32>} {}
        {-# dialect_resources: { builtin: { x: dense_resource<x> : tensor<1xi32> } } #-}";
    let error = parse(text).unwrap_err();
    assert!(error.to_string().contains("expected a string or a boolean"), "{error}");
}

#[test]
fn aliases_may_be_defined_after_their_use() {
    let text = "#map = [1 : i64, 2 : i64]
        !t = tensor<4xf32>
        module attributes {a.b = #map} {
          func.func @main(%a: !t loc(\"a\")) -> !t {
            return %a : !t loc(#loc2)
          } loc(#loc)
          func.func private @empty() {
            return loc(#loc)
          }
        } loc(unknown)
        #loc = loc(\"f.py\":1:2)
        #loc2 = loc(callsite(\"f\"(#loc) at fused<\"x\">[\"g.py\":3:4 to :9, unknown]))";
    let module = module(text);
    assert_eq!(module.attributes.to_string(), "{a.b = [1 : i64, 2 : i64]}");
    let main = module.main().unwrap();
    assert_eq!(main.location.to_string(), "\"f.py\":1:2");
    let (_, op) = main.body.all_ops().next().unwrap();
    assert_eq!(
        op.location.to_string(),
        "callsite(\"f\"(\"f.py\":1:2) at fused<\"x\">[\"g.py\":3:4 to :9, unknown])"
    );
    let argument = &main.body.block(main.body.entry().unwrap()).argument_locations[0];
    assert_eq!(*argument, Location::new(LocationKind::Name { name: "a".into(), child: Location::UNKNOWN }));
    assert!(failure("#a = [#b]\n#b = [#a]\nmodule attributes {x = #a} {}").contains("contains itself"));
    assert!(
        failure("module attributes {x = #a} {}").contains("line 1, column 24: alias '#a' is not defined")
    );
    assert!(failure("#a = 1\n#a = 2\nmodule {}").contains("line 2, column 1: alias '#a' is defined twice"));
}

#[test]
fn shardy_in_its_own_assembly() {
    let module = module(
        "module @m attributes {mhlo.num_partitions = 2 : i32} {
           sdy.mesh @mesh = <[\"x\"=2]>
           func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"x\"}]>}) -> (tensor<8xf32> {jax.result_info = \"\"}) {
             %0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\", ?}]> : tensor<8xf32>
             %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{\"x\"}]>] manual_axes={\"x\"} (%arg1: tensor<4xf32>) {
               %2 = stablehlo.negate %arg1 : tensor<4xf32>
               sdy.return %2 : tensor<4xf32>
             } : (tensor<8xf32>) -> tensor<8xf32>
             return %1 : tensor<8xf32>
           }
         }",
    );
    assert_eq!(module.mesh("mesh").map(|mesh| mesh.axes.len()), Some(1));
    assert_eq!(module.integer_attribute("mhlo.num_partitions"), Some(2));
    let main = module.main().unwrap();
    let codes: Vec<_> = main.body.all_ops().map(|(_, op)| op.kind.code()).collect();
    use OpCode as C;
    assert_eq!(codes, [C::ShardingConstraint, C::ManualComputation, C::Negate, C::SdyReturn, C::FuncReturn]);
    assert!(main.argument_attribute(0, "sdy.sharding").is_some());
    assert_eq!(module.to_string(), parse(module.to_string()).unwrap().to_string());
}

#[test]
fn errors_say_where_and_what_was_expected() {
    for (text, message) in [
        ("", "line 1, column 1: expected a module, function or mesh, found the end of the text"),
        ("module {", "line 1, column 9: expected a module, function or mesh"),
        (
            "module {} module {}",
            "line 1, column 11: expected the end of the text after the module, found 'module'",
        ),
        ("module { module {} }", "nested modules are not supported"),
        (
            &function("%0 = stablehlo.add %a, %b : tensor<4xf32>"),
            "line 2, column 24: value '%b' is used before its definition",
        ),
        (
            &function("%0 = stablehlo.ad %a : tensor<4xf32>"),
            "line 2, column 1: unknown operation 'stablehlo.ad'; did you mean 'stablehlo.add'?",
        ),
        (&function("%0 = \"chlo.errf\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"), "did you mean 'chlo.erf'?"),
        (&function("stablehlo.something_new"), "unknown operation 'stablehlo.something_new'"),
        (
            &function("%0 = \"stablehlo.concatenate\"(%a) : (tensor<4xf32>) -> tensor<4xf32>"),
            "line 2, column 1: stablehlo.concatenate: attribute 'dimension': expected an integer of type i64, found nothing",
        ),
        (
            &function(
                "%0 = stablehlo.tanh %a {result_accuracy = #stablehlo.result_accuracy<ulps = -1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf32>\nreturn %a : tensor<4xf32>",
            ),
            "found #stablehlo.result_accuracy<ulps = -1, mode =",
        ),
        (
            &function("%é = stablehlo.negate %a : tensor<4xf32>"),
            "found '%' before 'é', which cannot begin a name",
        ),
        ("\u{feff}module {}", "found a byte order mark"),
        ("HloModule jit_f, is_scheduled=true", "HLO in its text form is not supported"),
        ("sdy.mesh @m = <[\"x\"=-2]>", "positive sizes, found \"x\"=-2"),
        (
            &function("%0 = stablehlo.iota dims = 0 : tensor<4xf32>"),
            "line 2, column 21: expected 'dim', found 'dims'",
        ),
        (
            &function("%a = stablehlo.iota dim = 0 : tensor<4xf32>"),
            "line 2, column 1: value '%a' is defined twice",
        ),
        (&function("%0:2 = stablehlo.negate %a : tensor<4xf32>"), "expected names for 1 results, found 2"),
        (
            &function("return %a : tensor<5xf32>"),
            "operand 0: the value has type tensor<4xf32>, found tensor<5xf32>",
        ),
        (&function("return %a#1 : tensor<4xf32>"), "'%a' is a single value and has no result #1"),
        (&function("return %a : tensor<4xf33>"), "line 2, column 22: expected a type, found 'f33'"),
        (&function("return %a : tensor<4xf32> loc(\"x)"), "found a string without a closing quote"),
        (&function("\"cf.br\"(%a)[^bb1] : (tensor<4xf32>) -> ()"), "successor blocks are not supported"),
        // Errors of the verifier.
        (
            &function(
                "\n  %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>\nreturn %a : tensor<4xf32>",
            ),
            "at \"program\":3:3",
        ),
    ] {
        let error = failure(text);
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn errors_about_located_operations_say_where_in_the_text_as_well() {
    let text = "#loc1 = loc(\"/home/u/model.py\":10:3)\n\
                func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n\
                \x20 %0 = stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32> loc(#loc1)\n\
                \x20 return %a : tensor<4xf32> loc(#loc1)\n} loc(#loc1)\n";
    let error = parse(text).unwrap_err();
    assert_eq!(error.offset, text.find("%0"));
    let message = error.to_string();
    assert!(message.starts_with("line 3, column 3: stablehlo.reshape (C2): result 0: "), "{message}");
    assert!(message.ends_with(" at \"/home/u/model.py\":10:3"), "{message}");
    // Functions and meshes as well.
    let error = parse("sdy.mesh @m = <[\"x\"=0]> loc(\"a.py\":1:2)").unwrap_err();
    assert_eq!(error.offset, Some(0));
    let error = parse("func.func public @f() loc(\"a.py\":1:2)").unwrap_err();
    assert!(error.to_string().starts_with("line 1, column 1: func.func: "), "{error}");
}

#[test]
fn nesting_is_limited() {
    let deep = |count: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let attribute = |value: String| format!("module attributes {{a.b = {value}}} {{}}");
    for (open, inner, close) in [
        ("[", "", "]"),
        ("{a = ", "1", "}"),
        ("tuple<", "", ">"),
        ("(", "i32", ") -> ()"),
        ("!stablehlo.future<", "i32", ">"),
    ] {
        assert!(parse(attribute(deep(MAX_NESTING as usize / 2, open, inner, close))).is_ok(), "{open}");
        let error = parse(attribute(deep(1_000_000, open, inner, close))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge, "{open}");
    }
    // The parts of a location that nest too deeply become unknown.
    let location = format!("module {{}} loc({})", deep(100_000, "callsite(\"a\" at ", "\"b\"", ")"));
    assert!(parse(location).unwrap().location.to_string().len() < 100_000);
    // Aliases in their order make deep values without deep text.
    let mut chain = "#a0 = 1 : i64\n".to_owned();
    (1..1000).for_each(|index| chain.push_str(&format!("#a{index} = [#a{}]\n", index - 1)));
    assert_eq!(parse(chain + "module {}").unwrap_err().kind, ErrorKind::TooLarge);
    // Against their order as well.
    let mut chain: String =
        (1..100_000).rev().map(|index| format!("#a{index} = [#a{}]\n", index - 1)).collect();
    chain.push_str("#a0 = 1 : i64\nmodule {}");
    assert_eq!(parse(chain).unwrap_err().kind, ErrorKind::TooLarge);
    // And wide ones without wide text.
    let mut double = "#a0 = [1 : i64, 2 : i64]\n".to_owned();
    (1..64).for_each(|index| double.push_str(&format!("#a{index} = [#a{0}, #a{0}]\n", index - 1)));
    assert_eq!(parse(double + "module {}").unwrap_err().kind, ErrorKind::TooLarge);
    // Regions are not read by recursion.
    let regions = deep(
        MAX_REGION_DEPTH * 4,
        "%r = \"stablehlo.case\"(%i) ({\n",
        "",
        "\n}) : (tensor<i32>) -> tensor<i32>",
    );
    let regions = format!("func.func @main(%i: tensor<i32>) {{\n{regions}\nreturn\n}}");
    assert_eq!(parse(regions).unwrap_err().kind, ErrorKind::TooLarge);
}

#[test]
fn aliases_are_read_in_any_order() {
    let module = parse(
        "module attributes {m.a = #a, m.l = #l2, m.t = !t} {}\n#l2 = loc(callsite(#l1 at #l0))\n#a = #b\n#b = [#c, #c, 1]\n\
         #c = !t\n!t = tuple<!u, tensor<*x!u>>\n!u = f32\n#l0 = loc(\"x\")\n#l1 = loc(fused[#l0, unknown])\n",
    );
    assert_eq!(
        module.unwrap().attributes.to_string(),
        "{m.a = [tuple<f32, tensor<*xf32>>, tuple<f32, tensor<*xf32>>, 1 : i64], \
         m.l = loc(callsite(fused[\"x\", unknown] at \"x\")), m.t = tuple<f32, tensor<*xf32>>}"
    );
    let error = parse("#a = [#b]\n#b = [#a]\nmodule {}").unwrap_err();
    assert!(error.to_string().contains("line 2, column 7: alias '#a' contains itself"), "{error}");
    let error = parse("#a = [#b]\nmodule {}").unwrap_err();
    assert!(error.to_string().contains("line 1, column 7: alias '#b' is not defined"), "{error}");
}

#[test]
fn numbers_in_attributes_are_limited() {
    let splat = "%0 = \"stablehlo.iota\"() {iota_dimension = dense<1> : tensor<16777216xi64>} : () -> tensor<4xf32>\n";
    let error = parse(function(&(splat.repeat(2) + "return %a : tensor<4xf32>"))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[test]
fn quantized_types_of_every_kind_read_as_printed() {
    for (text, printed) in [
        ("i8:f32, 2.0:-5", "i8:f32, 2.0e0:-5"),
        ("ui8:f32, 0.5:128", "u8:f32, 5.0e-1:128"),
        ("u8<1:254>:f32, 0.5:7", "u8<1:254>:f32, 5.0e-1:7"),
        ("i8:f32:0, {2.0:10, 3.0, 4.0, 5.0}", "i8:f32:0, {2.0e0:10, 3.0e0, 4.0e0, 5.0e0}"),
        ("i8:f32:{}, {{2.0}}", "i8:f32:{}, {{2.0e0}}"),
        (
            "i8:f32:{0:2, 1:3}, {{2.0:10, 3.0:20}, {4.0:30, 5.0}}",
            "i8:f32:{0:2, 1:3}, {{2.0e0:10, 3.0e0:20}, {4.0e0:30, 5.0e0}}",
        ),
    ] {
        let module = |ty: &str| format!("func.func private @f(tensor<4x6x!quant.uniform<{ty}>>)");
        let read = parse(module(text)).unwrap().to_string();
        assert!(read.contains(&format!("!quant.uniform<{printed}>")), "{text}\n{read}");
        assert_eq!(parse(module(printed)).unwrap().to_string(), read);
    }
    for (text, message) in [
        ("i8:f32:{0:2}, {{2.0}, {2.0, 3.0}}", "expected 1 blocks, found 2"),
        ("i8:f32:{0:2}, {{2.0}, 3.0}", "expected '{'"),
        ("i8:f32:{0:2}, {2.0, {3.0}}", "expected a scale"),
        ("i8:f32:{0:2}, {}", "expected 1 blocks, found 0"),
        ("i8:f32:{-1:2}, {2.0}", "expected a dimension"),
        ("i8:f32:{0:3}, {{2.0}, {3.0}}", "expected a grid of blocks that exactly covers the tensor"),
        ("i8:f32:{2:2}, {{2.0}, {3.0}}", "expected a grid of blocks that exactly covers the tensor"),
    ] {
        let argument = format!("%a: tensor<4x6x!quant.uniform<{text}>>");
        let error = failure(&format!("func.func @f({argument}) {{ return }}"));
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn attributes_have_the_type_of_their_field() {
    for (op, message) in [
        (
            "\"stablehlo.iota\"() {iota_dimension = 0 : i32} : () -> tensor<4xf32>",
            "stablehlo.iota: attribute 'iota_dimension': expected an integer of type i64, found an integer of type i32",
        ),
        (
            "\"stablehlo.reverse\"(%a) {dimensions = array<i32: 0>} : (tensor<4xf32>) -> tensor<4xf32>",
            "expected integers of type i64, found an array of i32",
        ),
        (
            "\"stablehlo.reduce_precision\"(%a) {exponent_bits = 5 : i64, mantissa_bits = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>",
            "expected an integer of type i32, found an integer of type i64",
        ),
        (
            "\"stablehlo.collective_permute\"(%a) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi32>} : (tensor<4xf32>) -> tensor<4xf32>",
            "found dense elements of type tensor<1x2xi32>",
        ),
    ] {
        let error = failure(&function(&format!("%0 = {op}\nreturn %0 : tensor<4xf32>")));
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn operations_that_a_known_dialect_does_not_have_are_refused() {
    for name in
        ["stablehlo.foo", "chlo.foo", "chlo.broadcast_foo", "func.foo", "sdy.foo", "builtin.foo", "vhlo.foo"]
    {
        let text = function(&format!(
            "%0 = \"{name}\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>"
        ));
        let error = parse(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let other = "%0 = \"my.foo\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %0 : tensor<4xf32>";
    assert!(body(&function(other)).contains("\"my.foo\""));
}

#[test]
fn attributes_of_arguments_and_results_are_of_a_dialect() {
    for (signature, message) in [
        (
            "(%a: tensor<f32> {foo = 1}) -> tensor<f32>",
            "argument 0: expected an attribute name with a dialect",
        ),
        ("(%a: tensor<f32>) -> (tensor<f32> {foo})", "result 0: expected an attribute name with a dialect"),
    ] {
        let error = failure(&format!("func.func @main{signature} {{\nreturn %a : tensor<f32>\n}}"));
        assert!(error.contains(message) && error.contains("found 'foo'"), "{error}");
    }
}

#[test]
fn numbers_of_elements_fit_into_63_bits() {
    let error = failure(
        "func.func @main(%a: tensor<4611686018427387904x4xf32>) -> tensor<0xf32> {
           %0 = stablehlo.reshape %a : (tensor<4611686018427387904x4xf32>) -> tensor<0xf32>
           return %0 : tensor<0xf32>
         }",
    );
    assert!(error.contains("has more than 9223372036854775807 elements"), "{error}");
}

#[test]
fn booleans_in_blobs_are_bytes_or_bits() {
    let values = |text: &str| {
        let module = parse(format!("func.func @f() {{\n%0 = stablehlo.constant {text}\nreturn\n}}"))?;
        let Some((_, op)) = module.functions()[0].body.all_ops().next() else {
            panic!("expected a constant")
        };
        let Op::Constant(constant) = &op.kind else { panic!("expected a constant") };
        Ok::<_, pjrt_stablehlo::Error>(constant.value.to_i64s(20).unwrap())
    };
    assert_eq!(values("dense<\"0x0501\"> : tensor<10xi1>").unwrap(), [1, 0, 1, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(values("dense<\"0x000100\"> : tensor<3xi1>").unwrap(), [0, 1, 0]);
    assert_eq!(values("dense<\"0xFF\"> : tensor<10xi1>").unwrap(), [1; 10]);
    assert_eq!(values("dense<\"0x00\"> : tensor<3xi1>").unwrap(), [0; 3]);
    for (text, message) in [
        ("dense<\"0xFF04\"> : tensor<10xi1>", "a bit after the last element of tensor<10xi1> is set"),
        ("dense<\"0xFFFFFF\"> : tensor<10xi1>", "takes 10 bytes of data, found 3"),
        ("dense<\"0x05\"> : tensor<3xi1>", "expected 0x00, 0xFF, or a byte for each boolean"),
    ] {
        let error = values(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn empty_brackets_stand_in_all_brackets_of_the_type() {
    let constant =
        |text: &str| parse(format!("func.func @f() {{\n%0 = stablehlo.constant {text}\nreturn\n}}"));
    assert!(constant("dense<[[], []]> : tensor<2x0xf32>").is_ok());
    assert!(constant("dense<[]> : tensor<0xf32>").is_ok());
    let error = constant("dense<[]> : tensor<0x2xf32>").unwrap_err().to_string();
    assert!(error.contains("expected elements in 2 brackets"), "{error}");
}

#[test]
fn what_is_not_text_is_said_with_its_place() {
    let text = function("return %a : tensor<4xf32>");
    let damaged = |at: usize, byte: u8| {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = byte;
        parse(bytes).unwrap_err()
    };
    for (at, byte, message) in [
        (70, 0xff, "the program begins like MLIR text, but byte 0xff is not UTF-8 (byte 70 of the input)"),
        (
            70,
            0x01,
            "the program begins like MLIR text, but byte 0x01 is a control character (byte 70 of the input)",
        ),
    ] {
        let error = damaged(at, byte);
        assert_eq!(error.to_string(), message);
        assert_eq!(error.kind, ErrorKind::Malformed);
    }
    // MLIR takes NUL for space, and hosts send the one that ends a string.
    assert_eq!(module(&format!("{text}\0")).to_string(), module(&text).to_string());
    let error = parse(vec![0xff; 70]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
}

#[test]
fn names_of_locations_may_have_any_bytes() {
    let printed =
        format!("{:#}", module(&function("return %a : tensor<4xf32> loc(\"a\\FFb\"(\"c\\C3.py\":1:2))")));
    assert!(printed.contains("loc(\"a\\EF\\BF\\BDb\"(\"c\\EF\\BF\\BD.py\":1:2))"), "{printed}");
    assert_eq!(format!("{:#}", module(&printed)), printed);
}

#[test]
fn messages_show_numbers_as_they_are() {
    let error = |op: &str| failure(&function(&format!("{op}\nreturn %a : tensor<4xf32>")));
    for (op, message) in [
        (
            "%0 = stablehlo.transpose %a, dims = [-9223372036854775808] : (tensor<4xf32>) -> tensor<4xf32>",
            "permutation: expected a dimension from 0 to 0, found -9223372036854775808",
        ),
        (
            "%0 = \"stablehlo.pad\"(%a, %a) {edge_padding_low = array<i64: 0>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: -9223372036854775808>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "found tensor<4xf32>",
        ),
        (
            "%0 = \"stablehlo.broadcast\"(%a) {broadcast_sizes = array<i64: -9223372036854775808>} : (tensor<4xf32>) -> tensor<?x4xf32>",
            "broadcast_sizes: expected nonnegative sizes, found [-9223372036854775808]",
        ),
        (
            "%0 = stablehlo.fft %a, type = RFFT, length = [6] : (tensor<4xf32>) -> tensor<4xcomplex<f32>>",
            "operand 'operand': expected size 6 of dimension 0 for a RFFT of length 6, found tensor<4xf32>",
        ),
        (
            "%0 = stablehlo.fft %a, type = RFFT, length = [-4] : (tensor<4xf32>) -> tensor<4xcomplex<f32>>",
            "fft_length: expected nonnegative lengths, found [-4]",
        ),
        ("%0 = stablehlo.add %a#1, %a : tensor<4xf32>", "'%a' is a single value and has no result #1"),
    ] {
        let error = error(op);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn visibilities_and_attributes_of_calls_are_kept() {
    for text in [
        "func.func public @main() {\nreturn\n}",
        "func.func nested @main() {\nreturn\n}",
        "func.func private @main() {\nreturn\n}",
    ] {
        let name = text.split(' ').nth(1).unwrap();
        assert!(module(text).to_string().contains(&format!("sym_visibility = \"{name}\"")));
    }
    assert!(!module("func.func @main() {\nreturn\n}").to_string().contains("sym_visibility"));
    let module_text = "module @m attributes {sym_visibility = \"private\"} {\n}";
    assert!(module(module_text).to_string().contains("{sym_visibility = \"private\"}"));
    let call = module(
        "func.func private @f(tensor<f32>) -> tensor<f32>
         func.func @main(%a: tensor<f32>) -> tensor<f32> {
           %0 = call @f(%a) {arg_attrs = [{x.y = 1 : i64}], no_inline, res_attrs = [{x.z}]} : (tensor<f32>) -> tensor<f32>
           return %0 : tensor<f32>
         }",
    );
    let printed = call.to_string();
    assert!(
        printed.contains("<{arg_attrs = [{x.y = 1 : i64}], callee = @f, no_inline, res_attrs = [{x.z}]}>"),
        "{printed}"
    );
    assert_eq!(module(&printed).to_string(), printed);
}

#[test]
fn windows_that_are_left_out_are_put_in() {
    let text = "func.func @main(%a: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32> {
        %0 = \"stablehlo.convolution\"(%a, %k) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32>
        return %0 : tensor<1x6x6x4xf32>
      }";
    let read = module(text);
    let (_, op) = read.functions()[0].body.all_ops().next().unwrap();
    let Op::Convolution(convolution) = &op.kind else { panic!("expected a convolution") };
    assert_eq!((&*convolution.window_strides, &*convolution.padding), (&[1, 1][..], &[[0, 0], [0, 0]][..]));
}

#[test]
fn uses_of_a_resource_share_its_contents() {
    let uses: String = (0..2000)
        .map(|index| format!("%{index} = stablehlo.constant dense_resource<r> : tensor<65536xf32>\n"))
        .collect();
    let text = format!(
        "func.func @f() {{\n{uses}return\n}}\n{{-# dialect_resources: {{ builtin: {{ r: \"0x04000000{}\" }} }} #-}}",
        "01".repeat(4 << 16)
    );
    let module = module(&text);
    let mut starts = module.functions()[0].body.all_ops().filter_map(|(_, op)| match &op.kind {
        Op::Constant(constant) => Some(constant.value.dense_bytes().unwrap().as_ptr()),
        _ => None,
    });
    let first = starts.next().unwrap();
    assert!(starts.all(|start| start == first));
}

#[test]
fn printing_takes_time_in_proportion_to_regions() {
    let printing = |branches: usize| {
        let branch = "{\n\"stablehlo.return\"() : () -> ()\n}";
        let regions = vec![branch; branches].join(", ");
        let text = format!(
            "func.func @main(%i: tensor<i32>) {{\n\"stablehlo.case\"(%i) ({regions}) : (tensor<i32>) -> ()\nreturn\n}}"
        );
        let module = module(&text);
        // As many regions each time, so that whatever else the machine does costs both the same.
        let time = || {
            let start = std::time::Instant::now();
            for _ in 0..80_000 / branches {
                assert!(module.to_string().len() > branches);
            }
            start.elapsed()
        };
        (0..5).map(|_| time()).min().unwrap()
    };
    let (few, many) = (printing(10_000), printing(80_000));
    // In proportion it takes as long, in the square 8 times.
    assert!(many < few * 4, "{few:?} for 10,000 regions, {many:?} for 80,000");
}

#[test]
fn modules_without_contents_are_printed_as_mlir_reads_them() {
    let printed = module("module {}").to_string();
    assert_eq!(printed, "\"builtin.module\"() ({\n^bb0:\n}) : () -> ()\n");
    assert_eq!(module(&printed).to_string(), printed);
}

#[test]
fn symbols_and_attributes_of_a_module_are_checked() {
    for (text, message) in [
        (
            "module attributes {a = 1} {}",
            "expected an attribute name with a dialect, such as 'mhlo.num_partitions', found 'a'",
        ),
        ("sdy.mesh @m = <[\"x\"=2]>\nsdy.mesh @m = <[\"x\"=2]>", "the symbol 'm' is defined twice"),
        ("sdy.mesh @f = <[\"x\"=2]>\nfunc.func @f() { return }", "the symbol 'f' is defined twice"),
        ("sdy.mesh @m = <[\"x\"=2, \"x\"=3]>", "distinct names and positive sizes, found \"x\"=3"),
        ("sdy.mesh @m = <[\"x\"=0]>", "distinct names and positive sizes, found \"x\"=0"),
        ("func.func @f(%a: !stablehlo.foo) { return }", "unknown type '!stablehlo.foo'"),
    ] {
        let error = failure(text);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn assembly_takes_what_mlir_takes() {
    for (op, message) in [
        (
            "%c = stablehlo.constant dense<0.0> : tensor<f32>
             %0 = stablehlo.reduce(%a init: %c) applies stablehlo.subtract across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
            "expected a commutative operation with two operands, found 'stablehlo.subtract'",
        ),
        (
            "%0 = sdy.propagation_barrier %a allowed_direction=FOO : tensor<4xf32>",
            "expected one of NONE, FORWARD, BACKWARD, BOTH, found 'FOO'",
        ),
        (
            "%0 = sdy.sharding_constraint %a <@m, [{}, {}]> : tensor<4xf32>",
            "expected shardings for the 1 dimensions of tensor<4xf32>, found 2",
        ),
    ] {
        let error = failure(&function(&format!("{op}\nreturn %a : tensor<4xf32>")));
        assert!(error.contains(message), "{error}");
    }
    let barrier = "%0 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<4xf32>\nreturn %0 : tensor<4xf32>";
    assert!(body(&function(barrier)).contains("<{allowed_direction = 2 : i32}>"));
}

#[test]
fn numbers_are_written_in_the_way_of_their_type() {
    let with = |attribute: &str| {
        format!(
            "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> attributes {{x.y = {attribute}}} {{\nreturn %a : tensor<4xf32>\n}}"
        )
    };
    for valid in ["1.0 : f32", "0x3F800000 : f32", "-1.0 : bf16", "1 : i32", "true", "array<i1: true, false>"]
    {
        module(&with(valid));
    }
    for (wrong, expected) in [
        ("1 : f32", "expected a number with a decimal point for f32, found 1"),
        ("-1 : bf16", "expected a number with a decimal point for bf16, found 1"),
        ("array<i1: 1>", "expected 'true' or 'false'"),
        ("array<i1: -true>", "expected 'true' or 'false'"),
    ] {
        let found = failure(&with(wrong));
        assert!(found.contains(expected), "{wrong}: {found}");
    }
}

#[test]
fn attributes_of_other_dialects_keep_their_tokens() {
    let text = function(
        "return {x.y = #other.thing<[]-\n>, x.z = #other.thing<\n  1\n>, x.c = #other.thing<\n 2 // two\n>} %a : tensor<4xf32>",
    );
    let printed = module(&text).to_string();
    assert!(printed.contains("#other.thing<1>"), "{printed}");
    assert_eq!(module(&printed).to_string(), printed);
}
