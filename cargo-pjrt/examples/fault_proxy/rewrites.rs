//! Programs with wrong arithmetic, made by rewriting the text of right ones.

/// An operation on one line: `%RESULT = "stablehlo.OP"(%OPERANDS) ... -> TYPE`.
struct Line<'a> {
    result: &'a str,
    op: &'a str,
    operands: Vec<&'a str>,
    ty: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (result, rest) = line.trim_start().split_once(" = \"stablehlo.")?;
        let (op, rest) = rest.split_once("\"(")?;
        let (operands, rest) = rest.split_once(')')?;
        let ty = rest.rsplit_once("-> ")?.1;
        let is_whole = !result.contains(':') && !ty.ends_with('{');
        is_whole.then(|| Self { result, op, operands: operands.split(", ").collect(), ty })
    }

    fn element(&self) -> &'a str {
        element(self.ty)
    }

    fn dims(&self) -> Vec<i64> {
        dims(self.ty)
    }

    /// Returns the type of truth values with the same dimensions.
    fn truth(&self) -> String {
        tensor(&self.dims(), "i1")
    }
}

/// Returns a tensor type's dimensions and element type, as `2x3x` and `f32`.
fn parts(ty: &str) -> (&str, &str) {
    let inner = ty.strip_prefix("tensor<").and_then(|ty| ty.strip_suffix('>')).unwrap_or_default();
    let element = inner.trim_start_matches(|c: char| c.is_ascii_digit() || c == 'x');
    inner.split_at(inner.len() - element.len())
}

fn element(ty: &str) -> &str {
    parts(ty).1
}

fn dims(ty: &str) -> Vec<i64> {
    parts(ty).0.split('x').filter_map(|size| size.parse().ok()).collect()
}

fn tensor(dims: &[i64], element: &str) -> String {
    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{element}>")
}

