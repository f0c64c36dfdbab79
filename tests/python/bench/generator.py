"""Random programs for the benchmark: chains of elementwise operations, loop nests with reductions, and loops over small arrays.

A program depends only on its seed, so that two builds can be compared on programs that nobody tuned them to.
"""

import dataclasses
import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

KINDS = ("chain", "nest", "loop")

UNARY = {
    "neg": lambda x: -x,
    "abs": jnp.abs,
    "exp": lambda x: jnp.exp(-jnp.abs(x)),
    "tanh": jnp.tanh,
    "log1p": lambda x: jnp.log1p(jnp.abs(x)),
    "sqrt": lambda x: jnp.sqrt(jnp.abs(x) + 1),
    "sin": jnp.sin,
    "sigmoid": jax.nn.sigmoid,
    "relu": jax.nn.relu,
    "floor": jnp.floor,
    "square": lambda x: jnp.clip(x, -4, 4) ** 2,
    "silu": jax.nn.silu,
}
BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": lambda x, y: jnp.clip(x, -3, 3) * jnp.clip(y, -3, 3),
    "div": lambda x, y: x / (jnp.abs(y) + 1),
    "max": jnp.maximum,
    "min": jnp.minimum,
    "where": lambda x, y: jnp.where(x > y, x, 0.5 * y),
}
REDUCTIONS = {"sum": jnp.sum, "max": jnp.max, "mean": jnp.mean, "logsumexp": jax.nn.logsumexp, "var": jnp.var}


@dataclasses.dataclass
class Program:
    """A function and its arguments."""

    name: str
    run: Callable
    args: tuple


def array(r, shape, dtype=np.float32):
    """Returns random numbers in [-2, 2]."""
    values = np.random.default_rng(r.getrandbits(32)).uniform(-2, 2, shape)
    return values.astype(dtype)


def chain(r, seed):
    """A chain of elementwise operations over equal arrays, one of which may have another type."""
    size = 1 << r.randint(12, 22)
    dtype = r.choice([np.float32, np.float32, np.float32, jnp.bfloat16])
    count = r.randint(1, 3)
    steps = [
        (r.choice(list(UNARY)) if r.random() < 0.4 else r.choice(list(BINARY)), r.randrange(99), r.randrange(99))
        for _ in range(r.randint(3, 24))
    ]

    def run(*args):
        values = list(args)
        for op, i, j in steps:
            x, y = values[-1 - i % min(3, len(values))], values[j % len(values)]
            values.append(UNARY[op](x) if op in UNARY else BINARY[op](x, y))
        return values[-1]

    args = tuple(array(r, (size,), dtype) for _ in range(count))
    return Program(f"chain of {len(steps)} operations on {size} {np.dtype(dtype).name}", run, args)


def nest(r, seed):
    """Broadcasts, transposes, slices and reductions of matrices."""
    rows, columns = 1 << r.randint(5, 11), 1 << r.randint(5, 11)
    steps = [(r.randrange(7), r.randrange(99), r.choice(list(UNARY)), r.choice(list(BINARY)), r.choice(list(REDUCTIONS)))
             for _ in range(r.randint(3, 12))]

    def run(x, y, row, column):
        values = [x, y]
        for what, i, unary, binary, reduction in steps:
            v, other = values[-1], values[i % len(values)]
            axis = i % 2
            if what == 0:
                v = BINARY[binary](v, row)
            elif what == 1:
                v = BINARY[binary](v, column[:, None])
            elif what == 2:
                v = v - REDUCTIONS[reduction](v, axis=axis, keepdims=True)
            elif what == 3:
                v = BINARY[binary](v, jnp.roll(other, i % 7, axis))
            elif what == 4:
                v = UNARY[unary](v)
            elif what == 5:
                v = BINARY[binary](v, other[:, ::-1])
            else:
                v = jax.nn.softmax(v, axis=axis)
            values.append(v)
        last = values[-1]
        return last.sum(0), last.max(1), last

    args = (array(r, (rows, columns)), array(r, (rows, columns)), array(r, (columns,)), array(r, (rows,)))
    return Program(f"nest of {len(steps)} steps on {rows}x{columns}", run, args)


def loop(r, seed):
    """A scan or a while loop whose state is scalars and short arrays.

    Its operations are continuous and do not magnify differences, so that results can be compared.
    """
    n, steps = r.choice([2, 3, 4, 8, 16]), r.choice([300, 1000, 3000])
    unary = [op for op in UNARY if op not in ("floor", "square")]
    binary = [op for op in BINARY if op not in ("where", "mul")]
    body = [(r.randrange(8), r.choice(unary), r.choice(binary)) for _ in range(r.randint(1, 5))]
    form = r.choice(["fori", "scan", "while"])

    def step(i, state, x):
        v, s, m = state
        for what, one, two in body:
            if what == 0:
                v = 0.5 * BINARY[two](v, x)
            elif what == 1:
                v = 0.5 * UNARY[one](v)
            elif what == 2:
                s = jnp.tanh(0.5 * s + v.sum() / n)
            elif what == 3:
                v = jnp.tanh(m @ v / (2 * n))
            elif what == 4:
                v = v.at[i % n].set(0.5 * s)
            elif what == 5:
                s = 0.5 * BINARY[two](s, v[i % n])
            elif what == 6:
                v = jnp.cumsum(v) / n
            else:
                v = jnp.maximum(0.5 * v, 0.5 * jnp.roll(v, 1))
        return jnp.clip(v, -3, 3), jnp.clip(s, -3, 3), m

    def run(v, m, xs):
        state = (v, jnp.float32(0.1), m)
        if form == "scan":
            def scanned(carry, x):
                carry = (carry[0] + 1, step(carry[0], carry[1], x))
                return carry, carry[1][1]
            (_, state), out = lax.scan(scanned, (jnp.int32(0), state), xs)
            return state[0], out
        if form == "fori":
            state = lax.fori_loop(0, steps, lambda i, s: step(i, s, xs[i % 8]), state)
        else:
            _, state = lax.while_loop(lambda s: s[0] < steps, lambda s: (s[0] + 1, step(s[0], s[1], xs[s[0] % 8])),
                                      (jnp.int32(0), state))
        return state[:2]

    count = steps if form == "scan" else 8
    args = (array(r, (n,)), array(r, (n, n)), array(r, (count, n)))
    return Program(f"{form} of {steps} steps on {n} elements", run, args)


def program(kind, seed):
    """Returns the program of a kind for a seed."""
    r = random.Random(f"{kind} {seed}")
    return {"chain": chain, "nest": nest, "loop": loop}[kind](r, seed)
