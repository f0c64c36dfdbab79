"""Mistakes that JAX passes on to refcpu: each is a Python exception with code, operation and location, and JAX lives on."""

import plugins

plugins.use("refcpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(autouse=True)
def the_process_lives_on():
    yield
    assert jnp.add(1, 1) == 2


@pytest.mark.parametrize(
    "options, texts",
    [
        ("num_device:4", ["INVALID_ARGUMENT", "num_device", "num_devices"]),
        ("num_devices:four", ["INVALID_ARGUMENT", "num_devices", "four"]),
        ("num_devices:-3", ["INVALID_ARGUMENT", "num_devices"]),
        ("num_devices:1000000000", ["INVALID_ARGUMENT", "num_devices"]),
    ],
)
def test_wrong_create_options(options, texts):
    code = f"""
import jax
jax.config.update("jax_pjrt_client_create_options", {options!r})
try:
    jax.devices()
except RuntimeError as error:
    print(error)
"""
    output = plugins.run_python(code, JAX_PLATFORMS="refcpu")
    for text in texts:
        assert text in output, output


def test_create_option_of_a_wrong_type():
    code = """
from jax_plugins import refcpu
refcpu._plugin.options["num_devices"] = 2.5
import jax
try:
    jax.devices()
except RuntimeError as error:
    print(error)
"""
    output = plugins.run_python(code, JAX_PLATFORMS="refcpu")
    for text in ("INVALID_ARGUMENT", "num_devices"):
        assert text in output, output


def test_wrong_number_of_devices_in_the_environment():
    code = """
import jax
try:
    jax.devices()
except RuntimeError as error:
    print(error)
"""
    output = plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_NUM_DEVICES="some")
    for text in ("INVALID_ARGUMENT", "REFCPU_NUM_DEVICES", "some"):
        assert text in output, output


def test_an_unsupported_operation_is_named_with_its_place():
    def function(x):
        return jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((3,), jnp.float32))(x)

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(function)(jnp.ones(3))
    text = str(caught.value)
    for part in ("UNIMPLEMENTED", "no_such_target", "custom_call", "test_errors_in_jax.py"):
        assert part in text, text


def test_an_unknown_compiler_option_is_refused():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*no_such_option"):
        jax.jit(lambda x: x + 1, compiler_options={"no_such_option": True})(1.0)


def test_too_much_memory_is_an_error():
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        jax.block_until_ready(jax.jit(lambda: jnp.ones((2**22, 2**22)))())


def test_a_deleted_array_cannot_be_used():
    x = jnp.ones(3) + 1
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        jax.jit(lambda x: x + 1)(x)


def test_a_donated_array_cannot_be_used():
    x = jnp.ones(3) + 1
    y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match="deleted"):
        jax.jit(lambda x: x + 1)(x)
    np.testing.assert_array_equal(np.asarray(y), [4, 4, 4])


def test_a_compiled_program_refuses_other_shapes():
    compiled = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    with pytest.raises(TypeError):
        compiled(jnp.ones(4))
