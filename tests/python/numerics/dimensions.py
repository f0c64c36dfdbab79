"""Operations with many choices of dimensions and sizes.

An implementation of an operation usually has one path for each kind of attributes, such as a contraction of the last
dimension. The programs choose dimensions in all ways, or at random, in two kinds of arrays: in those whose sizes are all
equal, a wrong dimension gives wrong elements and not an error; in the others, sizes that are mixed up are noticed.
"""

import itertools

import numpy as np
from case import ANY_ZERO, DTYPES, EXACT, Case, generator, module, one, tensor, values, whole
from structured import array, comparator, initial, of_one_sign, padding, reducing, region, sorted_along

ELEMENTS = ("f32", "i32")


def sizes(rank, equal):
    return (3,) * rank if equal else (2, 3, 4, 5, 2)[:rank]


def subsets(rank):
    return [dims for count in range(1, rank + 1) for dims in itertools.combinations(range(rank), count)]


def moved(op, e, name, attributes, result, *inputs):
    """A case of an operation that moves elements."""
    types = [tensor(e, x.shape) for x in inputs]
    return Case(op, e, name, lambda t: one(op, types, tensor(t, result), attributes), list(inputs), EXACT, exact=True)


def orders(e):
    """Operations that choose dimensions, in arrays of rank 3 and 4."""
    for rank, equal in ((3, True), (3, False), (4, False)):
        shape = sizes(rank, equal)
        x = values(e, shape, "orders")
        kind = f"{'x'.join(map(str, shape))},"
        for dims in itertools.permutations(range(rank)):
            result = tuple(shape[d] for d in dims)
            yield moved("transpose", e, f"{kind} dimensions {list(dims)}", f"permutation = {array(*dims)}", result, x)
        for dims in subsets(rank):
            yield moved("reverse", e, f"{kind} dimensions {list(dims)}", f"dimensions = {array(*dims)}", shape, x)
            numbers = whole(e, shape, "reduce", dims)
            yield Case("reduce", e, f"add, {kind} dimensions {list(dims)}", reducing("add", e, shape, dims), [numbers], ANY_ZERO)
        for d in range(rank):
            text = lambda t, d=d, shape=shape: one("iota", [], tensor(t, shape), f"iota_dimension = {d} : i64")
            yield Case("iota", e, f"{kind} dimension {d}", text, [], EXACT, exact=True)
            others = [values(e, shape[:d] + (size,) + shape[d + 1 :], "concatenate") for size in (1, 2)]
            result = shape[:d] + (shape[d] + 3,) + shape[d + 1 :]
            yield moved("concatenate", e, f"{kind} dimension {d}", f"dimension = {d} : i64", result, x, *others)
            yield sorted_along(e, shape, d, f"{kind} dimension {d}")


def broadcasts(e):
    for rank, of in ((1, 3), (2, 3), (3, 4)):
        for dims in itertools.permutations(range(of), rank):
            for result in (sizes(of, True), sizes(of, False)):
                shape = tuple(result[d] for d in dims)
                name = f"{shape} to {result}, dimensions {list(dims)}"
                yield moved("broadcast_in_dim", e, name, f"broadcast_dimensions = {array(*dims)}", result, values(e, shape, "broadcast"))


