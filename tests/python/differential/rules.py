"""Differences that are known and accepted: where an anchor is not right, or nobody can say what is right.

A rule is about one operation on its own (the driver takes programs apart), against one anchor. It has the operation's name and
the element types of operands and results as patterns, at times a condition, and the reason. Conditions are functions of the
disagreement, below.
"""

import dataclasses
import re

import ml_dtypes
import numpy as np
from arrays import COMPLEX, FLOATS, difference, precision


# Operations whose regions or functions may have any other in them.
CONTROL = "call|case|composite|if|map|while"
# Operations that compute their results in several steps.
REGIONS = "reduce|reduce_window|scatter|select_and_scatter|dot|dot_general|einsum|unary_einsum|convolution|dynamic_conv"


@dataclasses.dataclass
class Disagreement:
    """A statement that gives something else on refcpu than on an anchor, from the same operands."""

    statement: dict
    anchor: str
    # (values, type) of each operand, and (values of refcpu, of the anchor, type, mask of wrong numbers) of each wrong result.
    operands: list
    results: list
    # The operations that the operands come from, if they are not the program's arguments.
    sources: tuple = ()
    # Whether the other anchor takes the operation and gives what refcpu does wherever this one does not.
    other_agrees: bool = False

    @property
    def types(self):
        """Element types of operands and results, as the rules' patterns see them: `f32,f32->i1`."""
        operands = ",".join(ty.element for _, ty in self.operands)
        return operands + "->" + ",".join(result[2].element for result in self.results)


def small(values, ty):
    """Which numbers are below the smallest normal one of their type, without being zero."""
    if ty.element not in FLOATS and ty.element not in COMPLEX:
        return np.zeros(values.shape, bool)
    # Its smallest number is a denormal one of f32, which it is computed with.
    normal = precision("f32" if ty.element == "f8E8M0FNU" else ty.element)[1]
    with np.errstate(all="ignore"):
        return (np.abs(values) < normal) & (values != 0)


def has_denormals(disagreement):
    """A denormal number is among the operands or the results that differ; or, with control flow, one that nearly is."""
    if re.fullmatch(CONTROL, disagreement.statement["op"].rpartition(".")[2]):
        for numbers, ty in disagreement.operands:
            if ty.element in FLOATS or ty.element in COMPLEX:
                with np.errstate(all="ignore"):
                    magnitude = np.abs(numbers)
                    if ((magnitude < 256 * precision(ty.element)[1]) & (magnitude > 0)).any():
                        return True
    operands = any(small(values, ty).any() for values, ty in disagreement.operands)
    return operands or any(
        small(found, ty).any() or small(expected, ty).any() for found, expected, ty, _ in disagreement.results
    )


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    anchor: str
    op: str
    types: str
    reason: str
    condition: object = None

    def accepts(self, disagreement):
        return (
            re.fullmatch(self.anchor, disagreement.anchor)
            and re.fullmatch(self.op, disagreement.statement["op"].rpartition(".")[2])
            and re.fullmatch(self.types, disagreement.types)
            and (self.condition is None or self.condition(disagreement))
        )


def sums(disagreement):
    """The results differ by no more than the rounding of intermediate sums, or an intermediate result was too large."""
    largest = 1.0
    for numbers, _ in disagreement.operands:
        finite = np.abs(np.asarray(numbers, np.float64))
        finite = finite[np.isfinite(finite)]
        largest *= max(float(finite.max(initial=0.0)), 1.0)
    terms = max((numbers.size for numbers, _ in disagreement.operands), default=1)
    for found, expected, ty, mask in disagreement.results:
        # Where the result is wider, the anchors' sums have the operands' type.
        types = {ty.element, disagreement.operands[0][1].element} & set(FLOATS)
        eps = max((precision(element)[0] for element in types), default=0.0)
        with np.errstate(all="ignore"):
            apart = np.abs(found - expected)[mask]
            overflows = ~np.isfinite(expected[mask]) | ~np.isfinite(found[mask])
            # Of sums, and of products.
            is_close = (apart <= eps * terms * largest) | (apart <= eps * terms * np.abs(expected[mask]))
            if not np.all(overflows | is_close):
                return False
    return True


