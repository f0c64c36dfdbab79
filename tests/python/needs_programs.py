"""Writes the programs of `cargo pjrt needs`: functions of JAX, lowered for a platform that JAX has no rules for.

    python needs_programs.py FOLDER

One file for each tier, in which a line `// ----- NAME` begins each program.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

PLATFORM = "plugin"


def array(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


X = array(4, 8)
Y = array(8, 4)
V = array(8)
HALF = array(4, 8, dtype=jnp.bfloat16)
INT = array(4, 8, dtype=jnp.int32)
FLAGS = array(4, 8, dtype=jnp.bool_)
KEY = array(2, dtype=jnp.uint32)
SQUARE = array(6, 6)


def dense(parameters, x):
    """A multilayer perceptron."""
    for weights, bias in parameters[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = parameters[-1]
    return x @ weights + bias


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def sgd(parameters, x, labels):
    gradients = jax.grad(lambda p: cross_entropy(dense(p, x), labels))(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def adam(parameters, first, second, step, x, labels):
    loss, gradients = jax.value_and_grad(lambda p: cross_entropy(dense(p, x), labels))(parameters)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    rate = 1e-3 * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    update = lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8)
    return jax.tree.map(update, parameters, first, second), first, second, step + 1, loss


def convolutional(parameters, images, labels):
    """A step of a convolutional network with maximum pooling."""

    def loss(p):
        x = images
        for kernel in p["kernels"]:
            x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(x.reshape(x.shape[0], -1) @ p["weights"], labels)

    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, jax.grad(loss)(parameters))


def attention(parameters, x):
    """One layer of a transformer with causal attention and layer normalization."""

    def normalized(x):
        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)

    q, k, v = (jnp.einsum("btd,dhe->bhte", normalized(x), parameters[name]) for name in "qkv")
    scores = jnp.einsum("bhte,bhse->bhts", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    x = x + jnp.einsum("bhts,bhse,hed->btd", weights, v, parameters["o"])
    return x + jax.nn.gelu(normalized(x) @ parameters["up"]) @ parameters["down"]


def transformer(parameters, tokens, key):
    """A step of a language model, with dropout and mixed precision."""

    def loss(p):
        x = p["embedding"][tokens[:, :-1]].astype(jnp.bfloat16)
        layer = jax.tree.map(lambda a: a.astype(jnp.bfloat16), p["layer"])
        x = attention(layer, x)
        x = jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)
        logits = (x.astype(jnp.float32) @ p["embedding"].T).reshape(-1, p["embedding"].shape[0])
        return cross_entropy(logits, tokens[:, 1:].reshape(-1))

    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, jax.grad(loss)(parameters))


def recurrent(weights, xs):
    """The gradient through a recurrent network."""

    def step(h, x):
        h = jnp.tanh(h @ weights["h"] + x @ weights["x"])
        return h, h

    return jax.grad(lambda w: jnp.sum(lax.scan(step, jnp.zeros((2, 4)), xs)[1]) + jnp.sum(w["h"]))(weights)


LAYERS = [(array(8, 16), array(16)), (array(16, 4), array(4))]
BATCH = (array(4, 8), array(4, dtype=jnp.int32))
CNN = {"kernels": [array(3, 3, 1, 4), array(3, 3, 4, 8)], "weights": array(32, 4)}
LAYER = {name: array(8, 2, 4) for name in "qkv"} | {"o": array(2, 4, 8), "up": array(8, 16), "down": array(16, 8)}
MODEL = {"embedding": array(16, 8), "layer": LAYER}

# For each tier, its programs: a name, a function, and the types of its arguments.
TIERS = {
    "arithmetic": [
        ("add", jnp.add, [X, X]),
        ("axpy", lambda x, y: 2.5 * x + y, [X, X]),
        ("integers", lambda x, y: (x * y - 3, x // jnp.maximum(y, 1), x % 7, -x, abs(x)), [INT, INT]),
        ("bits", lambda x, y: (x & y, x | y, x ^ y, ~x, x << 2, x >> 1), [INT, INT]),
        ("comparisons", lambda x, y: jnp.where((x < y) & (x != 0), x, y), [X, X]),
        ("conversions", lambda x: (x.astype(jnp.int32), x.astype(jnp.bfloat16), x > 0, x.astype(jnp.int8)), [X]),
        ("half", lambda x: (x * x + x).sum(-1), [HALF]),
        ("roots_and_powers", lambda x: (jnp.sqrt(x), lax.rsqrt(x), jnp.cbrt(x), x**3, jnp.power(x, x)), [X]),
        ("exponentials", lambda x: (jnp.exp(x), jnp.log(x), jnp.expm1(x), jnp.log1p(x), jnp.exp2(x)), [X]),
        ("trigonometry", lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.arctan2(x, x), jnp.arcsin(x)), [X]),
        ("activations", lambda x: (jnp.tanh(x), jax.nn.sigmoid(x), jax.nn.gelu(x), jax.nn.silu(x)), [X]),
        ("special_functions", lambda x: (lax.erf(x), lax.lgamma(x), lax.digamma(x), lax.erf_inv(x)), [X]),
        ("rounding", lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.sign(x), jnp.clip(x, -1, 1)), [X]),
        ("reductions", lambda x: (x.sum(0), x.max(1), x.mean(), x.prod(), (x > 0).any(), x.argmax(-1)), [X]),
        ("matmul", lambda x, y: x @ y, [X, Y]),
        ("softmax", jax.nn.softmax, [X]),
        ("complex", lambda x: jnp.abs(jnp.exp(1j * x)) + (x + 1j).real, [X]),
    ],
    "indexing": [
        ("reshape", lambda x: (x.reshape(2, 16), x.T, x[::-1], jnp.broadcast_to(x[0], (3, 8))), [X]),
        ("slice", lambda x: (x[1:3, ::2], x[0], x[-1]), [X]),
        ("concatenate", lambda x, y: (jnp.concatenate([x, y]), jnp.stack([x, y])), [X, X]),
        ("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3))), [X]),
        ("iota", lambda: (jnp.arange(8), jnp.eye(4), jnp.linspace(0, 1, 5)), []),
        ("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 8)), [X, array(dtype=jnp.int32)]),
        ("dynamic_update", lambda x, i: x.at[i].set(1.0), [X, array(dtype=jnp.int32)]),
        ("gather", lambda x, i: x[i], [X, array(3, dtype=jnp.int32)]),
        ("scatter_add", lambda x, i: x.at[i].add(1.0), [X, array(3, dtype=jnp.int32)]),
        ("one_hot", lambda i: jax.nn.one_hot(i, 8), [array(4, dtype=jnp.int32)]),
        ("sort", lambda x: (jnp.sort(x), jnp.argsort(x)), [X]),
        ("top_k", lambda x: lax.top_k(x, 3), [X]),
        ("cumulative", lambda x: (jnp.cumsum(x, 1), lax.cummax(x)), [X]),
        ("search", jnp.searchsorted, [V, V]),
        ("convolution", lambda x: jnp.convolve(x, jnp.ones(3), mode="same"), [V]),
    ],
    "random": [
        ("key", lambda seed: jax.random.key_data(jax.random.key(seed)), [array(dtype=jnp.int32)]),
        ("split", lambda key: jax.random.split(key, 3), [KEY]),
        ("bits", lambda key: jax.random.bits(key, (4, 8)), [KEY]),
        ("uniform", lambda key: jax.random.uniform(key, (4, 8)), [KEY]),
        ("normal", lambda key: jax.random.normal(key, (4, 8)), [KEY]),
        ("half_normal", lambda key: jax.random.normal(key, (4, 8), jnp.bfloat16), [KEY]),
        ("integers", lambda key: jax.random.randint(key, (4, 8), 0, 10), [KEY]),
        ("exponential", lambda key: jax.random.exponential(key, (4, 8)), [KEY]),
        ("categorical", jax.random.categorical, [KEY, X]),
        ("permutation", lambda key: jax.random.permutation(key, 8), [KEY]),
    ],
    "control_flow": [
        ("cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), [X]),
        ("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), [array(dtype=jnp.int32), X]),
        ("while", lambda x: lax.while_loop(lambda s: s.sum() < 100, lambda s: s * 2, x), [X]),
        ("fori", lambda x: lax.fori_loop(0, 5, lambda i, s: s + i, x), [X]),
        ("scan", lambda xs: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(8), xs), [X]),
        ("map", lambda xs: lax.map(lambda x: x / x.sum(), xs), [X]),
        ("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), [V]),
        ("checkpoint", jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), [X]),
        ("recurrent_gradient", recurrent, [{"h": array(4, 4), "x": array(3, 4)}, array(5, 2, 3)]),
    ],
    "linear_algebra": [
        ("einsum", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), [array(2, 3, 4), array(2, 4, 5)]),
        ("cholesky", jnp.linalg.cholesky, [SQUARE]),
        ("triangular_solve", lambda a, b: jax.scipy.linalg.solve_triangular(a, b), [SQUARE, SQUARE]),
        ("solve", jnp.linalg.solve, [SQUARE, SQUARE]),
        ("inverse", jnp.linalg.inv, [SQUARE]),
        ("determinant", jnp.linalg.det, [SQUARE]),
        ("qr", jnp.linalg.qr, [SQUARE]),
        ("norm", jnp.linalg.norm, [SQUARE]),
        ("fft", lambda x: jnp.abs(jnp.fft.fft(x)), [X]),
    ],
    "training": [
        ("gradient", jax.grad(lambda p, x, y: jnp.mean((dense(p, x) - y) ** 2)), [LAYERS, X, array(4, 4)]),
        ("sgd", sgd, [LAYERS, *BATCH]),
        ("adam", adam, [LAYERS, LAYERS, LAYERS, array(dtype=jnp.int32), *BATCH]),
        ("convolutional", convolutional, [CNN, array(4, 8, 8, 1), array(4, dtype=jnp.int32)]),
        ("attention", attention, [LAYER, array(2, 6, 8)]),
        ("transformer", transformer, [MODEL, array(2, 6, dtype=jnp.int32), KEY]),
    ],
}


def lowered(name, function, arguments):
    """Returns the program as text."""
    wrapped = lambda *arguments: function(*arguments)
    wrapped.__name__ = wrapped.__qualname__ = name
    traced = jax.jit(wrapped).trace(*arguments)
    return traced.lower(lowering_platforms=(PLATFORM,)).as_text()


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for tier, programs in TIERS.items():
        texts = []
        for name, function, arguments in programs:
            try:
                texts.append(f"// ----- {name}\n{lowered(name, function, arguments).rstrip()}\n")
            except NotImplementedError as error:
                sys.exit(f"{tier}/{name}: {error}")
        (folder / f"{tier}.mlir").write_text("".join(texts))
        print(f"{tier}: {len(texts)} programs, {sum(map(len, texts))} bytes")


main()
