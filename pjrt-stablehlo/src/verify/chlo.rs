//! Types of CHLO's operations, which are not in the op table, according to StableHLO's `ChloOps.td`.

use crate::Error;
use crate::infer::{Context, types_compatible};
use crate::ir::{Attribute, DYNAMIC, ElementType, OtherOp, TensorType, Type};

/// The element types that an operation accepts.
#[derive(Clone, Copy)]
enum Elements {
    Any,
    Logical,
    Float,
    FloatOrComplex,
    Integer,
}

impl Elements {
    fn has(self, ty: ElementType) -> bool {
        match self {
            Elements::Any => true,
            Elements::Logical => ty == ElementType::I1 || ty.is_integer(),
            Elements::Float => ty.is_float(),
            Elements::FloatOrComplex => ty.is_float() || ty.is_complex(),
            Elements::Integer => ty.is_integer() && ty != ElementType::I1,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Elements::Any => "elements of any type",
            Elements::Logical => "booleans or integers",
            Elements::Float => "floats",
            Elements::FloatOrComplex => "floats or complex numbers",
            Elements::Integer => "integers",
        }
    }
}

/// The element type of a result.
#[derive(Clone, Copy)]
enum Gives {
    /// The element type of the operands.
    Same,
    Booleans,
    /// The complex type whose parts have the operands' type.
    Complex,
}

/// Returns the number of operands and the rules of an elementwise operation.
fn elementwise(name: &str) -> Option<(usize, Elements, Gives)> {
    Some(match name {
        "acos" | "acosh" | "asin" | "asinh" | "atan" | "atanh" | "bessel_i1e" | "conj" | "cosh" | "sinh"
        | "square" | "tan" => (1, Elements::FloatOrComplex, Gives::Same),
        "digamma" | "erf" | "erf_inv" | "erfc" | "lgamma" => (1, Elements::Float, Gives::Same),
        "is_inf" | "is_neg_inf" | "is_pos_inf" => (1, Elements::Float, Gives::Booleans),
        "next_after" | "polygamma" | "zeta" => (2, Elements::Float, Gives::Same),
        "mulhi" => (2, Elements::Integer, Gives::Same),
        _ => return None,
    })
}

/// Checks an operation of CHLO. Operations of other dialects are accepted.
pub(super) fn check(cx: &Context<'_>, op: &OtherOp) -> Result<(), Error> {
    let Some(name) = op.name.strip_prefix("chlo.") else { return Ok(()) };
    if name != "scan" {
        cx.length(None, "regions", cx.op.regions.len(), 0)?;
    }
    let values = cx.op.operands.iter().copied().chain(cx.op.results);
    if values.into_iter().any(|value| matches!(cx.body.ty(value), Type::UnrankedTensor(_))) {
        // The shapes are not known.
        return Ok(());
    }
    if let Some((operands, elements, gives)) = elementwise(name) {
        counts(cx, operands, 1)?;
        let shape = same_shapes(cx)?;
        return result(cx, elements, gives, &shape);
    }
    match name {
        "broadcast_select" => {
            counts(cx, 3, 1)?;
            broadcast_select(cx)
        }
        "broadcast_compare" => {
            counts(cx, 2, 1)?;
            let direction = attribute(cx, op, "comparison_direction");
            cx.require(None, direction.is_some(), || {
                "the attribute 'comparison_direction' is missing".to_owned()
            })?;
            let shape = broadcast_shapes(cx, op)?;
            result(cx, Elements::Any, Gives::Booleans, &shape)
        }
        "broadcast_and" | "broadcast_or" | "broadcast_xor" => {
            broadcast(cx, op, Elements::Logical, Gives::Same)
        }
        "broadcast_complex" => broadcast(cx, op, Elements::Float, Gives::Complex),
        "broadcast_next_after" | "broadcast_polygamma" | "broadcast_zeta" => {
            broadcast(cx, op, Elements::Float, Gives::Same)
        }
        _ if name.starts_with("broadcast_") => broadcast(cx, op, Elements::Any, Gives::Same),
        "ragged_dot" => {
            counts(cx, 3, 1)?;
            super::ragged_dot::check(cx)
        }
        "scan" => super::scan::check(cx),
        "top_k" => top_k(cx, op),
        "constant" => constant(cx, op),
        "constant_like" => constant_like(cx, op),
        _ => Ok(()),
    }
}

