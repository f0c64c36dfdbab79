//! Limits the number of elements that a reduction combines one after another.

use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use super::sized::padded;
use crate::Error;
use crate::ir::ops::{DotGeneral, Reduce};
use crate::ir::{DotDimensionNumbers, Module, Op, Operation, Reducer, TensorType, Trait, Type, ValueId};

/// The greatest distance of a factor of a size from the wanted one. Without a factor, arrays are padded.
const MAX_DISTANCE: i64 = 4096;

/// The number of terms of a reduction is a multiple of this if possible. Compilers need not use vectors for others: IREE's sums
/// of 250 elements take four times as long as those of 200 or 400.
const LANES: i64 = 8;

/// Divides each `stablehlo.reduce` and `stablehlo.dot_general` whose results combine more than `max_terms` elements into
/// operations that combine at most so many, which are at least 2.
///
/// Devices that add one element after another lose accuracy with the number of terms: a sum of ones in `f32` ends at 2^24. Other
/// devices do not reduce more elements than their threads can address. A reduced dimension is reshaped to two, and padded if its
/// size has no suitable factor:
///
/// ```
/// use pjrt_stablehlo::passes::split_reductions;
///
/// let text = "func.func @main(%x: tensor<1000000xf32>, %zero: tensor<f32>) -> tensor<f32> {
///     %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1000000xf32>, tensor<f32>) -> tensor<f32>
///     return %0 : tensor<f32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// let split = split_reductions(&module, 4096)?;
/// assert_eq!(split.op_counts()["stablehlo.reduce"], 2);
/// assert!(split.to_string().contains("tensor<1000x1000xf32>"));
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// Neighbors are combined first, so that a computation needs to be associative only, as StableHLO requires. The initial value of
/// a [`Reducer`] with an [identity](Reducer::identity) is combined once: the identity begins all other reductions. Other
/// computations, such as that of `argmax`, begin each reduction with their initial values. StableHLO permits this: it leaves open
/// how often a result contains the initial values, and where.
///
/// The terms of `dot_general` are divided into groups, which become batching dimensions, and the sums of the groups are added.
/// Each sum has the type of the result.
///
/// These operations do not change: those of dynamic sizes or quantized types, a `reduce` whose computation is not elementwise,
/// and a `dot_general` whose elements are not floats, or whose sums would be more than the elements of both operands.
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies.
pub fn split_reductions(module: &Module, max_terms: usize) -> Result<Module, Error> {
    crate::verify(module)?;
    let pass = SplitReductions { max_terms: i64::try_from(max_terms).unwrap_or(i64::MAX).max(2) };
    let split = rewrite(module, &pass, |_| true, &mut Origins::default())?;
    crate::verify(&split)?;
    Ok(split)
}

struct SplitReductions {
    max_terms: i64,
}

/// The reduction that combines the elements along a dimension.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    None,
    /// The next one.
    Next,
    /// One of those after it.
    Later,
}

/// A size, and the reduction of the dimension.
type Dimension = (i64, Along);

/// The arrays of a reduction.
struct Reduction<'m> {
    /// The `reduce` with the computation, or `None` for a sum.
    op: Option<&'m Operation>,
    inputs: Vec<ValueId>,
    /// The initial values of the last reduction.
    initial: Vec<ValueId>,
    /// Those of the others, and the padding.
    neutral: Vec<ValueId>,
    /// The types of the results.
    results: Vec<TensorType>,
    /// The dimensions of the inputs, of which the last reduction reduces all that it can.
    dimensions: Vec<Dimension>,
}

impl Pass for SplitReductions {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let split = match &op.kind {
            Op::Reduce(reduce) => self.reduce(r, op, reduce)?,
            Op::DotGeneral(dot) => self.dot_general(r, op, dot)?,
            _ => None,
        };
        Ok(split.map_or(Replacement::Copy, Replacement::Values))
    }
}

