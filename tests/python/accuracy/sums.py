"""Measures sums, means, running sums and products of vectors on both backends."""

from dataclasses import dataclass
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np

from . import backends
from .measure import PLATFORMS
from .ulps import TYPES, ulp

LENGTH = 1_000_000
REAL = ("f64", "f32", "f16", "bf16")
# Fraction bits of the whole numbers that stand for the elements: their sums are exact.
FRACTION = 80

FUNCTIONS = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "running sum": jnp.cumsum,
    "dot product": lambda x: jnp.dot(x, x[::-1], precision="highest"),
}


@dataclass
class Row:
    """The largest error of a function of a vector, in ulps of the same function of the elements' magnitudes."""

    name: str
    type: str
    elements: str
    ulps: dict[str, float]


def vectors(dtype, length: int):
    random = np.random.default_rng(5)
    yield "from 0 to 1", random.random(length).astype(dtype)
    yield "normal", random.standard_normal(length).astype(dtype)


def true_values(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The value of a vector and that of its magnitudes, in long double."""
    whole = [int(v * 2.0**FRACTION) for v in x.astype(np.float64).tolist()]

    def of(elements):
        if name == "running sum":
            return floats(list(accumulate(elements)), FRACTION)
        if name == "dot product":
            return floats([sum(a * b for a, b in zip(elements, reversed(elements)))], 2 * FRACTION)
        return floats([sum(elements)], FRACTION) / (len(elements) if name == "mean" else 1)

    return of(whole), of([abs(v) for v in whole])


def floats(whole: list[int], fraction: int) -> np.ndarray:
    """Whole numbers over a power of two, in long double."""
    high = [v / (1 << fraction) for v in whole]
    low = [(v - int(h * 2.0**fraction)) / (1 << fraction) for v, h in zip(whole, high)]
    return np.array(high, np.longdouble) + np.array(low, np.longdouble)


def rows(length: int = LENGTH):
    for name, function in FUNCTIONS.items():
        for ty in REAL:
            dtype = np.dtype(TYPES[ty])
            for elements, x in vectors(dtype, length):
                # f16 ends at 65,504.
                x = x / np.array(64, dtype) if ty == "f16" else x
                true, size = true_values(name, x)
                unit = ulp(size, dtype)
                found = {
                    backend: float(np.max(np.abs(np.asarray(result, np.longdouble).ravel() - true) / unit))
                    for backend, result in results(function, x).items()
                }
                yield Row(name, ty, elements, found)


def results(function, x: np.ndarray) -> dict[str, np.ndarray]:
    program = jax.jit(function).lower(x).as_text()
    return {backend: backends.run_in_jax(backend, program, (x,)).astype(np.longdouble) for backend in PLATFORMS}
