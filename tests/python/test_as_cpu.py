"""refcpu in the place of JAX's CPU backend, with `REFCPU_AS_CPU=1` or `install_as_cpu()`."""

import plugins

plugins.use("refcpu", REFCPU_AS_CPU="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402


def test_the_platform_and_its_devices_have_the_names_of_the_cpu_backend():
    (device, *_) = jax.devices()
    assert (jax.default_backend(), device.platform, device.device_kind) == ("cpu", "cpu", "cpu")
    assert (repr(device), str(device)) == ("CpuDevice(id=0)", "cpu:0")
    assert jax.devices("cpu") == jax.devices()
    assert "refcpu" in device.client.platform_version


def test_a_callback_runs_before_the_call_returns():
    seen = []
    f = jax.jit(lambda x: jax.debug.callback(lambda value: seen.append(float(value)), x.sum()))
    f(jnp.ones(3))
    assert seen == [3.0]


def test_the_error_of_a_callback_is_raised_by_the_call():
    def fail(x):
        raise ValueError("no value")

    f = jax.jit(lambda x: jax.pure_callback(fail, x, x))
    x = jnp.ones(2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no value"):
        f(x)


def test_a_callback_may_run_programs():
    def sine(x):
        return np.asarray(jnp.sin(jnp.asarray(x)))

    f = jax.jit(lambda x: jax.pure_callback(sine, x, x) + 1)
    np.testing.assert_allclose(f(jnp.ones(2)), np.sin(np.ones(2)) + 1, rtol=1e-6)


def test_branches_and_linear_algebra_are_those_of_the_cpu():
    f = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(f(jnp.ones(3)), np.sin(np.ones(3)), rtol=1e-6)
    matrix = np.array([[2, 1], [1, 3]], np.float32)
    np.testing.assert_allclose(jnp.linalg.eigvalsh(matrix), np.linalg.eigvalsh(matrix), rtol=1e-5)
    np.testing.assert_allclose(jnp.linalg.svd(matrix)[1], np.linalg.svd(matrix)[1], rtol=1e-5)


def test_numpy_and_jax_exchange_arrays_through_dlpack():
    np.testing.assert_array_equal(np.from_dlpack(jnp.arange(4)), np.arange(4))
    np.testing.assert_array_equal(jnp.from_dlpack(np.arange(64.0, dtype=np.float32)), np.arange(64.0))


INSTALL = """
from jax_plugins import refcpu
refcpu.install_as_cpu()
import jax
print(jax.devices()[0].platform, "refcpu" in jax.devices()[0].client.platform_version)
"""


@pytest.mark.parametrize("platforms", ["refcpu", "cpu", None])
def test_it_can_be_installed_by_a_call(platforms):
    assert plugins.run_python(INSTALL, REFCPU_AS_CPU=None, JAX_PLATFORMS=platforms) == "cpu True"


def test_it_cannot_be_installed_after_the_first_use():
    from jax_plugins import refcpu

    jax.devices()
    with pytest.raises(RuntimeError, match="before the first use"):
        refcpu.install_as_cpu()


def test_jax_does_not_warn_that_the_platform_is_experimental():
    code = "import sys; sys.stderr = sys.stdout; import jax; jax.devices()"
    assert "experimental" not in plugins.run_python(code)


def test_callbacks_can_be_asynchronous():
    code = """
import jax, threading
import jax.numpy as jnp
gate = threading.Event()
f = jax.jit(lambda x: jax.debug.callback(lambda _: gate.wait(60), x))
f(jnp.ones(3))
gate.set()
jax.effects_barrier()
print("returned")
"""
    assert plugins.run_python(code, REFCPU_ASYNC_CALLBACKS="1") == "returned"
