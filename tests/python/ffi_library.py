"""Compiles the handlers of custom calls that the tests register with `jax.ffi`, against the headers that jaxlib contains."""

import ctypes
import pathlib
import shutil
import subprocess

import jax
import pytest


def compiled(source: str, compiler: str, folder: pathlib.Path, *options: str) -> ctypes.CDLL:
    """Compiles a file of this folder to a shared library. Skips the test if there is no compiler."""
    path = shutil.which(compiler)
    if path is None:
        pytest.skip(f"there is no {compiler}")
    library = folder / f"{source}.so"
    file = pathlib.Path(__file__).with_name(source)
    command = [path, "-shared", "-fPIC", "-O1", f"-I{jax.ffi.include_dir()}", *options, str(file), "-o", str(library)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return ctypes.CDLL(str(library))
