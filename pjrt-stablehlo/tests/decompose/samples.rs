//! A program for each operation that has a decomposition.

/// A function `main` with one operation.
pub(crate) fn function(arguments: &str, op: &str, results: &str) -> String {
    format!("func.func @main({arguments}) -> ({results}) {{\n  %0 = {op}\n  return %0 : {results}\n}}\n")
}

pub(crate) const F32: &str = "tensor<2x3xf32>";

/// A collective that runs by itself, with other operations before its end.
pub(crate) const STARTED: &str = r#"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %future = "stablehlo.async_start"(%x) ({
  ^bb0(%part: tensor<4xf32>):
    %sum = "stablehlo.all_reduce"(%part) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %sum : tensor<4xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = "stablehlo.async_done"(%future) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}"#;

/// A program with the operation of each rule.
pub(crate) fn sample(op: &str) -> String {
    let unary = || function(&format!("%x: {F32}"), &format!("\"{op}\"(%x) : ({F32}) -> {F32}"), F32);
    let predicate = |op: &str| {
        function(
            &format!("%x: {F32}"),
            &format!("\"{op}\"(%x) : ({F32}) -> tensor<2x3xi1>"),
            "tensor<2x3xi1>",
        )
    };
    let binary = |element: &str, result: &str| {
        let attributes = if op.ends_with("compare") {
            "<{comparison_direction = #chlo<comparison_direction GT>}> "
        } else {
            ""
        };
        function(
            &format!("%x: tensor<2x3x{element}>, %y: tensor<3x{element}>"),
            &format!(
                "\"{op}\"(%x, %y) {attributes}: (tensor<2x3x{element}>, tensor<3x{element}>) -> tensor<2x3x{result}>"
            ),
            &format!("tensor<2x3x{result}>"),
        )
    };
    let (dialect, mnemonic) = op.split_once('.').unwrap();
    match (dialect, mnemonic) {
        ("chlo", "broadcast_select") => function(
            "%p: tensor<3xi1>, %x: tensor<2x3xf32>, %y: tensor<f32>",
            "chlo.broadcast_select %p, %x, %y : (tensor<3xi1>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
            F32,
        ),
        ("chlo", "broadcast_compare") => binary("f32", "i1"),
        ("chlo", "broadcast_complex") => binary("f32", "complex<f32>"),
        ("chlo", "broadcast_and" | "broadcast_or" | "broadcast_xor") => binary("i32", "i32"),
        ("chlo", name) if name.starts_with("broadcast_shift") => binary("i32", "i32"),
        ("chlo", name) if name.starts_with("broadcast_") => binary("f32", "f32"),
        ("chlo", "zeta" | "polygamma" | "next_after") => {
            function(&format!("%x: {F32}, %y: {F32}"), &format!("{op} %x, %y : {F32}, {F32} -> {F32}"), F32)
        }
        ("chlo", "mulhi") => function(
            "%x: tensor<4xi32>",
            "\"chlo.mulhi\"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>",
            "tensor<4xi32>",
        ),
        ("chlo", "conj") => function(
            "%x: tensor<4xcomplex<f32>>",
            "\"chlo.conj\"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
            "tensor<4xcomplex<f32>>",
        ),
        ("chlo", "constant") => function(
            "",
            "\"chlo.constant\"() {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>",
            F32,
        ),
        ("chlo", "constant_like") => unary().replace("(%x) :", "(%x) {value = 3.2 : f32} :"),
        ("chlo", "is_inf" | "is_neg_inf" | "is_pos_inf") | ("stablehlo", "is_finite") => predicate(op),
        ("chlo", "ragged_dot") => function(
            "%x: tensor<11x5xf32>, %w: tensor<3x5x7xf32>, %sizes: tensor<3xi64>",
            "\"chlo.ragged_dot\"(%x, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<\
             lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], \
             rhs_group_dimensions = [0]>}> : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xi64>) -> tensor<11x7xf32>",
            "tensor<11x7xf32>",
        ),
        ("chlo", "scan") => "func.func @main(%x: tensor<4x3xf32>, %i: tensor<3xf32>) -> tensor<4x3xf32> {
            %0, %1 = chlo.scan (%x) inits (%i) dimension = 0 attributes {} {
            ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
              %2 = stablehlo.add %a, %b : tensor<3xf32>
              stablehlo.return %2, %2 : tensor<3xf32>, tensor<3xf32>
            } : (tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>)
            return %0 : tensor<4x3xf32>
        }"
        .to_owned(),
        ("chlo", "top_k") => "func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
            %0:2 = chlo.top_k(%x, k=3) : tensor<2x8xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
            return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>
        }"
        .to_owned(),
        ("chlo", _) => unary(),
        ("sdy", "sharding_constraint" | "reshard") => format!(
            "sdy.mesh @m = <[\"a\"=2]>\n{}",
            function(&format!("%x: {F32}"), &format!("{op} %x <@m, [{{\"a\"}}, {{}}]> : {F32}"), F32)
        ),
        ("sdy", "sharding_group") => format!(
            "func.func @main(%x: {F32}) -> {F32} {{
                {op} %x group_id=0 : {F32}
                return %x : {F32}
            }}"
        ),
        ("func", "call") => "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
            %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
            return %0 : tensor<4xf32>
        }
        func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
            %0 = stablehlo.sine %x : tensor<4xf32>
            return %0 : tensor<4xf32>
        }"
        .to_owned(),
        ("stablehlo", mnemonic) => {
            let sample = stablehlo_sample(mnemonic).or_else(|| small_sample(mnemonic));
            sample.unwrap_or_else(unary)
        }
        _ => panic!("there is no sample for {op}"),
    }
}

