"""Operations on each element: ordinary values, special ones, denormals, and the ends of the ranges of integers."""

import ml_dtypes
import numpy as np
from case import (
    ALL, ANY_ZERO, COMPLEX, DTYPES, EXACT, FLOATS, INTEGERS, SIGNED, UNSIGNED, Case, Rule, generator, module, one, tensor, unit, values,
)  # fmt: skip

# Of one rank after the other, so that every rank occurs with many operations and types.
SHAPES = ((37,), (5, 7), (3, 2, 5), (2, 1, 3, 4))
SMALL = ("f32", "i32", "i1")


def shape_of(*words):
    return SHAPES[int(generator("shape", *words).integers(len(SHAPES)))]


def transcendental(element, op):
    """The tolerance of functions whose accuracy the specification leaves to implementations."""
    ulps = {"f32": 16, "f64": 16, "complex<f32>": 64, "complex<f64>": 64}.get(element, 2)
    reason = f"{ulps} ulps: the specification leaves the accuracy of {op} to implementations; polynomials and tables have some ulps"
    if op in ("sine", "cosine", "tan", "log", "power"):
        # Near a zero of the function, what counts is the rounding of the reduced argument.
        return Rule(reason + ", and one unit of rounding of 1 near zeros", ulps=ulps * (4 if op == "power" else 1), sums=2, size=lambda wide: 1.0)
    return Rule(reason, ulps=ulps)


QUOTIENT = Rule("1 ulp: IEEE 754 rounds correctly; devices that refine an estimate of the reciprocal may miss the last place", ulps=1)


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x < 0, e / (1 + e), 1 / (1 + e)))


def sign(x):
    return np.where((x == 0) | np.isnan(x), x, np.copysign(1, x))


def away_from_zero(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


# Operations on floats: the function, the range of ordinary values, and whether results are exact.
UNARY = {
    "abs": (np.abs, -3, 3, EXACT), "negate": (np.negative, -3, 3, EXACT), "sign": (sign, -3, 3, EXACT),
    "ceil": (np.ceil, -9, 9, EXACT), "floor": (np.floor, -9, 9, EXACT),
    "round_nearest_afz": (away_from_zero, -9, 9, EXACT), "round_nearest_even": (np.rint, -9, 9, EXACT),
    "sqrt": (np.sqrt, 0, 9, QUOTIENT),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9, None), "cbrt": (np.cbrt, -9, 9, None),
    "exponential": (np.exp, -8, 8, None), "exponential_minus_one": (np.expm1, -3, 3, None),
    "log": (np.log, 0.05, 50, None), "log_plus_one": (np.log1p, -0.9, 9, None), "logistic": (logistic, -8, 8, None),
    "sine": (np.sin, -9, 9, None), "cosine": (np.cos, -9, 9, None), "tan": (np.tan, -1.4, 1.4, None), "tanh": (np.tanh, -4, 4, None),
}  # fmt: skip
BINARY = {
    "add": (np.add, -3, 3, EXACT), "subtract": (np.subtract, -3, 3, EXACT), "multiply": (np.multiply, -3, 3, EXACT),
    "divide": (np.divide, -3, 3, QUOTIENT), "remainder": (np.fmod, -9, 9, EXACT),
    "maximum": (np.maximum, -3, 3, ANY_ZERO), "minimum": (np.minimum, -3, 3, ANY_ZERO),
    "power": (np.power, 0.2, 4, None), "atan2": (np.arctan2, -3, 3, None),
}  # fmt: skip
# Operations that IEEE 754 defines for denormals, too.
OF_DENORMALS = "abs negate sign ceil floor sqrt add subtract multiply divide maximum minimum".split()
# Operations whose results for numbers of any size depend on the accuracy of intermediate ones, on XLA's CPU backend too.
NOT_OF_ANY_SIZE = {"power": FLOATS, "cbrt": ("f64",)}
# Operations that are defined for positive numbers.
OF_POSITIVE = ("sqrt", "rsqrt", "log")
# The exponent of the largest argument, for operations that reduce it modulo pi.
PERIODIC = {"sine": 6, "cosine": 6, "tan": 6}
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -2.5)
PAIRED = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan)


