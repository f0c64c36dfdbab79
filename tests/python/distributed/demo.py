"""Trains a classifier in one, two and four processes, and kills processes of two and four at random moments.

    python demo.py PROGRAM KILLS

PROGRAM is the path of examples/refcpu/python/demo/distributed.py, and KILLS the number of processes that are killed.
"""

import random
import re
import signal
import sys
import threading
import time

import launch

LEAST_ACCURACY = 96.0
MAX_DIFFERENCE = 0.5

# The time in seconds in which all processes must end after one has been killed.
LIMIT = 10.0


class Output:
    """The lines that a process prints, which a thread reads."""

    def __init__(self, process, echo):
        self.process, self.lines, self.ended = process, [], None
        self.thread = threading.Thread(target=self.read, args=(echo,))
        self.thread.start()

    def read(self, echo):
        for line in self.process.stdout:
            self.lines.append(line)
            if echo and line.startswith("process "):
                print(f"  {line}", end="", flush=True)
        self.process.wait()
        self.ended = time.monotonic()

    def text(self):
        return "".join(self.lines)


def accuracy(program: str, count: int) -> float:
    """Trains in a number of processes, and returns the accuracy, which is the same in all."""
    print(f"{count} process{'es' if count > 1 else ''}:", flush=True)
    outputs = [Output(process, echo=True) for process in launch.start([program], count, 1, "refcpu")]
    for output in outputs:
        output.thread.join()
    found = [re.search(r"accuracy ([0-9.]+)", output.text()) for output in outputs]
    if None in found:
        sys.exit(f"a process has failed:\n{outputs[found.index(None)].text()}")
    accuracies = {float(match[1]) for match in found}
    if len(accuracies) > 1:
        sys.exit(f"the processes have different weights: accuracies {accuracies}")
    return accuracies.pop()


def kill_one(program: str, count: int) -> float:
    """Kills one of several processes while they train. Returns the time until all others have ended."""
    outputs = [Output(process, echo=False) for process in launch.start([program, "1000000"], count, 1, "refcpu")]
    try:
        deadline = time.monotonic() + 120
        while not all("epoch 1/" in output.text() for output in outputs):
            if time.monotonic() > deadline or any(output.ended for output in outputs):
                sys.exit("a process does not train:\n" + "\n".join(output.text() for output in outputs))
            time.sleep(0.05)
        time.sleep(random.uniform(0, 1))
        killed = random.randrange(count)
        begin = time.monotonic()
        outputs[killed].process.send_signal(signal.SIGKILL)
        others = [output for output in outputs if output is not outputs[killed]]
        for output in others:
            output.thread.join(max(0, begin + LIMIT - time.monotonic()))
        for output in others:
            # Process 0 has the service of JAX, which ends processes itself if it finds that the service has ended.
            named = f"process {killed} has ended" in output.text() or killed == 0 and "coordination" in output.text()
            if output.ended is None or not named:
                sys.exit(f"a process did not end within {LIMIT} s, or not because of process {killed}:\n{output.text()}")
        return max(output.ended for output in others) - begin
    finally:
        for output in outputs:
            output.process.kill()


def main():
    program, kills = sys.argv[1], int(sys.argv[2])
    accuracies = {count: accuracy(program, count) for count in (1, 2, 4)}
    for count, value in accuracies.items():
        print(f"accuracy with {count}: {value:.2f} %")
        if value < LEAST_ACCURACY or abs(value - accuracies[1]) > MAX_DIFFERENCE:
            sys.exit(f"expected at least {LEAST_ACCURACY} %, and at most {MAX_DIFFERENCE} points more or less than with one")
    times = []
    for number in range(kills):
        times.append(kill_one(program, (2, 4)[number % 2]))
        print(f"kill {number + 1} of {kills}: all others ended after {times[-1]:.1f} s", flush=True)
    if times:
        print(f"{kills} kills, longest time {max(times):.1f} s")


main()
