"""Measures functions on both backends."""

from dataclasses import dataclass, field

import numpy as np

from . import backends
from .functions import COMPLEX, REAL, UNKNOWN, Function, operands, true_values
from .ulps import TYPES, Errors, errors, is_denormal, real_type

PLATFORMS = ("refcpu", "cpu")
# Points of types of more than 16 bits; those of functions whose true values take long; pairs of 16-bit types.
COUNT = {"f32": 1_200_000, "f64": 300_000, "complex<f32>": 30_000, "complex<f64>": 30_000}
SLOW = 20_000
SLOW_PAIRS = 2_000
PAIRS = 400_000
# Beyond this many ulps a complex function has taken the other side of a branch cut.
ON_A_CUT = 64


@dataclass
class Figures:
    """What one backend did.

    `ulps` is the largest error among points whose operands and result are normal numbers, `at` where it is; `parts` the
    same by the parts of complex numbers. `wrong` counts special values that are not met, `wrong_at` is the first.
    `denormal` is the largest error where an operand or the result is denormal.
    """

    ulps: float = 0.0
    at: str = ""
    parts: float = 0.0
    wrong: int = 0
    wrong_at: str = ""
    denormal: float = 0.0
    unsupported: bool = False


@dataclass
class Row:
    """The figures of a function of a type."""

    name: str
    type: str
    points: int = 0
    figures: dict[str, Figures] = field(default_factory=dict)


def count_of(function: Function, name: str) -> int:
    count = COUNT.get(name, PAIRS)
    if function.operands == 2:
        count = min(count, PAIRS)
    if function.slow:
        count = min(count, SLOW_PAIRS if function.operands == 2 else SLOW)
    return count


def measure(function: Function, name: str, scale: float = 1.0, platforms=PLATFORMS) -> Row:
    """Measures a function of a type, at a part of its points where `scale` is below 1."""
    dtype = np.dtype(TYPES[name])
    arguments = tuple(x[:: round(1 / scale)] for x in operands(function, dtype, count_of(function, name)))
    true = true_values(function, arguments)
    row = Row(function.name, name, len(true))
    for platform in platforms:
        try:
            result = real_type(dtype) if function.real_result else dtype
            found = backends.run(platform, function.op, arguments, result)
        except backends.Unsupported:
            row.figures[platform] = Figures(unsupported=True)
            continue
        row.figures[platform] = figures(errors(found, true), arguments, true, found)
    return row


def figures(error: Errors, arguments, true, found) -> Figures:
    known = true != UNKNOWN
    denormal = error.denormal.copy()
    special = np.zeros(denormal.shape, bool)
    for x in arguments:
        denormal |= is_denormal(x)
        if np.iscomplexobj(x):
            # On the axes, where branch cuts lie, a wrong sign is no rounding error.
            special |= ~np.isfinite(x.real) | ~np.isfinite(x.imag) | (x.real == 0) | (x.imag == 0)
    off = error.ulps if error.parts is None else error.parts
    wrong = (error.wrong | special & (off > ON_A_CUT)) & known
    ulps = np.where(denormal | wrong | ~known, 0, error.ulps)
    worst = int(np.argmax(ulps))
    out = Figures(float(ulps[worst]), point(arguments, worst) if ulps[worst] else "")
    if error.parts is not None:
        out.parts = float(np.max(np.where(denormal | wrong | ~known, 0, error.parts)))
    out.denormal = float(np.max(np.where(denormal & known, np.where(error.wrong, np.inf, error.ulps), 0)))
    indices = np.flatnonzero(wrong & ~denormal)
    out.wrong = len(indices)
    if out.wrong:
        i = indices[0]
        value = complex(true[i]) if np.iscomplexobj(true) else float(true[i])
        out.wrong_at = f"{point(arguments, i)} gives {found[i]}, not {value}"
    return out


def point(arguments, i: int) -> str:
    return ", ".join(str(x[i]) for x in arguments)


def rows(only=None, types=None, scale: float = 1.0):
    """Every function of every type, measured; `only` and `types` choose some."""
    for functions, names in ((REAL, [n for n in TYPES if "complex" not in n]), (COMPLEX, [n for n in TYPES if "complex" in n])):
        for function in functions:
            for name in names:
                if (not only or function.name in only) and (not types or name in types):
                    yield measure(function, name, scale)