fn stablehlo_sample(mnemonic: &str) -> Option<String> {
    let one = |arguments: &str, op: &str, result: &str| Some(function(arguments, op, result));
    match mnemonic {
        "async_start" | "async_done" => Some(STARTED.to_owned()),
        "broadcast" => one("%x: tensor<3xf32>", "stablehlo.broadcast %x, sizes = [2] : (tensor<3xf32>) -> tensor<2x3xf32>", F32),
        "create_token" => one("", "stablehlo.create_token : !stablehlo.token", "!stablehlo.token"),
        "cross-replica-sum" => one(
            "%x: tensor<3xf32>",
            "\"stablehlo.cross-replica-sum\"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : \
             (tensor<3xf32>) -> tensor<3xf32>",
            "tensor<3xf32>",
        ),
        "cholesky" => one(
            "%x: tensor<2x4x4xf32>",
            "\"stablehlo.cholesky\"(%x) {lower = true} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>",
            "tensor<2x4x4xf32>",
        ),
        "triangular_solve" => one(
            "%x: tensor<4x4xf32>, %y: tensor<4x3xf32>",
            "\"stablehlo.triangular_solve\"(%x, %y) {left_side = true, lower = true, unit_diagonal = false, \
             transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>",
            "tensor<4x3xf32>",
        ),
        "dot" => one(
            "%x: tensor<2x3xf32>, %y: tensor<3x4xf32>",
            "stablehlo.dot %x, %y : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
            "tensor<2x4xf32>",
        ),
        "einsum" => one(
            "%x: tensor<2x3x5xf32>, %y: tensor<3x4xf32>",
            "\"stablehlo.einsum\"(%x, %y) {einsum_config = \"abd,bc->ca\"} : \
             (tensor<2x3x5xf32>, tensor<3x4xf32>) -> tensor<4x2xf32>",
            "tensor<4x2xf32>",
        ),
        "unary_einsum" => one(
            "%x: tensor<2x3x5xf32>",
            "\"stablehlo.unary_einsum\"(%x) {einsum_config = \"abc->ca\"} : (tensor<2x3x5xf32>) -> tensor<5x2xf32>",
            "tensor<5x2xf32>",
        ),
        "torch_index_select" => one(
            "%x: tensor<5x1x5xi32>, %i: tensor<2xi32>",
            "\"stablehlo.torch_index_select\"(%x, %i) {dim = 0 : i64, batch_dims = 0 : i64} : \
             (tensor<5x1x5xi32>, tensor<2xi32>) -> tensor<2x1x5xi32>",
            "tensor<2x1x5xi32>",
        ),
        "map" => Some(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = \"stablehlo.map\"(%x, %x) ({
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                  %c = stablehlo.constant dense<2.0> : tensor<f32>
                  %1 = stablehlo.multiply %a, %c : tensor<f32>
                  %2 = stablehlo.maximum %1, %b : tensor<f32>
                  stablehlo.return %2 : tensor<f32>
                }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
                return %0 : tensor<4xf32>
            }"
            .to_owned(),
        ),
        "batch_norm_inference" => one(
            "%x: tensor<2x3xf32>, %s: tensor<3xf32>",
            "\"stablehlo.batch_norm_inference\"(%x, %s, %s, %s, %s) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : \
             (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>",
            F32,
        ),
        "batch_norm_training" => Some(
            "func.func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
                %0:3 = \"stablehlo.batch_norm_training\"(%x, %s, %s) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} :
                  (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
                return %0#0 : tensor<2x3xf32>
            }"
            .to_owned(),
        ),
        "batch_norm_grad" => Some(
            "func.func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>) -> tensor<2x3xf32> {
                %0:3 = \"stablehlo.batch_norm_grad\"(%x, %s, %s, %s, %x) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} :
                  (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>)
                  -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
                return %0#0 : tensor<2x3xf32>
            }"
            .to_owned(),
        ),
        "select_and_scatter" => Some(
            "func.func @main(%x: tensor<6xf32>, %s: tensor<3xf32>, %i: tensor<f32>) -> tensor<6xf32> {
                %0 = \"stablehlo.select_and_scatter\"(%x, %s, %i) ({
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                  %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                  stablehlo.return %1 : tensor<i1>
                }, {
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                  %1 = stablehlo.add %a, %b : tensor<f32>
                  stablehlo.return %1 : tensor<f32>
                }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} :
                  (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
                return %0 : tensor<6xf32>
            }"
            .to_owned(),
        ),
        "dynamic_broadcast_in_dim" => Some(
            "func.func @main(%x: tensor<3xf32>) -> tensor<2x3xf32> {
                %n = stablehlo.constant dense<2> : tensor<1xi64>
                %m = stablehlo.constant dense<3> : tensor<1xi64>
                %s = stablehlo.concatenate %n, %m, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
                %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
                %1 = stablehlo.convert %0 : (tensor<?x?xf32>) -> tensor<2x3xf32>
                return %1 : tensor<2x3xf32>
            }"
            .to_owned(),
        ),
        "dynamic_conv" => one(
            "%x: tensor<1x4x4x1xf32>, %w: tensor<2x2x1x1xf32>",
            "\"stablehlo.dynamic_conv\"(%x, %w, %p) {window_strides = array<i64: 2, 2>, dimension_numbers = \
             #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, \
             batch_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>, tensor<2x2xi64>) -> \
             tensor<1x3x3x1xf32>",
            "tensor<1x3x3x1xf32>",
        )
        .map(|text| text.replace("  %0 =", "  %p = stablehlo.constant dense<1> : tensor<2x2xi64>\n  %0 =")),
        "dynamic_gather" => one(
            "%x: tensor<5x4xf32>, %i: tensor<3x1xi64>",
            "\"stablehlo.dynamic_gather\"(%x, %i, %s) {dimension_numbers = #stablehlo.gather<offset_dims = [1], \
             collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : \
             (tensor<5x4xf32>, tensor<3x1xi64>, tensor<2xi64>) -> tensor<3x4xf32>",
            "tensor<3x4xf32>",
        )
        .map(|text| text.replace("  %0 =", "  %s = stablehlo.constant dense<[1, 4]> : tensor<2xi64>\n  %0 =")),
        "dynamic_iota" => one("", "stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi64>) -> tensor<4xi64>", "tensor<4xi64>")
            .map(|text| text.replace("  %0 =", "  %s = stablehlo.constant dense<4> : tensor<1xi64>\n  %0 =")),
        "dynamic_pad" => one(
            "%x: tensor<4xf32>, %v: tensor<f32>",
            "stablehlo.dynamic_pad %x, %v, %s, %s, %s : (tensor<4xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, \
             tensor<1xi64>) -> tensor<9xf32>",
            "tensor<9xf32>",
        )
        .map(|text| text.replace("  %0 =", "  %s = stablehlo.constant dense<1> : tensor<1xi64>\n  %0 =")),
        "dynamic_reshape" => one(
            "%x: tensor<4xf32>, %s: tensor<2xi64>",
            "stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<2x2xf32>",
            "tensor<2x2xf32>",
        ),
        "real_dynamic_slice" => Some(
            "func.func @main(%x: tensor<6xf32>, %n: tensor<1xi64>) -> (tensor<2xf32>, tensor<3xf32>) {
                %a = stablehlo.constant dense<1> : tensor<1xi64>
                %b = stablehlo.constant dense<5> : tensor<1xi64>
                %s = stablehlo.constant dense<2> : tensor<1xi64>
                %0 = stablehlo.real_dynamic_slice %x, %a, %b, %s :
                  (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
                %1 = stablehlo.real_dynamic_slice %x, %n, %b, %a :
                  (tensor<6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>
                return %0, %1 : tensor<2xf32>, tensor<3xf32>
            }"
            .to_owned(),
        ),
        "get_dimension_size" => one(
            "%x: tensor<2x3xf32>",
            "stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>",
            "tensor<i32>",
        ),
        "set_dimension_size" => one(
            "%x: tensor<2x3xf32>",
            "stablehlo.set_dimension_size %x, %s, dim = 1 : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>",
            F32,
        )
        .map(|text| text.replace("  %0 =", "  %s = stablehlo.constant dense<3> : tensor<i32>\n  %0 =")),
        "tuple" | "get_tuple_element" => Some(
            "func.func @main(%x: tensor<2xf32>, %y: tensor<3xi32>) -> tuple<tensor<3xi32>, tuple<tensor<2xf32>>> {
                %0 = stablehlo.tuple %x : tuple<tensor<2xf32>>
                %1 = stablehlo.tuple %0, %y : tuple<tuple<tensor<2xf32>>, tensor<3xi32>>
                %2 = stablehlo.get_tuple_element %1[1] : (tuple<tuple<tensor<2xf32>>, tensor<3xi32>>) -> tensor<3xi32>
                %3 = stablehlo.tuple %2, %0 : tuple<tensor<3xi32>, tuple<tensor<2xf32>>>
                return %3 : tuple<tensor<3xi32>, tuple<tensor<2xf32>>>
            }"
            .to_owned(),
        ),
        "composite" => Some(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = stablehlo.composite \"my.f\" %x {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>
                return %0 : tensor<4xf32>
            }
            func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
                return %0 : tensor<4xf32>
            }"
            .to_owned(),
        ),
        "uniform_quantize" | "uniform_dequantize" => Some(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>>
                %1 = stablehlo.uniform_dequantize %0 : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4xf32>
                return %1 : tensor<4xf32>
            }"
            .to_owned(),
        ),
        "case" => Some(
            "func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = \"stablehlo.case\"(%i) ({
                  %1 = stablehlo.sine %x : tensor<4xf32>
                  stablehlo.return %1 : tensor<4xf32>
                }, {
                  %1 = stablehlo.cosine %x : tensor<4xf32>
                  stablehlo.return %1 : tensor<4xf32>
                }, {
                  stablehlo.return %x : tensor<4xf32>
                }) : (tensor<i32>) -> tensor<4xf32>
                return %0 : tensor<4xf32>
            }"
            .to_owned(),
        ),
        "if" => Some(
            "func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
                %0 = \"stablehlo.if\"(%p) ({
                  %1 = stablehlo.sine %x : tensor<4xf32>
                  stablehlo.return %1 : tensor<4xf32>
                }, {
                  stablehlo.return %x : tensor<4xf32>
                }) : (tensor<i1>) -> tensor<4xf32>
                return %0 : tensor<4xf32>
            }"
            .to_owned(),
        ),
        "clamp" => one(
            "%l: tensor<f32>, %x: tensor<2x3xf32>",
            "stablehlo.clamp %l, %x, %x : (tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
            F32,
        ),
        _ => None,
    }
}

