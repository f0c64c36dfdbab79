"""Programs that JAX lowers without Shardy: `shard_map` and `pmap` are regions of custom calls."""

import plugins

plugins.use("refcpu,cpu", REFCPU_NUM_DEVICES="4")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

jax.config.update("jax_use_shardy_partitioner", False)

ROW = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
SQUARE = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
A = np.arange(32, dtype=np.float32).reshape(8, 4)
INDEX = np.repeat(np.arange(4, dtype=np.float32), 2)[:, None]


def shards(function, inputs, outputs, mesh=ROW, **options):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=outputs, **options))


def add_index(x):
    return x + lax.axis_index("x")


ROTATION = [(i, (i + 1) % 4) for i in range(4)]
TOTAL = shards(lambda x: lax.psum((x**2).sum(), "x"), P("x"), P())



def nested(x):
    """A region along `y` in a region along `x`, with its own index of each."""

    def inner(part):
        return part + lax.axis_index("y") + lax.psum(part, "y")

    return jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})(2 * x) + lax.axis_index("x")


PARTS = 2 * A.reshape(8, 2, 2)
NESTED = (PARTS + np.arange(2)[:, None] + PARTS.sum(1, keepdims=True)).reshape(8, 4) + np.repeat(np.arange(2), 4)[:, None]

PROGRAMS = {
    "sum": (shards(lambda x: lax.psum(x.sum(0), "x"), P("x"), P()), A.sum(0)),
    "gather": (shards(lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P(None), check_vma=False), A),
    "permutation": (shards(lambda x: lax.ppermute(x, "x", ROTATION), P("x"), P("x")), np.roll(A, 2, 0)),
    "index": (shards(add_index, P("x"), P("x")), A + INDEX),
    "sequence": (
        lambda a: shards(jnp.square, P("x"), P("x"))(shards(jnp.square, P("x"), P("x"))(a) + 1),
        (A**2 + 1) ** 2,
    ),
    "gradient": (jax.jit(jax.grad(TOTAL)), 2 * A),
    "loop": (
        jax.jit(lambda a: lax.fori_loop(0, 3, lambda _, x: shards(add_index, P("x"), P("x"))(x), a)),
        A + 3 * INDEX,
    ),
    "one of two axes": (
        shards(lambda x: lax.psum(x, "x"), P("x"), P(), SQUARE, axis_names={"x"}),
        A[:4] + A[4:],
    ),
    "two axes": (
        shards(lambda x: lax.psum(x, "y"), P("x", "y"), P("x", None), SQUARE),
        A[:, :2] + A[:, 2:],
    ),
    "a region in another": (shards(nested, P("x"), P("x"), SQUARE, axis_names={"x"}), NESTED),
    "no inputs": (lambda _: shards(lambda: lax.axis_index("x")[None], (), P("x"))(), np.arange(4)),
    "pmap": (
        lambda a: jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(a[:4]),
        np.broadcast_to(A[:4].sum(0), (4, 4)),
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_shards_compute_what_the_whole_array_does(program):
    function, expected = PROGRAMS[program]
    np.testing.assert_allclose(function(A), expected, rtol=1e-6)
