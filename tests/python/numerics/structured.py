"""Operations that move elements, that combine many of them, and that have regions."""

import numpy as np
from case import (
    ALL, ANY_ZERO, COMPLEX, DTYPES, EXACT, FLOATS, INTEGERS, UNSIGNED, Case, Rule, generator, literal, module, one, tensor, unit, values, whole, zero,
)  # fmt: skip

SMALL = ("f32", "i32")


def mixed(element, shape, *words):
    """Values of a type with infinities, NaN and both zeros among them: moves keep every bit."""
    numbers = values(element, shape, *words)
    if element in FLOATS and numbers.size > 5:
        numbers.ravel()[:5] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan]).astype(numbers.dtype)
    return numbers


def move(op, element, name, attributes, result, *inputs):
    """A case of an operation without arithmetic: evaluated as it is."""
    types = [tensor(element, x.shape) if x.dtype == DTYPES[element] else None for x in inputs]

    def text(e):
        own = [ty or tensor("i32", x.shape) for ty, x in zip(types, inputs, strict=True)]
        return one(op, own, tensor(element, result), attributes)

    return Case(op, element, name, text, list(inputs), EXACT, exact=True)


def array(*numbers):
    return "array<i64: " + ", ".join(map(str, numbers)) + ">" if numbers else "array<i64>"


def moves(e):
    x = mixed(e, (3, 4), "move")
    yield move("broadcast_in_dim", e, "new dimensions", f"broadcast_dimensions = {array(1, 2)}", (2, 3, 4), x)
    yield move("broadcast_in_dim", e, "of size 1", f"broadcast_dimensions = {array(0, 1)}", (5, 4), x[:1])
    yield move("broadcast_in_dim", e, "scalar", f"broadcast_dimensions = {array()}", (2, 3), x[1, 2].reshape(()))
    yield move("reshape", e, "ordinary", "", (2, 6), x)
    yield move("transpose", e, "matrix", f"permutation = {array(1, 0)}", (4, 3), x)
    yield move("transpose", e, "rank 4", f"permutation = {array(2, 0, 3, 1)}", (2, 2, 3, 3), mixed(e, (2, 3, 2, 3), "rank"))
    yield move("transpose", e, "cube", f"permutation = {array(1, 2, 0)}", (3, 3, 3), mixed(e, (3, 3, 3), "cube"))
    yield move("reverse", e, "two dimensions", f"dimensions = {array(0, 1)}", (3, 4), x)
    yield move("slice", e, "strides", f"start_indices = {array(0, 1)}, limit_indices = {array(3, 4)}, strides = {array(2, 2)}", (2, 2), x)
    yield move(
        "pad",
        e,
        "edges",
        f"edge_padding_low = {array(1, 0)}, edge_padding_high = {array(0, 2)}, interior_padding = {array(0, 0)}",
        (4, 6),
        x,
        x[2, 2].reshape(()),
    )
    yield move(
        "pad",
        e,
        "interior and negative",
        f"edge_padding_low = {array(-1, 1)}, edge_padding_high = {array(2, -1)}, interior_padding = {array(1, 2)}",
        (6, 10),
        x,
        x[2, 2].reshape(()),
    )
    yield move("concatenate", e, "ordinary", "dimension = 1 : i64", (3, 6), x, mixed(e, (3, 2), "other"))
    i = lambda n: np.array(n, np.int32)
    sizes = f"slice_sizes = {array(2, 2)}"
    yield dynamic("dynamic_slice", e, "inside", sizes, (2, 2), x, i(1), i(1))
    yield dynamic("dynamic_slice", e, "out of bounds", sizes, (2, 2), x, i(7), i(-3))
    yield dynamic("dynamic_update_slice", e, "inside", "", (3, 4), x, values(e, (2, 2), "update"), i(1), i(2))
    yield dynamic("dynamic_update_slice", e, "out of bounds", "", (3, 4), x, values(e, (2, 2), "update"), i(9), i(-1))
    if e != "i1":
        yield Case("iota", e, "ordinary", lambda t: one("iota", [], tensor(e, (3, 5)), "iota_dimension = 1 : i64"), [], EXACT, exact=True)
    yield constant(e)
    rows = '"stablehlo.gather"(%a0, %a1) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}} : ({}, tensor<3x1xi32>) -> {}'
    for name, indices in (("rows", [[2], [0], [1]]), ("out of bounds", [[5], [-2], [1]])):
        types = tensor(e, (3, 4)), tensor(e, (3, 4))
        text = lambda _, types=types: module([types[0], "tensor<3x1xi32>"], ["%r = " + rows.format(*types)], [("%r", types[1])])
        yield Case("gather", e, name, text, [x, np.array(indices, np.int32)], EXACT, exact=True)
    yield empty(move("transpose", e, "empty", f"permutation = {array(1, 0)}", (0, 3), np.zeros((3, 0), DTYPES[e])), e)
    yield empty(move("concatenate", e, "empty", "dimension = 0 : i64", (2,), np.zeros(0, DTYPES[e]), values(e, (2,), "empty")), e)
    yield empty(move("reshape", e, "empty", "", (0, 2), np.zeros((4, 0), DTYPES[e])), e)
    yield empty(
        move(
            "pad",
            e,
            "empty",
            f"edge_padding_low = {array(1)}, edge_padding_high = {array(1)}, interior_padding = {array(0)}",
            (2,),
            np.zeros(0, DTYPES[e]),
            x[2, 2].reshape(()),
        ),
        e,
    )