/// Programs with operations that only devices with few operations lack.
fn small_sample(mnemonic: &str) -> Option<String> {
    // One operation for each element type.
    let same = |elements: &[&str], count: usize| {
        let (mut arguments, mut ops, mut results, mut types) = (vec![], String::new(), vec![], vec![]);
        for (index, element) in elements.iter().enumerate() {
            let ty = format!("tensor<2x3x{element}>");
            let names: Vec<String> = (0..count).map(|operand| format!("%x{index}_{operand}")).collect();
            arguments.extend(names.iter().map(|name| format!("{name}: {ty}")));
            ops += &format!("  %{index} = stablehlo.{mnemonic} {} : {ty}\n", names.join(", "));
            results.push(format!("%{index}"));
            types.push(ty);
        }
        let (arguments, results, types) = (arguments.join(", "), results.join(", "), types.join(", "));
        Some(format!("func.func @main({arguments}) -> ({types}) {{\n{ops}  return {results} : {types}\n}}\n"))
    };
    match mnemonic {
        "and" => same(&["i1"], 2),
        "or" | "xor" => same(&["i32", "i1"], 2),
        "shift_left" | "shift_right_arithmetic" | "shift_right_logical" => same(&["i32"], 2),
        "not" => same(&["i32", "i1"], 1),
        "popcnt" | "count_leading_zeros" => same(&["i32"], 1),
        "atan2" | "maximum" | "minimum" | "subtract" => same(&["f32"], 2),
        "divide" | "multiply" => same(&["complex<f32>"], 2),
        "cosine" | "sine" => same(&["f32", "complex<f32>"], 1),
        "exponential" | "log" => same(&["complex<f32>"], 1),
        "convert" => Some(
            "func.func @main(%x: tensor<4xi1>, %y: tensor<4xf32>, %z: tensor<4xi32>)
                -> (tensor<4xf32>, tensor<4xi1>, tensor<4xui32>) {
                %0 = stablehlo.convert %x : (tensor<4xi1>) -> tensor<4xf32>
                %1 = stablehlo.convert %y : (tensor<4xf32>) -> tensor<4xi1>
                %2 = stablehlo.convert %z : (tensor<4xi32>) -> tensor<4xui32>
                return %0, %1, %2 : tensor<4xf32>, tensor<4xi1>, tensor<4xui32>
            }"
            .to_owned(),
        ),
        "constant" => Some(function(
            "",
            "stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>",
            "tensor<2xcomplex<f32>>",
        )),
        "fft" => Some(function(
            "%x: tensor<3x6xf32>",
            "stablehlo.fft %x, type = RFFT, length = [3, 6] : (tensor<3x6xf32>) -> tensor<3x4xcomplex<f32>>",
            "tensor<3x4xcomplex<f32>>",
        )),
        "compare" => Some(function(
            "%x: tensor<4xf32>, %y: tensor<4xf32>",
            "stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
            "tensor<4xi1>",
        )),
        "bitcast_convert" => Some(function(
            "%x: tensor<4xf32>",
            "stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xf32>",
            "tensor<4xf32>",
        )),
        "select" => Some(function(
            "%p: tensor<i1>, %x: tensor<4xf32>",
            "stablehlo.select %p, %x, %x : tensor<i1>, tensor<4xf32>",
            "tensor<4xf32>",
        )),
        "power" => Some(
            "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
                %c = stablehlo.constant dense<-1.5> : tensor<4xf32>
                %0 = stablehlo.power %x, %c : tensor<4xf32>
                %1 = stablehlo.power %x, %y : tensor<4xf32>
                return %0, %1 : tensor<4xf32>, tensor<4xf32>
            }"
            .to_owned(),
        ),
        "remainder" => Some(
            "func.func @main(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
                %0 = stablehlo.remainder %x, %x : tensor<4xf32>
                %1 = stablehlo.remainder %i, %i : tensor<4xi32>
                return %0, %1 : tensor<4xf32>, tensor<4xi32>
            }"
            .to_owned(),
        ),
        _ => moving_sample(mnemonic).or_else(|| combining_sample(mnemonic)),
    }
}

