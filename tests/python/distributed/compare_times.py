"""Times all-reduces on refcpu and on XLA's CPU backend over Gloo, in turn, with one device in each process: prints a table.

    python compare_times.py [ROUNDS]
"""

import os
import sys

import launch

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "timings.py")


def main():
    print(f"smallest time and smallest median of {ROUNDS} rounds, in microseconds")
    print(f"{'processes':>9} {'bytes':>10} {'refcpu':>18} {'XLA':>18}")
    for count in (2, 4):
        times: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for _ in range(ROUNDS):
            for platform in ("refcpu", "cpu"):
                output = launch.outputs(launch.start([PROGRAM], count, 1, platform))[0]
                lines = [line.split()[1:] for line in output.splitlines() if line.startswith("time ")]
                if not lines:
                    sys.exit(f"{platform} has failed:\n{output}")
                for size, median, least in (map(int, line) for line in lines):
                    times.setdefault((platform, size), []).append((least, median))
        for size in sorted({size for _, size in times}):
            cells = [tuple(map(min, zip(*times[platform, size]))) for platform in ("refcpu", "cpu")]
            print(f"{count:>9} {size:>10} " + " ".join(f"{least:>9}{median:>9}" for least, median in cells), flush=True)


main()