def empty(case, element):
    return case if element in SMALL else None


def dynamic(op, element, name, attributes, result, *inputs):
    def text(_):
        types = [tensor(element, x.shape) if x.shape or n == 0 else "tensor<i32>" for n, x in enumerate(inputs)]
        return one(op, types, tensor(element, result), attributes)

    return Case(op, element, name, text, list(inputs), EXACT, exact=True)


def constant(element):
    numbers = values(element, (2, 3), "constant")
    if element in COMPLEX:
        shown = [f"({z.real!r}, {z.imag!r})" for z in numbers.astype(np.complex128).ravel().tolist()]
    elif element in FLOATS:
        shown = [f"{x:.17e}" for x in numbers.astype(np.float64).ravel()]
    else:
        shown = [str(x).lower() if element == "i1" else str(int(x)) for x in numbers.ravel()]
    rows = f"[[{', '.join(shown[:3])}], [{', '.join(shown[3:])}]]"
    ty = tensor(element, (2, 3))
    lines = [f"%r = stablehlo.constant dense<{rows}> : {ty}", f"%s = stablehlo.constant dense<{literal(element, 1)}> : {ty}"]
    return Case("constant", element, "ordinary", lambda _: module([], lines, [("%r", ty), ("%s", ty)]), [], EXACT, exact=True)


def rounded_sums(element, terms, what):
    """The tolerance of sums: every step may round to the element type."""
    factor = 2 * terms
    reason = f"{terms} terms: each of as many steps of the {what} may round by half a unit in the last place, and operands once"

    def size(wide):
        return wide

    return Rule(reason, sums=factor, size=size) if element in FLOATS + COMPLEX else EXACT


def region(op, element, kind="stablehlo"):
    scalar = tensor(element)
    return f'{{\n    ^bb0(%p: {scalar}, %q: {scalar}):\n      %s = "{kind}.{op}"(%p, %q) : ({scalar}, {scalar}) -> {scalar}\n      "stablehlo.return"(%s) : ({scalar}) -> ()\n    }}'


def initial(op, element):
    """The text of the number that a reduction starts with."""
    if op in ("add", "or"):
        return zero(element)
    if op in ("multiply", "and"):
        return (
            literal(element, 1)
            if op == "multiply"
            else "true"
            if element == "i1"
            else "-1"
            if element[0] == "i"
            else str(np.iinfo(DTYPES[element]).max)
        )
    if element == "i1":
        return "false" if op == "maximum" else "true"
    if element in FLOATS:
        # Infinities by their bits.
        bits = {
            "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
            "f32": ("0xFF800000", "0x7F800000"),
            "f16": ("0xFC00", "0x7C00"),
            "bf16": ("0xFF80", "0x7F80"),
        }
        return bits[element][op == "minimum"]
    info = np.iinfo(DTYPES[element])
    return str(info.min if op == "maximum" else info.max)


def reducing(op, element, shape, dims, start=None):
    result = [n for d, n in enumerate(shape) if d not in dims]

    def text(e):
        lines = [
            f"%i = stablehlo.constant dense<{start or initial(op, e)}> : {tensor(e)}",
            f'%r = "stablehlo.reduce"(%a0, %i) ({region(op, e)}) {{dimensions = {array(*dims)}}} : ({tensor(e, shape)}, {tensor(e)}) -> {tensor(e, result)}',
        ]
        return module([tensor(e, shape)], lines, [("%r", tensor(e, result))])

    return text


