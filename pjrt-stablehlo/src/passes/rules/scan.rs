//! The rule for `chlo.scan`.

use crate::Error;
use crate::build::Builder;
use crate::formulas::scan::Scan;
use crate::ir::chlo_attributes as attributes;
use crate::ir::ops::Composite;
use crate::ir::{Attribute, DYNAMIC, Module, Op, Operation, ValueId};
use crate::passes::rewrite::{Rewriter, definite, mismatch, unsupported};

/// The name of the operation, and of the composites that represent it.
const NAME: &str = "chlo.scan";

/// Decomposes `chlo.scan` to a loop. For each index of a dimension, the operation's region takes the corresponding
/// slice of each input and the carries, and returns a slice of each output and the next carries.
///
/// The state of the loop consists of the index, the outputs as far as they have been written, and the carries.
pub(super) fn scan<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let operands = r.tensors(op)?;
    let carries = carry_count(op, &operands)?;
    let (inputs, initial) = operands.split_at(operands.len() - carries);
    let (inputs, initial) = (inputs.to_vec(), initial.to_vec());
    let outputs = op.results.len().checked_sub(carries).ok_or_else(|| mismatch(op))?;
    let dimension = usize::try_from(attributes::integer(op, "dimension")?).map_err(|_| mismatch(op))?;
    let is_reverse = attributes::boolean(op, "is_reverse")?;
    let count = match (attributes::get(op, "scan_dim_size").and_then(Attribute::as_i64), inputs.first()) {
        (_, Some(&input)) => r.b.dims(input).get(dimension).copied().ok_or_else(|| mismatch(op))?,
        (Some(count), None) => count,
        (None, None) => {
            return Err(unsupported("expected an input or the attribute 'scan_dim_size', found neither"));
        }
    };
    let mut output_types = Vec::new();
    for index in 0..outputs {
        let ty = r.nth_result(op, index)?;
        let mut dims = ty.dims().to_vec();
        match dims.get_mut(dimension) {
            // The sizes of the operands may be static where those of the results are dynamic.
            Some(size) if *size == DYNAMIC => *size = count,
            _ => {}
        }
        output_types.push(ty.with_dims(dims));
    }
    for ty in inputs.iter().map(|&input| r.b.tensor(input)).chain(output_types.iter().cloned()) {
        definite(&ty)?;
        if ty.dims().get(dimension) != Some(&count) {
            return Err(unsupported(format!("expected size {count} of dimension {dimension}, found {ty}")));
        }
    }

    let scan = Scan {
        dimension,
        steps: count,
        is_reverse,
        inputs: &inputs,
        initial: &initial,
        outputs: &output_types,
    };
    let step = scan.begin(&mut r.b);
    let (id, arguments, target) = (step.op, step.arguments.clone(), step.block);
    let end = move |b: &mut Builder, returned: Vec<ValueId>| step.end(b, &returned);
    r.inline_region(op, 0, arguments, target, Box::new(end))?;
    Ok(r.b.body.op(id).results.skip(1).collect())
}

/// Returns `true` if a composite is a scan whose attributes and region must be used in place of its decomposition: some
/// releases of XLA write decompositions that run forwards regardless of `is_reverse`.
///
/// # Errors
/// Returns an error if the scan runs backwards and has no region, unless the decomposition contains the scan itself.
pub(crate) fn overrides_decomposition(
    module: &Module,
    op: &Operation,
    composite: &Composite,
) -> Result<bool, Error> {
    if &*composite.name != NAME || !attributes::boolean(op, "is_reverse")? {
        return Ok(false);
    }
    if !op.regions.is_empty() {
        return Ok(true);
    }
    let function = module.function(&composite.decomposition);
    let is_scan = |op: &Operation| matches!(&op.kind, Op::Other(other) if &*other.name == NAME);
    match function.is_some_and(|function| function.body.all_ops().any(|(_, op)| is_scan(op))) {
        true => Ok(false),
        false => Err(unsupported(
            "a composite 'chlo.scan' with 'is_reverse' must have a region, because its decomposition runs forwards",
        )),
    }
}

/// Decomposes a composite for which [`overrides_decomposition`] returns `true`.
pub(crate) fn composite<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    crate::verify::check_scan(&r.context(op))?;
    scan(r, op)
}