impl SplitReductions {
    /// Returns the results of a reduction of too many elements.
    fn reduce<'m>(
        &self,
        r: &mut Rewriter<'m>,
        op: &'m Operation,
        reduce: &Reduce,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        let count = op.results.len();
        let mut inputs = r.tensors(op)?;
        let initial = inputs.split_off(count);
        let results: Vec<TensorType> = (0..count).map(|at| r.nth_result(op, at)).collect::<Result<_, _>>()?;
        let types: Vec<TensorType> = inputs.iter().map(|&input| r.b.tensor(input)).collect();
        let is_alike =
            |(input, &initial): (&TensorType, &ValueId)| input.element_type() == r.b.element(initial);
        if !types.iter().chain(&results).all(is_plain)
            || !types.iter().zip(&initial).all(is_alike)
            || !is_elementwise(r, op)
        {
            return Ok(None);
        }
        let along =
            |at: usize| if reduce.dimensions.contains(&(at as i64)) { Along::Later } else { Along::None };
        let sizes = types[0].dims().iter().enumerate();
        let dimensions: Vec<Dimension> = sizes.map(|(at, &size)| (size, along(at))).collect();
        if terms(&dimensions) <= self.max_terms {
            return Ok(None);
        }
        let reducer = Reducer::of(r.old_body(), op.regions[0]).filter(|_| count == 1);
        let identity = reducer.and_then(|reducer| reducer.identity(types[0].element_type()));
        let neutral = identity.map_or_else(|| initial.clone(), |identity| vec![r.b.constant(identity)]);
        let reduction = Reduction { op: Some(op), inputs, initial, neutral, results, dimensions };
        self.divided(r, reduction).map(Some)
    }

    /// Returns the results of a reduction, computed by reductions of at most the maximum number of terms.
    fn divided<'m>(&self, r: &mut Rewriter<'m>, mut reduction: Reduction<'m>) -> Result<Vec<ValueId>, Error> {
        while terms(&reduction.dimensions) > self.max_terms {
            let wanted = even_terms(terms(&reduction.dimensions), self.max_terms);
            let parts = self.parts(&reduction.dimensions, wanted);
            for (input, &neutral) in reduction.inputs.iter_mut().zip(&reduction.neutral) {
                *input = reshaped(r, *input, neutral, &parts);
            }
            reduction.dimensions = parts.concat();
            reduction.combine(r, false)?;
        }
        for (_, along) in reduction.dimensions.iter_mut().filter(|(_, along)| *along == Along::Later) {
            *along = Along::Next;
        }
        reduction.combine(r, true)?;
        Ok(reduction.inputs)
    }

    /// Divides dimensions such that the next reduction has about the wanted number of terms, which are neighbors. Returns the one
    /// or two dimensions that each of them becomes.
    fn parts(&self, dimensions: &[Dimension], wanted: i64) -> Vec<Vec<Dimension>> {
        let mut parts: Vec<Vec<Dimension>> = dimensions.iter().map(|&dimension| vec![dimension]).collect();
        let mut taken = 1;
        for at in (0..dimensions.len()).rev().filter(|&at| dimensions[at].1 == Along::Later) {
            let size = dimensions[at].0;
            if size.saturating_mul(taken) <= self.max_terms {
                taken *= size;
                parts[at] = vec![(size, Along::Next)];
                if taken >= wanted {
                    break;
                }
                continue;
            }
            let count = factor_near(size, wanted / taken, self.max_terms / taken);
            if count > 1 {
                parts[at] = vec![(quotient_up(size, count), Along::Later), (count, Along::Next)];
            }
            break;
        }
        parts
    }

    /// Returns the result of a product with too many terms.
    fn dot_general(
        &self,
        r: &mut Rewriter<'_>,
        op: &Operation,
        dot: &DotGeneral,
    ) -> Result<Option<Vec<ValueId>>, Error> {
        let (operands, result) = (r.tensors(op)?, r.any_result(op)?);
        let types: Vec<TensorType> = operands.iter().map(|&operand| r.b.tensor(operand)).collect();
        let is_float = |ty: &TensorType| is_plain(ty) && ty.element_type().is_float();
        if !types.iter().chain([&result]).all(is_float) {
            return Ok(None);
        }
        let numbers = &dot.dot_dimension_numbers;
        let sizes = numbers.lhs_contracting_dimensions.iter().map(|&at| types[0].dims()[at as usize]);
        let contracted: Vec<Dimension> = sizes.map(|size| (size, Along::Later)).collect();
        if terms(&contracted) <= self.max_terms {
            return Ok(None);
        }
        // As few groups as possible, because their sums are stored.
        let groups = quotient_up(terms(&contracted), self.max_terms);
        let parts = self.parts(&contracted, quotient_up(terms(&contracted), groups));
        let groups: Vec<Dimension> =
            parts.concat().into_iter().filter(|(_, along)| *along == Along::Later).collect();
        let elements = |ty: &TensorType| ty.num_elements().unwrap_or(u64::MAX);
        let sums = elements(&result).saturating_mul(terms(&groups) as u64);
        if sums > elements(&types[0]).saturating_add(elements(&types[1])) {
            return Ok(None);
        }
        let sums = grouped_product(r, dot, [operands[0], operands[1]], &parts, &result);
        let (batch, free) = result.dims().split_at(numbers.lhs_batching_dimensions.len());
        let unreduced =
            |sizes: &[i64]| -> Vec<Dimension> { sizes.iter().map(|&size| (size, Along::None)).collect() };
        let dimensions = [unreduced(batch), groups, unreduced(free)].concat();
        let zero = r.b.zeros(result.with_dims([]));
        let reduction = Reduction {
            op: None,
            inputs: vec![sums],
            initial: vec![zero],
            neutral: vec![zero],
            results: vec![result],
            dimensions,
        };
        self.divided(r, reduction).map(Some)
    }
}

