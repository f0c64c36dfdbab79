"""Several devices in one process."""

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="4")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402


def test_there_are_as_many_devices_as_asked_for():
    assert len(jax.devices()) == 4
    assert sorted(device.id for device in jax.devices()) == [0, 1, 2, 3]


def test_pmap_sums_over_devices():
    sums = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(4))
    np.testing.assert_array_equal(np.asarray(sums), [6, 7, 8, 9])


def test_an_array_moves_from_device_to_device():
    x = jax.device_put(np.arange(10.0, dtype=np.float32), jax.devices()[0])
    for device in [*jax.devices()[1:], jax.devices()[0]]:
        x = jax.device_put(x, device)
        assert x.devices() == {device}
    np.testing.assert_array_equal(np.asarray(x), np.arange(10.0))


def test_a_program_runs_where_its_arguments_are():
    for device in jax.devices():
        x = jax.device_put(jnp.float32(20), device)
        y = jax.jit(lambda x: x + 1)(x)
        assert y.devices() == {device}
        assert y == 21
