"""Runs JAX's own tests on a plugin, and compares with what they do on XLA's CPU backend.

Each file runs in a process of its own. What a run has found is kept, so that it can be stopped and continued; a test that
crashes or hangs costs itself only.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

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


def compare(name: str, record: pathlib.Path, baseline: dict[str, str]) -> dict:
    # JUnit closes the bracket of a name that has one in its middle.
    found = {entry["test"].rstrip("]"): entry for entry in entries(record) if "test" in entry}
    baseline = {test.rstrip("]"): outcome for test, outcome in baseline.items()}
    expected = [test for test, outcome in baseline.items() if outcome == "pass"]
    missing = [test for test in expected if found.get(test, {"outcome": "absent"})["outcome"] != "pass"]
    return {
        "file": name,
        "expected": len(expected),
        "passed": len(expected) - len(missing),
        "counts": dict(collections.Counter(entry["outcome"] for entry in found.values())),
        "missing": [
            {"test": test, **{key: found.get(test, {}).get(key, "absent") for key in ("outcome", "why")}} for test in missing
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="names of test files without .py; all of the baseline's when none is given")
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="the folder 'tests' of JAX's sources")
    parser.add_argument("--baseline", type=pathlib.Path, required=True, help="outcomes on XLA CPU, as JSON")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="folder for what is found; kept between runs")
    parser.add_argument("--platform", default="refcpu")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one test may take")
    parser.add_argument("--crashes", type=int, default=20, help="how often a file is begun again")
    parser.add_argument("--only", help="pytest's -k")
    parser.add_argument("--report-only", action="store_true", help="run nothing, compare what earlier runs found")
    arguments = parser.parse_args()
    baseline = json.loads(arguments.baseline.read_text(encoding="utf-8"))
    arguments.results.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in arguments.files or sorted(baseline):
        record = (arguments.results / f"{name}.jsonl").resolve()
        if not arguments.report_only:
            started = time.monotonic()
            run_file(arguments, (arguments.tests / f"{name}.py").resolve(), record)
        row = compare(name, record, baseline.get(name, {}))
        rows.append(row)
        seconds = "" if arguments.report_only else f"{time.monotonic() - started:7.1f} s"
        share = 100 * row["passed"] / max(row["expected"], 1)
        print(f"{name:42} {row['passed']:5} of {row['expected']:5}  {share:6.2f} % {seconds}  {row['counts']}", flush=True)
    summary = arguments.results / "summary.json"
    summary.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    passed, expected = sum(row["passed"] for row in rows), sum(row["expected"] for row in rows)
    below = [row["file"] for row in rows if row["passed"] < 0.99 * row["expected"]]
    print(f"{passed} of {expected} tests that pass on XLA CPU pass; below 99 %: {', '.join(below) or 'no file'}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
