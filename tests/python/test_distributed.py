"""Several processes of refcpu: the same values as with XLA's CPU backend, and errors that name the process that fails."""

import contextlib
import os
import pathlib
import re
import sys
import tempfile
import time

import numpy as np
import pytest

FOLDER = os.path.join(os.path.dirname(__file__), "distributed")
sys.path.insert(0, FOLDER)

import launch  # noqa: E402
import values  # noqa: E402

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.environ.get("REFCPU_GLOO", "")),
    reason="REFCPU_GLOO does not name the library that `cargo xtask gloo` builds",
)

# `cargo xtask gloo --test` runs all tests, and the stage `jax` of `cargo xtask test` those that take little time.
ALL = os.environ.get("TEST_DISTRIBUTED") == "all"

# The numbers of processes, and of devices of each.
SHAPES = [(2, 2), (4, 1)] if ALL else [(2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0]}x{shape[1]}")
def test_all_processes_compute_what_xla_computes(shape, tmp_path):
    assert values.compare(shape, tmp_path) > 100


def test_every_process_sees_the_devices_of_all(tmp_path):
    for process, found in enumerate(values.computed("refcpu", (2, 2), tmp_path, "topology")):
        assert found["topology.0"].tolist() == [2, process, 4, 2]
        assert found["topology.1"].tolist() == [[0, 0], [1, 0], [2, 1], [3, 1]]
        assert found["topology.2"].tolist() == [2 * process, 2 * process + 1]


def test_programs_on_devices_of_another_process_only_are_compiled_and_not_executed(tmp_path):
    first, second = values.computed("refcpu", (2, 2), tmp_path, "elsewhere")
    assert second.keys() == {"elsewhere.0"}
    assert first["elsewhere.0"].tolist() == second["elsewhere.0"].tolist() == [4, 5]
    np.testing.assert_array_equal(first["elsewhere.1"].reshape(4, 5), 2 * np.arange(20).reshape(4, 5) + 1)