def of_one_sign(op, element, shape):
    """Whole numbers of which zero is neither the maximum nor the minimum: negative ones, if the type has them, for a maximum."""
    numbers = np.abs(whole(element, shape, "sign", op)) + DTYPES[element](1)
    return (numbers if op == "minimum" or element in UNSIGNED else -numbers).astype(DTYPES[element])


def reductions(e):
    for op in ("add", "multiply", "maximum", "minimum", "and", "or"):
        if (
            op in ("and", "or")
            and e not in INTEGERS + ("i1",)
            or op in ("add", "multiply")
            and e == "i1"
            or op in ("maximum", "minimum")
            and e in COMPLEX
        ):
            continue
        shape, dims = (3, 5, 4), (1,)
        numbers = whole(e, shape, "reduce", op, most=1 if op == "multiply" else 4)
        if op == "multiply":
            numbers = numbers + (numbers == 0).astype(DTYPES[e]) * DTYPES[e](2)
        yield Case("reduce", e, f"{op} of whole numbers", reducing(op, e, shape, dims), [numbers], EXACT)
        if op in ("add", "maximum") and e != "i1":
            # Not the neutral element, and along a dimension of a cube, in which sizes do not tell the dimensions apart.
            numbers = whole(e, (3, 3, 3), "cube", op, most=3)
            text = reducing(op, e, (3, 3, 3), (1,), start=literal(e, 2))
            yield Case("reduce", e, f"{op} of a cube and an initial value", text, [numbers], EXACT)
        if e in FLOATS and op in ("add", "multiply"):
            rule = rounded_sums(e, 9, "sum" if op == "add" else "product")
            rule.size = (lambda wide: 27.0) if op == "add" else (lambda wide: float(np.abs(wide[0]).max()))
            numbers = values(e, (4, 9), "reduce", op, low=0.5)
            yield Case("reduce", e, f"{op} ordinary", reducing(op, e, (4, 9), (1,)), [numbers], rule)
        if e in FLOATS and op in ("maximum", "minimum"):
            numbers = mixed(e, (2, 9), "reduce")
            yield Case("reduce", e, f"{op} special", reducing(op, e, (2, 9), (1,)), [numbers], ANY_ZERO)
        if op in ("maximum", "minimum") and e != "i1":
            # A start of zero is wrong.
            yield Case("reduce", e, f"{op} of one sign", reducing(op, e, shape, dims), [of_one_sign(op, e, shape)], EXACT)
        whole_tensor = whole(e, (2, 3), "all", op, most=1)
        yield Case("reduce", e, f"{op} to a scalar", reducing(op, e, (2, 3), (0, 1)), [whole_tensor], EXACT)
        if e in SMALL:
            yield Case("reduce", e, f"{op} empty", reducing(op, e, (2, 0), (1,)), [np.zeros((2, 0), DTYPES[e])], EXACT)
    if e not in COMPLEX:
        yield argmax(e)
        yield sorted_along(e, (3, 9), 1, "ordinary")
        yield sorted_pairs(e)


def argmax(e):
    """The variadic reduction that JAX's argmax is lowered to."""
    scalar, index = tensor(e), "tensor<i32>"
    kind = "FLOAT" if e in FLOATS else "SIGNED" if e.startswith("i") and e != "i1" else "UNSIGNED"
    compare = lambda name, left, right, direction, ty, kind: (
        f'%{name} = "stablehlo.compare"({left}, {right}) {{comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = #stablehlo<comparison_type {kind}>}} : ({ty}, {ty}) -> tensor<i1>'
    )
    body = "\n      ".join([
        compare("g", "%p", "%q", "GT", scalar, kind), compare("n", "%p", "%p", "NE", scalar, kind),
        '%w = "stablehlo.or"(%g, %n) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        compare("e", "%p", "%q", "EQ", scalar, kind), compare("l", "%pi", "%qi", "LT", index, "SIGNED"),
        '%el = "stablehlo.and"(%e, %l) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        '%wi = "stablehlo.or"(%w, %el) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        f'%v = "stablehlo.select"(%w, %p, %q) : (tensor<i1>, {scalar}, {scalar}) -> {scalar}',
        f'%vi = "stablehlo.select"(%wi, %pi, %qi) : (tensor<i1>, {index}, {index}) -> {index}',
        f'"stablehlo.return"(%v, %vi) : ({scalar}, {index}) -> ()',
    ])  # fmt: skip
    ty, of_index = tensor(e, (3, 7)), tensor("i32", (3, 7))
    results = tensor(e, (3,)), tensor("i32", (3,))
    lines = [
        f'%x = "stablehlo.iota"() {{iota_dimension = 1 : i64}} : () -> {of_index}',
        f"%i = stablehlo.constant dense<{initial('maximum', e)}> : {scalar}",
        f"%z = stablehlo.constant dense<0> : {index}",
        f'%r:2 = "stablehlo.reduce"(%a0, %x, %i, %z) ({{\n    ^bb0(%p: {scalar}, %pi: {index}, %q: {scalar}, %qi: {index}):\n      {body}\n    }}) '
        f"{{dimensions = array<i64: 1>}} : ({ty}, {of_index}, {scalar}, {index}) -> ({results[0]}, {results[1]})",
    ]
    text = lambda _: module([ty], lines, [("%r#0", results[0]), ("%r#1", results[1])])
    return Case("reduce", e, "argmax", text, [whole(e, (3, 7), "argmax", most=3)], EXACT, exact=True)


