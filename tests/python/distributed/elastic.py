"""Trains with several processes that save a sharded checkpoint, and goes on with other numbers of processes and devices.

    python elastic.py [FOLDER]

FOLDER is where the library of Gloo must be, in the environments in which it comes with the wheel.
"""

import os
import re
import sys
import tempfile

import launch

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints.py")
STEPS = 6

# The numbers of processes, and of devices in each, of the process groups that train one after another.
CHAINS = [[(2, 2), (4, 1)], [(4, 1), (2, 2)], [(2, 1), (1, 2)], [(1, 4), (4, 2)], [(3, 1), (2, 1)]]


def run(shape: tuple[int, int], folder: str, begin: int, end: int) -> float:
    """Trains, and returns the checksum that all processes print."""
    processes, devices = shape
    outputs = launch.outputs(launch.start([PROGRAM, folder, str(begin), str(end)], processes, devices, "refcpu"))
    found = [re.search(rf"^step {end}: weights ([0-9.]+)$", output, re.MULTILINE) for output in outputs]
    for output, match in zip(outputs, found):
        if match is None:
            sys.exit(f"{processes} processes of {devices} devices, steps {begin} to {end}:\n{output}")
        paths = re.findall(r"^gloo (\S+)$", output, re.MULTILINE)
        if processes > 1 and len(sys.argv) > 1 and not (paths and all(path.startswith(sys.argv[1]) for path in paths)):
            sys.exit(f"the library of Gloo is not in {sys.argv[1]}: {paths}")
    sums = {match[1] for match in found}
    if len(sums) > 1:
        sys.exit(f"the processes have different weights: {sums}")
    return float(sums.pop())


def main():
    with tempfile.TemporaryDirectory() as folder:
        expected = run((1, 1), folder, 0, STEPS)
    for chain in CHAINS:
        with tempfile.TemporaryDirectory() as folder:
            middle = STEPS // len(chain)
            run(chain[0], folder, 0, middle)
            weights = run(chain[1], folder, middle, STEPS)
        text = " and then ".join(f"{processes} processes of {devices} devices" for processes, devices in chain)
        if abs(weights - expected) > 1e-4 * expected:
            sys.exit(f"{text}: the weights have the sum {weights}; expected {expected}, as without a restart")
        print(f"{text}: the weights are those of one process without a restart", flush=True)


main()
