"""The accepted disagreements: those where the anchor is wrong, or where the specification permits both results.

A rule is about one operation, which the driver runs alone, and one anchor. It consists of patterns of the operation's name and of
the element types of operands and results, a reason, and an optional condition (see `conditions.py`).
"""

import dataclasses
import re

import ml_dtypes
import numpy as np
from arrays import FLOATS
from conditions import (
    CONTROL,
    REGIONS,
    becomes_largest,
    cancels,
    exceeds_index_type,
    has_denormals,
    has_denormals_of_f16,
    has_extremes,
    have_parts,
    is_close,
    is_half_turn_or_pole,
    is_infinity_of_nan,
    is_nan_instead,
    is_nan_on_refcpu,
    is_not_finite,
    is_partly_infinite,
    is_partly_nan,
    is_quotient_by_zero,
    is_right,
    is_total_order,
    is_zero_as_operand,
    is_zero_instead,
    lacks_number,
    other_agrees,
    saturates,
    stays_a_number,
    sums,
    vanishes,
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
        "branch cuts and poles",
        "xla|interpreter",
        "atan2",
        ".*complex.*",
        "on the branch cut of the logarithm, no side is better; where the squares of both operands cancel, the angle is infinite, and the "
        "anchors are NaN",
        is_half_turn_or_pole,
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
