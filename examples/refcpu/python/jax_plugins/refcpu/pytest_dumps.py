"""A pytest plugin that keeps refcpu's dumps of failed tests, and groups the failures.

    pytest -p jax_plugins.refcpu.pytest_dumps --refcpu-dumps dumps tests

The dumps of each test are written to a separate folder (`REFCPU_DUMP`), which is deleted if the test passes. At the end,
failures with the same signature (the beginning of the error, without its numbers, paths and addresses) are listed together,
with the folder of the first one. `cargo pjrt run --replay FOLDER/0003` runs a program of the folder without Python.
"""

import collections
import hashlib
import os
import pathlib
import re
import shutil

import pytest

VARIABLE = "REFCPU_DUMP"

# The maximum length of a test's name in the name of its folder.
_MAX_NAME = 100

# The parts of errors that differ between failures with the same cause.
_DETAILS = [
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDRESS"),
    (re.compile(r"(/[\w.+-]+){2,}"), "PATH"),
    (re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
]


def pytest_addoption(parser):
    group = parser.getgroup("refcpu")
    group.addoption("--refcpu-dumps", metavar="FOLDER", help="keep refcpu's dumps of failed tests in this folder")


def pytest_configure(config):
    folder = config.getoption("--refcpu-dumps")
    if folder:
        config.pluginmanager.register(Dumps(pathlib.Path(folder).resolve()), "refcpu-dumps")


def signature(text: str) -> str:
    """Returns the first two lines of an error, without the parts that differ between failures with the same cause."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    beginning = " ".join(lines[:2])
    for pattern, stands_for in _DETAILS:
        beginning = pattern.sub(stands_for, beginning)
    return beginning


def folder_name(test: str) -> str:
    """Returns the name of a test's folder, which is unique."""
    plain = re.sub(r"[^\w.-]+", "-", test).strip("-")
    if plain == test and len(test) <= _MAX_NAME:
        return test
    return f"{plain[-_MAX_NAME:]}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"


class Dumps:
    """The folders of the tests of this run."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.failures = collections.defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        folder = self.folder / folder_name(item.nodeid)
        # Dumps of an earlier run must not be mixed with those of this run.
        shutil.rmtree(folder, ignore_errors=True)
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(folder)
        try:
            return (yield)
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before
            if not any(folder == failed for tests in self.failures.values() for failed in tests):
                shutil.rmtree(folder, ignore_errors=True)

    def pytest_runtest_logreport(self, report):
        if not report.failed:
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr)
        folders = self.failures[signature(text)]
        folder = self.folder / folder_name(report.nodeid)
        if folder not in folders:
            folders.append(folder)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.failures:
            return
        terminalreporter.section("refcpu: failures by signature")
        for text, folders in sorted(self.failures.items(), key=lambda item: -len(item[1])):
            terminalreporter.line(f"{len(folders):5}  {text[:200]}")
            terminalreporter.line(f"       {folders[0]}")
