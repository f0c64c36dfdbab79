"""Compares refcpu with XLA's CPU backend and the StableHLO reference interpreter on random programs.

    python run.py GENERATOR [--programs N] [--seed S] [--start N] [--only OP] [--element TYPE] [--failures FOLDER]
        [--at-least N] [--counts FILE]

GENERATOR is refcpu's example `differential`, built. `cargo xtask differential` does all that. A program whose results differ is
taken apart: each of its operations runs alone on all sides, from the operands that it had on refcpu. So what is reported is an
operation with its operands, small enough to look at, and errors that only grew on the way to the results are no difference.
"""

import argparse
import collections
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import time

import numpy as np

import anchors
import rules
import shrink
from arrays import Type, agrees_where_wrong, show, values, wrong_results
from disagreement import Disagreement

CHUNK = 480
SHOWN = 40


def is_sum_of_quantized(program, wrong):
    """Whether integers of 32 bits differ by no more than sums in f32 do, of a program with quantized types of that size.

    Quantized numbers are summed as the floats that they stand for; those of fewer bits have sums without errors.
    """
    found, expected, ty, _ = wrong
    has_them = any("!quant.uniform<i32" in v["type"] or "!quant.uniform<u32" in v["type"] for v in tensors_of(program))
    ulp = 2.0**31 * 2**-24
    return has_them and ty.element in ("i32", "ui32") and (np.abs(found.astype(np.float64) - expected) <= 16 * ulp).all()


def tensors_of(program):
    return [*program["arguments"], *(v for s in program["statements"] for v in s["defines"])]


