"""Memory that runs out: RESOURCE_EXHAUSTED from whatever needed it, after which the process and its arrays go on to work."""

import plugins

MIB = 1 << 20
LIMIT = 64 * MIB

plugins.use("refcpu", REFCPU_MEMORY_LIMIT=str(LIMIT), REFCPU_NUM_DEVICES="2")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

ROWS = 24 * MIB // 4 // 1024


@pytest.fixture(autouse=True)
def the_process_lives_on():
    yield
    assert jnp.add(1, 1) == 2
    assert np.asarray(jax.device_put(np.ones(MIB, np.int8))).sum() == MIB


def exhausted():
    return pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED")


def fill():
    """An array that takes most of the memory, so that there is no room for a second one."""
    return jax.block_until_ready(jnp.full((40 * MIB // 4,), 3, jnp.int32))


def test_an_upload():
    # With gaps, so that the host's memory cannot be used in place.
    array = np.ones((2 * LIMIT // 4, 2), np.float32)[:, 0]
    for _ in range(3):
        with exhausted():
            jax.block_until_ready(jax.device_put(array))
    with exhausted():
        jnp.array(np.ones(2 * LIMIT, np.int8), copy=True).block_until_ready()


def test_a_program():
    kept = fill()
    for _ in range(3):
        with exhausted():
            jax.block_until_ready(kept * 2)
    assert np.asarray(kept[:2]).tolist() == [3, 3]


def shard():
    """An array whose shards are views of one array, which are copied when the host wants them."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec(None, "x"))
    whole = jax.jit(lambda: jnp.full((ROWS, 1024), 7, jnp.int32), out_shardings=sharding)()
    return jax.block_until_ready(whole)


@pytest.mark.parametrize("read", [np.asarray, lambda x: x.unsafe_buffer_pointer(), jax.device_get], ids=["asarray", "pointer", "get"])
def test_a_read_needs_no_memory_of_the_device(read):
    array = shard().addressable_shards[0].data
    filling = fill()
    with exhausted():
        jax.block_until_ready(jax.jit(lambda x: (x + 1, x + 2))(array))
    read(array)
    assert (np.asarray(array) == 7).all() and (np.asarray(filling[:2]) == 3).all()
