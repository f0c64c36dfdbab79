"""The smallest plugin under JAX."""

import plugins

plugins.use("hello", PJRT_NAMES_AND_LIBRARY_PATHS=f"hello:{plugins.library('TEST_HELLO')}")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402


def test_the_device_says_hello():
    (device,) = jax.devices()
    assert device.platform == "hello"
    assert [memory.kind for memory in device.addressable_memories()] == ["device"]


def test_one_and_one_is_two():
    assert int(jnp.add(1, 1)) == 2


def test_arrays_are_added():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((2, 3), 0.5, np.float32)
    np.testing.assert_array_equal(np.asarray(jnp.add(x, y)), x + y)
    i = np.array([2**31 - 1, -5], np.int32)
    np.testing.assert_array_equal(np.asarray(jnp.add(i, i)), i + i)


def test_a_jitted_sum_of_several_arrays():
    x = np.arange(4, dtype=np.float32)
    total, twice = jax.jit(lambda x, y, z: (x + y + z, y + y))(x, x, x)
    np.testing.assert_array_equal(np.asarray(total), 3 * x)
    np.testing.assert_array_equal(np.asarray(twice), 2 * x)


def test_another_operation_is_refused_with_its_name_and_place():
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: x * x)(np.ones(3, np.float32))
    text = str(caught.value)
    for part in ("UNIMPLEMENTED", "stablehlo.multiply", "test_hello.py", "can only add"):
        assert part in text, text


def test_another_type_is_refused():
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*f16"):
        jnp.add(np.ones(3, np.float16), np.ones(3, np.float16))
