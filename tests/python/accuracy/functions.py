"""The functions that are measured, and their true values.

True values of numbers of 32 bits and fewer are computed in f64, those of f64 in the processor's or the C library's long
double (64 bits of mantissa or more), and what NumPy or SciPy lack or have with too few digits by Arb with 128 bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import flint
import numpy as np
import scipy.special

from . import points
from .ulps import exact_type, real_type

flint.ctx.prec = 128


@dataclass
class Function:
    """A function of `operands` numbers: its name and its operation.

    `true` gets arrays of `exact_type`. `slow` ones are measured at fewer points. `points` makes pairs of operands.
    """

    name: str
    op: str
    true: Callable
    operands: int = 1
    slow: bool = False
    points: Callable = points.pairs
    real_result: bool = False


def arb(real: Callable, special: Callable) -> Callable:
    """A function by Arb. What it cannot say (at infinities, NaN, poles and zeros) `special` says in f64."""

    def true(*operands):
        with np.errstate(all="ignore"):
            limit = np.asarray(special(*(x.astype(np.float64) for x in operands)), np.float64)
        out = limit.astype(operands[0].dtype)
        # Poles that are numbers of a type are whole; elsewhere SciPy may have run out of digits or range.
        whole = operands[-1] == np.rint(operands[-1])
        usable = np.isfinite(limit) | ~whole
        for x in operands:
            usable &= np.isfinite(x)
        for i in np.flatnonzero(usable):
            value = evaluated(real, [flint.arb(float(x[i])) for x in operands])
            # A zero has SciPy's sign, unless it is a number too small for f64.
            if value is not None and not (limit[i] == 0 and value.contains(0)):
                out[i] = number(value, out.dtype)
        return out

    return true


def evaluated(function: Callable, operands) -> flint.arb | flint.acb | None:
    """The value by Arb with 80 right bits at least; None where it has no finite one."""
    for bits in (128, 256, 1024, 4096):
        with flint.ctx.workprec(bits):
            value = function(*operands)
            parts = (value.real, value.imag) if isinstance(value, flint.acb) else (value,)
            if all(part.is_finite() and part.rel_accuracy_bits() > 80 for part in parts):
                return value
    return value if value.is_finite() else None


def number(value: flint.arb, dtype: np.dtype):
    """An Arb number as a floating-point number of `dtype`: beyond its range, its largest or smallest."""
    high = float(value)
    info = np.finfo(dtype)
    if np.isinf(high):
        return np.copysign(info.max, high)
    if high == 0 and not value.is_zero():
        return info.smallest_subnormal if value > 0 else -info.smallest_subnormal
    return dtype.type(high) + dtype.type(float(value - flint.arb(high)))


def real_part(function: Callable) -> Callable:
    """A real function by way of Arb's complex one, which has values left of the poles."""
    return lambda *operands: function(*(flint.acb(x) for x in operands)).real


def logistic(x):
    with np.errstate(all="ignore"):
        e = np.exp(-np.abs(x))
        return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def sign(x):
    return np.where((x == 0) | np.isnan(x), x, np.copysign(1, x))


