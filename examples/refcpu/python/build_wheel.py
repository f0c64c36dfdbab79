"""Builds the wheel of pjrt-refcpu from a library that cargo has built.

    python build_wheel.py --library target/release/librefcpu.so --version 0.1.0 --out dist

It requires only the standard library of Python 3.11, and prints the path of the wheel.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import sys
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# The time stamp of every member, which is constant so that builds are reproducible.
EPOCH = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True, help="librefcpu.so")
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder for the wheel")
    arguments = parser.parse_args()
    if sys.platform != "linux":
        sys.exit(f"wheels can be built only on Linux, not on {sys.platform}")
    print(build(arguments.library, arguments.version, arguments.out))


def build(library: pathlib.Path, version: str, out: pathlib.Path) -> pathlib.Path:
    """Writes the wheel to the folder `out`, removes wheels of other versions and platforms from it, and returns the path."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    distribution = project["name"].replace("-", "_")
    code = library.read_bytes()
    tag = f"py3-none-{platform_tag(code)}"
    dist_info = f"{distribution}-{version}.dist-info"

    members = {
        path.relative_to(HERE).as_posix(): path.read_bytes()
        for path in [*sorted((HERE / "jax_plugins").rglob("*.py")), HERE / "torch_xla_refcpu.py"]
    }
    members["jax_plugins/refcpu/librefcpu.so"] = code
    members[f"{dist_info}/METADATA"] = metadata(project, version).encode()
    members[f"{dist_info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: build_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    members[f"{dist_info}/entry_points.txt"] = entry_points(project).encode()
    record = f"{dist_info}/RECORD"
    lines = [f"{name},{digest(data)},{len(data)}" for name, data in members.items()]
    members[record] = ("\n".join([*lines, f"{record},,"]) + "\n").encode()

    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"{distribution}-*.whl"):
        old.unlink()
    wheel = out / f"{distribution}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            archive.writestr(info, data)
    return wheel


def metadata(project: dict, version: str) -> str:
    extras = project["optional-dependencies"]
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
        *(f"Provides-Extra: {extra}" for extra in extras),
        *(f'Requires-Dist: {dependency}; extra == "{extra}"' for extra, needed in extras.items() for dependency in needed),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (HERE / project["readme"]).read_text()


def entry_points(project: dict) -> str:
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()), ""]
    return "\n".join(lines)


def platform_tag(code: bytes) -> str:
    """Returns the platform tag of the oldest Linux on which the library runs, from the newest glibc version that it requires."""
    minors = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", code)]
    # Tags for versions before 2.17 do not exist.
    return f"manylinux_2_{max(17, *minors)}_{platform.machine()}" if minors else f"linux_{platform.machine()}"


def digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


if __name__ == "__main__":
    main()
