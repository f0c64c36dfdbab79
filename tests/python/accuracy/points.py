"""Where functions are measured: the same points on every machine."""

import ml_dtypes
import numpy as np

from .ulps import is_denormal, real_type

# Where functions have poles, zeros, kinks, or turn from one formula to another.
HARD = [
    *[0.0, 0.25, 1 / 3, 0.5, 2**-0.5, 0.65, 0.75, 0.84375, 0.93, 1.0, 1.25, 2**0.5, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0],
    *[8.0, 9.0, 10.0, 12.0, 15.0, 16.0, 20.0, 26.5, 27.2, 28.0, 32.0, 40.0, 64.0, 100.0, 127.0, 128.0, 150.0, 171.6],
    *[1.4616321449683623, -0.5040830082644554, -1.5734984731623904, -2.6107208684441446, -2.457024738220801],
    *[np.e, 1 / np.e, np.log(2), np.log(2) / 2, np.log(10), 1e3, 1e4, 1e5, 1e6, 1e9, 1e10, 2**23, 2**24, 2**31, 2**52, 2**53],
]


def numbers(dtype, count: int) -> np.ndarray:
    """Real numbers of a type: all if it has at most 65,536, else about `count` of them.

    Every binade of either sign has the same share of the first half; the rest is denser around HARD points, multiples of
    pi/2 and the edges of exponential functions, and between -10 and 10, -1 and 1, and -100 and 100.
    """
    dtype = np.dtype(dtype)
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if bits <= 16:
        return np.arange(1 << bits, dtype=np.uint32).astype(unsigned).view(dtype)
    random = np.random.default_rng(bits)
    step = (1 << bits) // (count // 2)
    even = np.arange(count // 2, dtype=np.uint64) * np.uint64(step) + random.integers(0, step, count // 2, np.uint64)
    parts = [even.astype(unsigned).view(dtype), *around(hard_points(dtype), dtype, unsigned)]
    for limit, share in ((1, 0.1), (10, 0.2), (100, 0.1)):
        parts.append(random.uniform(-limit, limit, int(count * share)).astype(dtype))
    return np.concatenate(parts)


def hard_points(dtype) -> np.ndarray:
    info = np.finfo(dtype)
    edges = [np.log(float(v)) for v in (info.max, info.smallest_normal, info.smallest_subnormal)]
    edges += [2 * edges[0], edges[0] / 2, np.log2(float(info.max)), float(info.max), float(info.smallest_normal)]
    edges += [float(info.eps), float(info.eps) ** 0.5, float(info.smallest_normal) ** 0.5, float(info.max) ** 0.5]
    turns = np.arange(1, 200) * (np.pi / 2)
    many = np.pi / 2 * np.round(np.logspace(3, 8, 100))
    values = np.concatenate([HARD, edges, turns, many, np.arange(-60, 60) / 2])
    with np.errstate(over="ignore"):
        return np.concatenate([values, -values]).astype(dtype)


def around(points: np.ndarray, dtype, unsigned, reach: int = 24):
    """The neighbors of points, and the values that are always special."""
    near = points.view(unsigned)[:, None] + np.arange(-reach, reach + 1).astype(unsigned)
    yield near.ravel().view(dtype)
    yield specials(dtype)


def specials(dtype) -> np.ndarray:
    """NaN, infinities, zeros, the largest and smallest numbers of each kind, and a few plain ones."""
    info = ml_dtypes.finfo(dtype)
    plain = [0, np.inf, np.nan, 0.5, 1, 1.5, 2, 2.5, 3, 4, 10]
    limits = [info.max, info.smallest_normal, info.smallest_subnormal, info.eps]
    values = np.array([float(v) for v in plain + limits])
    with np.errstate(over="ignore"):
        return np.concatenate([values, -values]).astype(dtype)


def pairs(dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of numbers: all of an 8-bit type, else about `count`: any bits, near in size, moderate, and all pairs of specials."""
    dtype = np.dtype(dtype)
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")
    if bits == 8:
        every = np.arange(256, dtype=np.uint8).view(dtype)
        return np.repeat(every, 256), np.tile(every, 256)
    random = np.random.default_rng(bits + 1)
    fourth = count // 4
    a = [random.integers(0, 1 << bits, fourth, np.uint64).astype(unsigned).view(dtype)]
    b = [random.integers(0, 1 << bits, fourth, np.uint64).astype(unsigned).view(dtype)]
    # The second a factor of up to 2^30 or a few last places away.
    a.append(random.integers(0, 1 << bits, fourth, np.uint64).astype(unsigned).view(dtype))
    with np.errstate(all="ignore"):
        b.append((a[-1].astype(np.float64) * random.choice([-1, 1], fourth) * 2 ** random.uniform(-30, 30, fourth)).astype(dtype))
    a.append(random.integers(0, 1 << bits, fourth, np.uint64).astype(unsigned).view(dtype))
    b.append((a[-1].view(unsigned) + random.integers(-4, 5, fourth).astype(unsigned)).view(dtype))
    for limit in (10, 100):
        a.append(random.uniform(-limit, limit, fourth // 2).astype(dtype))
        b.append(random.uniform(-limit, limit, fourth // 2).astype(dtype))
    special = specials(dtype)
    a.append(np.repeat(special, len(special)))
    b.append(np.tile(special, len(special)))
    return np.concatenate(a), np.concatenate(b)


def power_pairs(dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases and exponents whose powers are mostly in range, bases near 1 with huge exponents among them."""
    a, b = pairs(dtype, count // 2)
    if np.dtype(dtype).itemsize == 1:
        return a, b
    random = np.random.default_rng(7)
    limit = np.log(float(ml_dtypes.finfo(dtype).max))
    n = count // 4
    base = np.exp(np.concatenate([random.uniform(-limit, limit, n), random.normal(0, 1, n) * 2.0 ** random.uniform(-20, 2, n)]))
    base = base.astype(dtype)
    with np.errstate(all="ignore"):
        exponent = (random.uniform(-1.1 * limit, 1.1 * limit, 2 * n) / np.log(base.astype(np.float64))).astype(dtype)
    return np.concatenate([a, base]), np.concatenate([b, exponent])


def order_pairs(dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole orders, and arguments of which most are positive and moderate."""
    random = np.random.default_rng(9)
    order = random.integers(0, 12, count).astype(dtype)
    argument = np.where(random.random(count) < 0.8, 2 ** random.uniform(-6, 8, count), random.uniform(-20, 20, count))
    return order, argument.astype(dtype)


def zeta_pairs(dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Exponents above 1 and arguments of which most are positive and moderate."""
    random = np.random.default_rng(11)
    order, argument = order_pairs(dtype, count)
    real = 1 + 2 ** random.uniform(-6, 5, count)
    return np.where(random.random(count) < 0.5, order.astype(np.float64) + 2, real).astype(dtype), argument


def complex_numbers(dtype, count: int) -> np.ndarray:
    """Complex numbers: parts of any size, moderate ones, near the axes, near 1, -1, i, -i and the unit circle, and all pairs
    of special values."""
    part = real_type(dtype)
    random = np.random.default_rng(part.itemsize)
    fifth = count // 5
    edge = np.log2(float(np.finfo(part).max)) - 1

    def signed(values):
        return values * random.choice([-1, 1], values.shape)

    any_size = signed(2 ** random.uniform(-edge, edge, (2, fifth)))
    moderate = random.uniform(-4, 4, (2, fifth))
    near_axis = np.stack([signed(2 ** random.uniform(-4, 6, fifth)), signed(2 ** random.uniform(-40, 0, fifth))])
    near_axis = np.where(random.random(fifth) < 0.5, near_axis, near_axis[::-1])
    corner = signed(2 ** random.uniform(-30, 0, (2, fifth)))
    corner += np.where(random.random(fifth) < 0.5, [[1], [0]], [[0], [1]]) * random.choice([-1, 1], fifth)
    angle = random.uniform(-np.pi, np.pi, fifth)
    radius = 1 + signed(2 ** random.uniform(-40, -4, fifth))
    circle = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    x, y = np.concatenate([any_size, moderate, near_axis, corner, circle], axis=1).astype(part)
    special = specials(part)
    special = special[~is_denormal(special)]
    z = np.empty(len(x) + len(special) ** 2, dtype)
    z.real = np.concatenate([x, np.repeat(special, len(special))])
    z.imag = np.concatenate([y, np.tile(special, len(special))])
    return z
