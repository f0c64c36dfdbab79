"""Programs that JAX lowers: functions that arrive as composites, random numbers, and models with their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from case import DTYPES, EXACT, FLOATS, INTEGERS, Case, Rule, generator, values, whole
from jax import lax


def lowered(function, inputs) -> str:
    """The program of a function, as JAX lowers it for a platform without rules of its own."""
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in inputs]
    # As in JAX's default configuration, where nothing of the function has 64 bits.
    with jax.enable_x64(any(x.dtype.name in ("float64", "int64", "uint64") for x in inputs)):
        return jax.jit(function).trace(*shapes).lower(lowering_platforms=("plugin",)).as_text()


FUNCTIONS = {
    "acos": (lax.acos, np.arccos, -0.95, 0.95), "acosh": (lax.acosh, np.arccosh, 1.1, 9), "asin": (lax.asin, np.arcsin, -0.95, 0.95),
    "asinh": (lax.asinh, np.arcsinh, -5, 5), "atan": (lax.atan, np.arctan, -5, 5), "atanh": (lax.atanh, np.arctanh, -0.9, 0.9),
    "cosh": (lax.cosh, np.cosh, -4, 4), "sinh": (lax.sinh, np.sinh, -4, 4), "erf": (lax.erf, scipy.special.erf, -3, 3),
    "erfc": (lax.erfc, scipy.special.erfc, -2, 3), "erf_inv": (lax.erf_inv, scipy.special.erfinv, -0.95, 0.95),
    "lgamma": (lax.lgamma, scipy.special.gammaln, 2.5, 9), "digamma": (lax.digamma, scipy.special.digamma, 2, 9),
    "bessel_i1e": (lax.bessel_i1e, scipy.special.i1e, -5, 5),
}  # fmt: skip


def functions():
    for op, (function, true, low, high) in FUNCTIONS.items():
        for element in FLOATS:
            x = values(element, (4, 9), op, low=low, high=high)
            ulps = {"f32": 64, "f64": 64}.get(element, 4)
            rule = Rule(
                f"{ulps} ulps: the specification leaves the accuracy of {op} to implementations; JAX's own expansions have some tens of ulps",
                ulps=ulps, sums=2 if element in ("f32", "f64") else 0, size=lambda wide: 1.0,
            )  # fmt: skip
            yield Case(op, element, "ordinary", lambda _, f=function, x=x: lowered(f, [x]), [x], rule, true, np.float64)
    for element in FLOATS + INTEGERS:
        x = whole(element, (3, 9), "top_k", most=30)
        yield Case("top_k", element, "ordinary", lambda _, x=x: lowered(lambda x: lax.top_k(x, 3), [x]), [x], EXACT, exact=True)
    for element in ("f32", "f64"):
        a, b = values(element, (20,), "next"), values(element, (20,), "after")
        yield Case(
            "next_after",
            element,
            "ordinary",
            lambda _, a=a, b=b: lowered(lax.nextafter, [a, b]),
            [a, b],
            EXACT,
            np.nextafter,
            DTYPES[element],
            exact=True,
        )
    key = np.array([3, 4000000000], np.uint32)
    for name, function in {
        "bits": lambda key: jax.random.bits(key, (13,)),
        "split": lambda key: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(key), 3)),
        "uniform": lambda key: jax.random.uniform(key, (11,), jnp.float32),
        "permutation": lambda key: jax.random.permutation(key, 12),
    }.items():
        yield Case("threefry", "f32" if name == "uniform" else "ui32", name, lambda _, f=function: lowered(f, [key]), [key], EXACT, exact=True)


def quantized(shape, *words, scale=1.0):
    """Numbers with few digits, which keeps the files small, and which f32 and f64 both have."""
    numbers = generator("model", shape, *words).integers(-64, 65, shape)
    return (numbers * (scale / 64)).astype(np.float32)


def mlp():
    sizes = (16, 32, 24, 10)
    parameters = [(quantized((m, n), "mlp", m, scale=0.5), quantized((n,), "bias", n, scale=0.2)) for m, n in zip(sizes, sizes[1:])]
    images, labels = quantized((12, 16), "images"), np.arange(12, dtype=np.int32) % 10

    def forward(parameters, x):
        for weights, bias in parameters[:-1]:
            x = jnp.tanh(x @ weights + bias)
        weights, bias = parameters[-1]
        return jax.nn.log_softmax(x @ weights + bias)

    def loss(parameters, x, labels):
        return -jnp.mean(jnp.take_along_axis(forward(parameters, x), labels[:, None], axis=1))

    return forward, loss, parameters, (images,), (images, labels)


def cnn():
    parameters = {
        "first": quantized((3, 3, 1, 6), "cnn", 1, scale=0.5), "second": quantized((3, 3, 6, 8), "cnn", 2, scale=0.3),
        "scale": 1 + quantized((8,), "scale", scale=0.25), "last": quantized((32, 5), "cnn", 3, scale=0.4),
    }  # fmt: skip
    images, labels = quantized((4, 8, 8, 1), "images"), np.arange(4, dtype=np.int32)
    numbers = ("NHWC", "HWIO", "NHWC")

    def forward(parameters, x):
        x = jax.nn.gelu(lax.conv_general_dilated(x, parameters["first"], (1, 1), "SAME", dimension_numbers=numbers))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = lax.conv_general_dilated(x, parameters["second"], (1, 1), "SAME", dimension_numbers=numbers)
        mean = x.mean((0, 1, 2))
        x = (x - mean) * lax.rsqrt(jnp.square(x - mean).mean((0, 1, 2)) + 1e-3) * parameters["scale"]
        x = lax.reduce_window(jax.nn.silu(x), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return x.reshape(4, -1) @ parameters["last"]

    def loss(parameters, x, labels):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(forward(parameters, x)) * jax.nn.one_hot(labels, 5), axis=1))

    return forward, loss, parameters, (images,), (images, labels)


def transformer():
    width, heads, hidden, words = 16, 2, 32, 20
    shapes = {"qkv": (width, 3 * width), "out": (width, width), "up": (width, hidden), "down": (hidden, width)}
    layers = [{name: quantized(shape, "transformer", layer, name, scale=0.3) for name, shape in shapes.items()} for layer in range(2)]
    parameters = {"embedding": quantized((words, width), "embedding"), "layers": layers, "norm": 1 + quantized((width,), "norm", scale=0.2)}
    tokens = generator("tokens").integers(0, words, (2, 9)).astype(np.int32)

    def norm(x):
        return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-5)

    def attention(layer, x):
        batch, length, _ = x.shape
        q, k, v = (y.reshape(batch, length, heads, -1) for y in jnp.split(x @ layer["qkv"], 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads).astype(np.float32)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(batch, length, width) @ layer["out"]

    def forward(parameters, tokens):
        x = parameters["embedding"][tokens]
        for layer in parameters["layers"]:
            x = x + attention(layer, norm(x))
            x = x + jax.nn.gelu(norm(x) @ layer["up"]) @ layer["down"]
        return norm(x) * parameters["norm"] @ parameters["embedding"].T

    def loss(parameters, tokens):
        scores = jax.nn.log_softmax(forward(parameters, tokens[:, :-1]))
        return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1))

    return forward, loss, parameters, (tokens,), (tokens,)


def lstm():
    inputs, hidden = 6, 12
    parameters = {
        "w": quantized((inputs + hidden, 4 * hidden), "lstm", scale=0.4), "b": quantized((4 * hidden,), "lstm bias", scale=0.2),
        "out": quantized((hidden, 3), "lstm out", scale=0.5),
    }  # fmt: skip
    sequence, target = quantized((8, 3, inputs), "sequence"), quantized((8, 3, 3), "target")

    def forward(parameters, sequence):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(jnp.concatenate([x, h], axis=-1) @ parameters["w"] + parameters["b"], 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h @ parameters["out"]

        start = jnp.zeros((sequence.shape[1], hidden), sequence.dtype)
        return lax.scan(step, (start, start), sequence)[1]

    def loss(parameters, sequence, target):
        return jnp.mean(jnp.square(forward(parameters, sequence) - target))

    return forward, loss, parameters, (sequence,), (sequence, target)


def models():
    rule = Rule(
        "128 roundings of the largest element of each result: a model chains some hundred sums and functions; the errors of XLA's CPU backend are below 8",
        sums=128, size="each",
    )  # fmt: skip
    for model in (mlp, cnn, transformer, lstm):
        forward, loss, parameters, forward_inputs, loss_inputs = model()
        leaves, tree = jax.tree.flatten(parameters)
        count = len(leaves)

        def flat(function, count=count, tree=tree):
            return lambda *xs: jax.tree.leaves(function(jax.tree.unflatten(tree, xs[:count]), *xs[count:]))

        for name, function, inputs in (("forward", flat(forward), forward_inputs), ("gradient", flat(jax.value_and_grad(loss)), loss_inputs)):
            inputs = [np.asarray(x) for x in [*leaves, *inputs]]

            def text(element, function=function, inputs=inputs):
                wide = [x.astype(DTYPES[element]) if x.dtype == np.float32 else x for x in inputs]
                with jax.default_matmul_precision("highest"):
                    return lowered(function, wide)

            yield Case(model.__name__, "f32", name, text, inputs, rule)
