"""`REFCPU_DUMP`: what stays behind of programs, of failures and of crashes, and the pytest plugin that sorts it."""

import json
import os
import pathlib
import subprocess
import sys

import plugins

plugins.use("refcpu")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from jax_plugins.refcpu import pytest_dumps  # noqa: E402


def files(folder: pathlib.Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_program_that_runs_leaves_its_passes_and_no_arguments(tmp_path):
    code = """
import jax, numpy as np
jax.jit(lambda x: x + 1)(np.ones(3, np.float32)).block_until_ready()
"""
    plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_DUMP=str(tmp_path))
    folders = sorted(tmp_path.iterdir())
    assert folders
    found = files(folders[-1])
    assert {"program", "format", "options.pb"} < found
    assert any(name.endswith("program.mlir") for name in found)
    assert any(name.endswith(".plan") for name in found)
    assert not any(name.startswith(("arguments", "running", "error")) for name in found), found


def test_machine_code_is_dumped_beside_the_functions_that_it_was_made_from(tmp_path):
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("there is no machine code for this processor")
    code = """
import jax, numpy as np
jax.jit(lambda x: (x * 3 + 1) / (x - 7))(np.ones(1 << 20, np.float32)).block_until_ready()
"""
    plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_DUMP=str(tmp_path))
    chains = list((tmp_path / "machine-code").glob("*-chain_of_*.s"))
    assert chains
    assert not any("rsp+L" in chain.read_text() for chain in chains), "an offset in the frame has the name of a label"
    divisions = [line for chain in chains for line in chain.read_text().splitlines() if "vdivps" in line]
    # The comment is beside the first instruction, which may load an operand from the frame.
    assert any("; Binary { op: Div" in line for line in divisions), divisions


def test_a_run_that_fails_leaves_its_arguments(tmp_path):
    code = """
import jax, numpy as np, jax.numpy as jnp
def broken(x):
    raise ValueError("on purpose")
f = jax.jit(lambda x: jax.pure_callback(broken, jax.ShapeDtypeStruct((3,), np.float32), x))
try:
    f(np.array([1, 2, 3], np.float32)).block_until_ready()
except Exception as error:
    print("failed", type(error).__name__)
"""
    output = plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_DUMP=str(tmp_path))
    assert output.startswith("failed")
    failed = [folder for folder in tmp_path.iterdir() if (folder / "error.txt").exists()]
    assert len(failed) == 1
    assert "on purpose" in (failed[0] / "error.txt").read_text()
    arguments = sorted((failed[0] / "arguments").iterdir())
    assert [1, 2, 3] in [np.load(path).tolist() for path in arguments]


def test_a_program_that_cannot_be_compiled_leaves_what_was_sent(tmp_path):
    code = """
import jax, numpy as np
from jax import ShapeDtypeStruct
lowered = jax.jit(lambda x: x + 1).lower(ShapeDtypeStruct((3,), np.float32))
try:
    lowered.compile(compiler_options={"no_such_option": 1})
except Exception as error:
    print("failed")
"""
    assert plugins.run_python(code, JAX_PLATFORMS="refcpu", REFCPU_DUMP=str(tmp_path)) == "failed"
    failed = [folder for folder in tmp_path.iterdir() if (folder / "error.txt").exists()]
    assert len(failed) == 1
    assert "no_such_option" in (failed[0] / "error.txt").read_text()
    assert (failed[0] / "format").read_text() == "mlir"


def test_a_crash_leaves_the_run_that_it_happened_in(tmp_path):
    code = """
import os, jax, numpy as np
def crash(x):
    os._exit(7)
f = jax.jit(lambda x: jax.pure_callback(crash, jax.ShapeDtypeStruct((2,), np.float32), x))
f(np.array([5, 6], np.float32)).block_until_ready()
"""
    environment = {**os.environ, "JAX_PLATFORMS": "refcpu", "REFCPU_DUMP": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=120)
    assert result.returncode == 7, result.stderr
    crashed = [folder for folder in tmp_path.iterdir() if (folder / "running").exists()]
    assert len(crashed) == 1
    assert (crashed[0] / "arguments").is_dir()


TESTS = """
import pytest

@pytest.mark.parametrize("size", [3, 4])
def test_fails(size):
    import jax
    jax.jit(lambda x: x + 1)(jax.numpy.ones(size))
    raise ValueError(f"size {size} is wrong")

def test_passes():
    import jax
    jax.jit(lambda x: x + 1)(jax.numpy.ones(5))
"""


def test_the_pytest_plugin_keeps_failures_and_groups_them(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    command = ["-m", "pytest", "-q", "-p", "jax_plugins.refcpu.pytest_dumps", "--refcpu-dumps", "dumps", "test_it.py"]
    environment = {**os.environ, "JAX_PLATFORMS": "refcpu"}
    result = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )
    assert result.returncode == 1, result.stdout + result.stderr
    assert "    2  ValueError: size N is wrong" in result.stdout, result.stdout
    kept = [folder.name for folder in (tmp_path / "dumps").iterdir()]
    assert len(kept) == 2 and all("test_fails" in name for name in kept), kept


def test_signatures_leave_out_what_differs():
    one = pytest_dumps.signature("XlaRuntimeError: INTERNAL: at 0x7f12 of /tmp/a/b.py: 1.5e-3 != 2\n")
    other = pytest_dumps.signature("XlaRuntimeError: INTERNAL: at 0x99 of /home/c.py: 7 != -2.25")
    assert one == other == "XlaRuntimeError: INTERNAL: at ADDRESS of PATH: N != N"
    assert "/" not in pytest_dumps.folder_name("a.py::test[x/y]")
