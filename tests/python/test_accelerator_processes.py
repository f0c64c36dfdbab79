"""The simulated accelerator in two processes, with nothing but the host's key-value store between them."""

import os
import re
import sys

import plugins
import pytest

FOLDER = os.path.join(os.path.dirname(__file__), "distributed")
sys.path.insert(0, FOLDER)

import launch  # noqa: E402

LIBRARY = plugins.library("TEST_ACCELERATOR")


def trained(count: int) -> list[tuple[list[float], float]]:
    """The losses and the checksum of the weights that each process prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"accelerator:{LIBRARY}")
        outputs = launch.outputs(launch.start([f"{FOLDER}/accelerator.py"], count, 4, "accelerator"))
    found = []
    for output in outputs:
        weights = re.search(r"^weights ([0-9.]+)$", output, re.MULTILINE)
        assert weights, output
        found.append(([float(loss) for loss in re.findall(r"loss ([0-9.]+)", output)], float(weights[1])))
    return found


def test_two_processes_train_the_weights_of_one():
    (one,) = trained(1)
    losses, weights = one
    assert losses[-1] < 0.6 * losses[0], losses
    for of_process in trained(2):
        assert of_process == (pytest.approx(losses, abs=1e-3), pytest.approx(weights, rel=1e-3))