def is_total_order(disagreement):
    return "TOTALORDER" in disagreement.statement["text"]


def has_extremes(disagreement):
    """Parts of complex operands are not finite, or products of them would not be."""
    for numbers, ty in disagreement.operands:
        part = COMPLEX.get(ty.element)
        if part:
            limit = {"f32": 1e15, "f64": 1e150}[part]
            with np.errstate(all="ignore"):
                if (~np.isfinite(numbers) | (np.abs(numbers) > limit) | ((np.abs(numbers) < 1 / limit))).any():
                    return True
    return False


def vanishes(disagreement):
    """All that differs is zero on refcpu and NaN on the anchor."""
    return all((found[mask] == 0).all() and np.isnan(expected[mask]).all() for found, expected, _, mask in disagreement.results)


def stays_a_number(disagreement):
    """All that differs is a number on refcpu and none on the anchor."""
    return all(
        np.isfinite(found[mask]).all() and not np.isfinite(expected[mask]).any() for found, expected, _, mask in disagreement.results
    )


def is_nan_instead(disagreement):
    """All that differs is NaN on the anchor alone."""
    return all(np.isnan(expected[mask]).all() and not np.isnan(found[mask]).any() for found, expected, _, mask in disagreement.results)


def is_zero_instead(disagreement):
    """All that differs is NaN on refcpu and zero on the anchor."""
    return all(np.isnan(found[mask]).all() and (expected[mask] == 0).all() for found, expected, _, mask in disagreement.results)


def cancels(disagreement):
    """The results differ by less than what rounding the product of the largest operands in f32 makes."""
    largest = [np.abs(numbers.astype(np.float64)).max(initial=0) for numbers, _ in disagreement.operands[:2]]
    bound = 4 * precision("f32")[0] * largest[0] * largest[1]
    return all(
        np.abs(found.astype(np.float64) - expected.astype(np.float64))[mask].max() <= bound for found, expected, _, mask in disagreement.results
    )


def is_nan_on_refcpu(disagreement):
    """All that differs is NaN on refcpu, as the operand is."""
    [(before, _)] = disagreement.operands
    return all(
        before.shape == mask.shape and np.isnan(found[mask]).all() and np.isnan(before[mask]).all()
        for found, _, _, mask in disagreement.results
    )


def saturates(disagreement):
    """All that differs is the largest or least integer on the anchor."""
    return all(np.isin(expected[mask], limits(ty)).all() for _, expected, ty, mask in disagreement.results)


def limits(ty):
    """The least and the largest integer of a type."""
    bits = int(ty.element.lstrip("ui"))
    return [0, 2**bits - 1] if ty.element.startswith("u") else [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]


def other_agrees(disagreement):
    return disagreement.other_agrees


def exceeds_index_type(disagreement):
    """An operand has more elements along some dimension than the type of the indices can count."""
    largest = max((max(ty.dims, default=0) for _, ty in disagreement.operands), default=0)
    limits = [np.iinfo(numbers.dtype).max for numbers, _ in disagreement.operands[1:] if numbers.dtype.kind in "iu"]
    return disagreement.other_agrees and bool(limits) and largest > min(limits)


# Complex functions in long double, with the branch cuts of ISO C, Annex G.
COMPLEX_FUNCTIONS = {
    "add": np.add,
    "cosine": np.cos,
    "divide": np.divide,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
    "multiply": np.multiply,
    "power": np.power,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sign": lambda z: np.where(z == 0, z, z / np.abs(z)),
    "sine": np.sin,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
}


def is_right(disagreement):
    """What differs is on refcpu what long double arithmetic gives."""
    function = COMPLEX_FUNCTIONS.get(disagreement.statement["op"].rpartition(".")[2])
    if function is None or any(ty.element not in COMPLEX for _, ty in disagreement.operands):
        return False
    wide = [complex_numbers(numbers) for numbers, _ in disagreement.operands]
    with np.errstate(all="ignore"):
        true = function(*wide)
        for found, _, ty, mask in disagreement.results:
            largest = np.finfo(np.float32 if COMPLEX[ty.element] == "f32" else np.float64).max
            exact = np.stack([true.real, true.imag], axis=-1)
            exact = np.where(np.abs(exact) > largest, np.copysign(np.inf, exact), exact).astype(np.float64)
            if difference(found, exact.ravel(), ty) is not None and (difference(found, exact.ravel(), ty) & mask).any():
                return False
    return True


