"""Memory and cost as hosts see them: those of one device, however refcpu runs a program for several devices."""

import plugins

MIB = 1 << 20
LIMIT = 80 * MIB

plugins.use("refcpu", REFCPU_MEMORY_LIMIT=str(LIMIT), REFCPU_NUM_DEVICES="8")

import gc  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

MESH = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


def sharding(*spec):
    return NamedSharding(MESH, P(*spec))


def in_use():
    """The bytes in use on each device."""
    gc.collect()
    return np.array([device.memory_stats()["bytes_in_use"] for device in jax.devices()])


def exhausted():
    return pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED")


def test_the_limit_is_that_of_each_device():
    assert [device.memory_stats()["bytes_limit"] for device in jax.devices()] == [LIMIT] * 8


def test_a_sharded_array_counts_with_its_shard_on_each_device():
    before = in_use()
    zeros = jax.jit(lambda: jnp.zeros((512, MIB // 4), jnp.float32), out_shardings=sharding("x"))
    array = jax.block_until_ready(zeros())
    assert (in_use() - before == 64 * MIB).all()
    assert jax.jit(lambda x: x.sum() + x[3, 4])(array) == 0
    with exhausted():
        jax.block_until_ready(jax.jit(lambda x: x + 1)(array))
    array = jax.block_until_ready(jax.jit(lambda x: x + 1, donate_argnums=0)(array))
    assert (in_use() - before == 64 * MIB).all()
    assert array[511, 5] == 1
    del array
    assert (in_use() == before).all()


def test_a_replicated_array_counts_on_each_device():
    before = in_use()
    fill = jax.jit(lambda: jnp.full((8, MIB // 4), 3, jnp.int32), out_shardings=sharding())
    array = jax.block_until_ready(fill())
    assert (in_use() - before == 8 * MIB).all()
    with exhausted():
        jax.block_until_ready(jax.jit(lambda: jnp.zeros(81 * MIB, jnp.int8), out_shardings=sharding())())
    assert np.asarray(array)[7, 7] == 3
    del array
    assert (in_use() == before).all()


def test_uploads_and_copies_count_on_their_device():
    before = in_use()
    host = np.ones((50 * MIB // 4, 2), np.float32)[:, 0]
    uploaded = jax.block_until_ready(jax.device_put(host, jax.devices()[2]))
    copied = jax.block_until_ready(jax.device_put(uploaded, jax.devices()[5]))
    expected = np.zeros(8, np.int64)
    expected[[2, 5]] = host.nbytes
    assert (in_use() - before == expected).all()
    for _ in range(3):
        with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED.*on device 2.*REFCPU_MEMORY_LIMIT"):
            jax.block_until_ready([jax.device_put(host, jax.devices()[2]), jax.device_put(host[::2].copy(), jax.devices()[2])])
    on_host = jax.device_put(host, jax.sharding.SingleDeviceSharding(jax.devices()[2], memory_kind="pinned_host"))
    other = jax.block_until_ready(jax.device_put(host, jax.devices()[3]))
    expected[3] = host.nbytes
    assert (in_use() - before == expected).all()
    assert float(other[0] + 1) == 2 and on_host.shape == host.shape
    del uploaded, copied, other
    assert (in_use() == before).all()


def sharded(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding("x"))


def whole(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding())


# The counts of operations are those of XLA's CPU backend on eight devices, where one of them adds what it has received.
PROGRAMS = {
    "elementwise": (lambda x: jnp.exp(x) * 2 + x, [sharded(1024, 512)], 131072),
    "rows of a product": (lambda x, w: x @ w, [sharded(1024, 512), whole(512, 256)], 33554432),
    "a replicated product": (lambda x, w: x @ w, [whole(1024, 512), whole(512, 256)], 268435456),
    "a sum": (lambda x: x.sum(), [sharded(1024, 512)], 65536),
    "two layers": (
        lambda x, w, v: jax.nn.relu(x @ w) @ v,
        [sharded(1024, 512), whole(512, 256), whole(256, 64)],
        37781504,
    ),
}


def analyses():
    """The cost of each program, and the memory that a run adds at most on each device."""
    found = {}
    for name, (function, arguments, _) in PROGRAMS.items():
        compiled = jax.jit(function).lower(*arguments).compile()
        cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
        sizes = [memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes]
        found[name] = [cost["flops"], cost["transcendentals"], cost["bytes accessed"], *sizes]
    return found


def test_the_cost_is_that_of_one_device():
    found = analyses()
    assert {name: int(costs[0]) for name, costs in found.items()} == {name: p[2] for name, p in PROGRAMS.items()}
    assert found["elementwise"][1] == 65536
    # The rows of the first layer on a device.
    assert found["two layers"][5] == 1024 * 256 * 4 // 8


def test_the_cost_does_not_depend_on_how_programs_run():
    script = "import json, test_device_memory; print(json.dumps(test_device_memory.analyses()))"
    folder = os.path.dirname(os.path.abspath(__file__))
    in_parts = plugins.run_python(script, REFCPU_PARTITIONED="1", PYTHONPATH=os.pathsep.join([folder, *sys.path]))
    assert json.loads(in_parts) == analyses()


def test_temporary_memory_of_a_program_counts_in_equal_parts():
    (device, *others) = jax.devices()
    x = jax.block_until_ready(jax.jit(lambda: jnp.ones((4096, 1024)), out_shardings=sharding("x"))())
    before = in_use()
    w = jax.block_until_ready(jax.device_put(np.ones((1024, 1024), np.float32), sharding()))
    peaks = [d.memory_stats()["peak_bytes_in_use"] for d in jax.devices()]
    program = jax.jit(lambda x, w: ((x @ w) @ w).sum())
    program(x, w).block_until_ready()
    # An intermediate result has the size of `x`: 2 MiB on each device, and both products may be live.
    for d, peak, used in zip(jax.devices(), peaks, before):
        high = max(peak, used + w.nbytes + 2 * MIB)
        assert high <= d.memory_stats()["peak_bytes_in_use"] <= max(peak, used + w.nbytes + 5 * MIB)
    assert (in_use() - before == w.nbytes).all()