impl<'m> Reduction<'m> {
    /// Reduces the dimensions that are the next, after which the results are the inputs.
    fn combine(&mut self, r: &mut Rewriter<'m>, is_last: bool) -> Result<(), Error> {
        let places = (0..).zip(&self.dimensions);
        let reduced = places.filter(|(_, (_, along))| *along == Along::Next).map(|(at, _)| at).collect();
        self.dimensions.retain(|(_, along)| *along != Along::Next);
        let sizes: Vec<i64> = self.dimensions.iter().map(|(size, _)| *size).collect();
        // The computation may have a wider type than the first inputs.
        let initial = if is_last { &self.initial } else { &self.neutral }.iter().zip(&self.inputs);
        let initial: Vec<ValueId> =
            initial.map(|(&value, &input)| r.b.convert(value, r.b.element(input))).collect();
        let types: Vec<Type> = self.results.iter().map(|ty| ty.with_dims(&*sizes).into()).collect();
        let id = r.b.add_op(Reduce { dimensions: reduced }, &[&*self.inputs, &initial].concat(), types);
        let scalars = self.results.iter().chain(&self.results).map(|ty| Type::from(ty.with_dims([])));
        let outer = r.b.begin_region(id, scalars);
        let arguments = r.b.arguments();
        let returned = match self.op {
            Some(op) => r.apply_region(op, 0, &arguments)?,
            None => vec![r.b.add(arguments[0], arguments[1])],
        };
        r.b.end_region(outer, &returned);
        self.inputs = r.b.all_results(id);
        Ok(())
    }
}

/// Returns `true` if a type is neither dynamic nor quantized.
fn is_plain(ty: &TensorType) -> bool {
    ty.num_elements().is_some() && ty.quantization().is_none()
}

/// Returns `true` if the computation of a reduction consists of elementwise operations.
fn is_elementwise(r: &Rewriter<'_>, op: &Operation) -> bool {
    let body = r.old_body();
    let [block] = body.region(op.regions[0]).blocks[..] else { return false };
    body.block(block).ops.iter().all(|&id| {
        let info = body.op(id).info();
        info.has(Trait::Elementwise)
            || info.has(Trait::Terminator)
            || matches!(body.op(id).kind, Op::Constant(_) | Op::BitcastConvert(_))
    })
}

/// Returns the number of elements along the dimensions that are reduced later.
fn terms(dimensions: &[Dimension]) -> i64 {
    let later = dimensions.iter().filter(|(_, along)| *along == Along::Later);
    later.fold(1, |terms, (size, _)| size.saturating_mul(terms))
}

fn quotient_up(a: i64, b: i64) -> i64 {
    (a - 1) / b + 1
}

/// Returns the number of terms of each reduction if as few as possible have equally many, at most `max_terms`.
fn even_terms(terms: i64, max_terms: i64) -> i64 {
    let (mut reductions, mut capacity) = (1, max_terms);
    while capacity < terms {
        (reductions, capacity) = (reductions + 1, capacity.saturating_mul(max_terms));
    }
    let even = (terms as f64).powf(1.0 / f64::from(reductions)).ceil();
    (even as i64).clamp(2, max_terms)
}

/// Returns the factor of a size nearest to the wanted number, at most `limit`: one for vectors, or else any. Without a factor
/// nearby, returns another number.
fn factor_near(size: i64, wanted: i64, limit: i64) -> i64 {
    let distances = 0..=MAX_DISTANCE.min(wanted / 2);
    let candidates = distances.flat_map(|distance| [wanted - distance, wanted + distance]);
    let mut factors =
        candidates.filter(|factor| (2..=limit).contains(factor) && size % factor == 0).peekable();
    let any = factors.peek().copied();
    let for_vectors = factors.find(|factor| factor % LANES == 0);
    for_vectors.or(any).unwrap_or_else(|| match quotient_up(wanted, LANES) * LANES {
        whole if whole <= limit => whole,
        _ => wanted.min(limit),
    })
}

