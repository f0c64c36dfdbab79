"""What a host sees when a plugin's method panics or fails: an exception with code, message and place, and life goes on."""

import os

import plugins

plugins.use("fault", PJRT_NAMES_AND_LIBRARY_PATHS=f"fault:{plugins.library('TEST_FAULT_PLUGIN')}")

import jax  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

jax.devices()


@pytest.fixture(autouse=True)
def the_process_lives_on():
    yield
    os.environ.pop("FAULT_PLUGIN", None)
    np.testing.assert_array_equal(run_a_program(), [1, 2])


def run_a_program():
    # A function of its own each time, so that JAX compiles it.
    function = jax.jit(lambda x: x + x)
    return np.asarray(function(jax.device_put(np.array([1, 2], np.float32))))


# The steps of running a program, in order; `run` is the closure that a method gave to the SDK.
STEPS = ("buffer_from_host", "compile", "load", "execute", "run", "copy_to_host")


@pytest.mark.parametrize("step", STEPS)
def test_a_panic_is_an_internal_error_with_its_message_and_location(step):
    os.environ["FAULT_PLUGIN"] = f"{step}:panic"
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        run_a_program()
    text = str(caught.value)
    for part in ("INTERNAL", f"planted in {step}", "fault-plugin/lib.rs:"):
        assert part in text, text


@pytest.mark.parametrize("step", STEPS)
def test_an_error_keeps_its_code_message_and_hint(step):
    os.environ["FAULT_PLUGIN"] = f"{step}:error"
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        run_a_program()
    text = str(caught.value)
    for part in ("RESOURCE_EXHAUSTED", f"planted in {step}", "unset FAULT_PLUGIN"):
        assert part in text, text


def test_a_forgotten_execution_is_an_internal_error():
    os.environ["FAULT_PLUGIN"] = "forget:error"
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"):
        run_a_program()


@pytest.mark.parametrize("step", ["initialize", "create"])
@pytest.mark.parametrize("kind, code", [("panic", "INTERNAL"), ("error", "RESOURCE_EXHAUSTED")])
def test_a_failing_start_is_an_error(step, kind, code):
    program = """
import jax
try:
    jax.devices()
except RuntimeError as error:
    print(error)
"""
    output = plugins.run_python(program, FAULT_PLUGIN=f"{step}:{kind}")
    for part in (code, f"planted in {step}"):
        assert part in output, output
