"""The programs of the tutorial: each prints what its chapter says.

A chapter names the source of its step, and contains a Python program and, after it, its output. `UPDATE_DOCS=1` writes the outputs
into the chapters.
"""

import os
import pathlib
import re
import subprocess
import sys

import plugins
import pytest

ROOT = pathlib.Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "docs/tutorial").glob("*.md"))
PROGRAM = re.compile(r"```python\n(.*?)```\n.*?```text\n(.*?)```", re.DOTALL)
STEP = re.compile(r"examples/tutorial/(?:steps/(\w+)\.rs|src/lib\.rs)")


def library(chapter: str) -> pathlib.Path:
    """The library of a chapter's step. The steps are examples of Cargo; the last one is the library of the crate."""
    last = pathlib.Path(plugins.library("TEST_TUTORIAL"))
    step = STEP.search(chapter)
    assert step, "the chapter names no source"
    return last.parent / f"examples/lib{step[1]}.so" if step[1] else last


def install_wheel(file: pathlib.Path, folder: pathlib.Path) -> str:
    """Builds a wheel of a library, and installs it in a folder, which this returns."""
    build = [os.environ["TEST_CARGO_PJRT"], "pjrt", "wheel", "--package", "tutorial-pjrt", "--library", file, "--no-test"]
    subprocess.run([*build, "--out", folder / "dist"], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    site = str(folder / "site")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, wheel]
    subprocess.run(install, check=True)
    return site


@pytest.mark.parametrize("path", [path for path in CHAPTERS if "```python" in path.read_text()], ids=lambda path: path.stem)
def test_a_program_prints_what_its_chapter_says(path, tmp_path):
    chapter = path.read_text()
    found = PROGRAM.search(chapter)
    program, expected = found[1], found[2]
    file = tmp_path / f"{path.stem}.py"
    file.write_text(program)
    environment = {**os.environ, "JAX_PLATFORMS": "tutorial"}
    if path.stem == "wheel":
        environment["PYTHONPATH"] = install_wheel(library(chapter), tmp_path)
    else:
        environment["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"tutorial:{library(chapter)}"
    result = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    printed = result.stdout.replace(f"{tmp_path}/", "")
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(chapter[: found.start(2)] + printed + chapter[found.end(2) :])
    else:
        assert printed == expected


def test_every_step_has_a_chapter():
    steps = {STEP.search(path.read_text())[1] for path in CHAPTERS}
    assert steps >= {path.stem for path in (ROOT / "examples/tutorial/steps").glob("*.rs")}
