"""Element types, and arrays of them as bytes: how they are handed to the sides of a comparison, and whether they agree."""

import dataclasses
import re

import ml_dtypes
import numpy as np

# Element types that NumPy and MLIR's bindings exchange as they are.
DIRECT = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
# Integers in a byte of their own: the type that carries them.
NARROW = {"i2": "i8", "i4": "i8", "ui2": "ui8", "ui4": "ui8"}
# Floats that travel as their bits.
BITS = {"bf16": "ui16"} | {
    name: "ui8"
    for name in ("f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU")
}
# Floats narrower than a byte: constants on the way in, f32 on the way out.
TINY = {"f4E2M1FN": ml_dtypes.float4_e2m1fn, "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn}
COMPLEX = {"complex<f32>": "f32", "complex<f64>": "f64"}
FLOATS = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "f8E3M4": ml_dtypes.float8_e3m4, "f8E4M3": ml_dtypes.float8_e4m3, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
} | TINY  # fmt: skip

# How far floats may be apart that were computed from the same: a factor of the magnitude, and a distance.
WIDE = {"f32": (2e-5, 2e-6), "f64": (1e-11, 1e-12)}


@dataclasses.dataclass(frozen=True)
class Type:
    """A tensor's shape and element type."""

    dims: tuple
    element: str

    @staticmethod
    def parse(text):
        found = re.fullmatch(r"tensor<((?:\d+x)*)(.*)>", text)
        return Type(tuple(int(size) for size in found[1].split("x")[:-1]), found[2])

    def __str__(self):
        return "tensor<" + "".join(f"{size}x" for size in self.dims) + self.element + ">"

    def of(self, element):
        return Type(self.dims, element)

    @property
    def storage(self):
        """The integer type that a quantized one is stored in, else the type itself."""
        if not self.element.startswith("!quant"):
            return self
        stored = re.match(r"!quant.uniform<([iu]\d+)", self.element)[1]
        return self.of(stored.replace("u", "ui"))


def numpy_of(data, ty):
    """Bytes (a type's elements, each in whole bytes) as an array that stands for them: of a direct type."""
    raw = bytes.fromhex(data)
    carrier = NARROW.get(ty.element) or BITS.get(ty.element) or ("ui8" if ty.element in TINY else ty.element)
    return np.frombuffer(raw, DIRECT[COMPLEX.get(carrier, carrier)])


def values(data, ty):
    """Bytes as numbers: float64 parts for floats, the integers themselves otherwise."""
    ty = ty.storage
    raw = bytes.fromhex(data)
    if ty.element in COMPLEX:
        with np.errstate(invalid="ignore"):
            return np.frombuffer(raw, DIRECT[COMPLEX[ty.element]]).astype(np.float64)
    if ty.element in FLOATS:
        with np.errstate(invalid="ignore"):
            return np.frombuffer(raw, FLOATS[ty.element]).astype(np.float64)
    return numpy_of(data, ty)


def precision(element):
    """The distance of neighboring floats around one, the smallest normal one, and the smallest one."""
    info = ml_dtypes.finfo(FLOATS[COMPLEX.get(element, element)])
    return float(info.eps), float(info.smallest_normal), float(info.smallest_subnormal)


def tolerance(element):
    part = COMPLEX.get(element, element)
    if part in WIDE:
        return WIDE[part]
    eps, _, smallest = precision(part)
    return 2 * eps, 2 * smallest


def difference(found, expected, ty, exact=False):
    """Places where arrays of a type (as `values` gives them) do not agree, as a mask over their numbers, or None."""
    ty = ty.storage
    if found.shape != expected.shape:
        return np.ones(max(found.size, 1), bool)
    if ty.element not in FLOATS and ty.element not in COMPLEX:
        wrong = found != expected
    else:
        with np.errstate(all="ignore"):
            same = (found == expected) | (np.isnan(found) & np.isnan(expected))
            if not exact:
                relative, absolute = tolerance(ty.element)
                magnitude = np.abs(expected)
                if ty.element in COMPLEX:
                    pairs = magnitude.reshape(-1, 2)
                    magnitude = np.repeat(np.hypot(pairs[:, 0], pairs[:, 1]), 2)
                same |= np.isfinite(expected) & np.isfinite(found) & (np.abs(found - expected) <= absolute + relative * magnitude)
        wrong = ~same
    return wrong if wrong.any() else None


def wrong_results(found, expected, exact=False):
    """(values, expected values, type, wrong numbers) of each result that differs."""
    wrong = []
    for one, other in zip(found, expected, strict=True):
        ty = Type.parse(one["type"])
        left, right = values(one["data"], ty), values(other["data"], ty)
        mask = difference(left, right, ty, exact)
        if mask is not None:
            wrong.append((left, right, ty, mask))
    return wrong


def agrees_where_wrong(found, expected, wrong):
    """Whether the expected results are those that were found wherever other results, `wrong`, are not."""
    for one, other, third in zip(found, expected, wrong, strict=True):
        ty = Type.parse(one["type"])
        left = values(one["data"], ty)
        differs, matters = difference(left, values(other["data"], ty), ty), difference(left, values(third["data"], ty), ty)
        if differs is not None and matters is not None and (differs & matters).any():
            return False
    return True


def show(wrong):
    """The first elements that differ, for people."""
    lines = []
    for found, expected, ty, mask in wrong:
        parts = 2 if ty.storage.element in COMPLEX else 1
        place = int(mask.argmax()) // parts
        at = slice(place * parts, (place + 1) * parts)
        count = int(mask.reshape(-1, parts).any(axis=1).sum())
        lines.append(f"{ty} element {place}: {found[at].tolist()}, not {expected[at].tolist()} ({count} of {mask.size // parts})")
    return "; ".join(lines)


def encode(numbers, ty):
    """Integers or floats as a type's bytes in hexadecimal."""
    ty = ty.storage
    if ty.element in COMPLEX:
        part = DIRECT[COMPLEX[ty.element]]
        return np.asarray(numbers, part).tobytes().hex()
    if ty.element in FLOATS:
        return np.asarray(numbers).astype(FLOATS[ty.element]).tobytes().hex()
    carrier = NARROW.get(ty.element, ty.element)
    return np.asarray(numbers).astype(DIRECT[carrier]).tobytes().hex()
