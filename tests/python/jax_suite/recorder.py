"""A pytest plugin that writes what becomes of each test to a file as it happens, so that a crash loses one test only.

`JAX_SUITE_RECORDS` names a folder with a file for each test file: a JSON object a line, `{"start": test}` and
`{"test": ..., "outcome": ..., "why": ...}`. Tests that have an outcome there are not run again.
"""

import collections
import functools
import inspect
import json
import math
import os
import pathlib
import threading

import pytest

RECORDS = pathlib.Path(os.environ["JAX_SUITE_RECORDS"])
PLATFORM = os.environ["JAX_SUITE_PLATFORM"]

_compiled_for: set[str] = set()
_asked_for: set[str] = set()
"""Platforms whose devices the test, or JAX for it, asked for by name."""


def pytest_configure(config):
    import jax
    from jax._src import compiler
    from jax._src import test_util  # noqa: F401 defines the flag
    from jax._src import xla_bridge
    from jax._src.internal_test_util.export_back_compat_test_util import CompatTestBase

    # JAX skips on a platform that it does not know what it runs on CPU.
    jax.config.update("jax_test_dut", "cpu")

    # These tests run what was exported for the platform that the default backend is called after.
    platform_of_exports = CompatTestBase.default_jax_backend

    def default_jax_backend(self):
        return "cpu" if (name := platform_of_exports(self)) == PLATFORM else name

    CompatTestBase.default_jax_backend = default_jax_backend

    compile_program = compiler.backend_compile_and_load

    @functools.wraps(compile_program)
    def noting_platform(backend, *arguments, **options):
        # What the host's functions compile, on a thread of the plugin, is not part of the test's program.
        if not isinstance(threading.current_thread(), threading._DummyThread):
            _compiled_for.add(backend.platform)
        return compile_program(backend, *arguments, **options)

    compiler.backend_compile_and_load = noting_platform

    # JAX asks so for the devices of what host callbacks are given, and the test may go on computing with that.
    local_devices = xla_bridge.local_devices

    @functools.wraps(local_devices)
    def noting_request(process_index=None, backend=None, host_id=None):
        if isinstance(backend, str):
            _asked_for.add(backend)
        return local_devices(process_index, backend, host_id)

    xla_bridge.local_devices = noting_request


def name_of(item) -> str:
    """`Class.test`, or `module.test` of a function, as a JUnit report has it."""
    names = item.nodeid.split("::")[1:]
    return ".".join(names if len(names) > 1 else [item.path.stem, *names])


def record_of(item) -> pathlib.Path:
    return RECORDS / f"{item.path.stem}.jsonl"


def write(item, entry: dict) -> None:
    with record_of(item).open("a", encoding="utf-8") as record:
        record.write(json.dumps(entry) + "\n")


@functools.cache
def recorded(path: pathlib.Path) -> set[str]:
    if not path.exists():
        return set()
    return {entry["test"] for entry in map(json.loads, path.read_text(encoding="utf-8").splitlines()) if "test" in entry}


def sample(items: list) -> list:
    """As many tests of each file as `JAX_SUITE_SAMPLE` says, spread evenly over it; all if it says nothing."""
    if not (most := int(os.environ.get("JAX_SUITE_SAMPLE", "0"))):
        return items
    files = collections.defaultdict(list)
    for item in items:
        files[item.path].append(item)
    return [item for tests in files.values() for item in tests[:: math.ceil(len(tests) / most)]]


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in sample(items) if name_of(item) not in recorded(record_of(item))]


def asks_for_cpu(item) -> bool:
    """Whether the test itself names the platform `cpu`, or imports through DLPack, which says that memory is the CPU's."""
    try:
        source = inspect.getsource(inspect.unwrap(item.function)).lower()
        return "cpu" in source or "from_dlpack" in source
    except (OSError, TypeError):
        return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    write(item, {"start": name_of(item)})
    _compiled_for.clear()
    _asked_for.clear()
    item.reports = []
    result = yield
    outcome, why = "pass", ""
    for report in item.reports:
        if report.failed:
            outcome, why = "fail", short_reason(report)
            break
        if report.skipped:
            outcome, why = "skip", str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    unasked = _compiled_for - _asked_for - {PLATFORM}
    if outcome == "pass" and unasked and not asks_for_cpu(item):
        outcome, why = "fail", f"compiled for {sorted(unasked)} without asking"
    write(item, {"test": name_of(item), "outcome": outcome, "why": why})
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.reports.append(report)
    return report


def short_reason(report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = f"{crash.message}" if crash else str(report.longrepr)
    where = ""
    if (trace := getattr(report.longrepr, "reprtraceback", None)) and trace.reprentries:
        place = getattr(trace.reprentries[0], "reprfileloc", None)
        where = f" [{place.path}:{place.lineno}]" if place else ""
    return text[:1500] + where
