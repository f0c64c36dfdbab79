"""Training a transformer on eight devices, in all the ways in which it is divided: the losses are those of one device.

A strategy assigns the dimensions of arrays to axes of a mesh. Under `jit`, it states the shardings of the state and of
activations, and the compiler derives the rest. Under `shard_map`, the same model calls the collectives itself.
"""

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="8")

import functools  # noqa: E402
from typing import NamedTuple  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

STEPS = 50
LAYERS = 4
MICROBATCHES = 4
RATE, DECAYS, EPSILON = 3e-3, (0.9, 0.95), 1e-5


class Sizes(NamedTuple):
    batch: int
    time: int
    vocab: int
    width: int
    heads: int
    head: int
    hidden: int


EVEN = Sizes(batch=16, time=8, vocab=32, width=16, heads=8, head=4, hidden=32)

# Two, four and eight devices have unequal parts of these, and some devices have none.
UNEVEN = Sizes(batch=7, time=8, vocab=30, width=16, heads=5, head=4, hidden=34)

# The dimensions of each parameter. Those of a layer are stacked.
PARAMETERS = {
    "embedding": ("vocab", "width"),
    "position": ("time", "width"),
    "scale": ("width",),
    "shift": ("width",),
    "unembedding": ("width", "vocab"),
}
LAYER = {
    "attention_scale": ("width",),
    "attention_shift": ("width",),
    "query": ("width", "heads", "head"),
    "key": ("width", "heads", "head"),
    "value": ("width", "heads", "head"),
    "out": ("heads", "head", "width"),
    "scale": ("width",),
    "shift": ("width",),
    "up": ("width", "hidden"),
    "up_bias": ("hidden",),
    "down": ("hidden", "width"),
    "down_bias": ("width",),
}
DIMENSIONS = {**PARAMETERS, "layers": {name: ("layer", *of) for name, of in LAYER.items()}}


class Strategy(NamedTuple):
    """A mesh, and the axis of the mesh along which each dimension is divided.

    `width` is that of parameters: the activations have the whole width.
    """

    mesh: dict[str, int]
    axes: dict[str, str]
    sizes: Sizes = EVEN

    def axis(self, dimension):
        return self.axes.get(dimension)

    def devices(self):
        return Mesh(np.array(jax.devices()).reshape(*self.mesh.values()), tuple(self.mesh))

    def spec(self, *dimensions):
        return P(*map(self.axis, dimensions))

    def stored_spec(self, *dimensions):
        """The sharding of an argument, of which JAX demands equal parts."""
        sizes = {**self.sizes._asdict(), "layer": LAYERS}
        divides = (self.axis(of) and sizes[of] % self.mesh[self.axis(of)] == 0 for of in dimensions)
        return P(*(self.axis(of) if even else None for of, even in zip(dimensions, divides)))


TENSOR = {"heads": "model", "hidden": "model", "vocab": "model"}
DATA = {"batch": "data"}
SHARDED_DATA = {"batch": "data", "width": "data"}

STRATEGIES = {
    "data": Strategy({"data": 8}, DATA),
    "tensor": Strategy({"model": 8}, TENSOR),
    "fsdp": Strategy({"data": 8}, SHARDED_DATA),
    "pipeline": Strategy({"stage": 4, "data": 2}, {"layer": "stage", **DATA}),
    "data x tensor": Strategy({"data": 2, "model": 4}, {**DATA, **TENSOR}),
    "fsdp x tensor": Strategy({"model": 2, "data": 4}, {**SHARDED_DATA, **TENSOR}),
    "pipeline x fsdp x tensor": Strategy(
        {"stage": 2, "data": 2, "model": 2}, {"layer": "stage", **SHARDED_DATA, **TENSOR}
    ),
}
UNEVEN_STRATEGIES = {
    "uneven tensor": Strategy({"model": 8}, TENSOR, UNEVEN),
    "uneven fsdp x tensor": Strategy({"data": 2, "model": 4}, {**SHARDED_DATA, **TENSOR}, UNEVEN),
}


def map_parameters(function, *trees):
    """Maps a function of parameters' dimensions and of the trees' leaves."""
    return jax.tree.map(function, DIMENSIONS, *trees, is_leaf=lambda of: isinstance(of, tuple))


