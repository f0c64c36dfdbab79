"""Runs a host's own tests on a plugin, and compares with what they do on XLA's CPU backend.

Each large file runs in a process of its own, small ones may share one. What a run has found is kept, so that it can be stopped
and continued; a test that crashes or hangs costs itself only.
"""

import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import expected
import hosts
import records
import report

HERE = pathlib.Path(__file__).parent


class Suite:
    """The runner of a host's tests on a platform."""

    def __init__(self, arguments: argparse.Namespace):
        self.host: hosts.Host = hosts.HOSTS[arguments.host]
        self.arguments = arguments
        self.platform = self.host.anchor if arguments.write_baseline else arguments.platform or self.host.plugin
        self.results = arguments.results.resolve()
        self.results.mkdir(parents=True, exist_ok=True)
        self.tests = arguments.tests.resolve()
        if self.host.edit:
            self.tests = copy_edited(self.tests, self.results / "tests", self.host.edit)
        os.environ.update(self.host.settings(self.platform))
        os.environ.update(
            HOST_SUITE_RECORDS=str(self.results),
            HOST_SUITE_TESTS=str(self.tests),
            HOST_SUITE_PLATFORM=self.platform,
            HOST_SUITE_SAMPLE=str(arguments.sample),
            PYTHONFAULTHANDLER="1",
        )
        # A process that has the host imported, which takes longer than many a file, and splits off one for each file.
        self.server = multiprocessing.get_context("forkserver")
        self.server.set_forkserver_preload(["pytest", *self.host.preload])

    def record(self, file: str) -> pathlib.Path:
        return records.path(self.results, file)

    def run(self, files: list[str]) -> None:
        """Runs what files have left, all in one process; begins again after a test that crashed or hung."""
        paths = [self.tests / f"{file}.py" for file in files]
        log = self.record(files[0]).with_suffix(".log")
        if self.host.is_script(paths[0].read_text(encoding="utf-8")):
            self.run_script(files[0], paths[0], log)
            return
        # Tests of JAX look for their module as `tests.NAME` in the processes that they start.
        folder = self.tests.parent if self.host is hosts.JAX else paths[0].parent
        options = [*map(str, paths), *(["-k", self.arguments.only] if self.arguments.only else [])]
        options += ["-p", self.host.pytest_plugin] if self.host.pytest_plugin else []
        environment = self.host.file_settings(files[0])
        for _ in range(self.arguments.crashes):
            process = self.server.Process(target=run_pytest, args=(log, folder, environment, options))
            process.start()
            hung = self.wait(process, [self.record(file) for file in files])
            stopped = [(file, test) for file in files if (test := records.running(self.record(file)))]
            if not stopped:
                if hung or process.exitcode not in (0, 1, 5):
                    print(f"  {', '.join(files)}: pytest ended with {process.exitcode}; see {log}", flush=True)
                return
            why = f"no end after {self.arguments.timeout} s" if hung else f"the process ended with {process.exitcode}"
            for file, test in stopped:
                print(f"  {file} {test}: {why}", flush=True)
                records.add(self.record(file), {"test": test, "outcome": "fail", "why": why})

    def wait(self, process: multiprocessing.Process, written: list[pathlib.Path]) -> bool:
        """Waits for a process. Kills it and returns true when no test starts or ends for too long."""
        size, since = -1, time.monotonic()
        while process.exitcode is None:
            process.join(0.2)
            now = sum(record.stat().st_size for record in written if record.exists())
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > self.arguments.timeout:
                kill_group(process.pid)
                process.join()
                return True
        return False

    def run_script(self, file: str, path: pathlib.Path, log: pathlib.Path) -> None:
        """Runs a program as a test with the name `main`."""
        record = self.record(file)
        if any("test" in entry for entry in records.read(record)):
            return
        environment = os.environ | self.host.file_settings(file)
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, path], cwd=path.parent, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                status = process.wait(self.arguments.timeout)
                why = f"the process ended with {status}: " + "\n".join(log.read_text(errors="replace").splitlines()[-3:])
            except subprocess.TimeoutExpired:
                kill_group(process.pid)
                status, why = process.wait(), f"no end after {self.arguments.timeout} s"
        outcome = {"outcome": "fail", "why": why[:1500]} if status else {"outcome": "pass", "why": ""}
        records.add(record, {"test": "main", **outcome})

    def groups(self, files: list[str], counts: dict[str, int]) -> list[list[str]]:
        """Files that share a process: as many as have so many tests together."""
        groups, room, together = [], 0, self.host.together
        for file in files:
            count = together if self.host.file_settings(file) else min(counts.get(file, together), self.arguments.sample or together)
            if count > room:
                groups, room = [*groups, []], together
            groups[-1].append(file)
            room -= count
        return groups


