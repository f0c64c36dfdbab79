"""Runs a corpus of programs on a plugin through jaxlib's client, and prints a table of the outcomes by category.

    python run.py PLUGIN [--category NAME]... [--every N] [--jobs N] [--out FILE]

PJRT_CORPUS names the folder of the corpus. The programs for one device are run, with static shapes
and quantization turned into arithmetic. Each worker is a process of its own, so a program that ends or hangs the plugin is one
outcome. FILE gets one line of JSON for each program, with the error or the difference.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading

WORKER = pathlib.Path(__file__).parent / "worker.py"
OUTCOMES = ["right", "refused", "wrong", "error", "crash"]
TIME_LIMIT = 120


def records(folder, categories, every):
    """Returns the executable programs with inputs and outputs, as pairs of a file and a line number, with their categories."""
    chosen = []
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as lines:
            for number, line in enumerate(lines):
                record = json.loads(line)
                if record["kind"] != "exec" or "devices" in record or "mlir" not in record["programs"]:
                    continue
                if categories and record["category"] not in categories:
                    continue
                chosen.append((record["category"], record["group"] + "/" + record["name"], path.name, number))
    return chosen[::every]


class Worker:
    """A process that runs one program after another, and is started again after its end."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.process = None

    def run(self, file, number):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, WORKER, self.plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True)
        alarm = threading.Timer(TIME_LIMIT, self.process.kill)
        alarm.start()
        try:
            self.process.stdin.write(f"{file} {number}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            alarm.cancel()
        if answer:
            return json.loads(answer)
        self.process.wait()
        return {"outcome": "crash", "detail": f"the process ended with status {self.process.returncode}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin")
    parser.add_argument("--category", action="append")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    chosen = records(pathlib.Path(os.environ["PJRT_CORPUS"]), options.category, options.every)

    workers = threading.local()

    def run(record):
        if not hasattr(workers, "worker"):
            workers.worker = Worker(options.plugin)
        return record, workers.worker.run(*record[2:])

    table = collections.defaultdict(collections.Counter)
    out = options.out.open("w") if options.out else open(os.devnull, "w")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, out:
        for done, ((category, name, _, _), answer) in enumerate(pool.map(run, chosen), 1):
            table[category][answer["outcome"]] += 1
            out.write(json.dumps({"category": category, "name": name, **answer}) + "\n")
            out.flush()
            if done % 100 == 0:
                print(f"{done} of {len(chosen)}", file=sys.stderr, flush=True)
    print("| category | programs | " + " | ".join(OUTCOMES) + " |")
    print("|---|" + "---:|" * (1 + len(OUTCOMES)))
    table["all"] = sum(table.values(), collections.Counter())
    for category, counts in table.items():
        cells = [str(counts.total())] + [str(counts[outcome]) for outcome in OUTCOMES]
        print(f"| {category} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
