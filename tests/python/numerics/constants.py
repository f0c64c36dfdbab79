"""Operations with two operands, of which one is a constant of the program.

Compilers fold constants, and devices have instructions with an operand in the instruction itself, often for one side only.
"""

import numpy as np
from case import DTYPES, EXACT, Case, module, tensor, values
from elementwise import BINARY, OF_INTEGERS, generator, transcendental, wrapping

SHAPE = (6,)
SIDES = ("left", "right")
# How the program contains the constant, by name.
FORMS = ("constant", "scalar constant", "constants")
DIRECTIONS = {"EQ": np.equal, "LT": np.less, "GE": np.greater_equal}


def lines(form, e, constant):
    """The lines that define the operand %c."""
    wide, numbers = tensor(e, SHAPE), [str(x.item()) for x in constant]
    if form == "scalar constant":
        return [
            f"%s = stablehlo.constant dense<{numbers[0]}> : {tensor(e)}",
            f'%c = "stablehlo.broadcast_in_dim"(%s) {{broadcast_dimensions = array<i64>}} : ({tensor(e)}) -> {wide}',
        ]
    of = numbers[0] if form == "constant" else f"[{', '.join(numbers)}]"
    return [f"%c = stablehlo.constant dense<{of}> : {wide}"]


def with_constant(op, element, function, true_type, rule, operands):
    """The cases of an operation, which has the constant on either side, in each form. `operands` are two arrays."""
    result = "i1" if op == "compare" else None
    attributes = ""
    if op == "compare":
        kind = "FLOAT" if element == "f32" else "SIGNED"
        attributes = f" {{comparison_direction = #stablehlo<comparison_direction {function[0]}>, compare_type = #stablehlo<comparison_type {kind}>}}"
        function, suffix = function[1], f", {function[0]}"
    else:
        suffix = ""
    for side, name in enumerate(SIDES):
        for form in FORMS:
            constant, other = operands[side], operands[1 - side]
            if form != "constants":
                constant = np.full_like(constant, constant[0])

            def text(e, form=form, constant=constant, side=side):
                names = ("%c", "%a0") if side == 0 else ("%a0", "%c")
                wide, of = tensor(e, SHAPE), tensor(result or e, SHAPE)
                line = f'%r = "stablehlo.{op}"({", ".join(names)}){attributes} : ({wide}, {wide}) -> {of}'
                return module([wide], [*lines(form, e, constant), line], [("%r", of)])

            def true(x, constant=constant, side=side):
                fixed = constant.astype(true_type)
                return function(fixed, x) if side == 0 else function(x, fixed)

            title = f"{form} on the {name}{suffix}"
            yield Case(op, element, title, text, [other], rule, true, true_type, exact=op == "compare")


def of_floats():
    for op, (function, low, high, rule) in BINARY.items():
        operands = [values("f32", SHAPE, "constant", op, n, low=low, high=high) for n in range(2)]
        # Few digits, so that the text has all of them.
        operands = [np.where(x == 0, 1, np.ceil(x * 8) / 8).astype(np.float32) for x in operands]
        yield from with_constant(op, "f32", function, np.float64, rule or transcendental("f32", op), operands)


def of_integers():
    for op, (function, count) in OF_INTEGERS.items():
        if count != 2:
            continue
        operands = [np.where(x == 0, 9, x).astype(np.int32) for x in (values("i32", SHAPE, "constant", op, n) for n in range(2))]
        if op in ("divide", "remainder"):
            operands = [x * 3 for x in operands]
            operands[1] = operands[1] % 17 + 2
        if op.startswith("shift"):
            operands[1] = generator("constant", op).integers(1, 31, SHAPE).astype(np.int32)
        if op == "power":
            operands = [x % 5 + 2 for x in operands]
        yield from with_constant(op, "i32", wrapping(function, "i32"), DTYPES["i32"], EXACT, operands)


def comparisons():
    for element in ("f32", "i32"):
        left = values(element, SHAPE, "constant", "compare")
        left = (np.ceil(left * 8) / 8).astype(DTYPES[element])
        right = left.copy()
        right[1::2] += DTYPES[element](1)
        for direction in DIRECTIONS.items():
            yield from with_constant("compare", element, direction, DTYPES[element], EXACT, [left, right])


def cases():
    yield from of_floats()
    yield from of_integers()
    yield from comparisons()