def denormals(element):
    """Numbers below the smallest normal one, and some that are not far above it."""
    low = {"f32": -149, "bf16": -133, "f16": -24, "f64": -1074}[element]
    exponents = [low, low + 1, low + 3, low + 5]
    numbers = [np.ldexp(np.longdouble(sign * factor), e) for e in exponents for sign in (1, -1) for factor in (1, 1.5, 5)]
    return np.array(numbers + [0.5, -2.0, 2.0**-10]).astype(np.float64).astype(DTYPES[element])


def of_any_size(op, element, function, count):
    """Numbers across the range of a type, as operands whose results are no denormals."""
    largest = {"f32": 127, "bf16": 127, "f16": 15, "f64": 1023}[element]
    exponents = np.rint(np.linspace(-0.8, 0.8, 17 if count == 1 else 7) * largest)
    exponents = exponents[exponents <= PERIODIC.get(op, largest)]
    numbers = np.array([factor * 2.0**e for e in [*exponents, *range(PERIODIC.get(op, -1) + 1)] for factor in (1, -1, 1.37, -1.37)])
    if op in OF_POSITIVE:
        numbers = np.abs(numbers)
    if op == "log_plus_one":
        numbers = numbers[numbers > -1]
    numbers = numbers.astype(DTYPES[element])
    operands = [numbers] if count == 1 else [x.ravel() for x in np.meshgrid(numbers, numbers)]
    with np.errstate(all="ignore"):
        results = np.abs(function(*[x.astype(np.longdouble) for x in operands]))
    is_kept = (results == 0) | (results >= 2.0 ** (1 - largest))
    return [x[is_kept] for x in operands]


def plain(op, element, count, shape, result=None):
    """A text of one operation whose operands have one type."""
    return lambda e: one(op, [tensor(e, shape)] * count, tensor(result or e, shape))


def of_floats(op, function, low, high, rule, count, element):
    rule = rule or transcendental(element, op)
    # In their own type, IEEE's operations are the expected ones.
    own = rule in (EXACT, QUOTIENT, ANY_ZERO)
    true_type = (DTYPES["f64"] if own else np.longdouble) if element == "f64" else np.float64
    shape = shape_of(op, element)

    def case(name, *inputs):
        return Case(op, element, name, plain(op, element, count, inputs[0].shape), list(inputs), rule, function, true_type)

    ordinary = [values(element, shape, op, n, low=low, high=high) for n in range(count)]
    if op == "power":
        ordinary[1] = values(element, shape, "exponent", low=-3, high=3)
    yield case("ordinary", *ordinary)
    dtype = DTYPES[element]
    if count == 1:
        yield case("special", np.array(SPECIAL).astype(dtype))
    else:
        left, right = np.meshgrid(PAIRED, PAIRED)
        yield case("special", left.ravel().astype(dtype), right.ravel().astype(dtype))
    if element not in NOT_OF_ANY_SIZE.get(op, ()):
        yield case("any size", *of_any_size(op, element, function, count))
    if op in OF_DENORMALS:
        numbers = denormals(element)
        if op == "sqrt":
            numbers = np.abs(numbers)
        yield case("denormals", *[numbers, np.roll(numbers, 1)][:count])
    if element in SMALL:
        yield case("scalar", *[x.ravel()[0].reshape(()) for x in ordinary])
        yield case("empty", *[np.zeros((3, 0), dtype)] * count)


def wrapping(function, element):
    """A function of integers modulo the size of the type."""
    return lambda *x: np.asarray(function(*x)).astype(DTYPES[element])


def each(function):
    """A function of Python's integers and the number of bits, on every element, modulo the size of the type."""

    def true(*operands):
        first = operands[0]
        bits = first.dtype.itemsize * 8
        numbers = [function(*(int(x) for x in xs), bits) % 2**bits for xs in zip(*(x.ravel() for x in operands), strict=True)]
        return np.array(numbers, np.uint64).astype(first.dtype).reshape(first.shape)

    return true


def quotient(a, b, bits):
    """The quotient, rounded toward zero."""
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def arithmetic_shift(a, b, bits):
    """The shift of the bits as those of a signed number."""
    return (a - 2**bits if a >= 2 ** (bits - 1) else a) >> b


