"""Several processes: plugins that cannot compute in several at once say so, however JAX finds them."""

import os
import socket
import subprocess
import sys

import plugins
import pytest

# Each process of a distributed program, which would print a sum over its own devices only.
PROGRAM = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], num_processes=int(sys.argv[3]), process_id=int(sys.argv[2]), initialization_timeout=60)
try:
    print("processes:", jax.process_count(), "sum:", jax.numpy.ones(3).sum())
except Exception as error:
    print(type(error).__name__, error)
"""


def outputs(num_processes: int, **variables: str | None) -> list[str]:
    """What each process of a distributed program prints."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    environment = {name: value for name, value in {**os.environ, **variables}.items() if value is not None}
    commands = [[sys.executable, "-c", PROGRAM, address, str(index), str(num_processes)] for index in range(num_processes)]
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    try:
        return [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()


# What loads a plugin: the Python package of refcpu, or the environment.
WAYS = {
    "refcpu, package": ("refcpu", None),
    "refcpu, environment": ("refcpu", "TEST_REFCPU"),
    "hello, environment": ("hello", "TEST_HELLO"),
}


def loaded_in(way: str) -> dict[str, str | None]:
    platform, variable = WAYS[way]
    named = variable and f"{platform}:{plugins.library(variable)}"
    return {"JAX_PLATFORMS": platform, "PJRT_NAMES_AND_LIBRARY_PATHS": named}


@pytest.mark.parametrize("way", [way for way in WAYS if "refcpu" not in way])
def test_two_processes_are_refused_by_name(way):
    for index, output in enumerate(outputs(2, **loaded_in(way))):
        for text in ("UNIMPLEMENTED", WAYS[way][0], f"process {index} of 2", "in one process"):
            assert text in output, output
        assert "sum:" not in output, output


@pytest.mark.parametrize("way", [way for way in WAYS if "refcpu" in way])
def test_two_processes_of_refcpu_need_gloo(way):
    for output in outputs(2, **loaded_in(way), REFCPU_GLOO=None):
        for text in ("FAILED_PRECONDITION", "Gloo", "libgloo-dev"):
            assert text in output, output
        assert "sum:" not in output, output


def test_without_gloo_two_processes_that_do_not_ask_for_refcpu_use_another_platform():
    for output in outputs(2, JAX_PLATFORMS=None, PJRT_NAMES_AND_LIBRARY_PATHS=None, REFCPU_GLOO=None):
        assert "refcpu does not support several processes" in output and "processes: 2" in output, output


def test_a_distributed_program_of_one_process_runs():
    (output,) = outputs(1, **loaded_in("refcpu, package"))
    assert "processes: 1 sum: 3.0" in output, output
