"""A pytest plugin that writes the outcome of each test to a file as it happens, so that a crash loses one test only.

`HOST_SUITE_RECORDS` names a folder with a file for each test file: a JSON object a line, `{"start": test}` and
`{"test": ..., "outcome": ..., "why": ...}`. Tests that have an outcome there are not run again. `HOST_SUITE_TESTS` names the
folder of the tests, and `HOST_SUITE_SAMPLE` the number of tests to run of each file.
"""

import collections
import functools
import json
import os
import pathlib

import pytest

import records

RECORDS = pathlib.Path(os.environ["HOST_SUITE_RECORDS"])
TESTS = pathlib.Path(os.environ["HOST_SUITE_TESTS"])


def name_of(item) -> str:
    """`Class.test`, or `module.test` of a function, as a JUnit report has it."""
    names = item.nodeid.split("::")[1:]
    return ".".join(names if len(names) > 1 else [item.path.stem, *names])


def record_of(item) -> pathlib.Path:
    return records.path(RECORDS, item.path.relative_to(TESTS).with_suffix("").as_posix())


@functools.cache
def recorded(path: pathlib.Path) -> set[str]:
    return {entry["test"] for entry in records.read(path) if "test" in entry}


def sample(items: list) -> list:
    """As many tests of each file as `HOST_SUITE_SAMPLE` says, spread evenly over it; all if it says nothing."""
    if not (most := int(os.environ.get("HOST_SUITE_SAMPLE", "0"))):
        return items
    files = collections.defaultdict(list)
    for item in items:
        files[item.path].append(item)
    return [item for tests in files.values() for item in spread(tests, most)]


def spread(tests: list, most: int) -> list:
    """Exactly `most` elements at equal distances, or all if there are fewer."""
    count = min(most, len(tests))
    return [tests[at * len(tests) // count] for at in range(count)]


def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in sample(items) if name_of(item) not in recorded(record_of(item))]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    records.add(record_of(item), {"start": name_of(item)})
    item.reports = []
    result = yield
    outcome, why = "pass", ""
    for report in item.reports:
        if report.failed:
            outcome, why = "fail", short_reason(report)
            break
        if report.skipped:
            outcome, why = "skip", str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    records.add(record_of(item), {"test": name_of(item), "outcome": outcome, "why": why})
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
