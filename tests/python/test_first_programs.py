"""The first things that anyone tries on a new platform, on one device of refcpu."""

import plugins

plugins.use("refcpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402


def test_the_platform_is_refcpu():
    assert jax.default_backend() == "refcpu"
    (device,) = jax.devices()
    assert device.platform == "refcpu"
    assert device.device_kind
    assert {memory.kind for memory in device.addressable_memories()} == {"device", "pinned_host", "unpinned_host"}
    assert device.default_memory().kind == "device"


def test_one_and_one_is_two():
    result = jnp.add(1, 1)
    assert result == 2
    assert result.dtype == jnp.int32


def test_a_jitted_function_doubles():
    assert jax.jit(lambda x: x * 2)(1.0) == 2.0


def test_an_array_comes_back_as_it_went():
    for dtype in ("float32", "float16", "int8", "uint8", "int16", "uint32", "int32", "bool", "complex64"):
        array = np.arange(24).reshape(2, 3, 4).astype(dtype)
        back = jax.device_put(array)
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(back), array)
        strided = array.transpose(2, 0, 1)[::2]
        np.testing.assert_array_equal(np.asarray(jax.device_put(strided)), strided)


def test_an_empty_array_comes_back_empty():
    assert np.asarray(jax.device_put(np.zeros((0, 3), np.float32)) + 1).shape == (0, 3)


def test_an_argument_is_not_changed_by_what_happens_to_the_source():
    source = np.ones(1000, np.float32)
    array = jax.device_put(source)
    jax.block_until_ready(array)
    before = np.array(array)
    source[:] = 2
    # JAX may hand numpy memory over without a copy only where it promises not to change it.
    np.testing.assert_array_equal(np.array(jax.jit(lambda x: x + 0)(array)), before)


def test_a_donated_argument_is_gone_and_the_result_is_right():
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(1000.0)
    y = step(x)
    np.testing.assert_array_equal(np.asarray(y), np.arange(1000.0) + 1)
    assert x.is_deleted()


def test_several_results_come_in_order():
    total, product = jax.jit(lambda x, y: (x + y, x * y))(3.0, 4.0)
    assert (total, product) == (7.0, 12.0)


def test_results_can_be_used_before_they_are_ready():
    x = jnp.ones((200, 200))
    for _ in range(20):
        x = jax.jit(lambda x: x @ x / 200)(x)
    np.testing.assert_allclose(np.asarray(x), 1.0, rtol=1e-5)


def test_many_threads_run_the_same_program():
    from concurrent.futures import ThreadPoolExecutor

    square_sum = jax.jit(lambda x: (x * x).sum())
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(lambda i: float(square_sum(jnp.full(100, float(i)))), range(64)))
    assert sums == [100.0 * i * i for i in range(64)]


def test_an_array_moves_between_the_memories_of_a_device():
    device = jax.devices()[0]
    there = jax.device_put(jnp.arange(5), jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host"))
    assert there.sharding.memory_kind == "pinned_host"
    back = jax.device_put(there, jax.sharding.SingleDeviceSharding(device, memory_kind="device"))
    np.testing.assert_array_equal(np.asarray(back), np.arange(5))


def test_a_compiled_program_describes_itself():
    compiled = jax.jit(lambda x: jnp.sin(x) @ x).lower(jnp.ones((8, 8))).compile()
    assert "sine" in compiled.as_text()
    assert compiled.memory_analysis().output_size_in_bytes == 8 * 8 * 4
    assert compiled.cost_analysis() is None or isinstance(compiled.cost_analysis(), dict)


def test_a_program_survives_serialisation():
    from jax.experimental import serialize_executable

    compiled = jax.jit(lambda x: x * 3).lower(jnp.ones(4)).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    np.testing.assert_array_equal(np.asarray(loaded(jnp.ones(4))), np.full(4, 3.0))


def test_deleting_an_array_twice_is_harmless():
    x = jnp.ones(3) + 1
    x.delete()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)