class Whole:
    """How the model runs on one device: it has nothing to communicate. The other ways derive from this one."""

    def activations(self, x, *dimensions):
        """An array of the model that has these dimensions."""
        return x

    def parameters(self, parameters, dimensions):
        """The parameters as the computations take them."""
        return parameters

    def sum(self, x, dimension):
        """A sum over a dimension from the sums over each device's part of it."""
        return x

    def maximum(self, x, dimension):
        return x

    def index(self, dimension):
        """The number of the device along a dimension."""
        return 0

    def layers(self, layer, x, parameters):
        return lax.scan(lambda x, of: (layer(x, of), None), x, parameters)[0]


class Constrained(Whole):
    """States the shardings, of which the compiler derives the communication."""

    def __init__(self, strategy):
        self.strategy, self.mesh = strategy, strategy.devices()

    def activations(self, x, *dimensions):
        sharding = NamedSharding(self.mesh, self.strategy.spec(*dimensions))
        return lax.with_sharding_constraint(x, sharding)

    def parameters(self, parameters, dimensions):
        if self.strategy.sizes is EVEN:
            return parameters
        # Their shardings as arguments leave out the dimensions that the devices do not divide.
        return {name: self.activations(of, *dimensions[name]) for name, of in parameters.items()}

    def layers(self, layer, x, parameters):
        if self.strategy.axis("layer"):
            return self.pipeline(layer, x, parameters)
        return super().layers(layer, x, parameters)

    def pipeline(self, layer, x, parameters):
        """Every stage's layers run at once. Each microbatch moves on by one stage per iteration, since the buffer of the
        stages' inputs rotates."""
        stages = self.strategy.mesh["stage"]
        parameters = jax.tree.map(lambda of: of.reshape(stages, -1, *of.shape[1:]), parameters)
        spare = jnp.zeros((stages - 1, *microbatches(x).shape[1:]), x.dtype)
        inputs = jnp.concatenate([microbatches(x), spare])

        @functools.partial(jax.vmap, spmd_axis_name="stage")
        def stage(x, parameters):
            return Whole.layers(self, layer, x, parameters)

        def iteration(buffer, entering):
            buffer = self.activations(buffer.at[0].set(entering), "layer", "batch", None, None)
            buffer = self.activations(stage(buffer, parameters), "layer", "batch", None, None)
            return jnp.roll(buffer, 1, axis=0), buffer[-1]

        outputs = lax.scan(iteration, jnp.zeros_like(inputs[:stages]), inputs)[1]
        return outputs[stages - 1 :].reshape(x.shape)


class Manual(Whole):
    """Calls the collectives, on one device's parts."""

    def __init__(self, strategy):
        self.strategy = strategy

    def parameters(self, parameters, dimensions):
        """Gathers those that are divided for storage only. Its transpose scatters their gradients."""
        axis = self.strategy.axis("width")

        def gathered(of, dimensions):
            is_divided = axis and "width" in dimensions
            return lax.all_gather(of, axis, axis=dimensions.index("width"), tiled=True) if is_divided else of

        return {name: gathered(of, dimensions[name]) for name, of in parameters.items()}

    def sum(self, x, dimension):
        return lax.psum(x, self.strategy.axis(dimension)) if self.strategy.axis(dimension) else x

    def maximum(self, x, dimension):
        # `pmax` has no gradient, and none is needed.
        x = lax.stop_gradient(x)
        return lax.pmax(x, self.strategy.axis(dimension)) if self.strategy.axis(dimension) else x

    def index(self, dimension):
        return lax.axis_index(self.strategy.axis(dimension)) if self.strategy.axis(dimension) else 0

    def layers(self, layer, x, parameters):
        if self.strategy.axis("layer"):
            return self.pipeline(layer, x, parameters)
        return super().layers(layer, x, parameters)

    def pipeline(self, layer, x, parameters):
        """Each device runs the layers of its stage, and passes the results to the device of the next one."""
        stages, here = self.strategy.mesh["stage"], lax.axis_index("stage")
        inputs = microbatches(x)
        successors = [(stage, (stage + 1) % stages) for stage in range(stages)]

        def iteration(arrived, i):
            x = jnp.where(here == 0, inputs[jnp.minimum(i, MICROBATCHES - 1)], arrived)
            x = Whole.layers(self, layer, x, parameters)
            return lax.ppermute(x, "stage", successors), x

        first = lax.pcast(inputs[0] * 0, "stage", to="varying")
        outputs = lax.scan(iteration, first, jnp.arange(MICROBATCHES + stages - 1))[1]
        outputs = outputs[stages - 1 :].reshape(x.shape)
        return lax.psum(jnp.where(here == stages - 1, outputs, 0), "stage")


