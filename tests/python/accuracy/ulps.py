"""How far a result is from the true value, in units of the last place of the true value."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

# The types that are measured, by their names in MLIR.
TYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "complex<f64>": np.complex128,
    "complex<f32>": np.complex64,
}


def real_type(dtype) -> np.dtype:
    """The type of the parts of a complex type; a real type itself."""
    return np.empty(0, dtype).real.dtype


def exact_type(dtype) -> np.dtype:
    """The type of reference values: several times more digits than `dtype` has, and more range."""
    return np.dtype(np.longdouble if real_type(dtype) == np.float64 else np.float64)


def is_denormal(x) -> np.ndarray:
    """Whether a number, or a part of a complex one, lies between zero and the smallest normal number."""
    if np.iscomplexobj(x):
        return is_denormal(x.real) | is_denormal(x.imag)
    wide = np.abs(x.astype(exact_type(x.dtype)))
    return (wide > 0) & (wide < wide.dtype.type(ml_dtypes.finfo(x.dtype).smallest_normal))


@dataclass
class Errors:
    """Of every point: the error in ulps, whether a value that must be exact is wrong, and whether the result is denormal.

    For complex numbers `ulps` is the modulus of the difference in ulps of the modulus of the true value, and `parts` the
    larger of the errors of both parts, each in its own ulps.
    """

    ulps: np.ndarray
    wrong: np.ndarray
    denormal: np.ndarray
    parts: np.ndarray | None = None


def errors(found: np.ndarray, true: np.ndarray) -> Errors:
    """Compares results with true values of `exact_type`.

    NaN, infinities and zeros among the true values must be met exactly, with their signs. A result too large for the type
    counts as the next number after the largest one.
    """
    if np.iscomplexobj(found):
        return complex_errors(found, true)
    info = ml_dtypes.finfo(found.dtype)
    exact = exact_type(found.dtype).type
    with np.errstate(all="ignore"):
        value = found.astype(exact)
        largest = exact(info.max)
        top = largest + ulp(largest, found.dtype)
        lacks_infinity = not np.isinf(np.array(np.inf).astype(found.dtype))
        if lacks_infinity:
            value = np.where(np.isnan(value) & (np.abs(true) > largest), np.copysign(top, true), value)
        special = np.isnan(true) | np.isinf(true) | (true == 0)
        same = np.where(np.isnan(true), np.isnan(value), (value == true) & (np.signbit(value) == np.signbit(true)))
        if lacks_infinity:
            same |= np.isinf(true) & (np.abs(value) == top)
        wrong = np.where(special, ~same, np.isnan(value))
        distance = np.abs(np.clip(value, -top, top) - np.clip(true, -top, top)) / ulp(true, found.dtype)
        denormal = (true != 0) & (np.abs(true) < exact(info.smallest_normal))
    return Errors(np.where(special | wrong, 0, distance).astype(np.float64), wrong, denormal)


def complex_errors(found: np.ndarray, true: np.ndarray) -> Errors:
    part = found.real.dtype
    exact = exact_type(part).type
    real, imaginary = errors(found.real, true.real), errors(found.imag, true.imag)
    with np.errstate(all="ignore"):
        largest = exact(np.finfo(part).max)
        top = largest + ulp(largest, part)
        # In ulps of the larger part, which keeps squares in range; one of the modulus is as large or twice that.
        larger = np.maximum(np.abs(true.real), np.abs(true.imag))
        unit = ulp(larger, part)
        distance = np.hypot(
            (np.clip(found.real.astype(exact), -top, top) - np.clip(true.real, -top, top)) / unit,
            (np.clip(found.imag.astype(exact), -top, top) - np.clip(true.imag, -top, top)) / unit,
        )
        scale = np.ldexp(exact(1), np.frexp(larger)[1])
        distance /= np.where(np.hypot(true.real / scale, true.imag / scale) >= 1, 2, 1)
        known = np.isfinite(true.real) & np.isfinite(true.imag) & np.isfinite(distance)
    return Errors(
        np.where(known, distance, 0).astype(np.float64),
        real.wrong | imaginary.wrong,
        real.denormal | imaginary.denormal,
        np.maximum(real.ulps, imaginary.ulps),
    )


def ulp(true, dtype):
    """The last place of `dtype` at the size of these values; that of the largest numbers beyond the range."""
    info = ml_dtypes.finfo(dtype)
    exponent = np.frexp(np.where(np.isfinite(true), true, 1))[1] - 1
    largest = np.frexp(exact_type(dtype).type(info.max))[1] - 1
    return np.ldexp(exact_type(dtype).type(1), np.clip(exponent, info.minexp, largest) - info.nmant)