def comparator(e):
    kind = "TOTALORDER" if e in FLOATS else "SIGNED" if e.startswith("i") and e != "i1" else "UNSIGNED"
    return f'%s = "stablehlo.compare"(%p, %q) {{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type {kind}>}} : ({tensor(e)}, {tensor(e)}) -> tensor<i1>\n      "stablehlo.return"(%s) : (tensor<i1>) -> ()'


def sorted_along(e, shape, dimension, name):
    ty = tensor(e, shape)
    line = f'%r = "stablehlo.sort"(%a0) ({{\n    ^bb0(%p: {tensor(e)}, %q: {tensor(e)}):\n      {comparator(e)}\n    }}) {{dimension = {dimension} : i64, is_stable = true}} : ({ty}) -> {ty}'
    return Case("sort", e, name, lambda _: module([ty], [line], [("%r", ty)]), [mixed(e, shape, "sort")], EXACT, exact=True)


def sorted_pairs(e):
    ty, other = tensor(e, (12,)), "tensor<12xi32>"
    line = f'%r:2 = "stablehlo.sort"(%a0, %a1) ({{\n    ^bb0(%p: {tensor(e)}, %q: {tensor(e)}, %u: tensor<i32>, %v: tensor<i32>):\n      {comparator(e)}\n    }}) {{dimension = 0 : i64, is_stable = true}} : ({ty}, {other}) -> ({ty}, {other})'
    inputs = [whole(e, (12,), "keys", most=2), np.arange(12, dtype=np.int32)]
    return Case("sort", e, "stable pairs", lambda _: module([ty, other], [line], [("%r#0", ty), ("%r#1", other)]), inputs, EXACT, exact=True)


def window(op, element, name, shape, result, attributes, numbers, rule=EXACT, init=None):
    def text(e):
        lines = [
            f"%i = stablehlo.constant dense<{init or initial(op, e)}> : {tensor(e)}",
            f'%r = "stablehlo.reduce_window"(%a0, %i) ({region(op, e)}) {{{attributes}}} : ({tensor(e, shape)}, {tensor(e)}) -> {tensor(e, result)}',
        ]
        return module([tensor(e, shape)], lines, [("%r", tensor(e, result))])

    return Case("reduce_window", element, name, text, [numbers], rule)


def padding(*pairs):
    return f"padding = dense<[{', '.join(str(list(pair)) for pair in pairs)}]> : tensor<{len(pairs)}x2xi64>"


def windows(e):
    sizes = f"window_dimensions = {array(1, 2, 2, 1)}, window_strides = {array(1, 2, 2, 1)}"
    if e not in COMPLEX + ("i1",):
        yield window("maximum", e, "max pool", (1, 6, 4, 2), (1, 3, 2, 2), sizes, whole(e, (1, 6, 4, 2), "pool"))
        yield window("maximum", e, "max pool of one sign", (1, 6, 4, 2), (1, 3, 2, 2), sizes, of_one_sign("maximum", e, (1, 6, 4, 2)))
        attributes = f"window_dimensions = {array(3)}, window_strides = {array(2)}, window_dilations = {array(2)}, base_dilations = {array(2)}, {padding((2, 1))}"
        yield window("minimum", e, "dilations", (8,), (7,), attributes, whole(e, (8,), "dilated"))
        yield scattered_selection(e)
    if e != "i1":
        attributes = f"window_dimensions = {array(3, 3)}, window_strides = {array(1, 1)}, {padding((1, 1), (1, 1))}"
        yield window("add", e, "sum with padding", (4, 5), (4, 5), attributes, whole(e, (4, 5), "sum"))
        attributes = f"window_dimensions = {array(7)}, {padding((6, 0))}"
        yield window("add", e, "cumulative sum", (7,), (7,), attributes, whole(e, (7,), "cumsum"))
        attributes = f"window_dimensions = {array(3)}, {padding((2, 0))}"
        yield window("multiply", e, "products", (7,), (7,), attributes, whole(e, (7,), "cumprod", most=2))