/// Returns an attribute of the operation.
fn attribute<'a>(cx: &Context<'a>, op: &'a OtherOp, name: &str) -> Option<&'a Attribute> {
    op.properties.get(name).or_else(|| cx.op.attributes.get(name))
}

fn counts(cx: &Context<'_>, operands: usize, results: usize) -> Result<(), Error> {
    cx.length(None, "operands", cx.op.operands.len(), operands)?;
    cx.length(None, "results", cx.op.results.len(), results)
}

/// Returns an error unless the result has the given shape, and the element type that follows from the operands.
fn result(cx: &Context<'_>, elements: Elements, gives: Gives, shape: &[i64]) -> Result<(), Error> {
    let first = cx.tensor(0)?;
    for index in 0..cx.op.operands.len() {
        let operand = cx.tensor(index)?;
        cx.require(None, elements.has(operand.element_type()), || {
            format!("operand {index}: expected {}, found {operand}", elements.text())
        })?;
        cx.same_elements(None, index, first)?;
    }
    let expected = match gives {
        Gives::Same => first.with_dims(shape),
        Gives::Booleans => TensorType::new(ElementType::I1, shape),
        Gives::Complex => {
            let complex = match first.element_type() {
                ElementType::F32 => ElementType::ComplexF32,
                ElementType::F64 => ElementType::ComplexF64,
                other => {
                    return Err(
                        cx.error(None, format!("operand 0: expected element type f32 or f64, found {other}"))
                    );
                }
            };
            TensorType::new(complex, shape)
        }
    };
    declared(cx, 0, &expected)
}

/// Returns an error unless the declared type of a result is compatible with the expected one.
fn declared(cx: &Context<'_>, index: usize, expected: &TensorType) -> Result<(), Error> {
    let found = cx.op.results.get(index).map_or(&Type::None, |value| cx.body.ty(value));
    cx.require(None, types_compatible(&Type::Tensor(expected.clone()), found), || {
        format!("result {index}: expected {expected}, found {found}")
    })
}

/// Returns the common shape of all operands.
fn same_shapes(cx: &Context<'_>) -> Result<Vec<i64>, Error> {
    let mut shape = cx.tensor(0)?.dims().to_vec();
    for index in 1..cx.op.operands.len() {
        cx.same_shape(None, index, &shape)?;
        for (size, &other) in shape.iter_mut().zip(cx.tensor(index)?.dims()) {
            if *size == DYNAMIC {
                *size = other;
            }
        }
    }
    Ok(shape)
}

fn broadcast(cx: &Context<'_>, op: &OtherOp, elements: Elements, gives: Gives) -> Result<(), Error> {
    counts(cx, 2, 1)?;
    let shape = broadcast_shapes(cx, op)?;
    result(cx, elements, gives, &shape)
}

/// Returns the shape to which two operands are broadcast. The dimensions of the operand of lower rank are mapped
/// according to `broadcast_dimensions`, or aligned with the last ones.
fn broadcast_shapes(cx: &Context<'_>, op: &OtherOp) -> Result<Vec<i64>, Error> {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    let rank = lhs.rank().max(rhs.rank());
    let given = match attribute(cx, op, "broadcast_dimensions") {
        None => None,
        Some(Attribute::IntegerArray { ty: ElementType::I64, values }) => Some(values),
        Some(other) => {
            let message = format!(
                "attribute 'broadcast_dimensions': expected an array of i64, found {}",
                other.description()
            );
            return Err(cx.error(None, message));
        }
    };
    let mut shape = vec![1; rank];
    for tensor in [lhs, rhs] {
        let places: Vec<i64> = match given {
            Some(given) if tensor.rank() < rank => given.to_vec(),
            _ => ((rank - tensor.rank()) as i64..rank as i64).collect(),
        };
        cx.length(None, "broadcast_dimensions", places.len(), tensor.rank())?;
        cx.dimensions(None, "broadcast_dimensions", &places, rank)?;
        cx.sorted(None, "broadcast_dimensions", &places)?;
        cx.unique(None, "broadcast_dimensions", places.iter().copied())?;
        for (&size, &place) in tensor.dims().iter().zip(&places) {
            merge(cx, &mut shape[place as usize], size, place)?;
        }
    }
    Ok(shape)
}

