"""A program of a suite over one element type, with its inputs and the rule that says how far a result may be off."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

FLOATS = ("f32", "f64", "bf16", "f16")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("complex<f32>", "complex<f64>")
ALL = FLOATS + INTEGERS + ("i1",) + COMPLEX

DTYPES = {
    "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "i1": np.bool_, "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}  # fmt: skip
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
# The type in which results of a type are computed to be rounded; the others are computed as they are.
WIDER = {"f32": "f64", "bf16": "f64", "f16": "f64", "complex<f32>": "complex<f64>"}


@dataclass
class Rule:
    """How far results may be from the expected ones. An element passes if any of the distances admits it.

    `sums` is a factor of the rounding error (half the distance of one and the next number) and of what `size` returns
    for the wide results: a bound on the sum of the absolute values of the terms.
    """

    reason: str
    ulps: int = 0
    relative: float = 0
    sums: float = 0
    size: Callable | None = None
    any_zero: bool = False


EXACT = Rule("the specification defines every bit")
ANY_ZERO = Rule("the specification defines every bit but the sign of zero", any_zero=True)


@dataclass
class Case:
    """A program. `text` gives it over an element type, so that it can be evaluated in a wider one.

    `true` computes the results with NumPy from inputs of `true_type`; without it, XLA evaluates the program in the wider type.
    """

    op: str
    element: str
    name: str
    text: Callable[[str], str]
    inputs: list
    rule: Rule = field(default_factory=lambda: EXACT)
    true: Callable | None = None
    true_type: object = None
    exact: bool = False


def tensor(element: str, dims=()) -> str:
    return "tensor<" + "".join(f"{size}x" for size in dims) + element + ">"


def type_of(array: np.ndarray) -> str:
    return tensor(NAMES[array.dtype], array.shape)


def module(arguments: list[str], lines: list[str], results: list[tuple[str, str]], more: str = "") -> str:
    """The text of a program; `results` are names and types."""
    parameters = ", ".join(f"%a{n}: {ty}" for n, ty in enumerate(arguments))
    types = ", ".join(ty for _, ty in results)
    names = ", ".join(name for name, _ in results)
    body = "\n    ".join(lines)
    return f"module @numerics {{\n  func.func public @main({parameters}) -> ({types}) {{\n    {body}\n    return {names} : {types}\n  }}\n{more}}}\n"


def one(op: str, arguments: list[str], result: str, attributes: str = "", region: str = "", more: str = "") -> str:
    """The text of a program with one operation and one result."""
    operands = ", ".join(f"%a{n}" for n in range(len(arguments)))
    attributes = f" {{{attributes}}}" if attributes else ""
    region = f" ({region})" if region else ""
    line = f'%r = "stablehlo.{op}"({operands}){region}{attributes} : ({", ".join(arguments)}) -> {result}'
    return module(arguments, [line], [("%r", result)], more)


def generator(*words) -> np.random.Generator:
    """Random numbers that depend on the words alone."""
    digest = hashlib.sha256(" ".join(map(str, words)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


def values(element: str, shape, *words, low=-3.0, high=3.0) -> np.ndarray:
    """Ordinary values of a type, between `low` and `high` if they are floats."""
    random = generator(element, shape, *words)
    if element in FLOATS:
        return random.uniform(low, high, shape).astype(DTYPES[element])
    if element in COMPLEX:
        return (random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)).astype(DTYPES[element])
    if element == "i1":
        return random.integers(0, 2, shape).astype(np.bool_)
    return random.integers(0 if element.startswith("u") else -50, 51, shape).astype(DTYPES[element])


def whole(element: str, shape, *words, most=4) -> np.ndarray:
    """Small whole numbers of a type, whose sums and products are exact in every type."""
    low = 0 if element.startswith("u") or element == "i1" else -most
    numbers = generator("whole", element, shape, *words).integers(low, most + 1, shape)
    if element in COMPLEX:
        other = generator("imaginary", element, shape, *words).integers(low, most + 1, shape)
        return (numbers + 1j * other).astype(DTYPES[element])
    return numbers.astype(DTYPES[element])


def zero(element: str) -> str:
    return "(0.0, 0.0)" if element in COMPLEX else "0.0" if element in FLOATS else "false" if element == "i1" else "0"


def literal(element: str, number: int) -> str:
    if element in COMPLEX:
        return f"({number}.0, 0.0)"
    return f"{number}.0" if element in FLOATS else str(bool(number)).lower() if element == "i1" else str(number)


def unit(element: str) -> float:
    """Half the distance of one and the next number of a type."""
    part = {"complex<f32>": "f32", "complex<f64>": "f64"}.get(element, element)
    return float(ml_dtypes.finfo(DTYPES[part]).eps) / 2