def microbatches(x):
    """Takes a part of each device's sequences for each microbatch, so that all devices work on each."""
    return x.reshape(MICROBATCHES, -1, *x.shape[1:])


def normalized(x, scale, shift):
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale + shift


def layer(how, x, parameters):
    p = how.parameters(parameters, LAYER)
    y = normalized(x, p["attention_scale"], p["attention_shift"])
    query, key, value = (
        how.activations(jnp.einsum("btw,wnh->btnh", y, p[name]), "batch", None, "heads", None)
        for name in ("query", "key", "value")
    )
    scores = jnp.einsum("btnh,bsnh->bnts", query, key) / np.sqrt(query.shape[-1])
    is_past = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(is_past, scores, -1e9))
    attended = jnp.einsum("bnts,bsnh->btnh", weights, value)
    x = x + how.sum(jnp.einsum("btnh,nhw->btw", attended, p["out"]), "heads")
    x = how.activations(x, "batch", None, None)
    y = normalized(x, p["scale"], p["shift"])
    hidden = how.activations(jax.nn.gelu(y @ p["up"] + p["up_bias"]), "batch", None, "hidden")
    x = x + how.sum(hidden @ p["down"], "hidden") + p["down_bias"]
    return how.activations(x, "batch", None, None)


def embedded(how, tokens, embedding):
    """Each device looks up the tokens in its part of the vocabulary."""
    tokens = tokens - how.index("vocab") * embedding.shape[0]
    is_here = (tokens >= 0) & (tokens < embedding.shape[0])
    rows = embedding[jnp.where(is_here, tokens, 0)]
    return how.sum(jnp.where(is_here[..., None], rows, 0), "vocab")


def cross_entropy(how, logits, labels):
    """Of logits of each device's part of the vocabulary."""
    logits = logits - how.maximum(lax.stop_gradient(logits.max(-1)), "vocab")[..., None]
    total = how.sum(jnp.exp(logits).sum(-1), "vocab")
    here = labels[..., None] - how.index("vocab") * logits.shape[-1] == jnp.arange(logits.shape[-1])
    return jnp.log(total) - how.sum(jnp.where(here, logits, 0).sum(-1), "vocab")


def mean_loss(how, parameters, tokens):
    """The mean over all sequences of the loss of predicting each token from those before it."""
    layers = parameters["layers"]
    outer = {name: parameters[name] for name in PARAMETERS}
    p = how.parameters(outer, PARAMETERS)
    tokens = how.activations(tokens, "batch", None)
    x = embedded(how, tokens[:, :-1], p["embedding"]) + p["position"]
    x = how.activations(x, "batch", None, None)
    x = how.layers(functools.partial(layer, how), x, layers)
    x = normalized(x, p["scale"], p["shift"])
    logits = how.activations(x @ p["unembedding"], "batch", None, "vocab")
    losses = cross_entropy(how, logits, tokens[:, 1:])
    return how.sum(losses.sum(), "batch") / how.sum(jnp.float32(losses.size), "batch")


def step(how, state, tokens):
    """A step of Adam."""
    loss, gradient = jax.value_and_grad(functools.partial(mean_loss, how))(state["parameters"], tokens)
    count = state["count"] + 1
    first, second = (
        jax.tree.map(lambda moment, of: decay * moment + (1 - decay) * of**power, state[name], gradient)
        for name, decay, power in (("first", DECAYS[0], 1), ("second", DECAYS[1], 2))
    )

    def updated(of, first, second):
        first, second = first / (1 - DECAYS[0] ** count), second / (1 - DECAYS[1] ** count)
        return of - RATE * first / (jnp.sqrt(second) + EPSILON)

    parameters = jax.tree.map(updated, state["parameters"], first, second)
    return {"count": count, "parameters": parameters, "first": first, "second": second}, loss


