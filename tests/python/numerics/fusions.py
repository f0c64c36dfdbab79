"""Programs of several operations, which compilers join to one, or compute in the memory of an intermediate result.

Each operation is right alone, so a wrong result is that of the joined ones, or of memory that was reused too early.
"""

import numpy as np
from case import DTYPES, EXACT, Case, module, tensor, whole, zero
from structured import region

SHAPE = (3, 5)
# Whole numbers, whose results are exact.
INNER = {
    "negate": (1, np.negative), "abs": (1, np.abs), "add": (2, np.add), "multiply": (2, np.multiply), "maximum": (2, np.maximum),
}  # fmt: skip
OUTER = {"subtract": np.subtract, "add": np.add, "multiply": np.multiply, "minimum": np.minimum}
# Intermediate results that move or combine elements.
MOVED = {
    "a broadcast": ("broadcast_in_dim", "broadcast_dimensions = array<i64: 1>", (5,), lambda x: np.broadcast_to(x, SHAPE)),
    "a transpose": ("transpose", "permutation = array<i64: 1, 0>", (5, 3), np.transpose),
    "a reverse": ("reverse", "dimensions = array<i64: 1>", SHAPE, lambda x: x[:, ::-1]),
}


def line(name, op, operands, types, result, attributes=""):
    attributes = f" {{{attributes}}}" if attributes else ""
    return f'{name} = "stablehlo.{op}"({", ".join(operands)}){attributes} : ({", ".join(types)}) -> {result}'


def case(e, op, name, lines, results, shapes, true):
    inputs = [whole(e, shape, "fusions", name, n, most=6) for n, shape in enumerate(shapes)]
    text = lambda t: module([tensor(t, s) for s in shapes], lines(t), [(r, tensor(t, s)) for r, s in results])
    return Case(op, e, name, text, inputs, EXACT, true, DTYPES[e])


def nested(e):
    """An operation of an argument and of the result of another one, on either side."""
    for outer, function in OUTER.items():
        for inner, (count, of) in INNER.items():
            for left in (True, False):
                operands = ["%a1", "%a2"][:count]

                def lines(t, outer=outer, inner=inner, operands=operands, left=left):
                    ty = tensor(t, SHAPE)
                    names = ["%i", "%a0"] if left else ["%a0", "%i"]
                    return [line("%i", inner, operands, [ty] * len(operands), ty), line("%r", outer, names, [ty, ty], ty)]

                def true(x, *y, function=function, of=of, left=left):
                    return function(of(*y), x) if left else function(x, of(*y))

                side = "left" if left else "right"
                yield case(e, outer, f"of {inner} on the {side}", lines, [("%r", SHAPE)], [SHAPE] * (1 + count), true)
        for what, (inner, attributes, shape, of) in MOVED.items():
            for left in (True, False):

                def lines(t, outer=outer, inner=inner, attributes=attributes, shape=shape, left=left):
                    ty = tensor(t, SHAPE)
                    names = ["%i", "%a0"] if left else ["%a0", "%i"]
                    return [line("%i", inner, ["%a1"], [tensor(t, shape)], ty, attributes), line("%r", outer, names, [ty, ty], ty)]

                def true(x, y, function=function, of=of, left=left):
                    return function(of(y), x) if left else function(x, of(y))

                side = "left" if left else "right"
                yield case(e, outer, f"of {what} on the {side}", lines, [("%r", SHAPE)], [SHAPE, shape], true)


def reused(e):
    """Intermediate results that are used again after later operations, also beyond an operation that ends a fusion."""
    ty = lambda t, shape=SHAPE: tensor(t, shape)

    def used_again(t):
        return [
            line("%n", "negate", ["%a0"], [ty(t)], ty(t)),
            line("%m", "multiply", ["%n", "%a1"], [ty(t)] * 2, ty(t)),
            line("%t", "transpose", ["%m"], [ty(t)], ty(t, (5, 3)), "permutation = array<i64: 1, 0>"),
            line("%u", "transpose", ["%t"], [ty(t, (5, 3))], ty(t), "permutation = array<i64: 1, 0>"),
            line("%s", "subtract", ["%u", "%n"], [ty(t)] * 2, ty(t)),
            line("%r", "add", ["%s", "%m"], [ty(t)] * 2, ty(t)),
        ]

    def true(x, y):
        return 2 * (-x * y) + x

    yield case(e, "subtract", "of results that are used again", used_again, [("%r", SHAPE)], [SHAPE] * 2, true)

    def returned(t):
        return [*used_again(t)[:2], line("%d", "subtract", ["%m", "%n"], [ty(t)] * 2, ty(t)), line("%f", "subtract", ["%n", "%d"], [ty(t)] * 2, ty(t))]

    results = [("%n", SHAPE), ("%m", SHAPE), ("%d", SHAPE), ("%f", SHAPE)]
    yield case(e, "subtract", "of results that are outputs", returned, results, [SHAPE] * 2, lambda x, y: [-x, -x * y, -x * y + x, -2 * x + x * y])

    def centered(t):
        types = f"({ty(t)}, {tensor(t)}) -> {ty(t, (3,))}"
        reduce = f'%s = "stablehlo.reduce"(%n, %z) ({region("add", t)}) {{dimensions = array<i64: 1>}} : {types}'
        return [
            f"%z = stablehlo.constant dense<{zero(t)}> : {tensor(t)}",
            line("%n", "multiply", ["%a0", "%a1"], [ty(t)] * 2, ty(t)),
            reduce,
            line("%b", "broadcast_in_dim", ["%s"], [ty(t, (3,))], ty(t), "broadcast_dimensions = array<i64: 0>"),
            line("%d", "subtract", ["%n", "%b"], [ty(t)] * 2, ty(t)),
            line("%r", "multiply", ["%d", "%a0"], [ty(t)] * 2, ty(t)),
        ]

    def true_centered(x, y):
        return (x * y - (x * y).sum(axis=1, keepdims=True)) * x

    yield case(e, "reduce", "add, subtracted from each row", centered, [("%r", SHAPE)], [SHAPE] * 2, true_centered)


def cases():
    for e in ("f32", "i32"):
        yield from nested(e)
        yield from reused(e)