/// Returns the text of a program with an error: `dot_transposed`, `add_flushes`, `exponential_off`, `divide_rounds_down`,
/// `reduce_drops_last` or `scalar_to_zeros`.
pub(crate) fn rewrite(name: &str, text: &str) -> String {
    match name {
        "reduce_drops_last" => return reduce_drops_last(text),
        "scalar_to_zeros" => return scalar_to_zeros(text),
        _ => {}
    }
    let mut out = String::new();
    for line in text.lines() {
        let wrong = Line::parse(line).and_then(|parsed| wrong(name, &parsed));
        match (wrong, line.split_once(" = ")) {
            (Some(wrong), Some((result, rest))) => {
                // The right result gets another name.
                out.push_str(&format!("{} = {rest}\n{wrong}\n", result.replace('%', "%right")));
            }
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

/// Replaces each array of at least three dimensions over which a scalar of f32 is spread with zeros.
fn scalar_to_zeros(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let spread = Line::parse(line).filter(|parsed| {
            parsed.op == "broadcast_in_dim" && parsed.dims().len() >= 3 && line.contains("(tensor<f32>)")
        });
        match spread {
            Some(Line { result, ty, .. }) => out.push_str(&format!(
                "{result} = \"stablehlo.constant\"() <{{value = dense<0.0> : {ty}}}> : () -> {ty}\n"
            )),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

/// Returns the operations that compute the wrong result from the right one, or `None` if the operation stays right.
fn wrong(name: &str, line: &Line<'_>) -> Option<String> {
    let number = line.result.trim_start_matches('%');
    let (ty, right) = (line.ty, format!("%right{number}"));
    let constant = |value: &str, number: &str| {
        format!(
            "%{value}{number} = \"stablehlo.constant\"() <{{value = dense<{}> : {ty}}}> : () -> {ty}\n",
            match value {
                "zero" if ty.contains('f') => "0.0",
                "zero" => "0",
                "one" => "1",
                "least" => "1.17549435e-38",
                _ => "1.001",
            }
        )
    };
    let compare = |to: &str, a: &str, b: &str, direction: &str, ty: &str| {
        format!(
            "{to} = \"stablehlo.compare\"({a}, {b}) <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}> : ({ty}, {ty}) -> {}\n",
            line.truth()
        )
    };
    let binary = |to: &str, op: &str, a: &str, b: &str, ty: &str| {
        format!("{to} = \"stablehlo.{op}\"({a}, {b}) : ({ty}, {ty}) -> {ty}\n")
    };
    let select = |which: &str, a: &str, b: &str| {
        format!(
            "{} = \"stablehlo.select\"({which}, {a}, {b}) : ({}, {ty}, {ty}) -> {ty}",
            line.result,
            line.truth()
        )
    };
    let (n, t) = (number, line.truth());
    match (name, line.op, line.element()) {
        ("dot_transposed", "dot" | "dot_general", _) if line.dims().len() == 2 => {
            let turned = tensor(&line.dims().into_iter().rev().collect::<Vec<_>>(), line.element());
            Some(format!(
                "%turned{n} = \"stablehlo.transpose\"({right}) <{{permutation = array<i64: 1, 0>}}> : ({ty}) -> {turned}\n{} = \"stablehlo.reshape\"(%turned{n}) : ({turned}) -> {ty}",
                line.result
            ))
        }
        ("exponential_off", "exponential", "f32") => Some(
            constant("factor", n)
                + binary(line.result, "multiply", &right, &format!("%factor{n}"), ty).trim_end(),
        ),
        ("add_flushes", "add", "f32") => {
            let size = format!("%size{n} = \"stablehlo.abs\"({right}) : ({ty}) -> {ty}\n");
            let small = compare(&format!("%small{n}"), &format!("%size{n}"), &format!("%least{n}"), "LT", ty);
            let all = [constant("zero", n), constant("least", n), size, small];
            Some(all.concat() + &select(&format!("%small{n}"), &format!("%zero{n}"), &right))
        }
        ("divide_rounds_down", "divide", "i32") => {
            let [a, b] = [line.operands[0], line.operands[1]];
            let name = |name: &str| format!("%{name}{n}");
            let all = [
                constant("zero", n),
                constant("one", n),
                binary(&name("product"), "multiply", &right, b, ty),
                compare(&name("rest"), &name("product"), a, "NE", ty),
                compare(&name("minus_a"), a, &name("zero"), "LT", ty),
                compare(&name("minus_b"), b, &name("zero"), "LT", ty),
                binary(&name("signs"), "xor", &name("minus_a"), &name("minus_b"), &t),
                binary(&name("down"), "and", &name("signs"), &name("rest"), &t),
                binary(&name("less"), "subtract", &right, &name("one"), ty),
            ];
            Some(all.concat() + &select(&name("down"), &name("less"), &right))
        }
        _ => None,
    }
}

/// Cuts the last element of the first dimension that is reduced, in reductions of one array.
fn reduce_drops_last(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut at = 0;
    while at < lines.len() {
        if let Some((cut, reduce, end)) = without_last(&lines, at) {
            lines[end.0] = end.1;
            lines[at] = reduce;
            lines.insert(at, cut);
            at += 1;
        }
        at += 1;
    }
    lines.join("\n")
}

/// Returns the operation that cuts the operand, the first line of the reduction, and its last line with its number.
fn without_last(lines: &[String], at: usize) -> Option<(String, String, (usize, String))> {
    let line = &lines[at];
    let (before, rest) = line.split_once(" = \"stablehlo.reduce\"(")?;
    let (operands, after) = rest.split_once(')')?;
    let [operand, init] = operands.split(", ").collect::<Vec<_>>()[..] else { return None };
    let dim: usize = after.split_once("array<i64: ")?.1.split([',', '>']).next()?.parse().ok()?;
    let indent = &line[..line.len() - line.trim_start().len()];
    let end = at + lines[at..].iter().position(|line| line.starts_with(&format!("{indent}}})")))?;
    let ty = lines[end].split_once(": (")?.1.split(", ").next()?;
    let sizes = dims(ty);
    let mut cut = sizes.clone();
    *cut.get_mut(dim)? = sizes.get(dim)?.checked_sub(1).filter(|size| *size > 0)?;
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let (starts, ones) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    let short = tensor(&cut, element(ty));
    let name = format!("%cut{}", before.trim_start().trim_start_matches('%'));
    let slice = format!(
        "{indent}{name} = \"stablehlo.slice\"({operand}) <{{limit_indices = array<i64: {}>, start_indices = array<i64: {}>, strides = array<i64: {}>}}> : ({ty}) -> {short}",
        list(&cut),
        list(&starts),
        list(&ones)
    );
    let reduce = format!("{before} = \"stablehlo.reduce\"({name}, {init}){after}");
    Some((slice, reduce, (end, lines[end].replacen(ty, &short, 1))))
}