/// Programs with operations that move elements.
fn moving_sample(mnemonic: &str) -> Option<String> {
    let one = |arguments: &str, op: &str, result: &str| Some(function(arguments, op, result));
    match mnemonic {
        "iota" => one("", "stablehlo.iota dim = 0 : tensor<4xi32>", "tensor<4xi32>"),
        "pad" => one(
            "%x: tensor<4xf32>, %v: tensor<f32>",
            "stablehlo.pad %x, %v, low = [1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>",
            "tensor<10xf32>",
        ),
        "reverse" => Some(
            "func.func @main(%x: tensor<4xf32>, %y: tensor<65xf32>) -> (tensor<4xf32>, tensor<65xf32>) {
                %0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
                %1 = stablehlo.reverse %y, dims = [0] : tensor<65xf32>
                return %0, %1 : tensor<4xf32>, tensor<65xf32>
            }"
            .to_owned(),
        ),
        "dynamic_slice" => one(
            "%x: tensor<4xf32>, %i: tensor<i32>",
            "stablehlo.dynamic_slice %x, %i, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>",
            "tensor<2xf32>",
        ),
        "dynamic_update_slice" => one(
            "%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<i32>",
            "stablehlo.dynamic_update_slice %x, %u, %i : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>",
            "tensor<4xf32>",
        ),
        "gather" => Some(
            "func.func @main(%x: tensor<5x4xf32>, %i: tensor<3x1xi64>) -> (tensor<3x4xf32>, tensor<2x4xf32>) {
                %0 = \"stablehlo.gather\"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
                  collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
                  slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
                %c = stablehlo.constant dense<[[4], [0]]> : tensor<2x1xi64>
                %1 = \"stablehlo.gather\"(%x, %c) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
                  collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
                  slice_sizes = array<i64: 1, 4>}> : (tensor<5x4xf32>, tensor<2x1xi64>) -> tensor<2x4xf32>
                return %0, %1 : tensor<3x4xf32>, tensor<2x4xf32>
            }"
            .to_owned(),
        ),
        _ => None,
    }
}

