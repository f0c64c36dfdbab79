"""Compares the results of programs on arrays that are split over 8 devices, and the shardings of these results, between
refcpu and XLA's CPU backend, for both of JAX's partitioners.

The values must equal those of XLA's CPU backend on one device. The shardings must equal those of XLA's CPU backend on the
same devices, except where `choices.py` states a reason.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from sharding_agreement.choices import choice_for, unused_choices  # noqa: E402
from sharding_agreement.record import read  # noqa: E402

PARTITIONERS = ("shardy", "gspmd")
# XLA's CPU backend ends the process in a few programs, such as Fourier transforms along a split dimension.
ATTEMPTS = 50
TIMEOUT = 3600
# The share of shardings that must equal XLA's, in percent, whatever the choices explain.
LEAST_SHARE = 97


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder for what is measured")
    parser.add_argument("--partitioner", action="append", choices=PARTITIONERS, help="only this partitioner")
    parser.add_argument("--mesh", action="append", help="only this mesh: 2, 4, 8 or 2x4; may be given several times")
    parser.add_argument("--only", help="only functions whose name contains this text")
    parser.add_argument("--keep", action="store_true", help="take XLA's results from the folder if they are there")
    return parser.parse_args()


def measured(options: argparse.Namespace, platform: str, partitioner: str) -> dict:
    """Runs the programs in a process of their own, since JAX chooses its platform once."""
    chosen = [*(f"--mesh={mesh}" for mesh in options.mesh or []), *([f"--only={options.only}"] if options.only else [])]
    file = options.folder / "-".join([platform, partitioner, *(text.split("=")[1] for text in chosen)])
    if platform == "cpu" and options.keep and file.exists():
        return read(file)
    file.unlink(missing_ok=True)
    command = [sys.executable, str(Path(__file__).with_name("measure.py")), platform, partitioner, str(file), *chosen]
    # XLA logs a warning for each program of its older partitioner.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    for _ in range(ATTEMPTS):
        log = file.with_suffix(".log")
        with log.open("w") as output:
            done = subprocess.run(command, env=environment, stdout=output, stderr=output, timeout=TIMEOUT)
        if done.returncode == 0:
            return read(file)
        print(f"{platform} {partitioner}: the process ended with {done.returncode} in {list(read(file))[-1:]}; see {log}", flush=True)
    raise RuntimeError(f"the process ended {ATTEMPTS} times")


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Returns whether two arrays are equal, up to the rounding of sums of other orders."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    if not np.issubdtype(found.dtype, np.inexact):
        return np.array_equal(found, expected)
    magnitude = np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
    return np.allclose(found, expected, rtol=2e-4, atol=2e-5 * max(1, magnitude), equal_nan=True)


def wrong(found: dict, whole: dict) -> str | None:
    """Returns why the results of a program are wrong."""
    if "error" in found:
        return found["error"]
    for index, (value, expected) in enumerate(zip(found["values"], whole["values"], strict=True)):
        if not same(value, expected):
            return f"result {index} is wrong: {value.ravel()[:6]}, expected {expected.ravel()[:6]}"
    return None


def compare(partitioner: str, ours: dict, theirs: dict) -> Counter:
    """Prints the differences of one partitioner, and returns the numbers of outcomes."""
    counts: Counter = Counter()
    programs = [name for name in ours if "/" in name]
    assert ours.keys() == theirs.keys(), "the processes ran different programs"
    for name in programs:
        found, anchor, whole = ours[name], theirs[name], theirs[name.split("/")[0]]
        counts["programs"] += 1
        if reason := wrong(found, whole):
            counts["wrong"] += 1
            print(f"{partitioner} {name}: {reason}")
            continue
        if wrong(anchor, whole):
            counts["programs that XLA fails"] += 1
        if "error" in anchor:
            continue
        for index, (ours_seen, theirs_seen) in enumerate(zip(found["shardings"], anchor["shardings"], strict=True)):
            counts["shardings"] += 1
            if ours_seen == theirs_seen:
                counts["equal"] += 1
                continue
            choice = choice_for(partitioner, name)
            counts["choices" if choice else "unlisted"] += 1
            if not choice:
                shape, ours_spec, theirs_spec = found["shapes"][index], found["specs"][index], anchor["specs"][index]
                print(f"{partitioner} {name} {found['spec']}: result {index} {shape} is {ours_spec}, XLA has {theirs_spec}")
    return counts


def main() -> int:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    started = time.monotonic()
    for partitioner in options.partitioner or PARTITIONERS:
        counts = compare(partitioner, measured(options, "refcpu", partitioner), measured(options, "cpu", partitioner))
        share = 100 * counts["equal"] / max(1, counts["shardings"])
        if share < LEAST_SHARE and not (options.only or options.mesh):
            print(f"{partitioner}: fewer than {LEAST_SHARE} % of the shardings are equal")
            bad += 1
        print(f"{partitioner}: {', '.join(f'{n} {what}' for what, n in counts.items())}; {share:.1f} % equal", flush=True)
        bad += counts["wrong"] + counts["unlisted"]
    if not (options.only or options.mesh or options.partitioner):
        for choice in unused_choices():
            print(f"no difference is explained by the choice {choice}")
            bad += 1
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