OF_INTEGERS = {
    "add": (np.add, 2), "subtract": (np.subtract, 2), "multiply": (np.multiply, 2), "divide": (each(quotient), 2), "remainder": (each(lambda a, b, bits: a - quotient(a, b, bits) * b), 2),
    "maximum": (np.maximum, 2), "minimum": (np.minimum, 2), "power": (each(lambda a, b, bits: a**b), 2),
    "and": (np.bitwise_and, 2), "or": (np.bitwise_or, 2), "xor": (np.bitwise_xor, 2), "not": (np.invert, 1),
    "abs": (np.abs, 1), "negate": (np.negative, 1), "sign": (np.sign, 1),
    "popcnt": (each(lambda x, bits: (x % 2**bits).bit_count()), 1),
    "count_leading_zeros": (each(lambda x, bits: bits - (x % 2**bits).bit_length()), 1),
    "shift_left": (each(lambda a, b, bits: a << b), 2),
    "shift_right_logical": (each(lambda a, b, bits: (a % 2**bits) >> b), 2),
    "shift_right_arithmetic": (each(arithmetic_shift), 2),
}  # fmt: skip
OF_BOOLEANS = ("and", "or", "xor", "not", "maximum", "minimum")


def of_integers(op, function, count, element):
    dtype, shape = DTYPES[element], shape_of(op, element)

    def case(name, *inputs):
        text = plain(op, element, count, inputs[0].shape)
        return Case(op, element, name, text, list(inputs), EXACT, wrapping(function, element), dtype)

    inputs = [values(element, shape, op, n) for n in range(count)]
    if op in ("divide", "remainder"):
        inputs[1] = np.where(
            inputs[1] == 0, dtype(7), np.where(np.abs(inputs[1].astype(int)) > 9, inputs[1] % dtype(9) + dtype(1), inputs[1])
        ).astype(dtype)
        inputs[1][inputs[1] == 0] = 3
    if op.startswith("shift"):
        inputs[1] = generator(op, element).integers(0, np.iinfo(dtype).bits, shape).astype(dtype)
    if op == "power":
        inputs = [inputs[0] % dtype(7), generator(op, element).integers(0, 6, shape).astype(dtype)]
    yield case("ordinary", *inputs)
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, 0, 1, 3, info.max - 1, info.max], dtype)
    if count == 1:
        # The absolute value of the least integer is not one of the type.
        yield case("ends of the range", ends[1:] if op == "abs" else ends)
    elif op in ("divide", "remainder"):
        divisors = np.array([1, 2, 3, info.max, 7, 10, info.max - 1], dtype)
        yield case("ends of the range", np.repeat(ends, 7), np.tile(divisors, 7))
    elif op not in ("power",) and not op.startswith("shift"):
        yield case("overflow", np.repeat(ends, 7), np.tile(ends, 7))
    if element in BEYOND and not op.startswith("shift") and op != "power":
        above, numbers = large(element)
        yield case(above, *([numbers, np.roll(numbers, 1)] if op not in ("divide", "remainder") else [numbers, np.resize(ends[3:5], numbers.shape)])[:count])
    if element in SMALL:
        yield case("scalar", *[x.ravel()[0].reshape(()) for x in inputs])
        yield case("empty", *[np.zeros((0, 2), dtype)] * count)


# The number of bits of whole numbers that every float of the same size holds.
BEYOND = {"i32": 24, "ui32": 24, "i64": 53, "ui64": 53}


def large(element):
    """Neighbors that are equal if they are converted to floats, and the name of cases about them."""
    bits = BEYOND[element]
    numbers = np.array([2**bits + n for n in range(4)] + [2 ** (bits + 5) + n for n in range(4)], DTYPES[element])
    return f"integers above 2^{bits}", numbers if element.startswith("u") else np.concatenate([numbers, -numbers])


def of_booleans(op, function, count):
    table = [np.array([False, False, True, True]), np.array([False, True, False, True])][:count]
    function = {"not": np.logical_not, "maximum": np.logical_or, "minimum": np.logical_and}.get(op, function)
    yield Case(op, "i1", "ordinary", plain(op, "i1", count, (4,)), table, EXACT, function, np.bool_)
    yield Case(op, "i1", "scalar", plain(op, "i1", count, ()), [x[2].reshape(()) for x in table], EXACT, function, np.bool_)