def scattered_selection(e):
    scalar = tensor(e)
    kind = "FLOAT" if e in FLOATS else "SIGNED" if e.startswith("i") else "UNSIGNED"
    select = f'{{\n    ^bb0(%p: {scalar}, %q: {scalar}):\n      %s = "stablehlo.compare"(%p, %q) {{comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type {kind}>}} : ({scalar}, {scalar}) -> tensor<i1>\n      "stablehlo.return"(%s) : (tensor<i1>) -> ()\n    }}'

    def text(_):
        lines = [
            f"%i = stablehlo.constant dense<{zero(e)}> : {scalar}",
            f'%r = "stablehlo.select_and_scatter"(%a0, %a1, %i) ({select}, {region("add", e)}) {{window_dimensions = {array(2, 2)}, window_strides = {array(2, 2)}}} : ({tensor(e, (4, 6))}, {tensor(e, (2, 3))}, {scalar}) -> {tensor(e, (4, 6))}',
        ]
        return module([tensor(e, (4, 6)), tensor(e, (2, 3))], lines, [("%r", tensor(e, (4, 6)))])

    numbers = generator("selected", e).permutation(24).reshape(4, 6).astype(DTYPES[e])
    return Case("select_and_scatter", e, "gradient of max pool", text, [numbers, whole(e, (2, 3), "source")], EXACT, exact=True)


SCATTER = "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"


def scatters(e):
    scalar = tensor(e)
    update = f'{{\n    ^bb0(%p: {scalar}, %q: {scalar}):\n      "stablehlo.return"(%q) : ({scalar}) -> ()\n    }}'
    bodies = {"update": (update, [[3], [0]]), "out of bounds": (update, [[9], [1]])}
    if e != "i1":
        bodies["add"] = (region("add", e), [[1], [1]])
    if e not in COMPLEX:
        bodies["maximum"] = (region("maximum", e), [[2], [2]])
    for name, (body, indices) in bodies.items():
        types = [tensor(e, (4, 3)), "tensor<2x1xi32>", tensor(e, (2, 3))]
        line = f'%r = "stablehlo.scatter"(%a0, %a1, %a2) ({body}) {{scatter_dimension_numbers = {SCATTER}}} : ({", ".join(types)}) -> {types[0]}'
        text = lambda _, line=line, types=types: module(types, [line], [("%r", types[0])])
        inputs = [whole(e, (4, 3), "operand"), np.array(indices, np.int32), whole(e, (2, 3), "updates", name)]
        yield Case("scatter", e, name, text, inputs, EXACT, exact=True)