def test_arrays_are_copied_between_the_devices_of_different_processes(tmp_path):
    for process, found in enumerate(values.computed("refcpu", (2, 2), tmp_path, "copies")):
        assert len(found) == 2
        for number, size in enumerate((8, 1 << 16)):
            expected = (np.arange(size * 3) % 97).reshape(2, size // 2, 3)
            np.testing.assert_array_equal(found[f"copies.{number}"], expected, err_msg=f"process {process}")


def test_a_process_can_call_python_without_the_others(tmp_path):
    first, second = values.computed("refcpu", (2, 2), tmp_path, "callback_of_one_process")
    assert first["callback_of_one_process.0"].size == 0
    np.testing.assert_array_equal(second["callback_of_one_process.0"], [2 * np.arange(4)])


def outcomes(case: str) -> list[str]:
    """What three processes print, of which the last one fails. They leave no process, and so no port on which one listens."""
    started = launch.start([f"{FOLDER}/failures.py", case], 3, 1, "refcpu")
    printed = launch.outputs(started, timeout=120)
    address = started[0].args[2].encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            assert address not in (process / "cmdline").read_bytes().split(b"\0"), f"{process} is left"
    return printed


def test_a_process_that_is_killed_is_named_by_all_others_within_ten_seconds():
    for output in outcomes("killed")[:2]:
        found = re.search(r"failed after ([0-9.]+) s: UNAVAILABLE: (.*)", output)
        assert found and "process 2 has ended" in found[2] and float(found[1]) < 10, output


@pytest.mark.skipif(not ALL, reason="it waits for 15 seconds; `cargo xtask gloo --test` runs it")
def test_a_slow_process_is_waited_for():
    for process, output in enumerate(outcomes("slow")):
        found = re.search(r"result 3 after ([0-9.]+) s", output)
        assert found and (process == 2 or float(found[1]) > 10), output


def test_a_program_that_fails_on_one_process_fails_on_all_with_its_error():
    outputs = outcomes("exhausted")
    assert "s: RESOURCE_EXHAUSTED" in outputs[2], outputs[2]
    for output in outputs[:2]:
        assert re.search(r"s: UNAVAILABLE: process 2: the program 'jit_.*' failed: .*memory", output), output
    assert all("then 6" in output for output in outputs), outputs


def test_a_callback_that_fails_on_one_process_fails_on_all_and_all_end():
    begin = time.monotonic()
    outputs = outcomes("callback")
    assert time.monotonic() - begin < 30, outputs
    for process, output in enumerate(outputs):
        code = "INTERNAL" if process == 2 else "UNAVAILABLE: process 2: the program 'jit_"
        assert re.search(rf"failed after [0-9.]+ s: {code}(.|\n)*ValueError: planted in a callback", output), output
        assert "then 6" in output, output


def test_a_process_that_ends_right_after_a_failure_has_told_the_others_its_cause():
    for output in outcomes("callback after a collective")[:2]:
        assert re.search(r"failed after [0-9.]+ s: UNAVAILABLE: process 2: (.|\n)*ValueError: planted in a callback", output), output


def test_meshes_that_differ_are_found_on_all_processes_which_can_go_on():
    for process, output in enumerate(outcomes("mesh")):
        own = "[2, 1, 0]" if process == 2 else "[0, 1, 2]"
        found = re.search(r"FAILED_PRECONDITION: the processes run the program 'jit_.*' on different devices: (.*)", output)
        assert found and f"process {process} runs it on {own}" in found[1], output
        assert "then 6" in output, output


@pytest.mark.parametrize("case", ["argument", "late argument"])
def test_an_argument_in_error_fails_the_launch_on_all_with_its_error(case):
    begin = time.monotonic()
    outputs = outcomes(case)
    assert time.monotonic() - begin < 30, outputs
    for process, output in enumerate(outputs):
        code = "INTERNAL" if process == 2 else "UNAVAILABLE: process 2: the program 'jit_"
        assert re.search(rf"failed after [0-9.]+ s: {code}(.|\n)*ValueError: planted in an argument", output), output
        assert "then 6" in output, output


def test_a_process_that_ends_while_others_wait_for_it_is_named_with_its_error():
    begin = time.monotonic()
    outputs = outcomes("ended")
    assert time.monotonic() - begin < 30, outputs
    for output in outputs[:2]:
        found = re.search(r"failed after ([0-9.]+) s: UNAVAILABLE: (.*)", output)
        assert found and "process 2 has ended with ValueError: planted at the end" in found[2], output
        assert float(found[1]) < 10, output


def test_a_process_that_cannot_create_its_client_ends_the_waiting_of_the_others():
    begin = time.monotonic()
    outputs = outcomes("uninitialized")
    assert time.monotonic() - begin < 30, outputs
    for process, output in enumerate(outputs):
        assert "the name 'no.such.host.invalid' has no address" in output, output
        assert process == 2 or "UNAVAILABLE: 'addresses' of process 2: process 2 cannot create its client" in output, output


@pytest.mark.parametrize("case", ["different", "constant"])
def test_programs_that_differ_are_found_on_all_processes_which_can_go_on(case):
    outputs = outcomes(case)
    for output in outputs:
        assert "FAILED_PRECONDITION: the processes run different programs: process" in output, output
        assert "then 6" in output, output
    assert "process 2 runs" in outputs[0] and "process 2 runs" in outputs[2]


def test_the_absence_of_the_library_says_what_to_install():
    program = "import sys, jax; jax.distributed.initialize(sys.argv[1], int(sys.argv[3]), int(sys.argv[2])); jax.devices()"
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(program)
        script.flush()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("REFCPU_GLOO", "/nowhere/librefcpu_gloo.so")
            for output in launch.outputs(launch.start([script.name], 2, 1, "refcpu"), timeout=120):
                for text in ("FAILED_PRECONDITION", "/nowhere/librefcpu_gloo.so", "libgloo-dev", "cargo xtask gloo"):
                    assert text in output, output