@functools.cache
def initial_state(sizes):
    random = np.random.default_rng(0)
    sizes = {**sizes._asdict(), "layer": LAYERS}

    def initial(dimensions):
        shape = tuple(sizes[of] for of in dimensions)
        inputs = np.prod(shape[:-1]) / (LAYERS if "layer" in dimensions else 1)
        return (random.standard_normal(shape) / np.sqrt(max(inputs, 4))).astype(np.float32)

    parameters = map_parameters(initial)
    for scales in (parameters, parameters["layers"]):
        scales.update({name: of + 1 for name, of in scales.items() if name.endswith("scale")})
    zeros = functools.partial(jax.tree.map, np.zeros_like)
    return {"count": np.float32(0), "parameters": parameters, "first": zeros(parameters), "second": zeros(parameters)}


@functools.cache
def sequences(sizes):
    """Sequences of which each token follows from the one before, except for some that are random."""
    random = np.random.default_rng(1)
    tokens = random.integers(0, sizes.vocab, (STEPS, sizes.batch, sizes.time + 1), np.int32)
    follows = random.random(tokens.shape) < 0.9
    for i in range(1, sizes.time + 1):
        tokens[..., i] = np.where(follows[..., i], (tokens[..., i - 1] * 3 + 1) % sizes.vocab, tokens[..., i])
    return tokens


def train(compiled, sizes):
    state, losses = initial_state(sizes), []
    for tokens in sequences(sizes):
        state, loss = compiled(state, tokens)
        losses.append(loss)
    return np.array(losses), jax.tree.map(np.asarray, state)


@functools.cache
def trained_on_one_device(sizes):
    return train(jax.jit(functools.partial(step, Whole())), sizes)


def specs(strategy):
    parameters = map_parameters(lambda of: strategy.stored_spec(*of))
    state = {"count": P(), "parameters": parameters, "first": parameters, "second": parameters}
    return state, strategy.stored_spec("batch", "time")


def of_jit(strategy):
    state, tokens = jax.tree.map(lambda spec: NamedSharding(strategy.devices(), spec), specs(strategy))
    whole = NamedSharding(strategy.devices(), P())
    function = functools.partial(step, Constrained(strategy))
    return jax.jit(function, in_shardings=(state, tokens), out_shardings=(state, whole))


def of_shard_map(strategy):
    state, tokens = specs(strategy)
    function = functools.partial(step, Manual(strategy))
    mapped = jax.shard_map(function, mesh=strategy.devices(), in_specs=(state, tokens), out_specs=(state, P()))
    return jax.jit(mapped)


def compare(compiled, strategy):
    expected_losses, expected = trained_on_one_device(strategy.sizes)
    losses, state = train(compiled, strategy.sizes)
    assert expected_losses[-1] < 0.8 * expected_losses[0], expected_losses
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), state, expected)


@pytest.fixture(params=["shardy", "gspmd"])
def partitioner(request):
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param == "shardy")
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.parametrize("name", {**STRATEGIES, **UNEVEN_STRATEGIES})
def test_jit_trains_in_parts_as_one_device_does(name, partitioner, monkeypatch):
    # It is read when a program is compiled.
    monkeypatch.setenv("REFCPU_PARTITIONED", "1")
    strategy = {**STRATEGIES, **UNEVEN_STRATEGIES}[name]
    compare(of_jit(strategy), strategy)


@pytest.mark.parametrize("name", ["pipeline x fsdp x tensor", "uneven fsdp x tensor"])
def test_jit_trains_on_whole_arrays_as_one_device_does(name, partitioner):
    strategy = {**STRATEGIES, **UNEVEN_STRATEGIES}[name]
    compare(of_jit(strategy), strategy)


@pytest.mark.parametrize("name", STRATEGIES)
def test_shard_map_trains_as_one_device_does(name, partitioner):
    compare(of_shard_map(STRATEGIES[name]), STRATEGIES[name])
