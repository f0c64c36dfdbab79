"""The conditions of rules: functions that take a disagreement and return whether the condition holds."""

import re

import ml_dtypes
import numpy as np
from arrays import COMPLEX, FLOATS, difference, precision


# Operations whose regions or functions may have any other in them.
CONTROL = "call|case|composite|if|map|while"
# Operations that compute their results in several steps.
REGIONS = "reduce|reduce_window|scatter|select_and_scatter|dot|dot_general|einsum|unary_einsum|convolution|dynamic_conv"


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


def is_half_turn_or_pole(disagreement):
    """Complex angles that differ are half a turn to either side, or have an imaginary part that is an infinity on refcpu and a part
    that is NaN on the anchor.
    """
    for found, expected, _, mask in disagreement.results:
        wrong = mask.reshape(-1, 2).any(axis=1)
        (side, depth), (other, other_depth) = (values.reshape(-1, 2)[wrong].astype(float).T for values in (found, expected))
        is_pole = np.isinf(depth) & (np.isnan(other) | np.isnan(other_depth))
        agrees = np.isclose(depth, other_depth, rtol=1e-5, atol=1e-6)
        is_half_turn = np.isclose(np.abs(side), np.pi, rtol=1e-6) & np.isclose(side, -other, rtol=1e-6)
        if not (is_pole | agrees & is_half_turn).all():
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