def slices(e):
    for n in range(8):
        random = generator("slices", e, n)
        shape = sizes(3, n % 2 == 0)
        x = values(e, shape, "slices")
        start = [int(random.integers(0, size)) for size in shape]
        limit = [int(random.integers(at + 1, size + 1)) for at, size in zip(start, shape, strict=True)]
        strides = [int(random.integers(1, 3)) for _ in shape]
        result = [-(-(end - at) // step) for at, end, step in zip(start, limit, strides, strict=True)]
        text = f"start_indices = {array(*start)}, limit_indices = {array(*limit)}, strides = {array(*strides)}"
        yield moved("slice", e, f"{shape}, from {start} to {limit} by {strides}", text, result, x)
        inside = [int(random.integers(0, 3)) for _ in shape]
        low, high = ([int(random.integers(-1, 3)) for _ in shape] for _ in range(2))
        result = [size + (size - 1) * gap + a + b for size, gap, a, b in zip(shape, inside, low, high, strict=True)]
        text = f"edge_padding_low = {array(*low)}, edge_padding_high = {array(*high)}, interior_padding = {array(*inside)}"
        yield moved("pad", e, f"{shape}, by {low}, {high} and {inside}", text, result, x, values(e, (), "padding"))
        part = [end - at for at, end in zip(start, limit, strict=True)]
        at = [np.array(random.integers(-1, size), np.int32) for size in shape]
        where = [int(index) for index in at]
        types = [tensor(e, shape)] + ["tensor<i32>"] * 3
        text = lambda t, types=types, part=part: one("dynamic_slice", types, tensor(t, part), f"slice_sizes = {array(*part)}")
        yield Case("dynamic_slice", e, f"{part} of {shape} at {where}", text, [x, *at], EXACT, exact=True)
        types = [tensor(e, shape), tensor(e, part)] + ["tensor<i32>"] * 3
        text = lambda t, types=types, shape=shape: one("dynamic_update_slice", types, tensor(t, shape))
        inputs = [x, values(e, part, "update"), *at]
        yield Case("dynamic_update_slice", e, f"{part} into {shape} at {where}", text, inputs, EXACT, exact=True)


def products(e):
    """Every number of batch, contracting and free dimensions up to 2, in random places."""
    counts = (c for c in itertools.product(range(3), repeat=4) if max(sum(c[:3]), c[0] + c[1] + c[3]) < 5)
    for n, (batch, contracting, left_free, right_free) in enumerate(counts):
        random = generator("products", batch, contracting, left_free, right_free)
        size = iter((3,) * 9 if n % 2 else (2, 3, 4, 5, 2, 3, 1, 4))
        shared = [next(size) for _ in range(batch + contracting)]
        free = [[next(size) for _ in range(count)] for count in (left_free, right_free)]
        places = [random.permutation(len(shared) + len(own)).tolist() for own in free]
        shapes = [[0] * len(place) for place in places]
        for shape, place, own in zip(shapes, places, free, strict=True):
            for d, length in zip(place, shared + own, strict=True):
                shape[d] = length
        lists = [f"{side}_{kind}_dimensions = {place[part]}"
                 for kind, part in (("batching", slice(batch)), ("contracting", slice(batch, batch + contracting)))
                 for side, place in zip(("lhs", "rhs"), places, strict=True) if place[part]]  # fmt: skip
        remaining = [[d for d in range(len(place)) if d not in place[: len(shared)]] for place in places]
        result = shared[:batch] + [shape[d] for shape, dims in zip(shapes, remaining, strict=True) for d in dims]
        attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(lists)}>"
        text = lambda t, s=shapes, r=result, a=attributes: one("dot_general", [tensor(t, s[0]), tensor(t, s[1])], tensor(t, r), a)
        name = f"batch {places[0][:batch]} {places[1][:batch]}, contracting {places[0][batch : len(shared)]} {places[1][batch : len(shared)]} of {shapes[0]} and {shapes[1]}"
        inputs = [whole(e, shape, "product", n, side) for side, shape in enumerate(shapes)]
        yield Case("dot_general", e, name, text, inputs, ANY_ZERO, exact=True)


def window_result(size, window, stride, low, high, base=1, dilation=1):
    padded = (size - 1) * base + 1 + low + high
    return (padded - ((window - 1) * dilation + 1)) // stride + 1


def windows(e):
    for n in range(10):
        random = generator("windows", e, n)
        shape = (4, 4, 4) if n % 2 == 0 else (3, 4, 5)
        window, stride, base, dilation = ([int(random.integers(1, 3)) for _ in shape] for _ in range(4))
        pads = [[int(x) for x in random.integers(0, 3, 2)] for _ in shape]
        result = [window_result(s, w, t, *p, b, d) for s, w, t, p, b, d in zip(shape, window, stride, pads, base, dilation, strict=True)]
        attributes = (
            f"window_dimensions = {array(*window)}, window_strides = {array(*stride)}, base_dilations = {array(*base)}, "
            f"window_dilations = {array(*dilation)}, {padding(*pads)}"
        )
        op = ("add", "maximum")[n // 2 % 2]

        def text(t, attributes=attributes, shape=shape, result=result, op=op):
            lines = [
                f"%i = stablehlo.constant dense<{initial(op, t)}> : {tensor(t)}",
                f'%r = "stablehlo.reduce_window"(%a0, %i) ({region(op, t)}) {{{attributes}}} : ({tensor(t, shape)}, {tensor(t)}) -> {tensor(t, result)}',
            ]
            return module([tensor(t, shape)], lines, [("%r", tensor(t, result))])

        name = f"{op}, {shape}, windows {window} by {stride}, padded by {pads}, dilated by {base} and {dilation}"
        yield Case("reduce_window", e, name, text, [whole(e, shape, "windows", n)], ANY_ZERO, exact=True)


def convolutions(e):
    """Every place of the batch and of the features among two spatial dimensions, with random windows."""
    for n in range(20):
        random = generator("convolutions", n)
        orders = [random.permutation(4).tolist() for _ in range(3)]
        # Sizes in the order batch, features, spatial dimensions, and of the filter: outputs, inputs, spatial dimensions.
        groups, batches = ((1, 1), (2, 1), (1, 2))[n % 3 if n % 4 == 3 else 0]
        stride, base, dilation, reversal = (random.integers(1, 3, 2).tolist() for _ in range(4))
        pads = random.integers(0, 3, (2, 2)).tolist()
        image, kernel = (2, 4, 3, 3) if n % 2 == 0 else (2, 4, 5, 4), [4, 4 // groups, 2, 2]
        spatial = [window_result(image[2 + d], kernel[2 + d], stride[d], *pads[d], base[d], dilation[d]) for d in range(2)]
        result = [image[0] // batches, kernel[0], *spatial]
        spell = lambda order, names: "[" + ", ".join(names[d] for d in order) + "]"
        numbers = f"{spell(orders[0], 'bf01')}x{spell(orders[1], 'oi01')}->{spell(orders[2], 'bf01')}"
        shapes = [[shape[d] for d in order] for shape, order in zip((image, kernel, result), orders, strict=True)]
        flags = ", ".join(str(flip == 2).lower() for flip in reversal)
        attributes = (
            f"dimension_numbers = #stablehlo.conv<{numbers}>, feature_group_count = {groups} : i64, batch_group_count = {batches} : i64, "
            f"window_strides = {array(*stride)}, lhs_dilation = {array(*base)}, rhs_dilation = {array(*dilation)}, "
            f"window_reversal = array<i1: {flags}>, {padding(*pads)}"
        )
        text = lambda t, s=shapes, a=attributes: one("convolution", [tensor(t, s[0]), tensor(t, s[1])], tensor(t, s[2]), a)
        name = f"{numbers}, strides {stride}, dilations {base} {dilation}, groups {groups} {batches}, reversed {flags}"
        inputs = [whole(e, shape, "convolution", n, side, most=2) for side, shape in enumerate(shapes[:2])]
        yield Case("convolution", e, name, text, inputs, ANY_ZERO, exact=True)


def indexed(e):
    """Gathers and scatters of random windows at random places, with every place of the index vector."""
    for n in range(16):
        random = generator("indexed", n)
        shape = sizes(3, n % 2 == 0)
        indexed = random.permutation(3)[: random.integers(1, 4)].tolist()
        collapsed = sorted(int(d) for d in random.permutation(3)[: random.integers(0, 3)])
        window = [1 if d in collapsed else int(random.integers(1, shape[d] + 1)) for d in range(3)]
        batch = [2, 3][: random.integers(1, 3)]
        at = int(random.integers(0, len(batch) + 1))
        # Each slice is within bounds, or entirely out of bounds.
        starts = [random.choice([*range(shape[d] - window[d] + 1), -9, 9], batch) for d in indexed]
        indices = np.stack(starts, at).astype(np.int32)
        kept = [window[d] for d in range(3) if d not in collapsed]
        offsets = sorted(int(d) for d in random.permutation(len(batch) + len(kept))[: len(kept)])
        inner, outer = iter(kept), iter(batch)
        result = [next(inner) if d in offsets else next(outer) for d in range(len(batch) + len(kept))]
        name = f"{window} of {shape}, indices of {indexed} along {at} of {list(indices.shape)}, offsets {offsets}, without {collapsed}"
        types = [tensor(e, shape), tensor("i32", indices.shape)]
        numbers = f"#stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = {collapsed}, start_index_map = {indexed}, index_vector_dim = {at}>"
        attributes = f"dimension_numbers = {numbers}, slice_sizes = {array(*window)}"
        text = lambda t, ty=types, r=result, a=attributes: one("gather", ty, tensor(t, r), a)
        yield Case("gather", e, name, text, [values(e, shape, "gather"), indices], EXACT, exact=True)
        types = [*types, tensor(e, result)]
        numbers = f"#stablehlo.scatter<update_window_dims = {offsets}, inserted_window_dims = {collapsed}, scatter_dims_to_operand_dims = {indexed}, index_vector_dim = {at}>"
        attributes = f"scatter_dimension_numbers = {numbers}"
        text = lambda t, ty=types, s=shape, a=attributes: one("scatter", ty, tensor(t, s), a, region("add", t))
        inputs = [whole(e, shape, "operand", n), indices, whole(e, result, "updates", n)]
        yield Case("scatter", e, f"add, {name}", text, inputs, ANY_ZERO, exact=True)


def partly_out_of_bounds(e):
    """A slice that is partly out of bounds is moved by a gather, and has no effect in a scatter: XLA checks whole slices."""
    types = [tensor(e, (6,)), "tensor<4x1xi32>"]
    x, indices = values(e, (6,), "partly"), np.array([[-1], [1], [4], [6]], np.int32)
    attributes = "dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 3>"
    text = lambda t: one("gather", types, tensor(t, (4, 3)), attributes)
    yield Case("gather", e, "slices partly out of bounds", text, [x, indices], EXACT, exact=True)
    types = [*types, tensor(e, (4, 3))]
    numbers = "#stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    text = lambda t: one("scatter", types, tensor(t, (6,)), f"scatter_dimension_numbers = {numbers}", region("add", t))
    inputs = [whole(e, (6,), "partly"), indices, whole(e, (4, 3), "partly")]
    yield Case("scatter", e, "slices partly out of bounds", text, inputs, ANY_ZERO, exact=True)


def kept_operands(e):
    """Operations that a device may compute in place, with an operand that the program reads afterwards."""
    ty, index = tensor(e, (4, 4)), "tensor<i32>"
    operations = {
        "reverse": (f'"stablehlo.reverse"(%x) {{dimensions = {array(0)}}} : ({ty}) -> {ty}', ()),
        "transpose": (f'"stablehlo.transpose"(%x) {{permutation = {array(1, 0)}}} : ({ty}) -> {ty}', ()),
        "negate": (f'"stablehlo.negate"(%x) : ({ty}) -> {ty}', ()),
        "multiply": (f'"stablehlo.multiply"(%x, %a0) : ({ty}, {ty}) -> {ty}', ()),
        "select": (f'"stablehlo.select"(%a1, %x, %a0) : (tensor<4x4xi1>, {ty}, {ty}) -> {ty}', ((4, 4),)),
        "dynamic_update_slice": (f'"stablehlo.dynamic_update_slice"(%x, %u, %i, %i) : ({ty}, {tensor(e, (2, 2))}, {index}, {index}) -> {ty}', ()),
        "dot_general": (f'"stablehlo.dot_general"(%x, %a0) {{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}} : ({ty}, {ty}) -> {ty}', ()),
        "sort": (f'"stablehlo.sort"(%x) ({{\n    ^bb0(%p: {tensor(e)}, %q: {tensor(e)}):\n      {comparator(e)}\n    }}) {{dimension = 1 : i64}} : ({ty}) -> {ty}', ()),
        "scatter": (f'"stablehlo.scatter"(%x, %j, %u) ({region("add", e)}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}} : ({ty}, tensor<1xi32>, {tensor(e, (2, 2))}) -> {ty}', ()),
    }  # fmt: skip
    for op, (line, masks) in operations.items():
        lines = [
            f'%x = "stablehlo.add"(%a0, %a0) : ({ty}, {ty}) -> {ty}',
            f"%i = stablehlo.constant dense<1> : {index}",
            "%j = stablehlo.constant dense<1> : tensor<1xi32>",
            f'%u = "stablehlo.slice"(%a0) {{start_indices = {array(0, 0)}, limit_indices = {array(2, 2)}, strides = {array(1, 1)}}} : ({ty}) -> {tensor(e, (2, 2))}',
            f"%r = {line}",
            f'%s = "stablehlo.subtract"(%r, %x) : ({ty}, {ty}) -> {ty}',
        ]
        text = lambda _, lines=lines, masks=masks: module([ty, *(tensor("i1", m) for m in masks)], lines, [("%r", ty), ("%s", ty)])
        inputs = [whole(e, (4, 4), "kept", op), *(values("i1", m, "kept") for m in masks)]
        yield Case(op, e, "and its operand afterwards", text, inputs, ANY_ZERO, exact=True)


COUNTS = (1, 2, 3, 5, 8, 13, 31, 32, 33, 65, 127, 1000)


def two_comparisons(e, count, x, y):
    """Two arrays of truth values: one is wrong if the other has too little memory."""
    types = tensor(e, (count,)), tensor("i1", (count,))
    kind = "FLOAT" if e == "f32" else "SIGNED"
    compare = lambda name, direction: (
        f'%{name} = "stablehlo.compare"(%a0, %a1) {{comparison_direction = #stablehlo<comparison_direction {direction}>, compare_type = #stablehlo<comparison_type {kind}>}} : ({types[0]}, {types[0]}) -> {types[1]}'
    )
    lines = [compare("r", "LT"), compare("s", "GE")]
    text = lambda _: module([types[0]] * 2, lines, [("%r", types[1]), ("%s", types[1])])
    return Case("compare", e, f"two of {count} elements", text, [x, y], EXACT, exact=True)


def lengths(e):
    """Sizes around those of vectors, tiles and blocks, whose remainders have code of their own."""
    for count in COUNTS:
        x, y = (whole(e, (count,), "lengths", side) for side in range(2))
        ty = tensor(e, (count,))
        yield Case("add", e, f"{count} elements", lambda t, ty=ty: one("add", [ty, ty], ty), [x, y], ANY_ZERO, exact=True)
        yield two_comparisons(e, count, x, y)
        matrix = whole(e, (3, count), "lengths")
        for d in range(2):
            yield Case("reduce", e, f"add, 3 rows of {count}, dimension {d}", reducing("add", e, (3, count), (d,)), [matrix], ANY_ZERO)
        # Zeros beyond the end of a row change these.
        for op in ("maximum", "minimum", "multiply"):
            numbers = of_one_sign(op, e, (3, count)) if op != "multiply" else np.where(np.arange(3 * count).reshape(3, count) % 3, 1, 2)
            numbers = numbers.astype(DTYPES[e])
            if op != "multiply" or count < 60:
                yield Case("reduce", e, f"{op} of one sign, 3 rows of {count}", reducing(op, e, (3, count), (1,)), [numbers], EXACT)
        yield moved("transpose", e, f"3 rows of {count}", f"permutation = {array(1, 0)}", (count, 3), matrix)
    for shape in ((2, 9, 4), (2, 33, 3), (2, 2, 130)):
        x = values(e, shape, "rows")
        yield moved("transpose", e, f"matrices in {shape}", f"permutation = {array(0, 2, 1)}", (shape[0], shape[2], shape[1]), x)
        yield moved("reverse", e, f"rows in {shape}", f"dimensions = {array(1)}", shape, x)
    for shape in ((1, 33, 1), (17, 1, 19), (17, 33, 19), (70, 130, 65)):
        left, right, result = shape[:2], shape[1:], (shape[0], shape[2])
        attributes = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
        text = lambda t, ty=(tensor(e, left), tensor(e, right)), r=result: one("dot_general", ty, tensor(t, r), attributes)
        inputs = [whole(e, left, "tiles"), whole(e, right, "tiles")]
        yield Case("dot_general", e, f"{left} and {right}", text, inputs, ANY_ZERO, exact=True)


def cases():
    for element in ELEMENTS:
        for group in (orders, broadcasts, slices, products, windows, convolutions, indexed, partly_out_of_bounds, kept_operands, lengths):
            yield from group(element)