def copy_edited(tests: pathlib.Path, folder: pathlib.Path, edit: Callable[[str], str]) -> pathlib.Path:
    """Copies a folder of tests, and edits its files of Python. Returns the copy."""
    shutil.copytree(tests, folder, ignore=shutil.ignore_patterns("__init__.py"), dirs_exist_ok=True)
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if (edited := edit(text)) != text:
            path.write_text(edited, encoding="utf-8")
    return folder


def kill_group(leader: int) -> None:
    """Kills a process and those that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def run_pytest(log: pathlib.Path, folder: pathlib.Path, environment: dict[str, str], options: list[str]) -> None:
    """Runs tests in this process."""
    os.setpgid(0, 0)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    os.environ.update(environment)
    sys.path[:0] = [str(HERE), str(folder)]
    # Tests of PyTorch/XLA parse the arguments of the process when they are imported.
    sys.argv = [options[0]]
    import pytest

    # JAX's tests capture the file that is `sys.stdout` when JAX is imported, so pytest must not put another in its place.
    status = pytest.main(["-q", "-p", "recorder", "-p", "no:cacheprovider", "-s", "--tb=short", "--continue-on-collection-errors", *options])
    sys.stdout.flush()
    os._exit(status)  # Threads of the plugin, or of the tests, do not keep the process.


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="test files, as paths in the folder without .py; by default, all of the baseline")
    parser.add_argument("--host", choices=sorted(hosts.HOSTS), required=True)
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="the folder of tests in the host's sources")
    parser.add_argument("--baseline", type=pathlib.Path, required=True, help="outcomes on XLA CPU, as JSON")
    parser.add_argument("--write-baseline", action="store_true", help="run on XLA CPU, and add the outcomes to the baseline")
    parser.add_argument("--platform", help="the host's name for the plugin; by default, refcpu")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="folder for what is found; kept between runs")
    parser.add_argument("--page", type=pathlib.Path, help="a Markdown file to write with what all runs have found")
    parser.add_argument("--release", default="the host", help="what the page calls the release")
    parser.add_argument("--jobs", type=int, default=1, help="how many files run at a time")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one test may take")
    parser.add_argument("--crashes", type=int, default=20, help="how often a file is begun again")
    parser.add_argument("--again", action="store_true", help="run again what has not passed")
    parser.add_argument("--sample", type=int, default=0, help="how many tests of each file to run; 0: all")
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--report-only", action="store_true", help="run nothing, compare what earlier runs found")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    baseline: dict[str, dict[str, str]] = {}
    if arguments.baseline.exists() or not arguments.write_baseline:
        baseline = json.loads(arguments.baseline.read_text(encoding="utf-8"))
    files = arguments.files or sorted(baseline)
    if not arguments.write_baseline and (unknown := [file for file in files if file not in baseline]):
        sys.exit(f"the baseline has no {', '.join(unknown)}")
    suite = Suite(arguments)

    def run(group: list[str]) -> None:
        started = time.monotonic()
        if not arguments.report_only:
            for file in group if arguments.again else []:
                records.forget_failures(suite.record(file))
            suite.run(group)
        for file in group:
            print_counts(file, time.monotonic() - started)

    def print_counts(file: str, seconds: float) -> None:
        done = report.compare(file, records.read(suite.record(file)), baseline.get(file, {}))
        share = f"{done.passed:5} of {done.expected:5}  {100 * done.share:6.2f} %"
        print(f"{file:42} {share} {seconds:7.1f} s  {done.counts}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as workers:
        list(workers.map(run, suite.groups(files, {file: len(tests) for file, tests in baseline.items()})))
    if arguments.write_baseline:
        for file in files:
            baseline[file] = {entry["test"]: entry["outcome"] for entry in records.read(suite.record(file)) if "test" in entry}
        arguments.baseline.write_text(json.dumps(baseline, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    # The lists are those of refcpu.
    causes = {} if arguments.platform else expected.read(HERE / f"{suite.host.name}.toml")
    rows = {file: report.compare(file, records.read(suite.record(file)), baseline[file]) for file in sorted(baseline)}
    report.write_json(arguments.results / "summary.json", list(rows.values()), causes)
    if arguments.page:
        arguments.page.write_text(report.markdown(list(rows.values()), causes, suite.host, arguments.release), encoding="utf-8")
    return summary([rows[file] for file in files], causes)


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