/// Gives an array the dimensions that each of its dimensions becomes.
fn reshaped(r: &mut Rewriter<'_>, x: ValueId, padding: ValueId, parts: &[Vec<Dimension>]) -> ValueId {
    let product = |parts: &Vec<Dimension>| {
        parts.iter().fold(1, |product: i64, (size, _)| product.saturating_mul(*size))
    };
    let has = r.b.dims(x);
    let high: Vec<i64> = parts.iter().zip(&has).map(|(parts, size)| product(parts) - size).collect();
    let x = match high.iter().all(|&high| high == 0) {
        true => x,
        false => {
            let padding = r.b.convert(padding, r.b.element(x));
            padded(&mut r.b, x, padding, vec![0; has.len()], high)
        }
    };
    let sizes: Vec<i64> = parts.iter().flatten().map(|(size, _)| *size).collect();
    r.b.reshape(x, &sizes)
}

/// Multiplies operands whose contracted dimensions are divided. The groups are the last batching dimensions.
fn grouped_product(
    r: &mut Rewriter<'_>,
    dot: &DotGeneral,
    operands: [ValueId; 2],
    parts: &[Vec<Dimension>],
    result: &TensorType,
) -> ValueId {
    let numbers = &dot.dot_dimension_numbers;
    let side = |r: &mut Rewriter<'_>, operand: ValueId, batching: &[i64], contracting: &[i64]| {
        let ty = r.b.tensor(operand);
        let mut divided: Vec<Vec<Dimension>> =
            ty.dims().iter().map(|&size| vec![(size, Along::None)]).collect();
        for (&at, parts) in contracting.iter().zip(parts) {
            divided[at as usize] = parts.clone();
        }
        let zero = r.b.zeros(ty.with_dims([]));
        let operand = reshaped(r, operand, zero, &divided);
        let batching = [places(&divided, batching, Along::None), places(&divided, contracting, Along::Later)];
        (operand, batching.concat().into(), places(&divided, contracting, Along::Next).into())
    };
    let (batching, contracting) = (&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions);
    let (lhs, lhs_batching_dimensions, lhs_contracting_dimensions) =
        side(r, operands[0], batching, contracting);
    let (batching, contracting) = (&numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions);
    let (rhs, rhs_batching_dimensions, rhs_contracting_dimensions) =
        side(r, operands[1], batching, contracting);
    let dot_dimension_numbers = DotDimensionNumbers {
        lhs_batching_dimensions,
        rhs_batching_dimensions,
        lhs_contracting_dimensions,
        rhs_contracting_dimensions,
    };
    let groups = parts.iter().flatten().filter(|(_, along)| *along == Along::Later).map(|(size, _)| *size);
    let (batch, free) = result.dims().split_at(numbers.lhs_batching_dimensions.len());
    let dims: Vec<i64> = batch.iter().copied().chain(groups).chain(free.iter().copied()).collect();
    let kind = Op::DotGeneral(Box::new(DotGeneral { dot_dimension_numbers, ..dot.clone() }));
    r.b.op_of_type(kind, &[lhs, rhs], result.with_dims(dims))
}