def dots(e):
    if e == "i1":
        return
    forms = {
        "matrices": ((3, 5), (5, 4), (3, 4), "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]"),
        "first dimensions": ((5, 3), (5, 4), (3, 4), "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]"),
        "batches": ((2, 3, 4), (2, 5, 4), (2, 3, 5), "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2]"),
        "vectors": ((6,), (6,), (), "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]"),
        "outer product": ((3,), (4,), (3, 4), ""),
    }  # fmt: skip
    # Sizes do not tell which dimensions are contracted.
    for left, right in ((1, 0), (1, 1), (0, 0), (0, 1)):
        numbers = f"lhs_contracting_dimensions = [{left}], rhs_contracting_dimensions = [{right}]"
        forms[f"square matrices, {left} with {right},"] = ((3, 3), (3, 3), (3, 3), numbers)
    if e in SMALL:
        forms["empty"] = ((3, 0), (0, 2), (3, 2), "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]")

    def dot(types, result, numbers, precision):
        precise = ", ".join([f"#stablehlo<precision {precision}>"] * 2)
        attributes = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, precision_config = [{precise}]"
        return one("dot_general", types, result, attributes)

    for name, (left, right, result, numbers) in forms.items():
        text = lambda t, f=(left, right, result, numbers): dot([tensor(t, f[0]), tensor(t, f[1])], tensor(t, f[2]), f[3], "DEFAULT")
        inputs = [whole(e, left, "left", name), whole(e, right, "right", name)]
        yield Case("dot_general", e, f"{name} of whole numbers", text, inputs, EXACT)
    if e in FLOATS + COMPLEX:
        left, right, result, numbers = (6, 17), (17, 5), (6, 5), forms["matrices"][3]
        inputs = [values(e, left, "dot", 0, low=-2, high=2), values(e, right, "dot", 1, low=-2, high=2)]
        size = float((np.abs(inputs[0].astype(complex)) @ np.abs(inputs[1].astype(complex))).real.max())
        for precision in ("DEFAULT", "HIGHEST"):
            text = lambda t, p=precision: dot([tensor(t, left), tensor(t, right)], tensor(t, result), numbers, p)
            yield Case("dot_general", e, f"precision {precision}", text, inputs, product_rule(e, 17, size, precision))
    text = lambda t: one("dot", [tensor(t, (3, 5)), tensor(t, (5, 4))], tensor(t, (3, 4)))
    yield Case("dot", e, "whole numbers", text, [whole(e, (3, 5), "dot"), whole(e, (5, 4), "dots")], EXACT)
    if e in ("bf16", "f16"):
        text = lambda t: dot([tensor(e, (3, 5)), tensor(e, (5, 4))], "tensor<3x4xf32>", forms["matrices"][3], "DEFAULT")
        yield Case("dot_general", e, "whole numbers to f32", text, [whole(e, (3, 5), "wide"), whole(e, (5, 4), "wider")], EXACT, exact=True)


def product_rule(e, terms, size, precision):
    if precision == "DEFAULT" and e in ("f32", "complex<f32>"):
        factor = 2 * unit("bf16") / unit("f32")
        reason = "2 roundings of the operands to bf16, which the precision DEFAULT permits, times the sum of the products' absolute values"
        return Rule(reason, sums=factor + 2 * terms, size=lambda wide: size)
    rule = rounded_sums(e, terms, "sum of products")
    rule.size = lambda wide: size
    return rule


def convolutions(e):
    if e == "i1":
        return
    forms = {
        "2 spatial dimensions": ((1, 5, 6, 3), (3, 3, 3, 4), (1, 5, 6, 4), "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", f"{padding((1, 1), (1, 1))}", 1, 1),
        "strides": ((2, 2, 8), (5, 2, 3), (2, 5, 3), "[b, f, 0]x[o, i, 0]->[b, f, 0]", f"window_strides = {array(2)}", 1, 1),
        "dilations": ((1, 2, 5), (3, 2, 2), (1, 3, 8), "[b, f, 0]x[o, i, 0]->[b, f, 0]", f"lhs_dilation = {array(2)}, rhs_dilation = {array(2)}, {padding((0, 1))}", 1, 1),
        "feature groups": ((1, 4, 5), (4, 2, 2), (1, 4, 4), "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", 2, 1),
        "batch groups": ((2, 2, 5), (4, 2, 2), (1, 4, 4), "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", 1, 2),
        "3 spatial dimensions": ((1, 3, 3, 3, 1), (2, 2, 2, 1, 2), (1, 2, 2, 2, 2), "[b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f]", "", 1, 1),
    }  # fmt: skip

    def convolution(t, form, precision):
        left, right, result, numbers, attributes, groups, batches = form
        rest = f", {attributes}" if attributes else ""
        precise = ", ".join([f"#stablehlo<precision {precision}>"] * 2)
        attributes = f"dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {groups} : i64, batch_group_count = {batches} : i64, precision_config = [{precise}]{rest}"
        return one("convolution", [tensor(t, left), tensor(t, right)], tensor(t, result), attributes)

    for name, form in forms.items():
        inputs = [whole(e, form[0], "image", name, most=3), whole(e, form[1], "filter", name, most=2)]
        yield Case("convolution", e, name, lambda t, form=form: convolution(t, form, "DEFAULT"), inputs, EXACT)
    if e in FLOATS:
        form = forms["2 spatial dimensions"]
        inputs = [values(e, form[0], "image", low=-2, high=2), values(e, form[1], "filter", low=-1, high=1)]
        for precision in ("DEFAULT", "HIGHEST"):
            rule = product_rule(e, 27, 27.0, precision)
            yield Case("convolution", e, f"precision {precision}", lambda t, p=precision: convolution(t, form, p), inputs, rule)


