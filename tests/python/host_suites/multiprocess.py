"""Runs JAX's own tests of several processes on refcpu and on XLA's CPU backend over Gloo, and compares the outcomes.

    python multiprocess.py --tests FOLDER --results FOLDER [--shapes 2x4,4x2,4x1] [FILE...]

FOLDER contains JAX's `tests/multiprocess`. Each file runs in as many processes as a shape says, with as many devices in each, on
XLA's CPU backend and then on refcpu. Some tests only run on a platform with the name `cpu`. If refcpu skips a test that passes on
XLA's CPU backend, its file runs once more with that name, which JAX's tests take from a flag. `jax_multiprocess.toml` lists the
tests that are known to fail on refcpu.
"""

import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import expected

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "distributed"))

import launch  # noqa: E402

# Tests of other platforms: profiles of GPUs, transfers between servers of TPUs, and TPUs.
OTHER_PLATFORMS = ("pgle_test", "socket_transfer_test", "tpu_device_test")

# What absl prints when a test starts and when it ends.
EVENT = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+)", re.MULTILINE)

# From the best outcome to the worst. A test has the worst outcome that it has in any process.
OUTCOMES = ("skip", "pass", "crash", "fail")
OF_EVENT = {"RUN": "crash", "OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}

Outcomes = dict[str, str]


def outcomes(logs: list[pathlib.Path]) -> Outcomes:
    """The outcome of each test, from what the processes have printed."""
    worst: Outcomes = {}
    for log in logs:
        own = {test: OF_EVENT[event] for event, test in EVENT.findall(log.read_text(encoding="utf-8", errors="replace"))}
        for test, outcome in own.items():
            worst[test] = max(worst.get(test, outcome), outcome, key=OUTCOMES.index)
    return worst


def run(path: pathlib.Path, platform: str, name: str, shape: tuple[int, int], folder: pathlib.Path, timeout: float) -> Outcomes:
    """Runs a file on a platform. `name` is what the tests take for the platform's name; without it, its own."""
    count, devices = shape
    folder.mkdir(parents=True, exist_ok=True)
    logs = [folder / f"{path.stem}-{index}.log" for index in range(count)]
    address = launch.free_address()
    environment = launch.environment(platform, devices)
    if platform != "cpu":
        # Some tests use devices of the host in addition.
        environment["JAX_PLATFORMS"] = f"{platform},cpu"
    started = []
    for index, log in enumerate(logs):
        flags = [
            f"--num_processes={count}",
            f"--multiprocess_test_worker_id={index}",
            f"--multiprocess_test_controller_address={address}",
            "--initialization_timeout=60",
            "--heartbeat_timeout=60",
            *([f"--jax_test_dut={name}"] if name else []),
        ]
        with log.open("w") as output:
            command = [sys.executable, path, *flags]
            started.append(
                subprocess.Popen(command, cwd=path.parent, env=environment, stdout=output, stderr=output, start_new_session=True)
            )
    end = time.monotonic() + timeout
    try:
        for process in started:
            process.wait(max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        print(f"  {path.stem} on {platform}: no end after {timeout} s; see {folder}", flush=True)
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return outcomes(logs)


def compared(path: pathlib.Path, shape: tuple[int, int], results: pathlib.Path, timeout: float) -> tuple[Outcomes, Outcomes]:
    """The outcomes of a file on XLA's CPU backend and on refcpu."""
    label = f"{shape[0]}x{shape[1]}"
    theirs = run(path, "cpu", "cpu", shape, results / f"cpu-{label}", timeout)
    ours = run(path, "refcpu", "", shape, results / f"refcpu-{label}", timeout)
    if any(outcome == "pass" and ours.get(test) == "skip" for test, outcome in theirs.items()):
        as_cpu = run(path, "refcpu", "cpu", shape, results / f"refcpu-as-cpu-{label}", timeout)
        ours |= {test: as_cpu.get(test, "absent") for test, outcome in ours.items() if outcome == "skip"}
    return theirs, ours


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="names of test files without .py; by default, all except those of other platforms")
    parser.add_argument("--tests", type=pathlib.Path, required=True, help="the folder tests/multiprocess of JAX's sources")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="folder for what the processes print")
    parser.add_argument("--shapes", default="2x4,4x2,4x1", help="numbers of processes and of devices in each")
    parser.add_argument("--timeout", type=float, default=400, help="seconds that a file may take")
    arguments = parser.parse_args()
    tests = arguments.tests.resolve()
    files = arguments.files or [path.stem for path in sorted(tests.glob("*_test.py")) if path.stem not in OTHER_PLATFORMS]
    if not files:
        sys.exit(f"{tests} has no test files; expected the folder tests/multiprocess of JAX's sources")
    causes = expected.read(HERE / "jax_multiprocess.toml")
    failed: list[str] = []
    passing: set[tuple[str, str]] = set(causes)
    for text in arguments.shapes.split(","):
        processes, devices = map(int, text.split("x"))
        counts = collections.Counter()
        for file in files:
            theirs, ours = compared(tests / f"{file}.py", (processes, devices), arguments.results.resolve(), arguments.timeout)
            passed = [test for test, outcome in theirs.items() if outcome == "pass"]
            missing = [(test, ours.get(test, "absent")) for test in passed if ours.get(test) != "pass"]
            more = [test for test, outcome in ours.items() if outcome == "pass" and theirs.get(test) != "pass"]
            counts.update(xla=len(passed), refcpu=len(passed) - len(missing), more=len(more))
            failed += [f"{text} {file} {test}: {outcome}" for test, outcome in missing if (file, test) not in causes]
            passing -= {(file, test) for test, _ in missing}
            print(f"{text} {file:24} {len(passed) - len(missing):4} of {len(passed):4}, and {len(more)} more", flush=True)
        print(
            f"{processes} processes of {devices} devices: {counts['refcpu']} of the {counts['xla']} tests that pass on XLA's CPU backend"
            f" pass on refcpu, and {counts['more']} that do not pass there",
            flush=True,
        )
    out_of_date = [f"{file} {test}" for file, test in sorted(passing) if file in files]
    for heading, lines in (("without a cause in the list", failed), ("in the list, but passing", out_of_date)):
        if lines:
            print(f"{len(lines)} tests {heading}:", *lines, sep="\n  ")
    return 1 if failed or out_of_date else 0


if __name__ == "__main__":
    sys.exit(main())
