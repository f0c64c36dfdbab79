//! Texts that MLIR's parser refuses are refused, and messages about them can be read.

use pjrt_stablehlo::{ErrorKind, parse};

/// Returns a program of one function with this body, which takes tensors of most kinds.
fn function(body: &str) -> String {
    format!(
        "func.func @main(%a: tensor<4xf32>, %m: tensor<4x4xf32>, %p: tensor<i1>, %d: tensor<?xf32>) {{\n{body}\nreturn\n}}
         func.func private @same(%a: tensor<4xf32>) -> tensor<4xf32> {{\nreturn %a : tensor<4xf32>\n}}"
    )
}

fn failure(text: &str) -> String {
    match parse(text) {
        Ok(module) => panic!("expected an error, found {module}\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Checks that bodies are read, and that others are refused with these words.
fn check(read: &[&str], refused: &[(&str, &str)]) {
    for body in read {
        parse(&*function(body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
    }
    for (body, words) in refused {
        let error = failure(&function(body));
        assert!(error.contains(words), "{body}\n{error}");
    }
}

#[test]
fn attributes_stand_where_the_operation_has_them() {
    check(
        &[
            "%0 = stablehlo.add %a, %a {x.y = 1} : tensor<4xf32>",
            "%0 = stablehlo.optimization_barrier {x.y = 1} %a : tensor<4xf32>",
            "stablehlo.optimization_barrier ()",
            "%0 = func.call @same(%a) {x.y = 1} : (tensor<4xf32>) -> tensor<4xf32>",
        ],
        &[
            ("%0 = stablehlo.add %a, %a : tensor<4xf32> {x.y = 1}", "expected an operation"),
            ("%0 = stablehlo.optimization_barrier %a {x.y = 1} : tensor<4xf32>", "expected ':'"),
            ("%0 = stablehlo.add %a, %a {\"\" = 1} : tensor<4xf32>", "an empty string"),
        ],
    );
    assert!(
        failure("func.func @f(%a: tensor<f32>) -> tensor<f32> {\nreturn %a {x.y = 1} : tensor<f32>\n}")
            .contains("':'")
    );
}

#[test]
fn fields_have_an_order_and_are_not_left_out() {
    check(
        &[
            "%0 = stablehlo.cholesky %m, lower = true : tensor<4x4xf32>",
            "%0 = stablehlo.cholesky %m : tensor<4x4xf32>",
            "%0 = stablehlo.dot_general %m, %m, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGH, HIGH] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>",
            "%0 = stablehlo.iota dim = 0 : tensor<4xf32>",
            "%0 = stablehlo.compare LT, %a, %a, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
        ],
        &[
            ("%0 = stablehlo.iota {iota_dimension = 0 : i64} : tensor<4xf32>", "expected 'dim'"),
            ("%0 = stablehlo.iota () dim = 0 : tensor<4xf32>", "expected 'dim'"),
            (
                "%0 = stablehlo.transpose %a {permutation = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>",
                "', dims ='",
            ),
            (
                "%0 = stablehlo.transpose %a, dims = [0], dims = [0] : (tensor<4xf32>) -> tensor<4xf32>",
                "end of the operands",
            ),
            (
                "%0 = stablehlo.fft %a, length = [4], type = RFFT : (tensor<4xf32>) -> tensor<3xcomplex<f32>>",
                "expected 'type'",
            ),
            (
                "%0 = stablehlo.dot_general %m, %m, precision = [HIGH, HIGH], contracting_dims = [1] x [1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
                "'batching_dims' or 'contracting_dims'",
            ),
            (
                "%0 = stablehlo.dot_general %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>",
                "', contracting_dims ='",
            ),
            (
                "%0 = stablehlo.compare LT, %a, %a, FLOAT, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
                "expected ':'",
            ),
        ],
    );
}

#[test]
fn types_are_written_in_the_form_of_the_operation() {
    check(
        &[
            "%0 = stablehlo.negate %a : (tensor<4xf32>) -> tensor<4xf32>",
            "%0 = stablehlo.convert %a : tensor<4xf32>",
            "%0 = chlo.erf %a : tensor<4xf32> -> tensor<4xf32>",
            "%0 = chlo.broadcast_add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
            "%0 = chlo.constant dense<1.0> : tensor<f32>",
        ],
        &[
            ("%0 = stablehlo.negate %a : tensor<4xf32> -> tensor<4xf32>", "expected an operation"),
            ("%0 = stablehlo.reshape %a : tensor<4xf32>", "expected '('"),
            ("%0 = stablehlo.reshape %a : tensor<4xf32> to tensor<2x2xf32>", "expected '('"),
            ("%0 = stablehlo.iota dim = 0 : () -> tensor<4xf32>", "expected"),
            ("%0 = stablehlo.custom_call @f(%a) : tensor<4xf32> -> tensor<4xf32>", "expected '('"),
            ("%0 = stablehlo.tuple %a : (tensor<4xf32>) -> tuple<tensor<4xf32>>", "the type of a tuple"),
            ("%0 = stablehlo.gather %a : tensor<4xf32>", "use its generic form"),
            ("%0 = chlo.erf %a : tensor<4xf32>", "expected '->'"),
            (
                "%0 = chlo.broadcast_add %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>",
                "expected '('",
            ),
            ("%0 = chlo.constant_like %a {value = 1.0 : f32} : tensor<4xf32>", "use its generic form"),
        ],
    );
}

#[test]
fn values_keep_their_types_through_calls_and_barriers() {
    check(
        &["%0 = call @same(%a) : (tensor<4xf32>) -> tensor<4xf32>"],
        &[
            ("%0 = call @same(%d) : (tensor<?xf32>) -> tensor<4xf32>", "operand 0: expected tensor<4xf32>"),
            ("%0 = call @same(%a) : (tensor<4xf32>) -> tensor<?xf32>", "result 0: expected tensor<4xf32>"),
            (
                "%0 = stablehlo.composite \"my.op\" %a {decomposition = @same} : (tensor<4xf32>) -> tensor<?xf32>",
                "(C4): result 0: expected tensor<4xf32>",
            ),
            (
                "%0 = \"stablehlo.optimization_barrier\"(%a) : (tensor<4xf32>) -> tensor<?xf32>",
                "result 0: expected tensor<4xf32>",
            ),
        ],
    );
    let returned = "func.func @f(%a: tensor<4xf32>) -> tensor<?xf32> {\nreturn %a : tensor<4xf32>\n}";
    assert!(failure(returned).contains("value 0: expected tensor<?xf32>, found tensor<4xf32>"));
}

#[test]
fn an_attribute_is_given_once() {
    check(
        &[],
        &[
            (
                "%0 = stablehlo.custom_call @f(%a) {call_target_name = \"g\"} : (tensor<4xf32>) -> tensor<4xf32>",
                "'call_target_name' is given twice",
            ),
            (
                "%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] {dot_dimension_numbers = #stablehlo.dot<>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
                "'dot_dimension_numbers' is given twice",
            ),
        ],
    );
    let named = "func.func private @f() attributes {sym_name = \"g\"}";
    assert!(
        failure(named)
            .contains("'sym_name' is not allowed here, because the function's signature specifies it")
    );
    let unknown =
        "\"func.func\"() <{function_type = () -> (), sym_name = \"f\", inline = 1}> ({\n}) : () -> ()";
    assert!(failure(unknown).contains("functions have no attribute 'inline'"));
    let mixed = "func.func private @f(tensor<f32>, %a: tensor<f32>)";
    assert!(failure(mixed).contains("names for all arguments or for none"));
}

#[test]
fn numbers_have_the_form_of_their_type() {
    let constant = |elements: &str| function(&format!("%0 = stablehlo.constant dense<{elements}"));
    for refused in ["1> : tensor<4xf32>", "1e5> : tensor<4xf32>", "(1,2)> : tensor<4xcomplex<f32>>"] {
        assert!(failure(&constant(refused)).contains("with a decimal point"), "{refused}");
    }
    for read in
        ["1.e5> : tensor<4xf32>", "[1, // one >\n 2]> : tensor<2xi32>", "// \"\n1 // >\n> : tensor<2xi32>"]
    {
        parse(&*constant(read)).unwrap_or_else(|error| panic!("{error}\n{read}"));
    }
    for (attribute, words) in [
        ("array<f32: 1>", "with a decimal point"),
        ("array<i4: 1>", "whole bytes"),
        ("array<index: 1>", "whole bytes"),
        ("1 : si32", "signed integers are 'i32'"),
        ("1 : i128", "type 'i128' is not supported"),
        ("\"\\x41\"", "an escape other than"),
        ("#stablehlo.channel_handle<handle = 1>", "'handle' and 'type'"),
        ("#stablehlo.output_operand_alias<>", "'operand_tuple_indices'"),
        ("loc(\"f\":-1:2)", "a line or column"),
        ("loc(\"f\":99999999999:2)", "a line or column"),
    ] {
        let error = failure(&format!("module attributes {{x.y = {attribute}}} {{\n}}"));
        assert!(error.contains(words), "{attribute}: {error}");
    }
    assert!(failure("#a.b = 1\nmodule {\n}").contains("an alias name without '.'"));
}

#[test]
fn types_of_declarations_are_checked() {
    for (ty, words) in [
        ("tensor<4x!quant.uniform<i8:f32, -1.0>>", "positive scales"),
        ("tensor<4x!quant.uniform<i8:f32, 1>>", "a scale such as 1.0"),
        ("tensor<4x!quant.uniform<i8:f32:0, {}>>", "a scale"),
        ("tensor<4xsi8>", "signed integers are 'i8'"),
        ("tensor<vector<4xf32>>", "type 'vector' is not supported"),
    ] {
        let error = failure(&format!("func.func private @f({ty})"));
        assert!(error.contains(words), "{ty}: {error}");
    }
    let tensor = |rank: usize| format!("func.func private @f(tensor<{}f32>)", "1x".repeat(rank));
    assert!(parse(&*tensor(128)).is_ok());
    let error = parse(&*tensor(129)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(error.message.contains("has more than"), "{error}");
}

#[test]
fn long_messages_are_cut() {
    let name = "a".repeat(100_000);
    for text in [
        format!("func.func private @{name}()\nfunc.func private @{name}()"),
        format!("module attributes {{x.y = #{name}}} {{\n}}"),
        function(&format!("\"stablehlo.{name}\"() : () -> ()")),
        function(&format!("call @{name}() : () -> ()")),
        function(&format!("%0 = stablehlo.negate %{name} : tensor<f32>")),
        format!(
            "func.func @f(%a: tuple<{}tensor<f32>>) -> tensor<f32> {{\nreturn %a : tensor<f32>\n}}",
            "tensor<f32>, ".repeat(9999)
        ),
    ] {
        let error = failure(&text);
        assert!(error.len() < 1500, "{} bytes", error.len());
        assert!(error.contains("[...]") || error.contains("..."), "{error}");
    }
}

#[test]
fn dimensions_of_ragged_products_are_checked() {
    let text = |numbers: &str, result: &str| {
        format!(
            "func.func @main(%a: tensor<8x6xf32>, %b: tensor<2x6x3xf32>, %s: tensor<2xi32>) {{
               %0 = \"chlo.ragged_dot\"(%a, %b, %s) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{numbers}>}}>
                 : (tensor<8x6xf32>, tensor<2x6x3xf32>, tensor<2xi32>) -> {result}
               return
             }}"
        )
    };
    let lists = |contracting: &str, ragged: &str, group: &str| {
        format!(
            "lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [{contracting}], \
             rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [{ragged}], rhs_group_dimensions = [{group}]"
        )
    };
    parse(&*text(&lists("1", "0", "0"), "tensor<8x3xf32>")).unwrap();
    for (numbers, result, words) in [
        (lists("1", "0", "0"), "tensor<8x4xf32>", "a tensor of shape [8, 3]"),
        (lists("2", "0", "0"), "tensor<8x3xf32>", "distinct dimensions of the left operand"),
        (lists("", "0", "0"), "tensor<8x3xf32>", "contracting dimensions of the right operand"),
        (lists("1", "0", "1"), "tensor<8x3xf32>", "distinct dimensions of the right operand"),
        (lists("1", "0", ""), "tensor<8x3xf32>", "group dimensions"),
        (lists("0", "1", "0"), "tensor<6x3xf32>", "contracting dimensions of equal sizes"),
        (String::new(), "tensor<8x3xf32>", "one ragged"),
    ] {
        let error = failure(&text(&numbers, result));
        assert!(error.contains(words), "{numbers}: {error}");
    }
}

#[test]
fn names_of_enclosing_regions_are_not_given_again() {
    let reduce = |argument: &str, inner: &str| {
        format!(
            "%z = stablehlo.constant dense<0.0> : tensor<f32>\n\
             %0 = \"stablehlo.reduce\"(%a, %z) <{{dimensions = array<i64: 0>}}> ({{\n\
             ^bb0(%{argument}: tensor<f32>, %y: tensor<f32>):\n\
             %{inner} = stablehlo.add %{argument}, %y : tensor<f32>\n\
             stablehlo.return %{inner} : tensor<f32>\n\
             }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>"
        )
    };
    let branches = "%0 = \"stablehlo.if\"(%p) ({\n%z = stablehlo.add %a, %a : tensor<4xf32>\n\
                    stablehlo.return %z : tensor<4xf32>\n}, {\n%z = stablehlo.add %a, %a : tensor<4xf32>\n\
                    stablehlo.return %z : tensor<4xf32>\n}) : (tensor<i1>) -> tensor<4xf32>";
    // The operation's own results are named after its regions.
    check(&[&reduce("x", "s"), &reduce("x", "0"), branches], &[]);
    check(
        &[],
        &[
            (&reduce("z", "s"), "value '%z' is defined twice"),
            (&reduce("a", "s"), "value '%a' is defined twice"),
            (&reduce("x", "z"), "value '%z' is defined twice"),
        ],
    );
}

#[test]
fn attributes_have_the_types_of_mlir() {
    let window = |padding: &str| {
        format!(
            "%z = stablehlo.constant dense<0.0> : tensor<f32>\n\
             %0 = \"stablehlo.reduce_window\"(%a, %z) <{{window_dimensions = array<i64: 2>, \
             padding = dense<0> : tensor<{padding}xi64>}}> ({{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n\
             stablehlo.return %x : tensor<f32>\n}}) : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>"
        )
    };
    let infeed = |layout: &str| {
        format!(
            "%t = stablehlo.create_token : !stablehlo.token\n\
             %0:2 = \"stablehlo.infeed\"(%t) {{infeed_config = \"\", layout = {layout}}} \
             : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)"
        )
    };
    let composite = |version: &str| {
        format!(
            "%0 = stablehlo.composite \"my.op\" %a {{decomposition = @same, version = {version}}} \
             : (tensor<4xf32>) -> tensor<4xf32>"
        )
    };
    let tuple = |result: &str| format!("%0 = \"stablehlo.tuple\"(%a) : (tensor<4xf32>) -> tuple<{result}>");
    let start = |result: &str| {
        format!(
            "%0 = \"stablehlo.async_start\"(%a) ({{\n^bb0(%x: tensor<4xf32>):\n\
             %1 = \"stablehlo.all_gather\"(%x) <{{replica_groups = dense<0> : tensor<1x1xi64>, \
             all_gather_dim = 0 : i64}}> : (tensor<4xf32>) -> tensor<4xf32>\n\
             stablehlo.return %1 : tensor<4xf32>\n}}) : (tensor<4xf32>) -> !stablehlo.future<{result}>"
        )
    };
    check(
        &[
            &window("1x2"),
            &window("0x2"),
            &infeed("[[0]]"),
            &composite("1 : i32"),
            &tuple("tensor<4xf32>"),
            &start("tensor<4xf32>"),
        ],
        &[
            (&window("1x0"), "expected pairs of integers"),
            (&window("0"), "expected pairs of integers"),
            (&infeed("[0]"), "layout: expected an array of integers for each tensor"),
            (&infeed("[[\"a\"]]"), "layout: expected an array of integers for each tensor"),
            (&composite("1 : i64"), "expected an integer of type i32"),
            (&tuple("tensor<?xf32>"), "result 0: expected tuple<tensor<4xf32>>"),
            (&start("tensor<?xf32>"), "result 0: expected !stablehlo.future<tensor<4xf32>>"),
        ],
    );
    assert!(failure("func.func private @f(!stablehlo.future<>)").contains("a future of at least one type"));
    let module = "\"builtin.module\"() <{sym_name = 1}> ({\n}) : () -> ()";
    assert!(failure(module).contains("'sym_name' of the module: expected a string"));
    let function = |attributes: &str| {
        format!(
            "\"func.func\"() <{{arg_attrs = {attributes}, function_type = (tensor<f32>) -> (), sym_name = \"f\", \
             sym_visibility = \"private\"}}> ({{\n}}) : () -> ()"
        )
    };
    assert!(failure(&function("[]")).contains("arg_attrs: expected 1 dictionaries"));
    let none_of_results = "\"func.func\"() <{function_type = () -> tensor<f32>, res_attrs = [], sym_name = \"f\", \
                           sym_visibility = \"private\"}> ({\n}) : () -> ()";
    parse(none_of_results).unwrap();
    let printed = |text: &str| parse(text).unwrap().to_string();
    assert_eq!(printed(&function("[{}]")), printed("func.func private @f(tensor<f32>)"));
}

#[test]
fn meshes_have_each_device_once() {
    let mesh = |mesh: &str| format!("sdy.mesh @m = <{mesh}>");
    let inline = |mesh: &str| {
        format!("func.func private @f(tensor<4xf32> {{sdy.sharding = #sdy.sharding<mesh<{mesh}>, [{{}}]>}})")
    };
    for read in [
        "[\"x\"=2, \"y\"=2]",
        "[\"x\"=2, \"y\"=2], device_ids=[3, 0, 2, 1]",
        "[\"x\"=1], device_ids=[0]",
        "[]",
    ] {
        parse(mesh(read)).unwrap();
        parse(inline(read)).unwrap();
    }
    parse(mesh("[], device_ids=[5]")).unwrap();
    for (refused, words) in [
        ("[\"x\"=2, \"y\"=2], device_ids=[0, 1, 2]", "expected 4 device ids"),
        ("[\"x\"=2, \"y\"=2], device_ids=[0, 1, 2, 2]", "from 0 to 3 exactly once, found 2"),
        ("[\"x\"=2], device_ids=[1, 2]", "from 0 to 1 exactly once, found 2"),
        ("[\"x\"=1], device_ids=[3]", "from 0 to 0 exactly once, found 3"),
        ("[], device_ids=[0, 1]", "expected 1 device ids"),
        ("[], device_ids=[-1]", "nonnegative device ids, found -1"),
        ("[\"x\"=-2]", "positive sizes, found \"x\"=-2"),
        ("[\"x\"=9223372036854775807, \"y\"=2], device_ids=[0]", "expected more than 2^63 device ids"),
    ] {
        for text in [mesh(refused), inline(refused)] {
            assert!(failure(&text).contains(words), "{text}: {}", failure(&text));
        }
    }
}