/// Returns the places, among the parts of all dimensions, of those parts of these dimensions that are reduced so.
fn places(divided: &[Vec<Dimension>], dimensions: &[i64], along: Along) -> Vec<i64> {
    let mut found = Vec::new();
    for &dimension in dimensions {
        let first = divided[..dimension as usize].iter().map(Vec::len).sum::<usize>() as i64;
        let parts = (first..).zip(&divided[dimension as usize]);
        found.extend(parts.filter(|(_, part)| part.1 == along).map(|(at, _)| at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, max_terms: usize) -> Module {
        let module = crate::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let split = split_reductions(&module, max_terms).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let again = split_reductions(&split, max_terms).unwrap();
        assert_eq!(again.to_string(), split.to_string(), "a second pass changes nothing");
        split
    }

    /// A reduction of an array of these sizes.
    fn reduce(ty: &str, dimensions: &str, result: &str, code: &str) -> String {
        let element = ty.rsplit('x').next().unwrap();
        format!(
            "func.func @main(%x: tensor<{ty}>, %y: tensor<{element}>) -> tensor<{result}> {{
                %0 = stablehlo.reduce(%x init: %y) applies stablehlo.{code} across dimensions = [{dimensions}]
                    : (tensor<{ty}>, tensor<{element}>) -> tensor<{result}>
                return %0 : tensor<{result}>
            }}"
        )
    }

    /// A product of arrays of these types.
    fn dot(lhs: &str, rhs: &str, dimensions: &str, result: &str) -> String {
        format!(
            "func.func @main(%x: tensor<{lhs}>, %y: tensor<{rhs}>) -> tensor<{result}> {{
                %0 = stablehlo.dot_general %x, %y, {dimensions}, precision = [HIGH, HIGHEST]
                    : (tensor<{lhs}>, tensor<{rhs}>) -> tensor<{result}>
                return %0 : tensor<{result}>
            }}"
        )
    }

    /// Returns the types of all operands and of the first result of the operations with this name.
    fn types(module: &Module, name: &str) -> Vec<String> {
        let main = module.main().unwrap();
        let ops = main.ops().filter(|(_, op)| op.kind.name() == name);
        let ty = |value: ValueId| main.body.ty(value).to_string().replace("tensor", "");
        ops.map(|(_, op)| {
            let operands: Vec<String> = op.operands.iter().map(|&operand| ty(operand)).collect();
            format!("{} -> {}", operands.join(" "), ty(op.results.get(0).unwrap()))
        })
        .collect()
    }

    #[test]
    fn reductions_are_divided_evenly() {
        for (ty, dimensions, result, max_terms, expected) in [
            ("100xf32", "0", "f32", 100, &["<100xf32> <f32> -> <f32>"][..]),
            ("100xf32", "0", "f32", 99, &["<10x10xf32> <f32> -> <10xf32>", "<10xf32> <f32> -> <f32>"]),
            // No number of terms divides the size.
            ("101xf32", "0", "f32", 99, &["<7x16xf32> <f32> -> <7xf32>", "<7xf32> <f32> -> <f32>"]),
            // 10 and 12 are nearer to the square root, but no multiples of 8.
            ("120xf32", "0", "f32", 99, &["<15x8xf32> <f32> -> <15xf32>", "<15xf32> <f32> -> <f32>"]),
            (
                "125xf32",
                "0",
                "f32",
                6,
                &["<25x5xf32> <f32> -> <25xf32>", "<5x5xf32> <f32> -> <5xf32>", "<5xf32> <f32> -> <f32>"],
            ),
            (
                "2x36x3xbf16",
                "1",
                "2x3xbf16",
                8,
                &["<2x6x6x3xbf16> <bf16> -> <2x6x3xbf16>", "<2x6x3xbf16> <bf16> -> <2x3xbf16>"],
            ),
            (
                "10x7x10xi32",
                "2, 0",
                "7xi32",
                20,
                &["<10x7x10xi32> <i32> -> <10x7xi32>", "<10x7xi32> <i32> -> <7xi32>"],
            ),
            ("32x2xf32", "0, 1", "f32", 8, &["<8x4x2xf32> <f32> -> <8xf32>", "<8xf32> <f32> -> <f32>"]),
            ("0x100xf32", "0, 1", "f32", 8, &["<0x100xf32> <f32> -> <f32>"]),
        ] {
            let module = split(&reduce(ty, dimensions, result, "add"), max_terms);
            assert_eq!(types(&module, "stablehlo.reduce"), expected, "{module}");
        }
    }

    #[test]
    fn the_initial_value_is_combined_once() {
        let module = split(&reduce("101xf32", "0", "f32", "maximum"), 20);
        let main = module.main().unwrap();
        let initial = main.body.block(main.body.entry().unwrap()).arguments[1];
        let uses = main.ops().filter(|(_, op)| op.operands.contains(&initial));
        assert_eq!(uses.count(), 1, "{module}");
        assert!(module.to_string().contains("dense<0xFF800000>"), "{module}");
    }

    #[test]
    fn other_computations_begin_each_reduction_with_the_initial_values() {
        let text = "func.func @main(%x: tensor<101xf32>, %i: tensor<101xi32>, %a: tensor<f32>, %b: tensor<i32>) -> tensor<i32> {
            %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
                : (tensor<101xf32>, tensor<101xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
                reducer(%p: tensor<f32>, %q: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>) {
                    %1 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    %2 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
                    %3 = stablehlo.select %1, %k, %l : tensor<i1>, tensor<i32>
                    stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
                }
            return %0#1 : tensor<i32>
        }";
        let module = split(text, 20);
        let expected =
            ["<7x16xf32> <7x16xi32> <f32> <i32> -> <7xf32>", "<7xf32> <7xi32> <f32> <i32> -> <f32>"];
        assert_eq!(types(&module, "stablehlo.reduce"), expected, "{module}");
        let padded = ["<101xf32> <f32> -> <112xf32>", "<101xi32> <i32> -> <112xi32>"];
        assert_eq!(types(&module, "stablehlo.pad"), padded, "{module}");
        assert_eq!(module.op_counts().get("stablehlo.constant"), None, "{module}");
    }

    #[test]
    fn computations_in_wider_types_continue_in_them() {
        let text = "func.func @main(%x: tensor<64xf16>, %y: tensor<f16>) -> tensor<f32> {
            %0 = stablehlo.reduce(%x init: %y) across dimensions = [0] : (tensor<64xf16>, tensor<f16>) -> tensor<f32>
                reducer(%a: tensor<f32>, %b: tensor<f32>) {
                    %1 = stablehlo.add %a, %b : tensor<f32>
                    stablehlo.return %1 : tensor<f32>
                }
            return %0 : tensor<f32>
        }";
        let expected = ["<8x8xf16> <f16> -> <8xf32>", "<8xf32> <f32> -> <f32>"];
        assert_eq!(types(&split(text, 8), "stablehlo.reduce"), expected);
    }

    #[test]
    fn products_are_sums_of_products_of_as_many_terms_as_possible() {
        for (lhs, rhs, dimensions, result, expected, reductions) in [
            (
                "100xf32",
                "100xf32",
                "contracting_dims = [0] x [0]",
                "f32",
                "<5x20xf32> <5x20xf32> -> <5xf32>",
                1,
            ),
            // The groups do not divide the size, and their sums are themselves divided.
            (
                "907xbf16",
                "907xbf16",
                "contracting_dims = [0] x [0]",
                "f32",
                "<46x20xbf16> <46x20xbf16> -> <46xf32>",
                2,
            ),
            (
                "2x3x40xf32",
                "40x5x2xf32",
                "batching_dims = [0] x [2], contracting_dims = [2] x [0]",
                "2x3x5xf32",
                "<2x3x2x20xf32> <2x20x5x2xf32> -> <2x2x3x5xf32>",
                1,
            ),
            (
                "30x3x10xf32",
                "10x4x30xf32",
                "contracting_dims = [0, 2] x [2, 0]",
                "3x4xf32",
                "<15x2x3x10xf32> <10x4x15x2xf32> -> <15x3x4xf32>",
                1,
            ),
        ] {
            let module = split(&dot(lhs, rhs, dimensions, result), 20);
            assert_eq!(types(&module, "stablehlo.dot_general"), [expected], "{module}");
            assert_eq!(module.op_counts()["stablehlo.reduce"], reductions, "{module}");
            assert!(module.to_string().contains("HIGHEST"), "{module}");
        }
    }

    #[test]
    fn other_operations_are_not_changed() {
        let contracting = "contracting_dims = [1] x [0]";
        for text in [
            reduce("?xf32", "0", "f32", "add"),
            reduce("20xf32", "0", "f32", "add"),
            dot("4x20xf32", "20x4xf32", contracting, "4x4xf32"),
            dot("4x40xi32", "40x4xi32", contracting, "4x4xi32"),
            dot("4x?xf32", "?x4xf32", contracting, "4x4xf32"),
            // Two sums for each result would be more than the elements of both operands.
            dot("41x40xf32", "40x41xf32", contracting, "41x41xf32"),
        ] {
            let module = crate::parse(text).unwrap();
            assert_eq!(split_reductions(&module, 20).unwrap().to_string(), module.to_string());
        }
    }

    #[test]
    fn the_least_number_of_terms_is_two() {
        for max_terms in [0, 1, 2] {
            let module = split(&reduce("7xf32", "0", "f32", "add"), max_terms);
            assert_eq!(module.op_counts()["stablehlo.reduce"], 3, "{module}");
        }
    }

    #[test]
    fn sizes_without_bound_are_no_obstacle() {
        let sizes = [i64::MAX, 1 << 62, 999_999_999_999_989];
        for (size, max_terms) in
            sizes.into_iter().flat_map(|size| [(size, 2), (size, 4096), (size, usize::MAX)])
        {
            let text = reduce(&format!("{size}xi8"), "0", "i8", "add");
            let module = crate::parse(text).unwrap();
            let _ = split_reductions(&module, max_terms);
        }
    }
}
