"""A pytest plugin for JAX's tests: a test fails if it compiles for a different platform than the one under test, without being asked."""

import functools
import inspect
import os
import threading

import pytest

PLATFORM = os.environ["HOST_SUITE_PLATFORM"]

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    _compiled_for.clear()
    _asked_for.clear()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    unasked = _compiled_for - _asked_for - {PLATFORM}
    if report.when == "call" and report.passed and unasked and not asks_for_cpu(item):
        report.outcome, report.longrepr = "failed", f"compiled for {sorted(unasked)} without asking"
    return report


def asks_for_cpu(item) -> bool:
    """Whether the test itself names the platform `cpu`, or imports through DLPack, which says that memory is the CPU's."""
    try:
        source = inspect.getsource(inspect.unwrap(item.function)).lower()
        return "cpu" in source or "from_dlpack" in source
    except (OSError, TypeError):
        return False