/// Returns the number of initial carries, which are the last operands, according to `operandSegmentSizes`.
fn carry_count(op: &Operation, operands: &[ValueId]) -> Result<usize, Error> {
    let sizes = attributes::integers(op, "operandSegmentSizes")?;
    let sizes = sizes.or(attributes::integers(op, "operand_segment_sizes")?);
    match sizes.as_deref() {
        Some(&[inputs, carries])
            if inputs >= 0 && inputs.checked_add(carries) == Some(operands.len() as i64) =>
        {
            usize::try_from(carries).map_err(|_| mismatch(op))
        }
        _ => Err(unsupported(
            "expected the attribute 'operandSegmentSizes' with the numbers of inputs and carries",
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::{ElementType, TensorType};
    use crate::passes::{CoreOps, decompose, refine_shapes};

    /// Returns a composite as XLA's clients write it, with a decomposition that runs forwards.
    fn program(attributes: &str, region: &str, implementation: &str) -> String {
        format!(
            "func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {{
              %0:2 = stablehlo.composite \"chlo.scan\" %x, %i {region} {{composite_attributes = {{dimension = 0 : i64, \
               {attributes}operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}}, \
               decomposition = @impl, version = 1 : i32}} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
              return %0#0, %0#1 : tensor<4xf32>, tensor<f32>
            }}
            func.func private @impl(%x: tensor<4xf32>, %i: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {{
              {implementation}
            }}"
        )
    }

    const REGION: &str = "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s, %s : tensor<f32>, tensor<f32>\n})";

    /// A constant in place of the loop.
    const FORWARDS: &str = "return %x, %i : tensor<4xf32>, tensor<f32>";

    fn decomposed(text: &str) -> Result<String, String> {
        let module = crate::parse(text.to_owned()).unwrap();
        let decomposed = decompose(&module, &CoreOps::default()).map_err(|error| error.to_string())?;
        Ok(decomposed.to_string())
    }

    #[test]
    fn composites_run_backwards_whatever_their_decomposition_does() {
        let text = decomposed(&program("is_reverse = true, ", REGION, FORWARDS)).unwrap();
        assert!(text.contains("stablehlo.while") && text.contains("stablehlo.subtract"), "{text}");
        assert!(!text.contains("@impl"), "{text}");
        for forwards in ["", "is_reverse = false, "] {
            let text = decomposed(&program(forwards, REGION, FORWARDS)).unwrap();
            assert!(text.contains("@impl") && !text.contains("stablehlo.while"), "{text}");
        }
    }

    #[test]
    fn composites_that_run_backwards_without_a_region_need_the_scan_itself() {
        let error = decomposed(&program("is_reverse = true, ", "", FORWARDS)).unwrap_err();
        assert!(error.contains("must have a region"), "{error}");
        let scan = format!(
            "%0:2 = chlo.scan(%x) inits(%i) dimension=0 attributes {{is_reverse = true}} {} : \
             (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
             return %0#0, %0#1 : tensor<4xf32>, tensor<f32>",
            REGION.trim_start_matches('(').trim_end_matches(')')
        );
        let text = decomposed(&program("is_reverse = true, ", "", &scan)).unwrap();
        assert!(text.contains("stablehlo.subtract"), "{text}");
    }

    #[test]
    fn composites_run_backwards_once_their_sizes_are_known() {
        let text = program("is_reverse = true, ", REGION, FORWARDS).replace("4xf32", "?xf32");
        let module = crate::parse(text).unwrap();
        let arguments = [&[4][..], &[]].map(|dims| TensorType::new(ElementType::F32, dims).into());
        let refined = refine_shapes(&module, &arguments).unwrap().to_string();
        assert!(refined.contains("stablehlo.subtract") && !refined.contains("@impl"), "{refined}");
        assert!(refined.contains("-> (tensor<4xf32>, tensor<f32>)"), "{refined}");
    }

    #[test]
    fn attributes_of_other_kinds_are_refused() {
        for (wrong, found) in [
            ("is_reverse = 1 : i64, ", "is_reverse"),
            ("is_reverse = true, scan_dim_size = 3, ", "scan_dim_size"),
        ] {
            let error = decomposed(&program(wrong, REGION, FORWARDS)).unwrap_err();
            assert!(error.contains(found), "{error}");
            let operation = format!(
                "func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) {{
                 %0:2 = chlo.scan(%x) inits(%i) dimension=0 attributes {{{}}} {} : \
                 (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
                 return\n}}",
                wrong.trim_end_matches(", "),
                REGION.trim_start_matches('(').trim_end_matches(')')
            );
            let error = crate::parse(operation).unwrap_err();
            assert!(error.message.contains(found), "{error}");
        }
    }

    #[test]
    fn regions_that_do_not_fit_are_refused() {
        let region = REGION.replace("%s, %s : tensor<f32>, tensor<f32>", "%s : tensor<f32>");
        let error = decomposed(&program("is_reverse = true, ", &region, FORWARDS)).unwrap_err();
        assert!(error.contains("returned values of the region: expected 2 elements, found 1"), "{error}");
    }
}
