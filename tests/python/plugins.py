"""What the tests share: which shared libraries to load, and how to choose platforms before JAX is imported.

`cargo xtask test` sets TEST_REFCPU, TEST_HELLO, TEST_ACCELERATOR, TEST_MLIR, TEST_TUTORIAL, TEST_FAULT_PLUGIN and
TEST_RECORDER to the libraries it built, and TEST_CARGO_PJRT to that program, installs the wheel of refcpu, and runs every
file in a process of its own, since JAX chooses its platforms once.
"""

import os
import subprocess
import sys


def library(variable: str) -> str:
    """The path of a shared library under test."""
    path = os.environ.get(variable)
    if not path or not os.path.exists(path):
        raise RuntimeError(f"{variable} does not name a library: run these tests with `cargo xtask test --only jax`")
    return path


def use(platforms: str, **variables: str) -> None:
    """Chooses JAX's platforms and sets environment variables. Call it before JAX is imported."""
    if "jax" in sys.modules:
        raise RuntimeError("JAX is imported already")
    os.environ["JAX_PLATFORMS"] = platforms
    os.environ.update(variables)


def run_python(code: str, **variables: str | None) -> str:
    """Runs code in a new Python, with environment variables set or (None) removed. Returns what it prints.

    Fails when the code does, with what it wrote to stderr.
    """
    environment = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout.strip()
