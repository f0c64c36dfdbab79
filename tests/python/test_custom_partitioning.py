"""Functions with `custom_partitioning`: each device runs what their own function for partitioning gives."""

import plugins

plugins.use("refcpu,cpu", REFCPU_NUM_DEVICES="8")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.experimental.custom_partitioning import custom_partitioning  # noqa: E402
from jax.experimental.serialize_executable import deserialize_and_load, serialize  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
X = np.arange(64, dtype=np.float32).reshape(16, 4)


def split(array, *spec):
    return jax.device_put(array, NamedSharding(MESH, P(*spec)))


def shardings(shapes):
    return jax.tree.map(lambda shape: shape.sharding, shapes)


def centred(calls, per_device):
    """A function of a matrix without the means of its columns, and their sum; what partitions it notes what it is given."""

    @custom_partitioning
    def function(x):
        return x - x.mean(axis=0, keepdims=True), x.sum()

    def partition(mesh, arguments, results):
        assert [(a.shape, a.dtype) for a in arguments] == [((16, 4), np.float32)]
        calls.append((shardings(arguments)[0].spec, shardings(results)[0].spec))
        by_rows = NamedSharding(mesh, P("x", None))
        return mesh, per_device, (by_rows, NamedSharding(mesh, P())), (by_rows,)

    function.def_partition(partition, sharding_rule="i j -> i j, ")
    return function


def by_columns(x):
    """What `centred` computes, on one device: of different devices it is the same only because they exchange their sums."""
    mean = jax.lax.psum(x.sum(axis=0, keepdims=True), "x") / 16
    return x - mean, jax.lax.psum(x.sum(), "x")


def test_each_device_computes_what_the_partition_says_with_the_shardings_that_it_wants():
    calls = []
    function = jax.jit(centred(calls, by_columns))
    centre, total = function(split(X, "x", "y"))
    np.testing.assert_allclose(centre, X - X.mean(axis=0), rtol=1e-6)
    assert total == X.sum()
    assert calls == [(P("x", "y"), P("x", "y"))]
    assert centre.addressable_shards[0].data.shape in [(4, 4), (4, 2)]


def test_the_partition_runs_and_not_the_function():
    calls = []
    centre, total = jax.jit(centred(calls, lambda x: (x * 0 + jax.lax.axis_index("x"), jnp.float32(7))))(split(X, "x"))
    np.testing.assert_array_equal(centre, np.repeat(np.arange(4.0), 4)[:, None] * np.ones((1, 4)))
    assert total == 7


def test_a_call_in_a_loop_is_partitioned():
    calls = []
    function = centred(calls, by_columns)
    got = jax.jit(lambda x: jax.lax.scan(lambda c, _: (function(c + c)[0], None), x, None, length=3)[0])
    np.testing.assert_allclose(got(split(X, "x")), 8 * (X - X.mean(axis=0)), rtol=1e-5)
    assert calls == [(P("x", None), P("x", None))]


def test_several_calls_each_have_a_partition():
    calls = []
    function = centred(calls, by_columns)
    got = jax.jit(lambda x: function(jax.jit(lambda x: function(x)[0] + 1)(x)))(split(X, "x"))
    np.testing.assert_allclose(got[0], X - X.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(got[1], 64, rtol=1e-5)
    assert len(calls) == 2


def test_a_function_of_one_device_is_what_it_computes():
    calls = []
    centre, total = jax.jit(centred(calls, by_columns))(X)
    np.testing.assert_allclose(centre, X - X.mean(axis=0), rtol=1e-6)
    assert (total, calls) == (X.sum(), [])


def test_in_a_computation_on_parts_along_some_axes_each_part_is_an_array():
    seen = []

    @custom_partitioning
    def function(x):
        return jnp.sort(x, axis=0)

    def partition(mesh, arguments, result):
        seen.append(arguments[0].shape)
        return mesh, lambda x: jnp.sort(x, axis=0), result.sharding, shardings(arguments)

    function.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("i",))
    on_parts = jax.shard_map(function, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}, check_vma=False)
    got = jax.jit(on_parts)(split(-X, "x"))
    np.testing.assert_array_equal(got, np.sort(-X.reshape(4, 4, 4), axis=1).reshape(16, 4))
    assert seen == [(4, 4)]
    everywhere = jax.shard_map(function, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)
    np.testing.assert_array_equal(jax.jit(everywhere)(split(-X, "x", "y")), got)