/// Merges a size into that of a dimension. A size of 1 is broadcast, and a dynamic size may be 1 at run time.
fn merge(cx: &Context<'_>, merged: &mut i64, size: i64, dimension: i64) -> Result<(), Error> {
    let fits = *merged == size || [*merged, size].iter().any(|&size| size == 1 || size == DYNAMIC);
    cx.require(None, fits, || {
        format!("dimension {dimension}: expected equal sizes or a size of 1, found {merged} and {size}")
    })?;
    *merged = match (*merged, size) {
        (1, other) | (other, 1) | (DYNAMIC, other) | (other, _) => other,
    };
    Ok(())
}

/// `broadcast_select`: all operands are broadcast to one shape.
fn broadcast_select(cx: &Context<'_>) -> Result<(), Error> {
    let (predicate, on_true) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.require(None, predicate.element_type() == ElementType::I1, || {
        format!("operand 0: expected booleans, found {predicate}")
    })?;
    cx.same_elements(None, 2, on_true)?;
    let tensors = [predicate, on_true, cx.tensor(2)?];
    let rank = tensors.iter().map(|tensor| tensor.rank()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for tensor in tensors {
        for (place, &size) in (rank - tensor.rank()..).zip(tensor.dims()) {
            merge(cx, &mut shape[place], size, place as i64)?;
        }
    }
    declared(cx, 0, &on_true.with_dims(shape))
}

/// `top_k`: the results have `k` elements along the last dimension.
fn top_k(cx: &Context<'_>, op: &OtherOp) -> Result<(), Error> {
    counts(cx, 1, 2)?;
    let operand = cx.tensor(0)?;
    let k = match attribute(cx, op, "k") {
        Some(Attribute::Integer { value, ty: ElementType::I64 }) => *value,
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), Attribute::description);
            return Err(
                cx.error(None, format!("attribute 'k': expected an integer of type i64, found {found}"))
            );
        }
    };
    let Some((&last, others)) = operand.dims().split_last() else {
        return Err(cx.error(None, format!("operand 0: expected at least one dimension, found {operand}")));
    };
    cx.require(None, k >= 0 && (last == DYNAMIC || k <= last), || {
        let last = if last == DYNAMIC { String::new() } else { format!("{last}, ") };
        format!("attribute 'k': expected a number from 0 to {last}the size of the last dimension, found {k}")
    })?;
    let mut dims = others.to_vec();
    dims.push(k);
    declared(cx, 0, &operand.with_dims(dims.clone()))?;
    declared(cx, 1, &TensorType::new(ElementType::I32, dims))
}

fn constant(cx: &Context<'_>, op: &OtherOp) -> Result<(), Error> {
    counts(cx, 0, 1)?;
    match attribute(cx, op, "value") {
        Some(Attribute::Elements(value) | Attribute::Resource { value, .. }) => {
            let found = cx.op.results.get(0).map_or(&Type::None, |value| cx.body.ty(value));
            cx.require(None, *found == Type::Tensor(value.ty().clone()), || {
                format!("result 0: expected {}, found {found}", value.ty())
            })
        }
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), Attribute::description);
            Err(cx.error(None, format!("attribute 'value': expected elements, found {found}")))
        }
    }
}

