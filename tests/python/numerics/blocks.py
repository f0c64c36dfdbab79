"""Operations on dimensions that are longer than the blocks, the pages and the small counters of devices.

A device processes a long dimension in parts, and the last part is usually incomplete. The lengths lie just beyond powers of two.
"""

import numpy as np
from case import ANY_ZERO, DTYPES, EXACT, Case, module, one, tensor, values, whole
from dimensions import moved
from structured import array, reducing, region, sorted_along

ELEMENTS = ("f32", "i32")
LENGTHS = (129, 257, 513, 1025, 2051)
# The element types of indices, with a number that is far beyond the end, and whose sign bit is set if the type has no sign.
INDICES = {"i8": 120, "ui8": 250, "i16": 32_000, "ui16": 65_000, "i32": 2_000_000_000, "ui32": 4_000_000_000, "i64": 1 << 40, "ui64": 1 << 63}
PRODUCT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
ROWS = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"


def long(e):
    """One long dimension, as each of the dimensions of an operation."""
    for n in LENGTHS:
        for left, right in (((2, n), (n, 3)), ((n, 2), (2, 1)), ((1, 2), (2, n))):
            types, result = [tensor(e, left), tensor(e, right)], (left[0], right[1])
            text = lambda t, ty=types, r=result: one("dot_general", ty, tensor(t, r), PRODUCT)
            inputs = [whole(e, left, "long"), whole(e, right, "long")]
            yield Case("dot_general", e, f"{left} and {right}", text, inputs, ANY_ZERO, exact=True)
        for shape, dims in (((2, n), (1,)), ((n, 2), (0,))):
            for op in ("add", "maximum"):
                yield Case("reduce", e, f"{op}, {shape}, dimensions {list(dims)}", reducing(op, e, shape, dims), [whole(e, shape, op)], ANY_ZERO)
        x = whole(e, (n,), "long", most=100)
        yield moved("reverse", e, f"{n} elements", f"dimensions = {array(0)}", (n,), x)
        text = f"start_indices = {array(n - 3)}, limit_indices = {array(n)}, strides = {array(1)}"
        yield moved("slice", e, f"the last 3 of {n}", text, (3,), x)
        yield moved("broadcast_in_dim", e, f"3 to 3 columns of {n} rows", f"broadcast_dimensions = {array(1)}", (n, 3), whole(e, (3,), "long"))
        ty = tensor(e, (n,))
        line = f'%r = "stablehlo.add"(%a0, %a0) : ({ty}, {ty}) -> {ty}'
        yield Case("add", e, f"{n} elements", lambda _, ty=ty, line=line: module([ty], [line], [("%r", ty)]), [x], EXACT, exact=True)
    for n in LENGTHS[:3]:
        yield sorted_along(e, (n,), 0, f"{n} elements")
        shape = (n, 3)
        yield moved("transpose", e, f"{n} rows of 3", f"permutation = {array(1, 0)}", (3, n), whole(e, shape, "rows", most=100))
        indices = (np.arange(n, dtype=np.int32)[:, None] * 7) % 5
        types = [tensor(e, (5, 2)), tensor("i32", (n, 1))]
        attributes = f"dimension_numbers = {ROWS}, slice_sizes = {array(1, 2)}"
        text = lambda t, ty=types, n=n, a=attributes: one("gather", ty, tensor(t, (n, 2)), a)
        yield Case("gather", e, f"{n} rows of 5", text, [whole(e, (5, 2), "rows"), indices], EXACT, exact=True)
        numbers = "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
        types = [*types, tensor(e, (n, 2))]
        text = lambda t, ty=types, a=f"scatter_dimension_numbers = {numbers}": one("scatter", ty, tensor(t, (5, 2)), a, region("add", t))
        yield Case("scatter", e, f"add, {n} rows to 5", text, [whole(e, (5, 2), "rows"), indices, whole(e, (n, 2), "updates")], ANY_ZERO, exact=True)


def constants(e):
    """Long constants, and constants of which some elements are equal and others are not."""
    for name, numbers in (
        ("4099 elements", whole("i32", (4099,), "long constant", most=50)),
        ("33 rows of 35", whole("i32", (33, 35), "rows of a constant", most=50)),
        ("equal ends", np.array([1, 2, 1])),
        ("equal ends of rows", np.array([[1, 2, 1], [3, 4, 3]])),
        ("equal rows", np.array([[1, 2, 3], [1, 2, 3]])),
        ("equal first elements", np.array([2, 2, 2, 3])),
        ("equal last elements", np.array([3, 2, 2, 2])),
        ("all equal", np.array([5, 5, 5])),
    ):
        text = str(numbers.tolist()) if e == "i32" else str(numbers.astype(float).tolist())
        ty = tensor(e, numbers.shape)
        lines = [f"%c = stablehlo.constant dense<{text}> : {ty}", f'%r = "stablehlo.add"(%c, %a0) : ({ty}, {ty}) -> {ty}']
        program = lambda _, ty=ty, lines=lines: module([ty], lines, [("%r", ty)])
        yield Case("constant", e, f"{name}, added", program, [whole(e, numbers.shape, "beside a constant")], EXACT, exact=True)


def indices(e):
    """Indices of each integer type. Those beyond the ends are clamped: numbers without a sign are never negative."""
    x, update = values(e, (7, 4), "indices"), values(e, (2, 4), "update")
    for of, beyond in INDICES.items():
        for at in (1, beyond, *(() if of.startswith("u") else (-3,))):
            start = [np.array(number, DTYPES[of]) for number in (at, 0)]
            index = tensor(of)
            text = lambda t, i=index: one("dynamic_slice", [tensor(t, (7, 4)), i, i], tensor(t, (2, 4)), f"slice_sizes = {array(2, 4)}")
            yield Case("dynamic_slice", e, f"at {at} of {of}", text, [x, *start], EXACT, exact=True)
            text = lambda t, i=index: one("dynamic_update_slice", [tensor(t, (7, 4)), tensor(t, (2, 4)), i, i], tensor(t, (7, 4)))
            yield Case("dynamic_update_slice", e, f"at {at} of {of}", text, [x, update, *start], EXACT, exact=True)
            rows = np.array([[2], [at]], DTYPES[of])
            types = lambda t, of=of: [tensor(t, (7, 4)), tensor(of, (2, 1))]
            text = lambda t, ty=types: one("gather", ty(t), tensor(t, (2, 4)), f"dimension_numbers = {ROWS}, slice_sizes = {array(1, 4)}")
            yield Case("gather", e, f"row {at} of {of}", text, [x, rows], EXACT, exact=True)


def cases():
    for element in ELEMENTS:
        for group in (long, constants, indices):
            yield from group(element)
