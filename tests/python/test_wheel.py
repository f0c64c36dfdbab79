"""Wheels that `cargo pjrt wheel` builds of plugins without Python code of their own."""

import base64
import csv
import hashlib
import io
import os
import pathlib
import platform
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
    assert printed.splitlines() == ["hello hello 2.0 2.0 True", "accelerator accelerator 2.0 2.0 True"]


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


def test_an_entry_without_a_path_does_not_hide_the_installed_plugin(packages):
    code = "import jax, jax.numpy as jnp; print(jnp.add(1, 1))"
    for entry in ("hello", "hello:", "hello:a:b"):
        printed = plugins.run_python(
            code, JAX_PLATFORMS="hello", PYTHONPATH=packages, PJRT_NAMES_AND_LIBRARY_PATHS=entry
        )
        assert printed == "2", entry


def test_a_library_that_is_already_loaded_stays_and_is_named_once(packages):
    code = f"""
import io, sys
log = sys.stderr = io.StringIO()
import jax, jax.numpy as jnp
from jax._src import xla_bridge
xla_bridge.register_plugin("hello", library_path={LIBRARIES["hello"]!r})
print(jnp.add(1, 1), log.getvalue().count("already loaded a library for hello"), "ALREADY_EXISTS" in log.getvalue())
"""
    printed = plugins.run_python(code, JAX_PLATFORMS="hello", PYTHONPATH=packages)
    assert printed == "2 1 False"


def test_an_option_for_a_library_that_is_not_used_is_an_error(packages):
    code = f"""
from jax._src import xla_bridge
xla_bridge.register_plugin("accelerator", library_path={LIBRARIES["accelerator"]!r})
from jax_plugins import accelerator
try:
    accelerator.plugin.set_option("memory_limit", 4096)
except RuntimeError as error:
    print("no effect" in str(error))
"""
    assert plugins.run_python(code, JAX_PLATFORMS="accelerator", PYTHONPATH=packages) == "True"


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


def test_a_manifest_of_a_member_selects_it(tmp_path):
    manifest = str(ROOT / "examples/hello/Cargo.toml")
    command = [CARGO_PJRT, "wheel", "--manifest-path", manifest, "--library", LIBRARIES["hello"], "--no-test"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, timeout=60)
    # The same from a folder of the package.
    command = [CARGO_PJRT, "wheel", "--library", os.path.abspath(LIBRARIES["hello"]), "--no-test"]
    subprocess.run([*command, "--out", str(tmp_path)], check=True, timeout=60, cwd=ROOT / "examples/hello/src")
    assert [wheel.name.split("-")[0] for wheel in tmp_path.glob("*.whl")] == ["hello_pjrt"]


def test_a_wheel_of_another_version_or_machine_stays(tmp_path):
    kept = {"hello_pjrt-0.0.9-py3-none-manylinux_2_28_x86_64.whl", "hello_pjrt-0.1.0-py3-none-manylinux_2_28_riscv64.whl"}
    for name in kept:
        (tmp_path / name).touch()
    assert build("hello-pjrt", LIBRARIES["hello"], tmp_path).returncode == 0
    assert kept < {path.name for path in tmp_path.iterdir()}


def compile_library(folder: pathlib.Path, source: str, *options: str) -> pathlib.Path:
    """A shared library that exports `GetPjrtApi`."""
    code, library, exports = folder / "plugin.cc", folder / "plugin.so", folder / "exports"
    code.write_text(source)
    exports.write_text("{ global: GetPjrtApi; local: *; };")
    command = ["c++", "-shared", "-fPIC", str(code), "-o", str(library), f"-Wl,--version-script={exports}"]
    subprocess.run([*command, *options], check=True, timeout=60)
    return library


def test_the_tag_covers_more_than_the_symbols_of_glibc(tmp_path):
    library = compile_library(
        tmp_path,
        """
        #include <charconv>
        #include <cstdio>
        extern "C" void *GetPjrtApi() { double x = 0; char t[] = "1.5"; std::from_chars(t, t + 3, x); return puts(t) ? 0 : t; }
        """,
        "-std=c++17",
    )
    required = subprocess.run(["readelf", "-V", str(library)], capture_output=True, text=True, check=True).stdout
    assert "GLIBCXX_3.4.29" in required and "GLIBCXX_3.4.30" not in required
    out = tmp_path / "out"
    assert build("hello-pjrt", str(library), out).returncode == 0
    # libstdc++ with GLIBCXX_3.4.29 is that of GCC 11, which the policy of manylinux_2_34 is the first to have.
    assert [wheel.name for wheel in out.iterdir()] == [f"hello_pjrt-0.1.0-py3-none-manylinux_2_34_{platform.machine()}.whl"]


def test_a_library_that_the_wheel_does_not_contain_is_named(tmp_path):
    other = tmp_path / "libvendor.so"
    (tmp_path / "vendor.c").write_text("int vendor(void) { return 1; }")
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "vendor.c"), "-o", str(other)], check=True)
    source = 'extern "C" int vendor(); extern "C" void *GetPjrtApi() { return vendor() ? 0 : (void*)1; }'
    library = compile_library(tmp_path, source, f"-L{tmp_path}", "-lvendor")
    result = build("hello-pjrt", str(library), tmp_path / "out")
    assert result.returncode == 0 and "does not contain these libraries" in result.stderr and "libvendor.so" in result.stderr


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