/// `constant_like`: the result has the shape of the operand, and elements that all equal a number.
fn constant_like(cx: &Context<'_>, op: &OtherOp) -> Result<(), Error> {
    counts(cx, 1, 1)?;
    let value = attribute(cx, op, "value");
    let element = match value {
        Some(Attribute::Integer { ty, .. } | Attribute::Float { ty, .. }) => *ty,
        Some(Attribute::Bool(_)) => ElementType::I1,
        // The reader does not represent complex numbers here, and rejects other attributes.
        other => {
            let found = other.map_or_else(|| "nothing".to_owned(), Attribute::description);
            return Err(cx.error(None, format!("attribute 'value': expected a number, found {found}")));
        }
    };
    declared(cx, 0, &TensorType::new(element, cx.tensor(0)?.dims()))
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// Returns the result of verifying an operation with operands and results of these types.
    fn check(op: &str, operands: &[&str], attributes: &str, results: &[&str]) -> Result<(), String> {
        let arguments: Vec<_> =
            operands.iter().enumerate().map(|(index, ty)| format!("%a{index}: tensor<{ty}>")).collect();
        let names: Vec<_> = (0..operands.len()).map(|index| format!("%a{index}")).collect();
        let types =
            |types: &[&str]| types.iter().map(|ty| format!("tensor<{ty}>")).collect::<Vec<_>>().join(", ");
        let text = format!(
            "func.func @main({}) {{\n%0:{} = \"chlo.{op}\"({}) {{{attributes}}} : ({}) -> ({})\nreturn\n}}",
            arguments.join(", "),
            results.len(),
            names.join(", "),
            types(operands),
            types(results),
        );
        parse(text).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn operations_take_and_give_what_chlo_says() {
        let less = "comparison_direction = #chlo<comparison_direction LT>";
        for (op, operands, attributes, results) in [
            ("acos", &["3xf32"][..], "", &["3xf32"][..]),
            ("acos", &["3xcomplex<f32>"], "", &["?xcomplex<f32>"]),
            ("is_inf", &["3xf32"], "", &["3xi1"]),
            ("next_after", &["3xf32", "?xf32"], "", &["3xf32"]),
            ("mulhi", &["3xui8", "3xui8"], "", &["3xui8"]),
            ("broadcast_add", &["3x1xf32", "4xf32"], "", &["3x4xf32"]),
            ("broadcast_add", &["3xf32", "3x4xf32"], "broadcast_dimensions = array<i64: 0>", &["3x4xf32"]),
            ("broadcast_add", &["?xf32", "1xf32"], "", &["5xf32"]),
            ("broadcast_add", &["3xf32", "*xf32"], "", &["*xf32"]),
            ("broadcast_complex", &["3xf32", "f32"], "", &["3xcomplex<f32>"]),
            ("broadcast_compare", &["3xf32", "f32"], less, &["3xi1"]),
            ("broadcast_select", &["3xi1", "f32", "f32"], "", &["3xf32"]),
            ("top_k", &["2x10xf32"], "k = 4 : i64", &["2x4xf32", "2x4xi32"]),
            ("top_k", &["?xi32"], "k = 0 : i64", &["0xi32", "0xi32"]),
            ("constant", &[], "value = dense<1.0> : tensor<3xf32>", &["3xf32"]),
            ("constant_like", &["?xf32"], "value = 1 : i32", &["3xi32"]),
        ] {
            assert_eq!(check(op, operands, attributes, results), Ok(()), "{op}");
        }
        for (op, operands, attributes, results, message) in [
            (
                "acos",
                &["3xf32"][..],
                "",
                &["4xf32"][..],
                "result 0: expected tensor<3xf32>, found tensor<4xf32>",
            ),
            ("acos", &["3xi32"], "", &["3xi32"], "operand 0: expected floats or complex numbers"),
            ("is_inf", &["3xf32"], "", &["3xf32"], "result 0: expected tensor<3xi1>"),
            ("next_after", &["3xf32", "4xf32"], "", &["3xf32"], "operand 1: expected shape [3]"),
            ("mulhi", &["3xf32", "3xf32"], "", &["3xf32"], "operand 0: expected integers"),
            ("broadcast_add", &["3xf32"], "", &["3xf32"], "operands: expected 2 elements, found 1"),
            ("broadcast_add", &["3xf32", "f32"], "", &["4xf32"], "result 0: expected tensor<3xf32>"),
            ("broadcast_add", &["3xf32", "f64"], "", &["3xf32"], "operand 1: expected the element type of"),
            ("broadcast_add", &["3xf32", "4xf32"], "", &["4xf32"], "dimension 0: expected equal sizes"),
            (
                "broadcast_add",
                &["3xf32", "3x4xf32"],
                "broadcast_dimensions = array<i64: -1>",
                &["3x4xf32"],
                "broadcast_dimensions: expected a dimension from 0 to 1, found -1",
            ),
            ("broadcast_and", &["3xf32", "f32"], "", &["3xf32"], "operand 0: expected booleans or integers"),
            (
                "broadcast_compare",
                &["3xf32", "f32"],
                "",
                &["3xi1"],
                "the attribute 'comparison_direction' is missing",
            ),
            ("broadcast_select", &["3xi1", "f32", "f32"], "", &["f32"], "result 0: expected tensor<3xf32>"),
            ("top_k", &["10xf32"], "k = 11 : i64", &["11xf32", "11xi32"], "expected a number from 0 to 10"),
            ("top_k", &["10xf32"], "k = 4 : i64", &["5xf32", "4xi32"], "result 0: expected tensor<4xf32>"),
            ("top_k", &["10xf32"], "k = 4 : i32", &["4xf32", "4xi32"], "expected an integer of type i64"),
            ("top_k", &["?xf32"], "k = 9223372036854775807 : i64", &["4xf32", "4xi32"], "result 0: expected"),
            (
                "constant",
                &[],
                "value = dense<1.0> : tensor<3xf32>",
                &["4xf32"],
                "result 0: expected tensor<3xf32>",
            ),
            ("constant_like", &["3xf32"], "value = 1 : i32", &["3xf32"], "result 0: expected tensor<3xi32>"),
        ] {
            let error = check(op, operands, attributes, results).unwrap_err();
            assert!(error.contains(message), "{op}: {error}");
        }
    }

    #[test]
    fn operations_have_no_regions_and_no_properties_of_others() {
        let read = |middle: &str| {
            let text = format!(
                "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n\
                 %0 = \"chlo.erf\"(%a) {middle} : (tensor<4xf32>) -> tensor<4xf32>\n\
                 return %0 : tensor<4xf32>\n}}"
            );
            parse(text).map(|_| ()).map_err(|error| error.to_string())
        };
        // Hosts may add discardable attributes to the dictionary.
        assert_eq!(read("{dimension = 0 : i64, x.y = 1}"), Ok(()));
        let region = "({\n^bb0(%x: tensor<f32>):\nstablehlo.return %x : tensor<f32>\n})";
        let error = read(region).unwrap_err();
        assert!(error.contains("regions: expected 0 elements, found 1"), "{error}");
        let error = read("<{dimension = 0 : i64}>").unwrap_err();
        assert!(error.contains("unknown attribute 'dimension'"), "{error}");
    }

    #[test]
    fn sizes_of_groups_are_integers() {
        for (sizes, fits) in [("i32", true), ("ui8", true), ("f32", false), ("i1", false)] {
            let text = format!(
                "func.func @main(%a: tensor<8x4xf32>, %b: tensor<3x4x5xf32>, %g: tensor<3x{sizes}>) {{\n\
                 %0 = \"chlo.ragged_dot\"(%a, %b, %g) {{ragged_dot_dimension_numbers = #chlo.ragged_dot<\
                 lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], \
                 rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}} : \
                 (tensor<8x4xf32>, tensor<3x4x5xf32>, tensor<3x{sizes}>) -> tensor<8x5xf32>\nreturn\n}}"
            );
            let error = parse(text).err().map(|error| error.to_string());
            assert_eq!(error.is_none(), fits, "{sizes}: {error:?}");
            assert!(
                error.is_none_or(|error| error.contains("operand 2: expected integer group sizes")),
                "{sizes}"
            );
        }
    }
}
