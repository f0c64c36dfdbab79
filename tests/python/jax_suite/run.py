"""Runs JAX's own tests on a plugin, and compares with what they do on XLA's CPU backend.

Each large file runs in a process of its own, small ones share one. What a run has found is kept, so that it can be stopped
and continued; a test that crashes or hangs costs itself only.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import sys
import time
from typing import Any

import expected
import report

HERE = pathlib.Path(__file__).parent


def entries(record: pathlib.Path) -> list[dict]:
    if not record.exists():
        return []
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def running(record: pathlib.Path) -> str | None:
    """The test that was started last and has no outcome."""
    last = (entries(record) or [{}])[-1]
    return last.get("start")


def note(record: pathlib.Path, test: str, why: str) -> None:
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"test": test, "outcome": "fail", "why": why}) + "\n")


def settings(platform: str) -> dict[str, str]:
    """The environment of all tests."""
    return {
        "JAX_PLATFORMS": f"{platform},cpu",
        "JAX_NUM_GENERATED_CASES": "3",
        "JAX_SKIP_SLOW_TESTS": "1",
        "REFCPU_NUM_DEVICES": "8",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_SUITE_PLATFORM": platform,
        "PYTHONFAULTHANDLER": "1",
    }


OPAQUE = {"transfer_guard_test"}
"""Files about copies between the host and a device, which there are none of where the host reads the device's memory. They
ask for the platform's name to find out."""


def start_server(platform: str) -> multiprocessing.context.ForkServerContext:
    """Starts the process that has JAX imported, which takes longer than many a file, and splits off one for each file."""
    os.environ.update(settings(platform))
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["pytest", "jax", "jax._src.test_util", "scipy.special", "scipy.linalg"])
    return server


