"""Arrays that are divided among devices: results are what NumPy gives, and hosts learn how they are divided."""

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="4")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

SQUARE = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
LINE = Mesh(np.array(jax.devices()), ("d",))

WHOLE = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)

# Programs whose output shardings JAX leaves to the compiler.
PROGRAMS = {
    "sum": (lambda x: jnp.sum(x), lambda x: x.sum()),
    "sort": (lambda x: jnp.sort(x, 0), lambda x: np.sort(x, 0)),
    "cumulative sum": (lambda x: jnp.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "slice": (lambda x: x[3:5, 1:9], lambda x: x[3:5, 1:9]),
    "update": (lambda x: x.at[2].set(0), lambda x: np.where(np.arange(8)[:, None] == 2, 0, x)),
    "reshape": (lambda x: x.reshape(4, 24), lambda x: x.reshape(4, 24)),
    "concatenation": (lambda x: jnp.concatenate([x, x]), lambda x: np.concatenate([x, x])),
    "gradient": (jax.grad(lambda x: (x**3).sum()), lambda x: 3 * x**2),
    "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 2, x), lambda x: x * 8),
    "transform": (lambda x: jnp.fft.fft(x, axis=0), lambda x: np.fft.fft(x, axis=0)),
}


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y"), P("x", "y"), P(("x", "y"))], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_divided_arrays(name, spec):
    program, expected = PROGRAMS[name]
    x = jax.device_put(WHOLE, NamedSharding(SQUARE, spec))
    result = jax.jit(program)(x)
    np.testing.assert_allclose(np.asarray(result), expected(WHOLE), rtol=1e-4, atol=1e-4)
    assert result.sharding.device_set == set(jax.devices())


def test_an_output_is_divided_as_the_program_asks():
    x = jax.device_put(WHOLE, NamedSharding(SQUARE, P("x", "y")))
    wanted = NamedSharding(SQUARE, P("y", "x"))
    asked = jax.jit(lambda x: x * 2, out_shardings=wanted)(x)
    constrained = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, wanted))(x)
    for result in (asked, constrained):
        np.testing.assert_array_equal(np.asarray(result), WHOLE * 2)
    for shard in asked.addressable_shards:
        np.testing.assert_array_equal(np.asarray(shard.data), (WHOLE * 2)[shard.index])


COLLECTIVES = {
    "psum": (lambda x: jax.lax.psum(x, "d"), lambda x: np.tile(x.reshape(4, 2, 12).sum(0), (4, 1))),
    "all_gather": (lambda x: jax.lax.all_gather(x, "d", tiled=True)[:2], lambda x: np.tile(x[:2], (4, 1))),
    "ppermute": (lambda x: jax.lax.ppermute(x, "d", [(0, 1), (1, 2), (2, 3), (3, 0)]), lambda x: np.roll(x, 2, 0)),
    "axis_index": (lambda x: x + jax.lax.axis_index("d"), lambda x: x + np.repeat(np.arange(4), 2)[:, None]),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_between_shards(name):
    program, expected = COLLECTIVES[name]
    mapped = jax.jit(jax.shard_map(program, mesh=LINE, in_specs=P("d"), out_specs=P("d"), check_vma=False))
    np.testing.assert_allclose(np.asarray(mapped(WHOLE)), expected(WHOLE), rtol=1e-5, atol=1e-5)