class Refcpu:
    """The generator, which also runs programs that it is given."""

    def __init__(self, generator):
        self.generator = generator
        self.process = None

    def generate(self, seed, start, count, options):
        command = [self.generator, "generate", "--seed", str(seed), "--start", str(start), "--programs", str(count)]
        for name in ("only", "element"):
            if getattr(options, name):
                command += [f"--{name}", getattr(options, name)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return [json.loads(line) for line in output.splitlines()]

    def run(self, program):
        if self.process is None or self.process.poll() is not None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([self.generator, "run"], stdin=pipe, stdout=pipe, text=True)
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else {"text": "", "error": "the process ended", "outputs": [], "variants": {}}

    def table(self):
        return json.loads(subprocess.run([self.generator, "table"], stdout=subprocess.PIPE, text=True, check=True).stdout)


@dataclasses.dataclass
class Single:
    """A statement of a program as a program of its own, with what refcpu makes of it."""

    program: dict
    outcome: dict
    # Its operands, constants among them.
    operands: list
    # Its results within the whole program.
    within: list


class Comparison:
    """The run: what is found, and how often."""

    def __init__(self, options):
        self.refcpu = Refcpu(options.generator)
        self.sides = [anchors.Anchor(anchors.Interpreter), anchors.Anchor(anchors.Xla)]
        self.fates = collections.Counter()
        self.counts = collections.Counter()
        self.accepted = collections.Counter()
        self.reasons = collections.Counter()
        self.failures = collections.defaultdict(list)
        self.folder = options.failures

    def answers(self, jobs):
        """For each program what each side that takes it gives: {name: results}, and why others do not."""
        by_side = {side.name: side.run(jobs) for side in self.sides}
        return [{name: answer[n] for name, answer in by_side.items()} for n in range(len(jobs))]

    def check(self, records):
        jobs = [(record["program"], record["outcome"]["text"]) for record in records]
        differing = []
        for record, answers in zip(records, self.answers(jobs)):
            for name, element, count in record["outcome"]["counts"]:
                self.counts[name, element] += count
            fate = self.fate(record, answers)
            if fate == "to be taken apart":
                differing.append(record)
            else:
                self.fates[fate] += 1
        self.fates.update(self.take_apart(differing))

    def fate(self, record, answers):
        outcome = record["outcome"]
        results = {name: answer for name, (kind, answer) in answers.items() if kind == "results"}
        for name, (kind, answer) in answers.items():
            if kind != "results":
                self.reasons[name, kind, reason_of(answer)] += 1
        if outcome.get("error"):
            error = outcome["error"]
            if not results and not error.startswith(("panic", "failed")):
                return "taken by nobody"
            self.fail(f"refcpu: {error[:110]}", record, {"error": error, "taken by": sorted(results)})
            return "error"
        if self.check_variants(record, outcome):
            return "different"
        if any(wrong_results(outcome["outputs"], result) for result in results.values()):
            return "to be taken apart"
        return f"agrees with {' and '.join(sorted(results))}" if results else "no anchor takes it"

    def check_variants(self, record, outcome):
        """Whether another way to run the program on refcpu gives something else."""
        failed = False
        for way, result in outcome["variants"].items():
            if "Err" in result:
                self.fail(f"{way}: {result['Err'][:100]}", record, {"way": way, "error": result["Err"]})
                failed = True
                continue
            exact = way in ("threads", "donation")
            wrong = wrong_results(result["Ok"], outcome["outputs"], exact)
            if not exact:
                wrong = [one for one in wrong if not is_sum_of_quantized(record["program"], one)]
            if wrong:
                ops = sorted({s["op"].removeprefix("stablehlo.") for s in record["program"]["statements"]})
                self.fail(f"{way} {wrong[0][2].element}", record, {"way": way, "difference": show(wrong), "ops": ops})
                failed = True
        return failed

    def take_apart(self, records):
        """Runs each statement of these programs alone; gives the programs' fates. Reports statements that differ without a
        rule that accepts it."""
        singles = [self.singles(record["program"]) for record in records]
        # All at once: anchors take less time for many.
        answers = iter(self.answers([(single.program, single.outcome["text"]) for group in singles for single in group]))
        return [self.judge(record, [(single, next(answers)) for single in group]) for record, group in zip(records, singles)]

    def judge(self, record, singles):
        """The fate of a program from what becomes of its statements alone."""
        fate = "errors that grew"
        for single, answers in singles:
            program, outcome, statement = single.program, single.outcome, single.program["statements"][-1]
            if outcome.get("error"):
                self.fail(f"refcpu alone: {outcome['error'][:100]}", {"program": program, "outcome": outcome, "about": [""]}, {})
                return "different"
            if wrong_results(outcome["outputs"], single.within):
                self.fail(f"fused {statement['op']}", record, {"statement": statement["text"]})
                return "different"
            results = {name: answer for name, (kind, answer) in answers.items() if kind == "results"}
            agreeing = [name for name, result in results.items() if not wrong_results(outcome["outputs"], result)]
            for name in results.keys() - set(agreeing):
                wrong = wrong_results(outcome["outputs"], results[name])
                operands = [(values(a["data"], Type.parse(a["type"])), Type.parse(a["type"])) for a in single.operands]
                sources = tuple(s["op"] for s in program["statements"][:-1])
                others = [result for other, result in results.items() if other != name]
                agreed = any(agrees_where_wrong(outcome["outputs"], other, results[name]) for other in others)
                disagreement = Disagreement(statement, name, operands, wrong, sources, agreed)
                rule = rules.accepting(disagreement)
                if rule:
                    self.accepted[rule.name] += 1
                    fate = "accepted by a rule" if fate != "different" else fate
                    continue
                against = name + (f" (not {agreeing[0]})" if agreeing else "" if len(results) > 1 else " (alone)")
                signature = f"{statement['op'].removeprefix('stablehlo.')} {disagreement.types} against {against}"
                single_record = {"program": program, "outcome": outcome, "about": record["about"], "number": record["number"]}
                self.fail(signature, single_record, {"difference": show(wrong), "anchor": name}, results)
                fate = "different"
        return fate

    def singles(self, program):
        """A program for each statement, with the operands that it has on refcpu."""
        tensors = {v["name"]: v["type"] for s in program["statements"] for v in s["defines"] if v["type"].startswith("tensor")}
        outcome = self.refcpu.run(program | {"results": list(tensors)})
        whole = {a["name"]: a for a in program["arguments"]}
        for (name, ty), output in zip(tensors.items(), outcome["outputs"]):
            whole[name] = {"name": name, "type": ty, "data": output["data"]}
        singles = []
        by_definition = {v["name"]: s for s in program["statements"] for v in s["defines"]}
        for statement in program["statements"]:
            results = [v["name"] for v in statement["defines"] if v["name"] in tensors]
            if statement["op"] == "stablehlo.constant" or not results or not outcome["outputs"]:
                continue
            needed, statements = collect(statement, whole, by_definition, tensors)
            single = program | {"arguments": [whole[name] for name in needed], "statements": statements, "results": results}
            direct = [name for name in statement["uses"] if name in whole]
            operands = [whole[name] for name in direct + [name for name in needed if name not in direct]]
            singles.append(Single(single, self.refcpu.run(single), operands, [whole[name] for name in results]))
        return singles

    def fail(self, signature, record, details, results=None):
        self.failures[signature].append(details)
        if len(self.failures[signature]) > 1:
            return
        print(f"- {signature}: {details}", flush=True)
        if self.folder:
            if results:
                record = shrink.shrunk(self, record, details["anchor"])
            shrink.write(self.folder, len(self.failures), signature, record, details, self)


def collect(statement, whole, by_definition, tensors):
    """The values that a statement needs as arguments, and the statements that have to come along: constants, because
    operations look at them, and what gives values that are no tensors."""
    needed, statements = [], [statement]
    pending = list(statement["uses"])
    while pending:
        name = pending.pop(0)
        source = by_definition.get(name)
        if source and (name not in tensors or source["op"] == "stablehlo.constant"):
            if source not in statements:
                statements.insert(0, source)
                pending += source["uses"]
        elif name in whole and name not in needed:
            needed.append(name)
    return needed, statements


def reason_of(text):
    """The gist of an error: programs differ, reasons do not."""
    lines = [line for line in text.splitlines() if "rror" in line] or text.splitlines() or [""]
    return re.sub(r"%?\b[\w.]*\d[\w.]*", "N", lines[-1])[:120]


def table(counts, known, at_least):
    """How often each operation was in a program that refcpu ran, by element type; and which were too rare."""
    elements = sorted({element for _, element in known["pairs"]})
    rare = []
    print(f"\n{'operation':<28}" + "".join(f"{e.replace('complex', 'c')[:9]:>10}" for e in elements))
    for op in sorted({op for op, _ in known["pairs"]}):
        row = f"{op.removeprefix('stablehlo.'):<28}"
        for element in elements:
            tested = [op, element] in known["pairs"]
            count = counts[op, element]
            row += f"{count if tested or count else '-':>10}"
            if tested and count < at_least:
                rare.append(f"{op} {element} {count}")
        print(row)
    for op, reason in known["untested"]:
        print(f"{op}: not tested, {reason}" if reason else f"{op}: not tested")
    return rare


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("generator")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first program's number")
    parser.add_argument("--only", help="programs about this operation")
    parser.add_argument("--element", help="programs about this element type")
    parser.add_argument("--failures", type=pathlib.Path, help="folder for programs that fail")
    parser.add_argument("--counts", type=pathlib.Path, help="counts of operations in earlier parts of a run, to add to")
    parser.add_argument("--at-least", type=int, default=0, help="fail when an operation on a type is in fewer programs")
    options = parser.parse_args()
    comparison = Comparison(options)
    if options.counts and options.counts.exists():
        comparison.counts.update({(op, element): count for op, element, count in json.loads(options.counts.read_text())})
    known = comparison.refcpu.table()
    started = time.time()
    for start in range(options.start, options.start + options.programs, CHUNK):
        count = min(CHUNK, options.start + options.programs - start)
        comparison.check(comparison.refcpu.generate(options.seed, start, count, options))
        done = start + count - options.start
        if done % (20 * CHUNK) == 0:
            print(f"{done} programs, {time.time() - started:.0f} s, {len(comparison.failures)} kinds of failures", flush=True)
    if options.counts:
        options.counts.write_text(json.dumps([[*pair, count] for pair, count in comparison.counts.items()]))
    rare = table(comparison.counts, known, options.at_least)
    print("\nreasons why an anchor did not take a program:")
    for (name, kind, reason), count in comparison.reasons.most_common(SHOWN):
        print(f"{count:>7} {name} {kind}: {reason}")
    print("\nfailures:")
    for signature, all_details in sorted(comparison.failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(all_details):>7} {signature}")
    print("\nfates:")
    for fate, count in comparison.fates.most_common():
        print(f"{count:>7} {fate}")
    for rule in rules.RULES:
        print(f"{comparison.accepted[rule.name]:>7} accepted by {rule.name}: {rule.reason}")
    for line in rare:
        print(f"too rare: {line}")
    total = sum(comparison.fates.values())
    failed = comparison.fates["different"] + comparison.fates["error"] + len(rare)
    print(f"{time.time() - started:.0f} seconds; seed {options.seed}, programs {options.start} to {options.start + options.programs}")
    print(f"{total - comparison.fates['different'] - comparison.fates['error']} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
