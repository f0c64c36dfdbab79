"""Runs JAX's own tests on a plugin, and compares with what they do on XLA's CPU backend.

Each file runs in a process of its own. What a run has found is kept, so that it can be stopped and continued; a test that
crashes or hangs costs itself only.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

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


def environment(arguments: argparse.Namespace, record: pathlib.Path) -> dict[str, str]:
    return {
        **os.environ,
        "JAX_PLATFORMS": f"{arguments.platform},cpu",
        "JAX_NUM_GENERATED_CASES": "3",
        "JAX_SKIP_SLOW_TESTS": "1",
        "REFCPU_NUM_DEVICES": "8",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_SUITE_RECORD": str(record),
        "JAX_SUITE_PLATFORM": arguments.platform,
        "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
        "PYTHONFAULTHANDLER": "1",
    }


def run_file(arguments: argparse.Namespace, file: pathlib.Path, record: pathlib.Path) -> None:
    """Runs what a file has left; begins again after a test that crashed or hung."""
    # JAX's tests capture the file that is `sys.stdout` when JAX is imported, so pytest must not put another in its place.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", "-s", "--tb=short", str(file)]
    if arguments.only:
        command += ["-k", arguments.only]
    log = record.with_suffix(".log")
    for _ in range(arguments.crashes):
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, cwd=file.parent.parent, env=environment(arguments, record), stdout=output, stderr=output
            )
            size, since, hung = -1, time.monotonic(), False
            while process.poll() is None:
                time.sleep(0.2)
                now = record.stat().st_size if record.exists() else 0
                if now != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > arguments.timeout:
                    hung = True
                    process.kill()
                    process.wait()
        test = running(record)
        if test is None:
            if hung or process.returncode not in (0, 1, 5):
                print(f"  {file.name}: pytest ended with {process.returncode}; see {log}", flush=True)
            return
        why = f"no end after {arguments.timeout} s" if hung else f"the process ended with {process.returncode}"
        print(f"  {file.stem} {test}: {why}", flush=True)
        note(record, test, why)


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
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--report-only", action="store_true", help="run nothing, compare what earlier runs found")
    arguments = parser.parse_args()
    baseline = json.loads(arguments.baseline.read_text(encoding="utf-8"))
    causes = expected.read()
    arguments.results.mkdir(parents=True, exist_ok=True)
    files = arguments.files or sorted(baseline)
    if unknown := [file for file in files if file not in baseline]:
        parser.error(f"the baseline has no {', '.join(unknown)}")

    def record(file: str) -> pathlib.Path:
        return (arguments.results / f"{file}.jsonl").resolve()

    def row(file: str) -> report.Row:
        return report.compare(file, entries(record(file)), baseline[file])

    def run(file: str) -> report.Row:
        started = time.monotonic()
        if not arguments.report_only:
            run_file(arguments, (arguments.tests / f"{file}.py").resolve(), record(file))
        seconds = "" if arguments.report_only else f"{time.monotonic() - started:7.1f} s"
        done = row(file)
        print(f"{file:42} {done.passed:5} of {done.expected:5}  {100 * done.share:6.2f} % {seconds}  {done.counts}", flush=True)
        return done

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as workers:
        rows = list(workers.map(run, files))
    everything = [row(file) for file in sorted(baseline)]
    report.write_json(arguments.results / "summary.json", everything, causes)
    if arguments.page:
        arguments.page.write_text(report.markdown(everything, causes, arguments.release), encoding="utf-8")
    return summary(rows, causes)


def summary(rows: list[report.Row], causes: expected.Causes) -> int:
    """Prints what is new, and gives the exit status."""
    below = [row.file for row in rows if row.share < report.GOAL]
    new = [f"{row.file} {entry['test']}" for row in rows for entry, cause in report.with_causes(row, causes) if not cause]
    old = report.out_of_date(rows, causes)
    passed, wanted = sum(row.passed for row in rows), sum(row.expected for row in rows)
    print(f"{passed} of {wanted} tests that pass on XLA CPU pass; below {report.GOAL:.0%}: {', '.join(below) or 'no file'}")
    for heading, tests in (("without a cause in the list", new), ("in the list, but passing", old)):
        if tests:
            print(f"{len(tests)} tests {heading}:", *tests, sep="\n  ")
    return 1 if below or new or old else 0


if __name__ == "__main__":
    sys.exit(main())
