"""Wheels that `cargo pjrt wheel` builds of plugins without Python code of their own."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import plugins
import pytest

CARGO_PJRT = plugins.library("TEST_CARGO_PJRT")
LIBRARIES = {"hello": plugins.library("TEST_HELLO"), "accelerator": plugins.library("TEST_ACCELERATOR")}
ROOT = pathlib.Path(__file__).parents[2]


def build(package: str, library: str, out: pathlib.Path, *more: str) -> subprocess.CompletedProcess:
    manifest = str(ROOT / "Cargo.toml")
    command = [CARGO_PJRT, "wheel", "--manifest-path", manifest, "--package", package, "--library", library]
    return subprocess.run([*command, "--no-test", "--out", str(out), *more], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, pathlib.Path]:
    """The wheels of two plugins."""
    built = {}
    for name, library in LIBRARIES.items():
        out = tmp_path_factory.mktemp(name)
        result = build(f"{name}-pjrt", library, out)
        assert result.returncode == 0, result.stderr
        (built[name],) = out.glob("*.whl")
        assert result.stdout.strip() == f"Wheel: {built[name]}"
    return built


@pytest.fixture(scope="module")
def packages(wheels, tmp_path_factory) -> str:
    """A folder in which the wheels of both plugins are installed."""
    folder = str(tmp_path_factory.mktemp("packages"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
    subprocess.run([*command, *map(str, wheels.values())], check=True)
    return folder


def test_a_wheel_lists_its_members_with_their_hashes(wheels):
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        (record,) = (member for member in members if member.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(members[record].decode()))}
        assert rows.keys() == members.keys()
        for member, data in members.items():
            if member != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                assert rows[member] == [f"sha256={digest}", str(len(data))]
        assert {f"torch_xla_{name}.py", f"jax_plugins/{name}/lib{name}_pjrt.so"} <= members.keys()
        assert any("/licenses/LICENSE-MIT" in member for member in members)
        metadata = members[record.replace("RECORD", "METADATA")].decode()
        assert f"Name: {name}-pjrt\nVersion: 0.1.0\n" in metadata and "License-File: LICENSE-MIT" in metadata


def test_two_plugins_with_copies_of_the_shared_package_work_in_one_process(packages):
    code = """
import jax, numpy as np
one, two = np.float32(1), np.float32(2)
for name in ("hello", "accelerator"):
    device = jax.devices(name)[0]
    x = jax.device_put(one, device)
    y = jax.jit(lambda x: x + x, donate_argnums=0)(x)
    print(name, device.platform, float(y), np.from_dlpack(y), x.is_deleted())
"""
    printed = plugins.run_python(code, JAX_PLATFORMS="hello,accelerator,cpu", PYTHONPATH=packages)
    # hello does not support donation.
    assert printed.splitlines() == ["hello hello 2.0 2.0 False", "accelerator accelerator 2.0 2.0 True"]


def test_a_library_that_the_environment_names_is_used_instead_of_the_installed_one(packages, tmp_path):
    copy = tmp_path / "other.so"
    shutil.copy(LIBRARIES["hello"], copy)
    code = """
import jax, jax.numpy as jnp
total, loaded = jnp.add(1, 1), open("/proc/self/maps").read()
print(total, "/other.so" in loaded, "libhello_pjrt.so" in loaded)
"""
    printed = plugins.run_python(
        code, JAX_PLATFORMS="hello", PYTHONPATH=packages, PJRT_NAMES_AND_LIBRARY_PATHS=f"hello:{copy}"
    )
    assert printed == "2 True False"


def test_an_option_that_is_set_too_late_is_an_error(packages):
    code = """
import jax
from jax_plugins import accelerator
accelerator.plugin.set_option("memory_limit", 4096)
print(jax.devices()[0].memory_stats()["bytes_limit"])
try:
    accelerator.plugin.set_option("memory_limit", 8192)
except RuntimeError as error:
    print("before the first use of JAX" in str(error))
"""
    assert plugins.run_python(code, JAX_PLATFORMS="accelerator", PYTHONPATH=packages) == "4096\nTrue"


def test_mistakes_are_named(tmp_path):
    no_plugin = tmp_path / "text.so"
    no_plugin.write_text("text")
    for package, library, parts in [
        ("hello-pjrt", str(no_plugin), ["text.so", "not a shared library"]),
        ("hello-pjrt", sys.executable, ["does not export GetPjrtApi"]),
        ("pjrt-stablehlo", LIBRARIES["hello"], ["no shared library", 'crate-type = ["cdylib"]']),
        ("helo", LIBRARIES["hello"], ["no package 'helo'", "hello-pjrt"]),
    ]:
        result = build(package, library, tmp_path)
        assert result.returncode == 1 and all(part in result.stderr for part in parts), result.stderr
    result = build("hello-pjrt", LIBRARIES["hello"], tmp_path, "--glibc", "2.3")
    assert result.returncode == 2 and os.path.basename(LIBRARIES["hello"]) not in result.stdout


def test_the_modules_for_pytorch_do_not_import_jax(packages):
    for name in LIBRARIES:
        source = (pathlib.Path(packages) / f"torch_xla_{name}.py").read_text()
        assert "import jax" not in source and f"PJRT_DEVICE={name.upper()}" in source
