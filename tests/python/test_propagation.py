"""Shardings that a program on several devices does not say."""

import plugins

plugins.use("refcpu,cpu", REFCPU_NUM_DEVICES="4")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.experimental.shard_alike import shard_alike  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
X = np.arange(16, dtype=np.float32).reshape(8, 2)


def split(array, *spec):
    return jax.device_put(array, NamedSharding(MESH, P(*spec)))


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        (lambda x: x * 2 + 1, P("x", "y")),
        (lambda x: x.T, P("y", "x")),
        (lambda x: x.sum(axis=1), P("x")),
        (lambda x: x @ x.T, P("x")),
        (lambda x: jnp.concatenate([x, x], axis=1), P("x", "y")),
        (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * 2, x), P("x", "y")),
        (lambda x: x[:4], P("x", "y")),
        (lambda x: x[1:], P(None, "y")),
        (lambda x: jnp.pad(x, ((2, 2), (0, 0))), P("x", "y")),
        (lambda x: jnp.concatenate([x, x]), P("x", "y")),
        (lambda x: jnp.roll(x, 3, 0), P("x", "y")),
        (lambda x: jnp.sort(x, 0), P("x", "y")),
        (lambda x: x.cumsum(0), P("x", "y")),
        (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), P("x", "y")),
        (lambda x: jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(2), x)[1], P(None, "y")),
    ],
    ids=[
        "elementwise", "transpose", "reduce", "dot", "concatenate", "loop", "slice", "uneven", "pad", "concatenate_split",
        "roll", "sort", "cumsum", "cond", "scan",
    ],
)
def test_a_result_is_split_as_what_it_is_computed_from(function, spec):
    got = jax.jit(function)(split(X, "x", "y"))
    assert got.sharding.is_equivalent_to(NamedSharding(MESH, spec), got.ndim), got.sharding
    np.testing.assert_allclose(got, function(X), rtol=1e-6)


def test_arrays_of_a_group_are_split_alike():
    got = jax.jit(lambda x: shard_alike(x, jnp.arange(16.0).reshape(8, 2))[1])(split(X, "x", "y"))
    assert got.sharding == NamedSharding(MESH, P("x", "y"))
    np.testing.assert_array_equal(got, X)


def test_a_constraint_splits_a_parameter_whose_sharding_nobody_says():
    sharding = NamedSharding(MESH, P("x", "y"))
    got = jax.jit(lambda x: jax.lax.with_sharding_constraint(x, sharding) * 2)(X)
    assert got.sharding == sharding
    x, y = jax.jit(lambda x: shard_alike(x, jax.lax.with_sharding_constraint(x, sharding) * 2))(X)
    assert x.sharding == y.sharding == sharding
    np.testing.assert_array_equal(y, 2 * X)


def test_a_program_can_inspect_its_shardings():
    seen = []

    @jax.jit
    def f(x):
        y = jnp.sin(x).T
        jax.debug.inspect_array_sharding(y, callback=seen.append)
        return y.sum()

    f(split(X, "x", "y"))
    assert [s.spec for s in seen] == [P("y", "x")]


def test_an_array_that_is_still_to_be_summed_is_what_its_shards_add_up_to():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    spec = P("x", None, unreduced={"y"})
    with jax.set_mesh(mesh):
        product = jax.jit(lambda x, y: jnp.einsum("ab,bc->ac", x, y, out_sharding=spec))
        got = product(jax.device_put(X, P("x", "y")), jax.device_put(X.T, P("y", None)))
        assert got.sharding == NamedSharding(mesh, spec)
        whole = np.zeros((8, 8))
        for shard in got.addressable_shards:
            row = int(np.argwhere(mesh.devices == shard.device)[0][0])
            whole[4 * row : 4 * row + 4] += np.asarray(shard.data)
        np.testing.assert_allclose(whole, X @ X.T)
        np.testing.assert_allclose(jax.sharding.reshard(got, P("x", None)), X @ X.T)


@pytest.fixture
def without_shardy():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


@pytest.mark.parametrize("spec", [P("x", "y"), P("y"), P(None, "x"), P(("x", "y")), P()], ids=str)
def test_programs_for_the_older_partitioner_are_split_as_they_say(without_shardy, spec):
    wanted = NamedSharding(MESH, spec)
    constrained = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, wanted))
    assert "mhlo.sharding" in constrained.lower(split(X, "x")).as_text()
    for function in (constrained, jax.jit(lambda x: x * 2, out_shardings=wanted)):
        got = function(split(X, "x"))
        assert got.sharding.is_equivalent_to(wanted, got.ndim), got.sharding
        np.testing.assert_array_equal(got, 2 * X)
        for shard in got.addressable_shards:
            np.testing.assert_array_equal(shard.data, (2 * X)[shard.index])


def test_what_a_manual_computation_over_all_axes_does_not_cut_is_whole():
    whole = jax.shard_map(lambda x: x, mesh=MESH, in_specs=P("x"), out_specs=P("x"))
    got = jax.jit(whole)(split(X, "x", "y"))
    assert got.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), got.ndim), got.sharding
    np.testing.assert_array_equal(got, X)


def test_axes_that_are_not_manual_pass_through_a_manual_computation():
    part = jax.shard_map(lambda x: x, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    got = jax.jit(part)(split(X, "x", "y"))
    assert got.sharding.is_equivalent_to(NamedSharding(MESH, P("x", "y")), got.ndim), got.sharding
    np.testing.assert_array_equal(got, X)