def linear_algebra(e):
    if e not in ("f32", "f64") + COMPLEX:
        return
    largest = lambda wide: max(float(np.abs(x).max(initial=1.0)) for x in wide)
    size = 5
    a = values(e, (size, size), "cholesky", low=-1, high=1).astype(np.complex128)
    a = a @ a.conj().T + size * np.eye(size)
    a = (a if e in COMPLEX else a.real).astype(DTYPES[e])
    rule = Rule("4 roundings for each of the 5 steps, relative to the largest element; the matrices are well conditioned", sums=40, size=largest)
    for lower in ("true", "false"):
        text = lambda t, lower=lower: one("cholesky", [tensor(t, (size, size))], tensor(t, (size, size)), f"lower = {lower}")
        yield Case("cholesky", e, "lower" if lower == "true" else "upper", triangle(text, lower == "true"), [a], rule)
    b = values(e, (size, 2), "solve")
    triangular = np.tril(a) / DTYPES[e](size)
    for left, lower, kind, unit_diagonal in (
        (1, 1, "NO_TRANSPOSE", 0),
        (1, 1, "TRANSPOSE", 0),
        (0, 1, "NO_TRANSPOSE", 0),
        (1, 1, "ADJOINT", 1),
        (1, 0, "NO_TRANSPOSE", 0),
    ):
        matrix = triangular if lower else np.ascontiguousarray(triangular.T)
        other = b if left else np.ascontiguousarray(b.T)
        flags = f"left_side = {str(bool(left)).lower()}, lower = {str(bool(lower)).lower()}, unit_diagonal = {str(bool(unit_diagonal)).lower()}, transpose_a = #stablehlo<transpose {kind}>"
        text = lambda t, s=other.shape, flags=flags: one("triangular_solve", [tensor(t, (size, size)), tensor(t, s)], tensor(t, s), flags)
        name = f"{'left' if left else 'right'} {'lower' if lower else 'upper'} {kind.lower()}{' unit diagonal' if unit_diagonal else ''}"
        yield Case("triangular_solve", e, name, text, [matrix, other], rule)
    rule = Rule("8 roundings for each doubling of the length, relative to the largest element", sums=32, size=largest)
    for kind, n in (("FFT", 8), ("IFFT", 6), ("RFFT", 8), ("IRFFT", 8)):
        if (kind == "RFFT") == (e in COMPLEX):
            continue
        shape = (2, n // 2 + 1) if kind == "IRFFT" else (2, n)
        result = (2, n) if kind != "RFFT" else (2, n // 2 + 1)
        out = {"RFFT": lambda t: f"complex<{t}>", "IRFFT": lambda t: t[8:11]}.get(kind, lambda t: t)
        text = lambda t, k=kind, s=shape, r=result, n=n, out=out: one(
            "fft", [tensor(t, s)], tensor(out(t), r), f"fft_type = #stablehlo<fft_type {k}>, fft_length = {array(n)}"
        )
        yield Case("fft", e, kind, text, [values(e, shape, "fft")], rule)


def triangle(text, lower):
    """The program with the other triangle of the result set to zero: the specification leaves that undefined."""

    def of(t):
        program = text(t)
        ty = tensor(t, (5, 5))
        index = "tensor<5x5xi32>"
        lines = [
            f'%row = "stablehlo.iota"() {{iota_dimension = 0 : i64}} : () -> {index}',
            f'%column = "stablehlo.iota"() {{iota_dimension = 1 : i64}} : () -> {index}',
            f'%in = "stablehlo.compare"(%row, %column) {{comparison_direction = #stablehlo<comparison_direction {"GE" if lower else "LE"}>}} : ({index}, {index}) -> tensor<5x5xi1>',
            f"%zero = stablehlo.constant dense<{zero(t)}> : {ty}",
            f'%kept = "stablehlo.select"(%in, %r, %zero) : (tensor<5x5xi1>, {ty}, {ty}) -> {ty}',
            f"return %kept : {ty}",
        ]
        return program.replace(f"return %r : {ty}", "\n    ".join(lines))

    return of


def control(e):
    x = values(e, (3,), "control")
    ty, scalar = tensor(e, (3,)), "tensor<i32>"
    reverse = lambda name, of: f'%{name} = "stablehlo.reverse"({of}) {{dimensions = array<i64: 0>}} : ({ty}) -> {ty}'
    give = lambda name: f'"stablehlo.return"({name}) : ({ty}) -> ()'
    branch = lambda name: f"{{\n      {reverse('b' + name, '%a1')}\n      {give('%b' + name)}\n    }}"
    same = f"{{\n      {give('%a1')}\n    }}"
    for name, index in (("first", 0), ("last", 2), ("out of bounds", 7), ("negative", -1)):
        line = f'%r = "stablehlo.case"(%a0) ({same}, {branch("x")}, {branch("y")}) : ({scalar}) -> {ty}'
        text = lambda _, line=line: module([scalar, ty], [line], [("%r", ty)])
        yield Case("case", e, name, text, [np.array(index, np.int32), x], EXACT, exact=True)
    for truth in (True, False):
        line = f'%r = "stablehlo.if"(%a0) ({branch("x")}, {same}) : (tensor<i1>) -> {ty}'
        text = lambda _, line=line: module(["tensor<i1>", ty], [line], [("%r", ty)])
        yield Case("if", e, str(truth).lower(), text, [np.array(truth), x], EXACT, exact=True)
    loop = (
        f'%r:2 = "stablehlo.while"(%a0, %a1) ({{\n    ^bb0(%i: {scalar}, %v: {ty}):\n      %n = stablehlo.constant dense<5> : {scalar}\n'
        f'      %c = "stablehlo.compare"(%i, %n) {{comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>}} : ({scalar}, {scalar}) -> tensor<i1>\n'
        f'      "stablehlo.return"(%c) : (tensor<i1>) -> ()\n    }}, {{\n    ^bb0(%i: {scalar}, %v: {ty}):\n      %o = stablehlo.constant dense<2> : {scalar}\n'
        f'      %j = "stablehlo.add"(%i, %o) : ({scalar}, {scalar}) -> {scalar}\n      {reverse("w", "%v")}\n'
        f'      "stablehlo.return"(%j, %w) : ({scalar}, {ty}) -> ()\n    }}) : ({scalar}, {ty}) -> ({scalar}, {ty})'
    )
    for name, start in (("three rounds", 0), ("no round", 9)):
        text = lambda _: module([scalar, ty], [loop], [("%r#0", scalar), ("%r#1", ty)])
        yield Case("while", e, name, text, [np.array(start, np.int32), x], EXACT, exact=True)
    function = f"  func.func private @other(%a1: {ty}) -> {ty} {{\n    {reverse('r', '%a1')}\n    return %r : {ty}\n  }}\n"
    lines = [f"%x = func.call @other(%a0) : ({ty}) -> {ty}", f"%r = func.call @other(%x) : ({ty}) -> {ty}"]
    yield Case("call", e, "twice", lambda _: module([ty], lines, [("%x", ty), ("%r", ty)], function), [x], EXACT, exact=True)
    line = f'%r:2 = "stablehlo.optimization_barrier"(%a0, %a1) : ({ty}, {scalar}) -> ({ty}, {scalar})'
    yield Case(
        "optimization_barrier",
        e,
        "ordinary",
        lambda _: module([ty, scalar], [line], [("%r#0", ty), ("%r#1", scalar)]),
        [x, np.array(3, np.int32)],
        EXACT,
        exact=True,
    )


def random_bits():
    for algorithm, words in (("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)):
        for element in ("ui32", "ui64"):
            state = f"tensor<{words}xui64>"
            result = tensor(element, (7,))
            line = f'%r:2 = "stablehlo.rng_bit_generator"(%a0) {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}} : ({state}) -> ({state}, {result})'
            text = lambda _, line=line, state=state, result=result: module([state], [line], [("%r#0", state), ("%r#1", result)])
            inputs = [np.array([7, 2**63 + 5, 11][:words], np.uint64)]
            yield Case("rng_bit_generator", element, f"{algorithm} of {words} words", text, inputs, EXACT, exact=True)


def cases():
    for element in ALL:
        for group in (moves, reductions, windows, scatters, dots, convolutions, linear_algebra, control):
            for case in group(element):
                if case is None:
                    continue
                # A sum may start with a zero or with its first term.
                if group in (reductions, windows, scatters, dots, convolutions) and case.op != "sort" and case.rule is EXACT:
                    case.rule = ANY_ZERO
                yield case
    yield from random_bits()