def run_pytest(records: pathlib.Path, log: pathlib.Path, folder: pathlib.Path, options: list[str], opaque: bool) -> None:
    """Runs tests in this process."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    os.environ["JAX_SUITE_RECORDS"] = str(records)
    os.environ |= {"REFCPU_OPAQUE": "1"} if opaque else {}
    # Processes that a test starts look for its module as `tests.NAME`.
    sys.path[:0] = [str(HERE), str(folder)]
    import pytest

    # JAX's tests capture the file that is `sys.stdout` when JAX is imported, so pytest must not put another in its place.
    status = pytest.main(["-q", "-p", "recorder", "-p", "no:cacheprovider", "-s", "--tb=short", "--continue-on-collection-errors", *options])
    sys.stdout.flush()
    os._exit(status)  # Threads of the plugin, or of the tests, do not keep the process.


def run_files(arguments: argparse.Namespace, server: Any, files: list[str]) -> None:
    """Runs what files have left, all in one process; begins again after a test that crashed or hung."""
    records = [record_of(arguments, file) for file in files]
    options = [str((arguments.tests / f"{file}.py").resolve()) for file in files]
    options += ["-k", arguments.only] if arguments.only else []
    log = records[0].with_suffix(".log")
    for _ in range(arguments.crashes):
        folder = arguments.tests.resolve().parent
        process = server.Process(target=run_pytest, args=(records[0].parent, log, folder, options, bool(OPAQUE & set(files))))
        process.start()
        size, since, hung = -1, time.monotonic(), False
        while process.exitcode is None:
            process.join(0.2)
            now = sum(record.stat().st_size for record in records if record.exists())
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > arguments.timeout:
                hung = True
                process.kill()
                process.join()
        stopped = [(record, test) for record in records if (test := running(record))]
        if not stopped:
            if hung or process.exitcode not in (0, 1, 5):
                print(f"  {', '.join(files)}: pytest ended with {process.exitcode}; see {log}", flush=True)
            return
        why = f"no end after {arguments.timeout} s" if hung else f"the process ended with {process.exitcode}"
        for record, test in stopped:
            print(f"  {record.stem} {test}: {why}", flush=True)
            note(record, test, why)


def record_of(arguments: argparse.Namespace, file: str) -> pathlib.Path:
    return (arguments.results / f"{file}.jsonl").resolve()


def forget_failures(record: pathlib.Path) -> None:
    """Leaves what passed in a record, so that the rest runs again."""
    passed = [entry for entry in entries(record) if entry.get("outcome") == "pass"]
    record.write_text("".join(json.dumps(entry) + "\n" for entry in passed), encoding="utf-8")


def groups_of(files: list[str], baseline: dict[str, dict[str, str]], together: int, sample: int) -> list[list[str]]:
    """Files that share a process: as many as have so many tests together. Starting JAX takes longer than a small file."""
    groups, room = [], 0
    for file in files:
        count = together if file in OPAQUE else min(len(baseline[file]), sample or together)
        if count > room:
            groups, room = [*groups, []], together
        groups[-1].append(file)
        room -= count
    return groups


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="names of test files without .py; all of the baseline's when none is given")
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="the folder 'tests' of JAX's sources")
    parser.add_argument("--baseline", type=pathlib.Path, required=True, help="outcomes on XLA CPU, as JSON")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="folder for what is found; kept between runs")
    parser.add_argument("--page", type=pathlib.Path, help="a Markdown file to write with what all runs have found")
    parser.add_argument("--release", default="JAX", help="what the page calls the release")
    parser.add_argument("--platform", default="refcpu")
    parser.add_argument("--jobs", type=int, default=1, help="how many files run at a time")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one test may take")
    parser.add_argument("--crashes", type=int, default=20, help="how often a file is begun again")
    parser.add_argument("--together", type=int, default=100, help="how many tests of small files share a process")
    parser.add_argument("--again", action="store_true", help="run again what has not passed")
    parser.add_argument("--sample", type=int, default=0, help="how many tests of each file to run; 0: all")
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--report-only", action="store_true", help="run nothing, compare what earlier runs found")
    arguments = parser.parse_args()
    baseline = json.loads(arguments.baseline.read_text(encoding="utf-8"))
    causes = expected.read()
    arguments.results.mkdir(parents=True, exist_ok=True)
    files = arguments.files or sorted(baseline)
    if unknown := [file for file in files if file not in baseline]:
        parser.error(f"the baseline has no {', '.join(unknown)}")

    os.environ["JAX_SUITE_SAMPLE"] = str(arguments.sample)
    server = start_server(arguments.platform)

    def row(file: str) -> report.Row:
        return report.compare(file, entries(record_of(arguments, file)), baseline[file])

    def run(group: list[str]) -> list[report.Row]:
        started = time.monotonic()
        if not arguments.report_only:
            for file in group if arguments.again else []:
                forget_failures(record_of(arguments, file))
            run_files(arguments, server, group)
        seconds = "" if arguments.report_only else f"{time.monotonic() - started:7.1f} s"
        rows = [row(file) for file in group]
        for done in rows:
            share = f"{100 * done.share:6.2f} %"
            print(f"{done.file:42} {done.passed:5} of {done.expected:5}  {share} {seconds}  {done.counts}", flush=True)
        return rows

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as workers:
        done = workers.map(run, groups_of(files, baseline, arguments.together, arguments.sample))
        rows = [row for group in done for row in group]
    everything = [row(file) for file in sorted(baseline)]
    report.write_json(arguments.results / "summary.json", everything, causes)
    if arguments.page:
        arguments.page.write_text(report.markdown(everything, causes, arguments.release), encoding="utf-8")
    return summary(rows, causes)


def summary(rows: list[report.Row], causes: expected.Causes) -> int:
    """Prints what is new, and gives the exit status."""
    below = [row.file for row in rows if row.share < report.GOAL]
    new = [
        f"{row.file} {entry['test']}"
        for row in rows
        for entry, cause in report.with_causes(row, causes)
        if not cause and entry["outcome"] != "absent"
    ]
    old = report.out_of_date(rows, causes)
    passed, wanted = sum(row.passed for row in rows), sum(row.expected for row in rows)
    print(f"{passed} of {wanted} tests that pass on XLA CPU pass; below {report.GOAL:.0%}: {', '.join(below) or 'no file'}")
    for heading, tests in (("without a cause in the list", new), ("in the list, but passing", old)):
        if tests:
            print(f"{len(tests)} tests {heading}:", *tests, sep="\n  ")
    if absent := sum(row.absent for row in rows):
        print(f"{absent} tests have not run")
    return 1 if below or new or old or absent else 0


if __name__ == "__main__":
    sys.exit(main())