COMPLEX_FUNCTIONS = {
    "add": (np.add, 2), "subtract": (np.subtract, 2), "multiply": (np.multiply, 2), "divide": (np.divide, 2), "power": (np.power, 2),
    "negate": (np.negative, 1), "sign": (lambda z: z / np.abs(z), 1), "exponential": (np.exp, 1),
    "exponential_minus_one": (lambda z: np.exp(z) - 1, 1), "log": (np.log, 1), "log_plus_one": (lambda z: np.log(1 + z), 1),
    "sqrt": (np.sqrt, 1), "rsqrt": (lambda z: 1 / np.sqrt(z), 1), "sine": (np.sin, 1), "cosine": (np.cos, 1), "tan": (np.tan, 1),
    "tanh": (np.tanh, 1), "logistic": (lambda z: 1 / (1 + np.exp(-z)), 1), "abs": (np.abs, 1), "real": (np.real, 1), "imag": (np.imag, 1),
}  # fmt: skip


def of_complex(op, function, count, element):
    shape = shape_of(op, element)
    part = element[8:11]
    result = part if op in ("abs", "real", "imag") else None
    exact = op in ("add", "subtract", "negate", "real", "imag")
    rule = EXACT if exact else transcendental(element, op)
    if op in ("multiply", "divide"):
        rule = Rule("4 ulps of the modulus: the products of parts are rounded before they are added", ulps=8)
    if op == "abs":
        rule = Rule("4 ulps: the square root of a sum of squares, scaled against overflow", ulps=4)

    def text(e):
        e_result = e[8:11] if result else e
        return one(op, [tensor(e, shape)] * count, tensor(e_result, shape))

    inputs = [values(element, shape, op, n, low=-2, high=2) for n in range(count)]
    own = exact and element == "complex<f64>"
    true_type = (np.complex128 if own else np.clongdouble) if element == "complex<f64>" else np.complex128
    yield Case(op, element, "ordinary", text, inputs, rule, function, true_type)


def comparisons(element):
    kind = "FLOAT" if element in FLOATS + COMPLEX else "SIGNED" if element in SIGNED else "UNSIGNED"
    directions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}
    if element in COMPLEX:
        directions = {"EQ": np.equal, "NE": np.not_equal}

    def text(shape):
        def of(e):
            lines = [
                f'%r{d} = "stablehlo.compare"(%a0, %a1) {{comparison_direction = #stablehlo<comparison_direction {d}>, '
                f"compare_type = #stablehlo<comparison_type {kind}>}} : ({tensor(e, shape)}, {tensor(e, shape)}) -> {tensor('i1', shape)}"
                for d in directions
            ]
            return module([tensor(e, shape)] * 2, lines, [(f"%r{d}", tensor("i1", shape)) for d in directions])

        return of

    def true(a, b):
        return [function(a, b) for function in directions.values()]

    def case(name, a, b):
        return Case("compare", element, name, text(a.shape), [a, b], EXACT, true, DTYPES[element], exact=True)

    left = values(element, (30,), "compare")
    right = np.where(generator("equal", element).integers(0, 2, 30) == 1, left, values(element, (30,), "compared"))
    yield case("ordinary", left, right)
    if element in FLOATS:
        a, b = np.meshgrid(PAIRED, PAIRED)
        yield case("special", a.ravel().astype(DTYPES[element]), b.ravel().astype(DTYPES[element]))
        yield case("denormals", denormals(element), np.roll(denormals(element), 1))
    if element in INTEGERS:
        info = np.iinfo(DTYPES[element])
        ends = np.array([info.min, 0, info.max], DTYPES[element])
        yield case("ends of the range", np.repeat(ends, 3), np.tile(ends, 3))
    if element in BEYOND:
        above, numbers = large(element)
        yield case(above, numbers, np.roll(numbers, 1))