def test_a_gradient_of_parts_is_a_gradient():
    calls = []
    function = centred(calls, by_columns)

    @jax.custom_vjp
    def loss(x):
        return (function(x)[0] ** 2).sum()

    loss.defvjp(lambda x: (loss(x), x), lambda x, g: (2 * g * function(x)[0],))
    got = jax.jit(jax.value_and_grad(loss))(split(X, "x"))
    np.testing.assert_allclose(got[1], 2 * (X - X.mean(axis=0)), rtol=1e-6)
    assert len(calls) == 2


def test_an_error_of_the_partition_is_one_of_the_compilation():
    with pytest.raises(jax.errors.JaxRuntimeError, match="Mismatch in result shapes"):
        jax.jit(centred([], lambda x: (x[:2], x.sum())))(split(X, "x"))

    def fails(x):
        raise FloatingPointError("no partition today")

    with pytest.raises(jax.errors.JaxRuntimeError, match="no partition today"):
        jax.jit(centred([], fails))(split(X, "x"))


def test_an_executable_that_was_serialized_has_the_partitions_in_it():
    calls = []
    compiled = jax.jit(centred(calls, by_columns)).lower(split(X, "x")).compile()
    client = jax.devices()[0].client
    serialized = client.serialize_executable(compiled.runtime_executable())
    del compiled
    # Another process has other functions, and none of this name.
    code = f"""
import plugins
plugins.use("refcpu", REFCPU_NUM_DEVICES="8")
import jax, numpy as np
from jaxlib import xla_client
client = jax.devices()[0].client
def load(serialized):
    return client.deserialize_executable(serialized, xla_client.DeviceList(tuple(jax.devices())), None)
again = load(client.serialize_executable(load({serialized!r})))
x = np.arange(64, dtype=np.float32).reshape(16, 4)
mesh = jax.make_mesh((4, 2), ("x", "y"))
x = jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))
print(float(again.execute_sharded([x]).disassemble_into_single_device_arrays()[1][0]))
"""
    assert float(plugins.run_python(code)) == X.sum()


def test_the_optimized_program_is_that_of_one_device():
    text = jax.jit(centred([], by_columns)).lower(split(X, "x")).compile().as_text()
    assert "CustomSPMDPartitioning" not in text
    assert "f32[4,4]" in text and "f32[16,4]" not in text


@pytest.fixture
def without_shardy():
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", before)


def test_programs_for_the_older_partitioner_ask_how_results_are_split(without_shardy):
    asked = []

    @custom_partitioning
    def function(x):
        return jnp.sort(x, axis=1).T

    def infer(mesh, arguments, result):
        asked.append(arguments[0].sharding.spec)
        return NamedSharding(mesh, P(None, arguments[0].sharding.spec[0]))

    def partition(mesh, arguments, result):
        axis = result.sharding.spec[1]
        by_rows = NamedSharding(mesh, P(axis, None))
        return mesh, lambda x: jnp.sort(x, axis=1).T, NamedSharding(mesh, P(None, axis)), (by_rows,)

    function.def_partition(partition, infer_sharding_from_operands=infer)
    with MESH:
        got = jax.jit(lambda x: function(-x) * 2)(split(X, "x"))
    assert asked == [P("x", None)]
    assert got.sharding.is_equivalent_to(NamedSharding(MESH, P(None, "x")), 2), got.sharding
    np.testing.assert_array_equal(got, 2 * np.sort(-X, axis=1).T)
