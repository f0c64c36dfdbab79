"""`cargo pjrt test` with JAX: its outcomes for plugins that support everything, some programs, and that compute wrong results."""

import json
import os
import subprocess
import sys

import pytest

import plugins

PROGRAM = os.environ["TEST_CARGO_PJRT"]


def outcomes_in_jax(library, *options, status=0, **variables):
    """The outcomes of the programs in JAX, by name."""
    command = [PROGRAM, "test", library, "--host", "jax", "--python", sys.executable, "--json", *options]
    result = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    assert result.returncode == status, result.stdout + result.stderr
    (row,) = json.loads(result.stdout)["hosts"]
    outcomes = {program["name"]: program["outcome"] for program in row["programs"]}
    return {name: outcome if isinstance(outcome, str) else next(iter(outcome)) for name, outcome in outcomes.items()}


@pytest.mark.parametrize("variable", ["TEST_REFCPU", "TEST_ACCELERATOR"])
def test_every_program_is_right(variable):
    assert set(outcomes_in_jax(plugins.library(variable)).values()) == {"right"}


def test_what_a_plugin_refuses_is_not_passed():
    outcomes = outcomes_in_jax(plugins.library("TEST_HELLO"))
    assert outcomes.pop("add") == outcomes.pop("donation") == "right"
    assert set(outcomes.values()) == {"refused"}


def test_wrong_results_are_found():
    """A plugin that executes programs with one argument in place of another."""
    proxy = os.path.join(os.path.dirname(plugins.library("TEST_RECORDER")), "libfault_proxy.so")
    fault = {"FAULT_PROXY_INNER": plugins.library("TEST_ACCELERATOR"), "FAULT_PROXY": "PJRT_LoadedExecutable_Execute give_other_argument"}
    outcomes = outcomes_in_jax(proxy, status=1, **fault)
    assert outcomes["add"] == outcomes["elementwise"] == "wrong"
    assert outcomes["dot"] == "right"


def test_create_options_reach_the_plugin():
    options = ["--option", "memory_limit=64", "--program", "add"]
    assert outcomes_in_jax(plugins.library("TEST_ACCELERATOR"), *options, status=1) == {"add": "failed"}