def choices(element):
    """select, clamp and is_finite."""
    shape = (3, 4)
    a, b = values(element, shape, "select"), values(element, shape, "selected")
    which = generator("which", element).integers(0, 2, shape).astype(np.bool_)
    wide = [tensor("i1", shape), tensor(element, shape), tensor(element, shape)]
    true = lambda w, x, y: np.where(w, x, y)
    dtype = DTYPES[element]
    yield Case("select", element, "ordinary", lambda e: one("select", wide, wide[1]), [which, a, b], EXACT, true, dtype, exact=True)
    scalar = [tensor("i1"), *wide[1:]]
    yield Case(
        "select", element, "scalar predicate", lambda e: one("select", scalar, wide[1]), [np.array(True), a, b], EXACT, true, dtype, exact=True
    )
    if element in COMPLEX:
        return
    low, high = (np.array(v, dtype) for v in ((False, True) if element == "i1" else (1, 2)))
    types = [tensor(element), tensor(element, shape), tensor(element)]
    if element != "i1":
        clip = lambda low, x, high: np.minimum(np.maximum(x, low), high)
        yield Case("clamp", element, "ordinary", lambda e: one("clamp", types, types[1]), [low, a, high], EXACT, clip, dtype, exact=True)
    if element in FLOATS:
        numbers = np.array(SPECIAL + (65000.0,)).astype(dtype)
        result = tensor("i1", numbers.shape)
        text = lambda e: one("is_finite", [tensor(element, numbers.shape)], result)
        yield Case("is_finite", element, "special", text, [numbers], EXACT, np.isfinite, np.float64, exact=True)


def conversions(element):
    """convert to every other type; numbers that the other type lacks are excluded, except fractions and integers, which wrap."""
    for other in ALL:
        if other == element or (element in COMPLEX and other not in COMPLEX):
            continue
        numbers = values(element, (24,), "convert", low=-100, high=100)
        if other in UNSIGNED and element != "i1":
            numbers = np.abs(numbers)
        if other == "i1":
            numbers = np.where(np.arange(24) % 3 == 0, DTYPES[element](0), numbers)
        if other in FLOATS and element in FLOATS:
            numbers[:7] = np.array(PAIRED).astype(DTYPES[element])
        name = "to " + other
        text = lambda e, other=other: one("convert", [tensor(element, (24,))], tensor(other, (24,)))
        yield Case("convert", element, name, text, [numbers], EXACT, converted(other), DTYPES[element], exact=True)
        if (element, other) in (("f32", "bf16"), ("f64", "f32"), ("f64", "bf16"), ("f32", "f16"), ("f64", "f16")):
            # Halfway between two numbers of the other type, and next to it.
            last = 2 * unit(other)
            exact = np.array([1 + (n + 0.5) * last + d * last / 8 for n in range(6) for d in (0, -1, 1)], np.float64)
            numbers = np.concatenate([exact, -exact]).astype(DTYPES[element])
            text = lambda e, other=other: one("convert", [tensor(element, (36,))], tensor(other, (36,)))
            yield Case("convert", element, f"{name} of ties", text, [numbers], EXACT, converted(other), DTYPES[element], exact=True)
        if (element in INTEGERS) != (other in INTEGERS) and {element, other} & set(INTEGERS) and not {element, other} & {"i1", *COMPLEX}:
            numbers = range_ends(element, other)
            text = lambda e, other=other, shape=numbers.shape: one("convert", [tensor(element, shape)], tensor(other, shape))
            yield Case("convert", element, f"{name} at the ends of the range", text, [numbers], EXACT, converted(other), DTYPES[element], exact=True)
        if element in INTEGERS and other in INTEGERS:
            # The low bits, as JAX requires.
            info = np.iinfo(DTYPES[element])
            numbers = np.concatenate([generator("wraps", element).integers(info.min, info.max, 20, DTYPES[element], True), [info.min, info.max]])
            numbers = numbers.astype(DTYPES[element])
            text = lambda e, other=other: one("convert", [tensor(element, (22,))], tensor(other, (22,)))
            yield Case("convert", element, f"{name} of the whole range", text, [numbers], EXACT, converted(other), DTYPES[element], exact=True)
    if element in ("f32", "bf16", "f16"):
        numbers = denormals(element)
        text = lambda e: one("convert", [tensor(element, numbers.shape)], tensor("f64", numbers.shape))
        yield Case("convert", element, "denormals to f64", text, [numbers], EXACT, converted("f64"), DTYPES[element], exact=True)


