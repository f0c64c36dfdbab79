"""Training runs of JAX on the simulated accelerator, with and without the faults that its create options switch on.

Under each fault, a run goes on with the same losses, or ends with an error that names the fault.
"""

import functools
import subprocess
import sys

import plugins
import pytest

LIBRARY = plugins.library("TEST_ACCELERATOR")
MODELS = ["mlp", "cnn", "transformer"]
STEPS = 12


@functools.cache
def losses_and_error(model: str, options: str = "", platform: str = "accelerator") -> tuple[list[str], str]:
    """Returns the losses of the steps of a training run, and the error with which it ended, or an empty text."""
    environment = {**plugins.os.environ, "JAX_PLATFORMS": platform}
    if platform == "accelerator":
        environment["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"accelerator:{LIBRARY}"
        environment["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = options
    else:
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    command = [sys.executable, "training.py", model, platform]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    is_loss = [line[0].isdigit() for line in lines]
    losses = lines[: sum(is_loss)]
    assert all(is_loss[: len(losses)])
    return losses, " ".join(lines[len(losses) :])


def numbers(losses: list[str]) -> list[float]:
    return [float(number) for line in losses for number in line.split()]


@pytest.mark.parametrize("model", MODELS)
def test_models_train_as_on_xla(model):
    losses, error = losses_and_error(model)
    assert error == "" and len(losses) == STEPS
    assert numbers(losses[-1:])[0] < numbers(losses)[0]
    expected, _ = losses_and_error(model, platform="cpu")
    assert numbers(losses) == pytest.approx(numbers(expected), rel=1e-3)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", ["latency:300", "slow_device:3000"])
def test_slow_devices_have_the_same_results(model, fault):
    assert losses_and_error(model, fault) == losses_and_error(model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("fault", "parts"),
    [
        ("fail_copy:50", ["DATA_LOSS", "failed to copy an array (option fail_copy)"]),
        ("lose_device:60", ["UNAVAILABLE", "device 0 is lost (option lose_device)"]),
        ("memory_end:2500", ["OUT_OF_RANGE", "has a memory fault", "the memory ends at byte 2500 (option memory_end)"]),
        ("memory_limit:4096", ["RESOURCE_EXHAUSTED", "cannot allocate", "of its 4096 bytes are in use"]),
    ],
)
def test_a_broken_device_ends_the_training_with_an_error_that_names_the_fault(model, fault, parts):
    losses, error = losses_and_error(model, fault)
    for part in parts:
        assert part in error, error
    # What was computed before the fault is right.
    expected, _ = losses_and_error(model)
    assert len(losses) < STEPS and losses == expected[: len(losses)]
