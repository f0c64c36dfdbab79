"""Makes failing programs smaller, and writes them down."""

import json
import re

import numpy as np
from arrays import Type, encode, values, wrong_results

ATTEMPTS = 80


class Shrinking:
    """One failing program: which changes keep its difference from an anchor."""

    def __init__(self, comparison, anchor):
        self.comparison = comparison
        self.side = next(side for side in comparison.sides if side.name == anchor)
        self.left = ATTEMPTS

    def fails(self, program):
        """The outcome on refcpu if it still differs from the anchor's."""
        if self.left == 0:
            return None
        self.left -= 1
        outcome = self.comparison.refcpu.run(program)
        if outcome.get("error"):
            return None
        [(kind, answer)] = self.side.run([(program, outcome["text"])])
        return outcome if kind == "results" and wrong_results(outcome["outputs"], answer) else None


def shrunk(comparison, record, anchor):
    """The record with smaller shapes and simpler values, as far as it differs from the anchor still."""
    shrinking = Shrinking(comparison, anchor)
    program, outcome = record["program"], record["outcome"]
    for candidates in (smaller_shapes, simpler_values):
        changed = True
        while changed and shrinking.left:
            changed = False
            for candidate in candidates(program):
                result = shrinking.fails(candidate)
                if result:
                    program, outcome, changed = candidate, result, True
                    break
    return record | {"program": program, "outcome": outcome}


def smaller_shapes(program):
    """The program with one size made one wherever a type has it. Most such programs are invalid, and not taken."""
    text = json.dumps(program["statements"]) + json.dumps(program["arguments"])
    for size in sorted({int(size) for size in re.findall(r"(?<=[<x])(\d+)(?=x)", text)}, reverse=True):
        for less in {1, 2, size // 2}:
            if 0 < less < size:
                resized = lambda old: re.sub(rf"(?<=[<x]){size}(?=x)", str(less), old)  # noqa: E731
                statements = json.loads(resized(json.dumps(program["statements"])))
                arguments = []
                for argument in program["arguments"]:
                    ty = Type.parse(argument["type"])
                    smaller = Type.parse(resized(argument["type"]))
                    width = len(argument["data"]) // max(int(np.prod(ty.dims)), 1)
                    data = argument["data"][: width * int(np.prod(smaller.dims))]
                    arguments.append(argument | {"type": str(smaller), "data": data})
                yield program | {"statements": statements, "arguments": arguments}


def simpler_values(program):
    """The program with all, half or one of the elements of an argument made zero or one."""
    for n, argument in enumerate(program["arguments"]):
        ty = Type.parse(argument["type"])
        numbers = values(argument["data"], ty)
        for part in parts(numbers.size):
            for plain in (0, 1):
                changed = numbers.copy()
                changed[part] = plain
                if not np.array_equal(changed, numbers, equal_nan=numbers.dtype.kind == "f"):
                    arguments = list(program["arguments"])
                    arguments[n] = argument | {"data": encode(changed, ty)}
                    yield program | {"arguments": arguments}


def parts(size):
    if size:
        yield slice(0, size)
    if size > 1:
        yield slice(0, size // 2)
        yield slice(size // 2, size)
    if 2 < size <= 8:
        yield from (slice(n, n + 1) for n in range(size))


def write(folder, number, signature, record, details, comparison):
    """A folder with the program, its arguments and what each side gives."""
    name = re.sub(r"[^\w]+", "-", signature)[:80].strip("-")
    place = folder / f"{number:03}-{name}"
    place.mkdir(parents=True, exist_ok=True)
    program, outcome = record["program"], record["outcome"]
    (place / "program.mlir").write_text(outcome["text"])
    (place / "program.json").write_text(json.dumps(program))
    answers = {side.name: side.run([(program, outcome["text"])])[0] for side in comparison.sides}
    lines = [signature, f"program {record.get('number', '?')}, about {' '.join(record['about'])}", json.dumps(details), ""]
    for argument in program["arguments"]:
        lines.append(f"{argument['name']} = {readable(argument)}")
    lines += ["", "refcpu: " + (outcome.get("error") or "; ".join(map(readable, outcome["outputs"])))]
    for side, (kind, answer) in answers.items():
        lines.append(f"{side}: " + ("; ".join(map(readable, answer)) if kind == "results" else f"{kind}: {answer}"))
    (place / "values.txt").write_text("\n".join(lines) + "\n")


def readable(array):
    numbers = values(array["data"], Type.parse(array["type"]))
    return f"{array['type']} {numbers.tolist() if numbers.size <= 200 else numbers[:200].tolist() + ['...']}"