def range_ends(element, other):
    """The numbers at the ends of the range of integers and next to the middle of it that both types have: eight bits and zeros."""
    integer, real = (element, other) if element in INTEGERS else (other, element)
    info = np.iinfo(DTYPES[integer])
    bits = info.bits
    middle = [2 ** (bits - 1), 2 ** (bits - 1) + 2 ** (bits - 2), 2**bits - 2 ** (bits - 8)] if integer in UNSIGNED else []
    least = [] if integer in UNSIGNED else [info.min, info.min + 2 ** (bits - 8) if bits > 8 else -127]
    all_of = [0, 1, 2 ** (bits - 2), 2 ** (bits - 1) - 2 ** max(bits - 8, 0), *middle, *least]
    finite = [n for n in all_of if abs(n) <= float(ml_dtypes.finfo(DTYPES[real]).max) and info.min <= n <= info.max]
    return np.array(finite, DTYPES[integer]).astype(DTYPES[element])


def converted(other):
    def true(x):
        if other in INTEGERS and x.dtype not in [np.dtype(DTYPES[e]) for e in INTEGERS + ("i1",)]:
            return np.trunc(x.astype(np.float64)).astype(DTYPES[other])
        return x.astype(DTYPES[other])

    return true


BITCASTS = (("f32", "i32"), ("f32", "ui32"), ("f64", "i64"), ("f64", "ui64"), ("f16", "i16"), ("bf16", "ui16"), ("i8", "ui8"), ("i32", "f32"), ("ui64", "f64"), ("ui16", "bf16"), ("ui32", "i32"))  # fmt: skip


def bits():
    for element, other in BITCASTS:
        numbers = values(element, (3, 4), "bits")
        text = lambda e, element=element, other=other: one("bitcast_convert", [tensor(element, (3, 4))], tensor(other, (3, 4)))
        yield Case(
            "bitcast_convert",
            element,
            "to " + other,
            text,
            [numbers],
            EXACT,
            lambda x, other=other: x.view(DTYPES[other]),
            DTYPES[element],
            exact=True,
        )
    numbers = values("f32", (3, 2), "bytes")
    text = lambda e: one("bitcast_convert", [tensor("f32", (3, 2))], tensor("ui8", (3, 2, 4)))
    true = lambda x: x.view(np.uint8).reshape(3, 2, 4)
    yield Case("bitcast_convert", "f32", "to four ui8", text, [numbers], EXACT, true, np.float32, exact=True)
    for element, exponent, mantissa in (("f32", 5, 10), ("f32", 8, 7), ("f64", 8, 23), ("f64", 5, 10)):
        numbers = values(element, (30,), "precision", low=-900, high=900)
        text = lambda e, x=exponent, m=mantissa: one(
            "reduce_precision", [tensor(e, (30,))], tensor(e, (30,)), f"exponent_bits = {x} : i32, mantissa_bits = {m} : i32"
        )
        yield Case("reduce_precision", element, f"e{exponent}m{mantissa}", text, [numbers], exact=True)
    for part in ("f32", "f64"):
        inputs = [values(part, (5,), "real"), values(part, (5,), "imaginary")]
        text = lambda e, part=part: one("complex", [tensor(part, (5,))] * 2, tensor(f"complex<{part}>", (5,)))
        dtype = DTYPES[f"complex<{part}>"]
        yield Case("complex", part, "ordinary", text, inputs, EXACT, lambda a, b, dtype=dtype: (a + 1j * b).astype(dtype), DTYPES[part], exact=True)


def cases():
    for table, count in ((UNARY, 1), (BINARY, 2)):
        for op, (function, low, high, rule) in table.items():
            for element in FLOATS:
                yield from of_floats(op, function, low, high, rule, count, element)
    for op, (function, count) in OF_INTEGERS.items():
        for element in INTEGERS:
            if not (op in ("abs", "negate", "sign") and element in UNSIGNED):
                yield from of_integers(op, function, count, element)
        if op in OF_BOOLEANS:
            yield from of_booleans(op, function, count)
    for op, (function, count) in COMPLEX_FUNCTIONS.items():
        for element in COMPLEX:
            yield from of_complex(op, function, count, element)
    for element in ALL:
        yield from comparisons(element)
        yield from choices(element)
        yield from conversions(element)
    yield from bits()