def complex_numbers(parts):
    numbers = np.empty(parts.size // 2, np.clongdouble)
    numbers.real, numbers.imag = parts[0::2], parts[1::2]
    return numbers


def is_close(disagreement):
    """The results differ by what rounding sums in f32 makes of the largest of them."""
    for found, expected, _, mask in disagreement.results:
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        if np.abs(found - expected)[mask].max() > 4 * precision("f32")[0] * np.abs(expected).max():
            return False
    return True


def becomes_largest(disagreement):
    """What differs is an infinity before the operation, the largest number on refcpu, and zero on the anchor."""
    [(before, _)] = disagreement.operands
    return all(
        before.shape == mask.shape
        and np.isinf(before[mask]).all()
        and (np.abs(found[mask]) == np.abs(found).max()).all()
        and (expected[mask] == 0).all()
        for found, expected, _, mask in disagreement.results
    )


def has_denormals_of_f16(disagreement):
    """Among the operands is a number of f8E5M2 or f8E5M2FNUZ that is denormal in f16."""
    return any(
        ty.element.startswith("f8E5M2") and ((numbers != 0) & (np.abs(numbers) <= 2.0**-14)).any() for numbers, ty in disagreement.operands
    )


def is_quotient_by_zero(disagreement):
    """What differs has zero as its divisor; it is zero on the anchor and the largest number on refcpu."""
    (divisor, _) = disagreement.operands[1]
    return all(
        divisor.shape == mask.shape
        and (divisor[mask] == 0).all()
        and (np.abs(found[mask]) == float(ml_dtypes.finfo(FLOATS[ty.element]).max)).all()
        and (expected[mask] == 0).all()
        for found, expected, ty, mask in disagreement.results
    )


def is_zero_as_operand(disagreement):
    """What differs is zero on refcpu, as is the first operand there."""
    (before, _) = disagreement.operands[0]
    return all(
        before.shape == mask.shape and (before[mask] == 0).all() and (found[mask] == 0).all()
        for found, _, _, mask in disagreement.results
    )


def is_pole(disagreement):
    """What differs belongs to complex numbers whose imaginary part is an infinity on refcpu, and NaN or the same on the anchor."""
    for found, expected, _, mask in disagreement.results:
        wrong = mask.reshape(-1, 2).any(axis=1)
        imaginary, other = found.reshape(-1, 2)[wrong, 1], expected.reshape(-1, 2)[wrong]
        if not (np.isinf(imaginary).all() and np.isnan(other).any(axis=1).all()):
            return False
    return True


def is_partly_nan(disagreement):
    """Complex numbers that differ have a part that is NaN on both sides."""
    return have_parts(disagreement, np.isnan)


def is_partly_infinite(disagreement):
    """Complex numbers that differ have a part that is not finite on both sides."""
    return have_parts(disagreement, is_not_finite)


def is_not_finite(parts):
    return ~np.isfinite(parts)


def have_parts(disagreement, such, sides=(0, 1)):
    """Complex numbers that differ have such a part: on refcpu (0), on the anchor (1)."""
    for *values, _, mask in disagreement.results:
        wrong = mask.reshape(-1, 2).any(axis=1)
        if not all(such(values[side].reshape(-1, 2)[wrong]).any(axis=1).all() for side in sides):
            return False
    return True


def is_infinity_of_nan(disagreement):
    """What differs is an infinity on both sides, of NaN as the operand."""
    [(before, _)] = disagreement.operands
    return all(
        before.shape == mask.shape and np.isnan(before[mask]).all() and np.isinf(found[mask]).all() and np.isinf(expected[mask]).all()
        for found, expected, _, mask in disagreement.results
    )


def lacks_number(disagreement):
    """What differs is NaN on refcpu, for a number that the type lacks; or an operation on the way may have had such a result."""
    if re.fullmatch(f"{CONTROL}|{REGIONS}|batch_norm_\\w+", disagreement.statement["op"].rpartition(".")[2]):
        return True
    return all(ty.element == "f8E8M0FNU" and np.isnan(found[mask]).all() for found, _, ty, mask in disagreement.results)


NARROW_FLOATS = r"f(16|8\w+|6\w+|4\w+)|bf16"
TINY_FLOATS = r"f[46]E\w+"
RULES = [
    Rule(
        "denormals",
        "xla",
        ".*",
        ".*(f32|f64|bf16|f16|f8E8M0FNU).*",
        "XLA's CPU backend takes denormal numbers for zero; refcpu and the interpreter keep them",
        has_denormals,
    ),
    Rule(
        "powers of two",
        "interpreter",
        ".*",
        ".*f8E8M0FNU.*",
        "the type has neither zero nor a sign: refcpu and XLA give NaN for what it lacks, the interpreter the smallest or the absolute number",
        lacks_number,
    ),
    Rule(
        "powers of two, folded",
        "xla",
        ".*",
        ".*f8E8M0FNU.*",
        "XLA's constant folding gives the absolute number where the type lacks a negative one",
        lambda disagreement: "stablehlo.constant" in disagreement.sources and lacks_number(disagreement),
    ),
    Rule(
        "NaN among powers of two",
        "interpreter",
        "convert",
        "f8E8M0FNU->(bf16|f\\d+.*)",
        "the interpreter makes another number of the type's NaN",
        is_nan_on_refcpu,
    ),
    Rule(
        "powers of two, in between",
        "xla",
        CONTROL,
        ".*f8E8M0FNU.*",
        "XLA takes the smallest of these numbers, which is denormal in f32, for zero, which the type lacks; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "powers of two, in steps",
        "xla",
        "batch_norm_.*|cholesky|triangular_solve",
        ".*f8E8M0FNU.*",
        "the operation's intermediate results have signs, which are lost where they are rounded to the type",
    ),
    Rule(
        "rounding of tiny floats",
        "interpreter",
        f"ceil|floor|round_nearest_\\w+|divide|log|log_plus_one|power|remainder|rsqrt|tan|{CONTROL}",
        f".*({TINY_FLOATS}).*",
        "the interpreter rounds by adding a number that these types do not have, and has no rule for quotients by zero",
    ),
    Rule(
        "rounding in f8E3M4",
        "xla|interpreter",
        rf"ceil|floor|round_nearest_\w+|{CONTROL}",
        ".*->.*f8E3M4",
        "LLVM's numbers, which the interpreter and XLA's constant folding compute with, are rounded by adding 16, which the type does not have",
        is_nan_instead,
    ),
    Rule(
        "sums of narrow floats",
        "xla|interpreter",
        f"{REGIONS}|batch_norm_\\w+",
        f".*({NARROW_FLOATS}).*",
        "the specification leaves the order of sums open; refcpu rounds to the type at the end, the anchors after each step",
        sums,
    ),
    Rule(
        "systems of narrow floats",
        "xla|interpreter",
        "cholesky|triangular_solve",
        f".*({NARROW_FLOATS}).*",
        "refcpu computes in f32 and rounds the result, the anchors round after each step",
    ),
    Rule(
        "wider results",
        "interpreter",
        "convolution|dynamic_conv|dot_general",
        r"u?i(2|4|8|16)(,u?i\d+)*->u?i32",
        "the interpreter sums products in the operands' type and converts the sum; refcpu and XLA convert the operands",
    ),
    Rule(
        "quantized numbers of 32 bits",
        "xla|interpreter",
        ".*",
        r".*!quant\.uniform<i32:.*",
        "32 bits are more than f32 has, which the anchors convert to and back even to move elements, and in which all sides sum",
        is_close,
    ),
    Rule(
        "sums of quantized numbers of 32 bits",
        "xla|interpreter",
        "convolution|dynamic_conv|dot_general|dot",
        r".*!quant\.uniform<i32:.*",
        "products of the operands are larger than what is left of their sum, in f32, by more than its digits",
        cancels,
    ),
    Rule(
        "functions of quantized numbers",
        "xla|interpreter",
        "atan2|batch_norm_\\w+|cbrt|cosine|divide|exponential|exponential_minus_one|log|log_plus_one|logistic|power|rsqrt|sine|sqrt|tan|tanh",
        ".*!quant.*",
        "a value nearly half way between two quantized numbers falls on either side with an error of f32's last place",
        lambda disagreement: all(
            (np.abs(found.astype(np.int64) - expected)[mask] == 1).all() for found, expected, _, mask in disagreement.results
        ),
    ),
    Rule(
        "windows with padding",
        "xla",
        "reduce_window",
        ".*!quant.*",
        "XLA leaves padding out of windows, though the initial value is not neutral; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "windows partly outside",
        "interpreter",
        "scatter",
        ".*",
        "the interpreter writes the part of a window that lies within the operand; XLA and refcpu leave it out as a whole",
        lambda disagreement: disagreement.other_agrees and "update_window_dims = []" not in disagreement.statement["text"],
    ),
    Rule(
        "narrow indices",
        "xla",
        "dynamic_slice|dynamic_update_slice|gather|scatter|dynamic_gather",
        ".*",
        "XLA clamps indices in their own type, in which the bound is another number; the interpreter agrees with refcpu",
        exceeds_index_type,
    ),
    Rule(
        "inverse real transforms",
        "interpreter",
        "fft",
        r"complex<f\d\d>->f\d\d",
        "the interpreter leaves out the second half of the spectrum; XLA agrees with refcpu",
        lambda disagreement: "IRFFT" in disagreement.statement["text"] and disagreement.other_agrees,
    ),
    Rule(
        "bits of narrow elements",
        "xla",
        "bitcast_convert",
        f".*({TINY_FLOATS}|u?i[24]\\b).*",
        "XLA's constant folding takes each element of these types for a byte; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "precision of 8-bit floats",
        "xla",
        "reduce_precision",
        r"f8\w+->f8\w+",
        "XLA's CPU backend computes in f16, whose exponents reach further than those of the type: as many exponent bits as the type has "
        "take numbers away, and its denormal numbers have too many bits; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "counting beyond the type",
        "xla",
        "iota|dynamic_iota",
        r".*->f8\w+",
        "XLA's CPU backend makes another number of one that is too large for the type; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "NaN without a mantissa",
        "xla|interpreter",
        "reduce_precision",
        ".*",
        "NaN is an infinity where the precision has no mantissa, on refcpu of NaN's sign, which the anchors' conversions lose",
        is_infinity_of_nan,
    ),
    Rule(
        "NaN of a type without zero",
        "interpreter",
        "convert",
        "f8E8M0FNU->complex.*",
        "the interpreter makes an infinity of this type's NaN; XLA agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "overflow of 8-bit floats",
        "xla",
        f"add|subtract|multiply|{REGIONS}",
        r".*->f8E4M3FN",
        "this type has no infinity: XLA's CPU backend makes -0 of a number that is too large; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and is_zero_instead(disagreement),
    ),
    Rule(
        "infinities as tiny floats",
        "interpreter",
        "convert",
        f".*->({TINY_FLOATS})",
        "these types have no infinity: refcpu gives the largest number, as ml_dtypes does, the interpreter zero",
        becomes_largest,
    ),
    Rule(
        "total order",
        "interpreter",
        f"compare|sort|{CONTROL}",
        ".*",
        "the interpreter compares like FLOAT where TOTALORDER is asked for",
        is_total_order,
    ),
    Rule(
        "convolutions, folded",
        "xla",
        "convolution|dynamic_conv",
        r"u?i\d+,.*->u?i\d+",
        "XLA's constant folding sums products of integers as floats, which are too large",
        lambda disagreement: "stablehlo.constant" in disagreement.sources and saturates(disagreement),
    ),
    Rule(
        "total order, folded",
        "xla",
        f"compare|sort|{CONTROL}",
        ".*",
        "XLA's constant folding compares like FLOAT where TOTALORDER is asked for",
        lambda disagreement: is_total_order(disagreement) and bool(disagreement.sources),
    ),
    Rule(
        "overflow of reduce_precision",
        "interpreter",
        "reduce_precision",
        ".*(FNUZ|FN)",
        "what is too large for the precision is an infinity, which these types do not have: NaN",
    ),
    Rule(
        "complex functions",
        "interpreter",
        ".*",
        ".*complex.*",
        "the interpreter computes them from formulas whose intermediate results overflow or are not numbers",
        has_extremes,
    ),
    Rule(
        "complex functions that lose digits",
        "xla|interpreter",
        ".*",
        ".*complex.*",
        "formulas with intermediate results that cancel or overflow; refcpu has the value of long double arithmetic",
        is_right,
    ),
    Rule(
        "branch cuts",
        "xla|interpreter",
        "atan2",
        ".*complex.*",
        "a complex angle of zero and a number is on the branch cut of the logarithm, where no side is better",
        lambda disagreement: all((numbers == 0).any() for numbers, _ in disagreement.operands[:1]),
    ),
    Rule(
        "poles",
        "xla|interpreter",
        "atan2",
        ".*complex.*",
        "where the squares of both operands cancel, a complex angle is infinite, and the anchors are NaN",
        is_pole,
    ),
    Rule(
        "negative zero",
        "xla",
        ".*",
        ".*FNUZ",
        "these types have no negative zero: XLA makes the NaN with its bits of negative numbers that are too small",
        vanishes,
    ),
    Rule(
        "negative zero in between",
        "xla",
        f"{CONTROL}|{REGIONS}",
        ".*FNUZ.*",
        "the same of an operation on the way; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and is_nan_instead(disagreement),
    ),
    Rule(
        "precision without zero",
        "interpreter",
        "reduce_precision",
        "f8E8M0FNU->f8E8M0FNU",
        "what is too small for the precision is zero, which this type does not have: NaN; XLA agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "complex numbers that grew",
        "xla|interpreter",
        CONTROL,
        r".*->complex<f\d\d>(,complex<f\d\d>)*",
        "functions of complex numbers, one after the other, that have become infinite: of which parts, and of which signs, depends on "
        "an angle that has lost all digits",
        is_partly_infinite,
    ),
    Rule(
        "complex numbers that lost digits",
        "xla",
        CONTROL,
        r".*->complex<f\d\d>(,complex<f\d\d>)*",
        "functions of complex numbers, one after the other, of which XLA's formulas lose more; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "factors that are not numbers",
        "xla|interpreter",
        "cholesky",
        r".*->complex<f\d\d>",
        "a matrix that has no factor gives NaN, in both parts on refcpu",
        is_partly_nan,
    ),
    Rule(
        "infinities in between",
        "interpreter",
        "logistic",
        r".*f8\w+(FN|FNUZ)",
        "the exponential in the interpreter's formula overflows to NaN where the type has no infinity",
        stays_a_number,
    ),
    Rule(
        "overflow in between",
        "interpreter",
        "logistic",
        ".*->(f8E3M4|f16)",
        "the exponential in the interpreter's formula is an infinity beyond the largest number, the quotient zero",
        lambda disagreement: all(
            (np.abs(found[mask]) <= 1 / float(ml_dtypes.finfo(FLOATS[ty.element]).max)).all() and (expected[mask] == 0).all()
            for found, expected, ty, mask in disagreement.results
        ),
    ),
    Rule(
        "random floats",
        "xla",
        "rng_bit_generator",
        r".*(\bf\d|bf16).*",
        "the specification does not say what random bits are as floats: XLA converts integers, refcpu takes the bits",
    ),
    Rule(
        "sums of truth values",
        "xla",
        "add",
        "(i1(,i1)?)?->i1",
        "XLA's constant folding adds bits, the specification's sum is a disjunction; the interpreter agrees with refcpu",
    ),
    Rule(
        "powers of integers",
        "xla",
        "power",
        r"u?i\d+.*->.*",
        "XLA's CPU backend does not raise to powers of as many bits as the type has; the interpreter agrees with refcpu",
    ),
    Rule(
        "powers of zero",
        "xla",
        "power",
        "complex.*",
        "XLA's CPU backend multiplies the logarithm of zero, an infinity, with the exponent; powers of zero are zero",
        lambda disagreement: is_nan_instead(disagreement) and is_zero_as_operand(disagreement),
    ),
    Rule(
        "bits of narrow integers",
        "xla",
        "popcnt|count_leading_zeros",
        r"i\d+->.*",
        "XLA's constant folding and its narrow integers count bits of the sign-extended number",
    ),
    Rule(
        "random narrow integers",
        "xla",
        "rng_bit_generator",
        r".*->(i64,|ui64,|ui32,)*i[24]",
        "XLA's narrow integers are not extended by their sign before they are widened: the bits are the same",
        lambda disagreement: all(
            ((found[mask] - expected[mask]) % 2 ** int(ty.element[1:]) == 0).all() for found, expected, ty, mask in disagreement.results
        ),
    ),
    Rule(
        "two bits, sorted",
        "xla",
        "sort",
        ".*i2.*",
        "XLA's CPU backend sorts 2-bit integers wrongly; the interpreter agrees with refcpu",
    ),
    Rule(
        "two bits, scattered",
        "xla",
        "scatter",
        ".*i2.*",
        "XLA's CPU backend combines 2-bit integers wrongly; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "complex infinities",
        "xla",
        ".*",
        r".*->complex<f\d\d>(,complex<f\d\d>)*",
        "XLA's formulas are not numbers, or infinite, where parts are infinite or large; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and have_parts(disagreement, is_not_finite, sides=(1,)),
    ),
    Rule(
        "products of complex numbers that overflow",
        "xla|interpreter",
        REGIONS,
        r"complex.*->complex<f\d\d>(,complex<f\d\d>)*",
        "the specification leaves the order of reductions open, and with it which part is the first to be infinite, and NaN next",
        is_partly_infinite,
    ),
    Rule(
        "quotients by zero, folded",
        "xla",
        "divide",
        f".*({TINY_FLOATS}).*",
        "these types have no infinity: refcpu, and XLA where the operands are arguments, give the largest number, XLA's constant folding zero",
        lambda disagreement: bool(disagreement.sources) and is_quotient_by_zero(disagreement),
    ),
    Rule(
        "squares that overflow",
        "xla",
        f"abs|{CONTROL}",
        r".*->i\d+(,u?i\d+)*",
        "XLA takes the square of an integer for positive; the interpreter agrees with refcpu",
        other_agrees,
    ),
    Rule(
        "infinities in between, simplified",
        "xla",
        CONTROL,
        r".*->f\d\d(,f\d\d)*",
        "XLA's simplifications reorder sums and products of numbers near the largest, which overflow then; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and all(np.isinf(expected[mask]).all() for _, expected, _, mask in disagreement.results),
    ),
    Rule(
        "moduli near the largest number",
        "xla",
        "abs",
        r"complex<f\d\d>->f\d\d",
        "XLA's formula rounds to the largest number what the interpreter and refcpu round to infinity",
        lambda disagreement: disagreement.other_agrees and all(np.isinf(found[mask]).all() for found, _, _, mask in disagreement.results),
    ),
    Rule(
        "denormal numbers of f16, sorted",
        "xla",
        "sort",
        r".*\bf8E5M2.*",
        "XLA's CPU backend compares in f16, in which the smallest numbers of these types are denormal",
        has_denormals_of_f16,
    ),
    Rule(
        "indices without components",
        "xla",
        "scatter",
        ".*",
        "XLA leaves out updates whose index has no components, which all go to the same window; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and any(0 in ty.dims for _, ty in disagreement.operands),
    ),
    Rule(
        "selections, folded",
        "xla",
        "select_and_scatter",
        r"u?i\d+,.*->u?i\d+",
        "XLA's constant folding; the interpreter agrees with refcpu, and XLA does where the operands are arguments",
        lambda disagreement: disagreement.other_agrees and bool(disagreement.sources),
    ),
    Rule(
        "denormal numbers of f16",
        "xla",
        ".*",
        r".*->f8\w+",
        "XLA's CPU backend computes in f16, of which the smallest numbers of these types are denormal; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees
        and all((np.abs(expected[mask]) <= 2.0**-14).all() for _, expected, _, mask in disagreement.results),
    ),
    Rule(
        "denormal numbers of f16 in between",
        "xla",
        CONTROL,
        r".*f8E5M2.*",
        "the same of an operation on the way; the interpreter agrees with refcpu",
        lambda disagreement: disagreement.other_agrees and has_denormals_of_f16(disagreement),
    ),
]


def accepting(disagreement):
    return next((rule for rule in RULES if rule.accepts(disagreement)), None)
