"""Fits a model of the costs of all-reduces to measured times, and predicts the times for up to 4,096 processes.

    python scale.py FILE

Each line of the file is METHOD PROCESSES BYTES MICROSECONDS, as the example `reductions` of refcpu-gloo prints it. The program prints
two tables in Markdown.
"""

import math
import os
import sys

import numpy as np
from scipy.optimize import nnls

# A network between machines: the latency of a message in seconds, and bytes per second for each process.
LATENCY, BANDWIDTH = 50e-6, 1.25e9

# The processes of a machine in the hierarchical method: in the measurement, and in the prediction.
MEASURED_GROUP, GROUP = 2, 8

METHODS = ("direct", "parts", "ring", "tree", "hierarchical")

# The size from which on refcpu divides an all-reduce.
LARGE = 64 << 10


def cost(method: str, n: int, size: int, group: int) -> tuple[float, float, float, float, float]:
    """The messages one after another; all messages and bytes; and the messages and bytes of the process that has most of them."""
    log = math.ceil(math.log2(n))
    if method == "direct":
        return 1, n * (n - 1), n * (n - 1) * size, n - 1, (n - 1) * size
    if method == "parts":
        return 2, 2 * n * (n - 1), 2 * (n - 1) * size, 2 * (n - 1), 2 * size * (n - 1) / n
    if method == "ring":
        return 2 * (n - 1), 2 * n * (n - 1), 2 * (n - 1) * size, 2 * (n - 1), 2 * size * (n - 1) / n
    if method == "tree":
        return 2 * log, 2 * (n - 1), 2 * (n - 1) * size, 2 * log, 2 * log * size
    leaders = math.ceil(n / group)
    within, between = 2 * (min(group, n) - 1), leaders - 1
    messages = 2 * (n - leaders) + leaders * between
    return within + (between > 0), messages, messages * size, within + between, between * size


def fitted(rows: list[tuple[str, int, int, float]], cores: int) -> np.ndarray:
    """The latency of a message, and the times that a processor needs for a message and for a byte, in seconds."""
    terms, times = [], []
    for method, n, size, time in rows:
        depth, messages, bytes_, *_ = cost(method, n, size, MEASURED_GROUP)
        terms.append([depth / time, messages / cores / time, bytes_ / cores / time])
        times.append(1.0)
    return nnls(np.array(terms), np.array(times))[0]


def text(seconds: float) -> str:
    return f"{1e6 * seconds:,.0f}" if seconds < 0.1 else f"{1e3 * seconds:,.0f} ms"


def main():
    with open(sys.argv[1], encoding="utf-8") as lines:
        rows = [(m, int(n), int(size), float(us) / 1e6) for m, n, size, us in map(str.split, lines)]
    cores = len(os.sched_getaffinity(0))
    latency, per_message, per_byte = fitted(rows, cores)
    print(f"{cores} cores; latency {1e6 * latency:.1f} us, {1e6 * per_message:.1f} us for a message, {1e9 * per_byte:.2f} ns for a byte\n")
    measured = {(m, n, size): time for m, n, size, time in rows}
    print("| processes | bytes | " + " | ".join(METHODS) + " |")
    print("|---|---|" + "---|" * len(METHODS))
    for n, size in sorted({(n, size) for _, n, size, _ in rows}):
        cells = []
        for method in METHODS:
            depth, messages, bytes_, *_ = cost(method, n, size, MEASURED_GROUP)
            model = depth * latency + (messages * per_message + bytes_ * per_byte) / cores
            cells.append(f"{text(measured[method, n, size])} ({text(model)})")
        print(f"| {n} | {size:,} | " + " | ".join(cells) + " |")
    print("\n| processes | bytes | " + " | ".join(METHODS) + " | fastest | refcpu uses |")
    print("|---|---|" + "---|" * (len(METHODS) + 2))
    for n in (16, 64, 512, 4096):
        for size in (4, 64 << 10, 1 << 20, 64 << 20):
            times = {}
            for method in METHODS:
                depth, _, _, messages, bytes_ = cost(method, n, size, GROUP)
                hops = depth * LATENCY
                if method == "hierarchical":
                    # The messages within a machine have the latency of this one, and its time for a byte.
                    within = 2 * (min(GROUP, n) - 1)
                    hops = within * (latency + size * per_byte) + (depth - within) * LATENCY
                times[method] = hops + messages * per_message + bytes_ / BANDWIDTH
            used = "parts" if size >= LARGE else "direct"
            cells = " | ".join(text(times[method]) for method in METHODS)
            print(f"| {n:,} | {size:,} | {cells} | {min(times, key=times.get)} | {used} |")


main()