def away_from_zero(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def maximum(a, b):
    """IEEE 754's maximum: NaN if either is, and 0 above -0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def minimum(a, b):
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def next_after(dtype):
    """The next number of a type, which depends on the type's numbers."""
    return lambda a, b: np.where(a == b, b, np.nextafter(a.astype(dtype), b.astype(dtype)).astype(a.dtype))


def odd(function: Callable) -> Callable:
    """An odd function with the sign of its zero, which SciPy drops."""
    return lambda x: np.copysign(function(x), x)


def polygamma(order, x):
    """SciPy's where it is defined: whole orders from 0 on."""
    with np.errstate(all="ignore"):
        value = scipy.special.polygamma(np.where((order >= 0) & (order == np.rint(order)), order, 0).astype(int), x)
    return np.where((order >= 0) & (order == np.rint(order)), value, np.nan)


def derivative_of_digamma(order: flint.acb, x: flint.acb) -> flint.acb:
    """The polygamma function by way of zeta, which keeps more digits than Arb's own."""
    n = int(float(order.real))
    if n == 0:
        return x.digamma()
    value = (order + 1).gamma() * (order + 1).zeta(x)
    return value if n % 2 else -value


REAL = [
    Function("abs", "stablehlo.abs", np.abs),
    Function("acos", "chlo.acos", np.arccos),
    Function("acosh", "chlo.acosh", np.arccosh),
    Function("asin", "chlo.asin", np.arcsin),
    Function("asinh", "chlo.asinh", np.arcsinh),
    Function("atan", "chlo.atan", np.arctan),
    Function("atanh", "chlo.atanh", np.arctanh),
    Function("bessel_i1e", "chlo.bessel_i1e", arb(lambda x: x.bessel_i(1) * (-abs(x)).exp(), odd(scipy.special.i1e)), slow=True),
    Function("cbrt", "stablehlo.cbrt", np.cbrt),
    Function("ceil", "stablehlo.ceil", np.ceil),
    Function("cosh", "chlo.cosh", np.cosh),
    Function("cosine", "stablehlo.cosine", np.cos),
    Function("digamma", "chlo.digamma", arb(real_part(flint.acb.digamma), scipy.special.digamma), slow=True),
    Function("erf", "chlo.erf", arb(flint.arb.erf, scipy.special.erf), slow=True),
    Function("erfc", "chlo.erfc", arb(flint.arb.erfc, scipy.special.erfc), slow=True),
    Function("erf_inv", "chlo.erf_inv", arb(flint.arb.erfinv, odd(scipy.special.erfinv)), slow=True),
    Function("exponential", "stablehlo.exponential", np.exp),
    Function("exponential_minus_one", "stablehlo.exponential_minus_one", np.expm1),
    Function("floor", "stablehlo.floor", np.floor),
    Function("lgamma", "chlo.lgamma", arb(real_part(flint.acb.lgamma), scipy.special.gammaln), slow=True),
    Function("log", "stablehlo.log", np.log),
    Function("log_plus_one", "stablehlo.log_plus_one", np.log1p),
    Function("logistic", "stablehlo.logistic", logistic),
    Function("negate", "stablehlo.negate", np.negative),
    Function("round_nearest_afz", "stablehlo.round_nearest_afz", away_from_zero),
    Function("round_nearest_even", "stablehlo.round_nearest_even", np.rint),
    Function("rsqrt", "stablehlo.rsqrt", lambda x: 1 / np.sqrt(x)),
    Function("sign", "stablehlo.sign", sign),
    Function("sine", "stablehlo.sine", np.sin),
    Function("sinh", "chlo.sinh", np.sinh),
    Function("sqrt", "stablehlo.sqrt", np.sqrt),
    Function("square", "chlo.square", np.square),
    Function("tan", "stablehlo.tan", np.tan),
    Function("tanh", "stablehlo.tanh", np.tanh),
    Function("add", "stablehlo.add", np.add, 2),
    Function("atan2", "stablehlo.atan2", np.arctan2, 2),
    Function("divide", "stablehlo.divide", np.divide, 2),
    Function("maximum", "stablehlo.maximum", maximum, 2),
    Function("minimum", "stablehlo.minimum", minimum, 2),
    Function("multiply", "stablehlo.multiply", np.multiply, 2),
    Function("next_after", "chlo.next_after", next_after, 2),
    Function("polygamma", "chlo.polygamma", arb(real_part(derivative_of_digamma), polygamma), 2, True, points.order_pairs),
    Function("power", "stablehlo.power", np.power, 2, points=points.power_pairs),
    Function("remainder", "stablehlo.remainder", np.fmod, 2),
    Function("subtract", "stablehlo.subtract", np.subtract, 2),
    Function("zeta", "chlo.zeta", arb(real_part(lambda s, a: s.zeta(a)), scipy.special.zeta), 2, True, points.zeta_pairs),
]


def acb(function: Callable, special: Callable | None = None) -> Callable:
    """A complex function by Arb off the axes, where branch cuts cannot lie; elsewhere by `special`, or not measured."""

    def true(*operands):
        usable = np.ones(operands[0].shape, bool)
        for z in operands:
            usable &= np.isfinite(z.real) & np.isfinite(z.imag) & (z.real != 0) & (z.imag != 0)
        with np.errstate(all="ignore"):
            out = special(*operands) if special else np.full(operands[0].shape, UNKNOWN, operands[0].dtype)
        part = out.real.dtype
        for i in np.flatnonzero(usable):
            value = evaluated(function, [flint.acb(float(z[i].real), float(z[i].imag)) for z in operands])
            if value is not None:
                out.real[i] = number(value.real, part)
                out.imag[i] = number(value.imag, part)
        return out

    return true


# A true value that is not known, which no function here has.
UNKNOWN = complex(-12345.678, 8765.4321)


def long(function: Callable) -> Callable:
    """A complex function by the C library in long double, with the branch cuts and special values of ISO C, Annex G."""

    def true(z):
        with np.errstate(all="ignore"):
            value = function(z.astype(np.clongdouble))
        return value.astype(z.dtype)

    return true


COMPLEX = [
    Function("abs", "stablehlo.abs", lambda z: np.abs(z.astype(np.clongdouble)).astype(z.real.dtype), real_result=True),
    Function("acos", "chlo.acos", long(np.arccos)),
    Function("acosh", "chlo.acosh", long(np.arccosh)),
    Function("asin", "chlo.asin", long(np.arcsin)),
    Function("asinh", "chlo.asinh", long(np.arcsinh)),
    Function("atan", "chlo.atan", long(np.arctan)),
    Function("atanh", "chlo.atanh", long(np.arctanh)),
    Function("cbrt", "stablehlo.cbrt", acb(lambda z: z.root(3))),
    Function("cosh", "chlo.cosh", long(np.cosh)),
    Function("cosine", "stablehlo.cosine", long(np.cos)),
    Function("exponential", "stablehlo.exponential", long(np.exp)),
    Function("exponential_minus_one", "stablehlo.exponential_minus_one", acb(flint.acb.expm1)),
    Function("log", "stablehlo.log", long(np.log)),
    Function("log_plus_one", "stablehlo.log_plus_one", acb(flint.acb.log1p)),
    Function("logistic", "stablehlo.logistic", acb(lambda z: 1 / (1 + (-z).exp()))),
    Function("rsqrt", "stablehlo.rsqrt", acb(flint.acb.rsqrt)),
    Function("sign", "stablehlo.sign", acb(flint.acb.sgn)),
    Function("sine", "stablehlo.sine", long(np.sin)),
    Function("sinh", "chlo.sinh", long(np.sinh)),
    Function("sqrt", "stablehlo.sqrt", long(np.sqrt)),
    Function("square", "chlo.square", acb(lambda z: z * z)),
    Function("tan", "stablehlo.tan", long(np.tan)),
    Function("tanh", "stablehlo.tanh", long(np.tanh)),
    Function("add", "stablehlo.add", acb(lambda a, b: a + b), 2),
    Function("atan2", "stablehlo.atan2", acb(lambda y, x: -flint.acb(0, 1) * ((x + flint.acb(0, 1) * y) / (x * x + y * y).sqrt()).log()), 2),
    Function("divide", "stablehlo.divide", acb(lambda a, b: a / b), 2),
    Function("multiply", "stablehlo.multiply", acb(lambda a, b: a * b), 2),
    Function("power", "stablehlo.power", acb(lambda a, b: a.pow(b)), 2),
    Function("subtract", "stablehlo.subtract", acb(lambda a, b: a - b), 2),
]


def operands(function: Function, dtype, count: int) -> tuple[np.ndarray, ...]:
    """The points at which a function is measured."""
    if np.issubdtype(dtype, np.complexfloating):
        z = points.complex_numbers(dtype, count)
        if function.operands == 1:
            return (z,)
        random = np.random.default_rng(3)
        finite = z[np.isfinite(z)]
        return finite, random.permutation(finite)
    if function.operands == 2:
        return function.points(dtype, count)
    return (points.numbers(dtype, count),)


def true_values(function: Function, arguments: tuple[np.ndarray, ...]) -> np.ndarray:
    """The true values, of `exact_type`."""
    dtype = arguments[0].dtype
    exact = exact_type(dtype)
    if np.iscomplexobj(arguments[0]):
        exact = np.dtype(np.clongdouble if exact == np.longdouble else np.complex128)
    true = function.true(real_type(dtype)) if function.true is next_after else function.true
    with np.errstate(all="ignore"):
        value = true(*(x.astype(exact) for x in arguments))
    return value.astype(exact if np.iscomplexobj(value) else exact_type(dtype))