/// Programs with operations that combine elements.
fn combining_sample(mnemonic: &str) -> Option<String> {
    const ADD: &str = "({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        })";
    let one = |arguments: &str, op: &str, result: &str| Some(function(arguments, op, result));
    match mnemonic {
        "dot_general" => one(
            "%x: tensor<2x5x3xf32>, %y: tensor<2x3x4xf32>",
            "stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : \
             (tensor<2x5x3xf32>, tensor<2x3x4xf32>) -> tensor<2x5x4xf32>",
            "tensor<2x5x4xf32>",
        ),
        "convolution" => one(
            "%x: tensor<1x4x4x1xf32>, %w: tensor<2x2x1x1xf32>",
            "stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} \
             {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : \
             (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x3x1xf32>",
            "tensor<1x3x3x1xf32>",
        ),
        "reduce" => one(
            "%x: tensor<5xf32>, %v: tensor<f32>",
            &format!(
                "\"stablehlo.reduce\"(%x, %v) {ADD} {{dimensions = array<i64: 0>}} : (tensor<5xf32>, tensor<f32>) -> tensor<f32>"
            ),
            "tensor<f32>",
        ),
        "reduce_window" => one(
            "%x: tensor<5xf32>, %v: tensor<f32>",
            &format!(
                "\"stablehlo.reduce_window\"(%x, %v) {ADD} {{window_dimensions = array<i64: 3>}} : \
                 (tensor<5xf32>, tensor<f32>) -> tensor<3xf32>"
            ),
            "tensor<3xf32>",
        ),
        "scatter" => one(
            "%x: tensor<5xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>",
            &format!(
                "\"stablehlo.scatter\"(%x, %i, %u) {ADD} {{scatter_dimension_numbers = #stablehlo.scatter<\
                 inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : \
                 (tensor<5xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<5xf32>"
            ),
            "tensor<5xf32>",
        ),
        "sort" => Some(
            "func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
                %0 = \"stablehlo.sort\"(%x) ({
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                  %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
                  stablehlo.return %1 : tensor<i1>
                }) {dimension = 0 : i64} : (tensor<5xf32>) -> tensor<5xf32>
                return %0 : tensor<5xf32>
            }"
            .to_owned(),
        ),
        _ => None,
    }
}
