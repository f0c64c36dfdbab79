"""Smoke tests of a platform with eight devices that run under every release of JAX from 0.4.30 on.

    JAX_PLATFORMS=refcpu PJRT_NAMES_AND_LIBRARY_PATHS=refcpu:/path/librefcpu.so REFCPU_NUM_DEVICES=8 python smoke_devices.py

Every check compares with numpy. What a release does not have is left out and named. Prints a line per check and a summary;
exits with 1 if a check fails.

A collective is checked on an array that has the axes of the mesh as its first dimensions, so that each device has one block of
it. What the collective does with the blocks of a group is a function of numpy, from an array with one block for each member, in
the order of the axes that it is called with, to the same of results.
"""

import contextlib
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from smoke import Lacking, close, run

if hasattr(jax, "shard_map"):
    shard_map = jax.shard_map
else:
    from jax.experimental.shard_map import shard_map

PARAMETERS = inspect.signature(shard_map).parameters
# The first checks of replication lack rules for most collectives.
CHECK = {"check_rep": False} if "check_rep" in PARAMETERS else {}
UNCHECKED = {name: False for name in ("check_vma", "check_rep") if name in PARAMETERS}
FLOAT = jax.dtypes.canonicalize_dtype(np.float64).type
# Meshes: sizes, and the order of the devices.
MESHES = (
    ((8,), None),
    ((8,), [3, 1, 4, 7, 5, 0, 2, 6]),
    ((4, 2), None),
    ((2, 4), [7, 6, 5, 4, 3, 2, 1, 0]),
    ((2, 2, 2), None),
    ((2, 2, 2), [0, 3, 6, 1, 7, 2, 5, 4]),
)
# Of a mesh with so many axes, those that collectives are called with.
AXES = {1: ["x"], 2: ["x", "y", ("x", "y"), ("y", "x")], 3: ["y", ("x", "z"), ("z", "x"), ("z", "y", "x")]}
GROUPS = ([[0, 2, 4, 6], [1, 3, 5, 7]], [[0, 1], [5, 2], [3, 7], [6, 4]])


def mesh_of(sizes, order=None):
    devices = np.array(jax.devices())
    return Mesh(devices[np.arange(8) if order is None else order].reshape(sizes), ("x", "y", "z")[: len(sizes)])


def ramp(*shape, dtype=FLOAT):
    """Different values, small enough that their sums are exact."""
    values = np.arange(np.prod(shape), dtype=np.int64).reshape(shape) * 7 % 31 - 11
    return values.astype(dtype) * (dtype(1 + 2j) if np.issubdtype(dtype, np.complexfloating) else dtype(1))


def sharded(function, mesh, **options):
    """The function of a block on all blocks of an array whose first dimensions are the mesh's axes."""
    ndim, names = len(mesh.axis_names), P(*mesh.axis_names)

    def of_part(part):
        return jax.tree.map(
            lambda result: result.reshape((1,) * ndim + result.shape), function(part.reshape(part.shape[ndim:]))
        )

    return shard_map(of_part, mesh=mesh, in_specs=names, out_specs=names, **{**CHECK, **options})


def by_groups(blocks, mesh, axes, function):
    """What a function of the blocks of a group gives, for each group along these axes."""
    ndim = len(mesh.axis_names)
    along = [mesh.axis_names.index(axis) for axis in (axes if isinstance(axes, tuple) else (axes,))]
    across = [axis for axis in range(ndim) if axis not in along]
    order = along + across
    size = int(np.prod([blocks.shape[axis] for axis in along]))
    grouped = blocks.transpose(order + list(range(ndim, blocks.ndim)))
    sizes = grouped.shape[:ndim]
    grouped = grouped.reshape((size, -1) + blocks.shape[ndim:])
    results = np.stack([np.asarray(function(grouped[:, group])) for group in range(grouped.shape[1])], axis=1)
    results = results.reshape(sizes + results.shape[2:])
    return results.transpose(list(np.argsort(order)) + list(range(ndim, results.ndim)))


def every_mesh():
    for sizes, order in MESHES:
        mesh = mesh_of(sizes, order)
        for axes in AXES[len(sizes)]:
            size = int(np.prod([mesh.shape[axis] for axis in (axes if isinstance(axes, tuple) else (axes,))]))
            yield mesh, axes, size


def compare(collective, expected, mesh, axes, block, dtype=FLOAT, is_linear=True):
    """Compares a collective with numpy, and the gradient of one that is linear with its transposed matrix."""
    blocks = ramp(*mesh.devices.shape, *block, dtype=dtype)
    function = sharded(collective, mesh)
    result = jax.jit(function)(blocks)
    reference = functools.partial(by_groups, mesh=mesh, axes=axes, function=expected)
    assert result.dtype == blocks.dtype or not is_linear, result.dtype
    close(result, reference(blocks))
    if not is_linear or dtype is not FLOAT:
        return
    weights = ramp(*result.shape)[..., ::-1] if result.ndim else ramp()
    gradient = jax.jit(jax.grad(lambda blocks: jnp.sum(function(blocks) * weights)))(blocks)
    basis = np.eye(blocks.size, dtype=FLOAT).reshape((-1,) + blocks.shape)
    close(gradient, np.array([np.sum(reference(one) * weights) for one in basis]).reshape(blocks.shape))


def repeated(value, size):
    return np.broadcast_to(value, (size,) + np.shape(value))


def permuted(blocks, pairs):
    results = np.zeros_like(blocks)
    for source, target in pairs:
        results[target] = blocks[source]
    return results


def exchanged(blocks, split, concat):
    size = len(blocks)
    pieces = np.array([np.split(block, size, axis=split) for block in blocks])
    return np.stack([np.concatenate(list(pieces[:, member]), axis=concat) for member in range(size)])


def sums():
    for mesh, axes, size in every_mesh():
        compare(lambda x: lax.psum(x, axes), lambda blocks: repeated(blocks.sum(0), size), mesh, axes, (3,))
        compare(lambda x: lax.pmean(x, axes), lambda blocks: repeated(blocks.mean(0), size), mesh, axes, (3,))
    for dtype in (np.int32, np.complex64, np.float16, np.uint8):
        mesh = mesh_of((4, 2))
        expected = lambda blocks: repeated(blocks.sum(0, dtype=dtype), 4)  # noqa: E731
        compare(lambda x: lax.psum(x, "x"), expected, mesh, "x", (3,), dtype)


def extremes():
    for mesh, axes, size in every_mesh():
        for collective, expected in ((lax.pmax, np.max), (lax.pmin, np.min)):
            reduced = functools.partial(lambda expected, blocks: repeated(expected(blocks, 0), size), expected)
            compare(lambda x: collective(x, axes), reduced, mesh, axes, (3,), is_linear=False)


def gathers():
    for mesh, axes, size in every_mesh():
        for dim in (0, 1):
            gather = functools.partial(lax.all_gather, axis_name=axes, axis=dim)
            compare(gather, lambda blocks: repeated(np.stack(list(blocks), axis=dim), size), mesh, axes, (2, 3))
            tiled = functools.partial(gather, tiled=True)
            joined = lambda blocks: repeated(np.concatenate(list(blocks), axis=dim), size)  # noqa: E731
            compare(tiled, joined, mesh, axes, (2, 1))


def exchanges():
    for mesh, axes, size in every_mesh():
        for split, concat in ((0, 0), (0, 1), (1, 0)):
            tiled = functools.partial(
                lax.all_to_all, axis_name=axes, split_axis=split, concat_axis=concat, tiled=True
            )
            block = (size, 2) if split == 0 else (2, size)
            compare(tiled, functools.partial(exchanged, split=split, concat=concat), mesh, axes, block)
        # Not tiled, the dimension that is split has an element for each member and is replaced.
        whole = functools.partial(lax.all_to_all, axis_name=axes, split_axis=0, concat_axis=0)
        compare(whole, lambda blocks: np.swapaxes(blocks, 0, 1), mesh, axes, (size, 2))
        swap = functools.partial(lax.pswapaxes, axis_name=axes, axis=1)
        swapped = lambda blocks: np.moveaxis(blocks, 2, 0).swapaxes(1, 2)  # noqa: E731
        compare(swap, swapped, mesh, axes, (2, size))


def scatters():
    for mesh, axes, size in every_mesh():
        whole = functools.partial(lax.psum_scatter, axis_name=axes)
        compare(whole, lambda blocks: blocks.sum(0), mesh, axes, (size, 2))
        tiled = functools.partial(lax.psum_scatter, axis_name=axes, scatter_dimension=1, tiled=True)
        expected = lambda blocks: np.stack(np.split(blocks.sum(0), size, axis=1))  # noqa: E731
        compare(tiled, expected, mesh, axes, (2, size))


def permutations():
    for mesh, axes, size in every_mesh():
        if isinstance(axes, tuple) and list(axes) != sorted(axes):
            # In another order than the mesh's, releases understand the numbers differently, and late ones refuse.
            continue
        for pairs in ([(i, (i + 1) % size) for i in range(size)], [(0, size - 1)], [(size - 1, 0), (0, 1)]):
            collective = functools.partial(lax.ppermute, axis_name=axes, perm=pairs)
            compare(collective, functools.partial(permuted, pairs=pairs), mesh, axes, (3,))
        order = list(np.random.default_rng(size).permutation(size))
        shuffle = functools.partial(lax.pshuffle, axis_name=axes, perm=order)
        compare(shuffle, lambda blocks: blocks[order], mesh, axes, (3,))


def indices():
    for mesh, axes, size in every_mesh():
        index = lambda x: lax.axis_index(axes) + jnp.zeros((1,), jnp.int32)  # noqa: E731
        expected = lambda blocks: np.arange(size, dtype=np.int32)[:, None]  # noqa: E731
        compare(index, expected, mesh, axes, (3,), is_linear=False)


def broadcasts():
    if not hasattr(lax, "pbroadcast"):
        raise Lacking("jax.lax.pbroadcast")
    mesh = mesh_of((4, 2), [7, 6, 5, 4, 3, 2, 1, 0])
    function = jax.jit(sharded(lambda x: lax.pbroadcast(x, "x", 2), mesh))
    blocks = ramp(4, 2, 3)
    with lacking_if_not_lowered():
        lowered = function.lower(blocks).as_text()
    if "channel_handle" not in lowered:
        raise Lacking("a channel in the lowering of jax.lax.pbroadcast, without which its groups are those of replicas")
    close(function(blocks), by_groups(blocks, mesh, "x", lambda blocks: repeated(blocks[2], 4)))


@contextlib.contextmanager
def lacking_if_not_lowered():
    try:
        yield
    except NotImplementedError as error:
        raise Lacking(str(error).strip().split("\n")[0]) from error


def of_groups(groups, function, blocks):
    """The results of a function of the blocks of each group."""
    results = {}
    for group in groups:
        results.update(zip(group, function(blocks[group])))
    return np.stack([results[member] for member in range(8)])


def in_groups(mapped):
    """Collectives in groups of the devices along an axis, under a function that maps a function over the blocks."""
    for groups in GROUPS:
        size = len(groups[0])
        options = {"axis_name": "x", "axis_index_groups": groups}
        for collective, expected, block in (
            (lax.psum, lambda blocks: repeated(blocks.sum(0), size), (3,)),
            (lax.pmax, lambda blocks: repeated(blocks.max(0), size), (3,)),
            (lax.all_gather, lambda blocks: repeated(blocks, size), (3,)),
            (lax.psum_scatter, lambda blocks: blocks.sum(0), (size, 2)),
            (
                functools.partial(lax.all_to_all, split_axis=0, concat_axis=0),
                lambda blocks: np.swapaxes(blocks, 0, 1),
                (size, 2),
            ),
        ):
            blocks = ramp(8, *block)
            function = mapped(functools.partial(collective, **options))
            with lacking_if_not_lowered():
                jax.jit(function).lower(blocks)
            close(function(blocks), of_groups(groups, expected, blocks))


def groups_in_pmap():
    in_groups(lambda function: jax.pmap(function, axis_name="x"))


def groups_in_shard_map():
    in_groups(lambda function: jax.jit(sharded(function, mesh_of((8,), MESHES[1][1]), **UNCHECKED)))


def pmaps():
    blocks = ramp(8, 3)
    function = jax.pmap(lambda x: (x - lax.pmean(x, "i"), lax.axis_index("i")), axis_name="i")
    centred, index = function(blocks)
    close(centred, blocks - blocks.mean(0))
    close(index, np.arange(8))
    some = jax.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i", devices=jax.devices()[2:6])
    close(some(blocks[:4]), blocks[:4] + blocks[:4].sum(0))
    reverse = jax.pmap(lambda x: lax.all_gather(x, "i"), axis_name="i", devices=jax.devices()[::-1])
    close(reverse(blocks), repeated(blocks, 8))
    gradient = jax.grad(lambda x: jnp.sum(jax.pmap(lambda x: lax.psum(x**2, "i"), axis_name="i")(x)))(blocks)
    close(gradient, 16 * blocks)


def jit_with_shardings():
    a, b = ramp(8, 12), ramp(12, 16)
    for sizes, order in MESHES[2:]:
        mesh = mesh_of(sizes, order)
        x, y = mesh.axis_names[:2]
        every = P(mesh.axis_names)
        for left, right, out in (
            (P(x, y), P(y, None), P(x, None)),
            (P(x), P(None, y), P(x, y)),
            (P(None, x), P(x), P()),
            (P(), P(None, (y, x)), P(None, (x, y))),
            (every, P(), every),
            (P(y, x), P(x, y), P((y, x))),
        ):
            left, right, out = (NamedSharding(mesh, spec) for spec in (left, right, out))
            product = jax.jit(lambda a, b: jnp.tanh(a @ b / 64), in_shardings=(left, right), out_shardings=out)
            result = product(a, b)
            expected = np.tanh(a @ b / 64)
            assert result.sharding.is_equivalent_to(out, 2), result.sharding
            close(result, expected)
            for shard in result.addressable_shards:
                close(shard.data, expected[shard.index])
            loss = jax.jit(jax.grad(lambda a, b: jnp.sum((a @ b) ** 2), argnums=(0, 1)), in_shardings=(left, right))
            for actual, expected in zip(loss(a, b), (2 * (a @ b) @ b.T, 2 * a.T @ (a @ b))):
                close(actual, expected)


def programs_without_results():
    mesh = mesh_of((8,))
    a = jax.device_put(ramp(8), NamedSharding(mesh, P("x")))
    assert jax.jit(lambda a: ())(a) == ()
    assert jax.jit(shard_map(lambda a: (), mesh=mesh, in_specs=P("x"), out_specs=()))(a) == ()


def loops_in_shard_map():
    mesh = mesh_of((4, 2), [7, 6, 5, 4, 3, 2, 1, 0])
    ring = [(i, (i + 1) % 4) for i in range(4)]

    def circulate(x):
        def step(carry, _):
            carry = lax.ppermute(carry, "x", ring)
            return carry, lax.all_gather(carry, "y")

        last, gathered = lax.scan(step, x, None, length=3)
        return last, gathered

    blocks = ramp(4, 2, 3)
    last, gathered = jax.jit(sharded(circulate, mesh))(blocks)
    steps = [np.roll(blocks, i + 1, axis=0) for i in range(3)]
    close(last, steps[-1])
    expected = np.stack([by_groups(step, mesh, "y", lambda blocks: repeated(blocks, 2)) for step in steps], axis=2)
    close(gathered, expected)

    # Each pair of devices takes its own number of steps.
    counts = np.array([0, 3, 1, 5], np.int32).repeat(2).reshape(4, 2)

    def count(x):
        return lax.while_loop(lambda state: state[0] > 0, lambda state: (state[0] - 1, state[1] * 2), (x, x * 0 + 1))[1]

    close(jax.jit(sharded(count, mesh))(counts), 2**counts)


def two_meshes():
    """Of one program: of the same devices, under other axes."""
    first, second = mesh_of((4, 2)), Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("a", "b", "c"))

    def gather(a):
        return lax.all_gather(a, "x", tiled=True)

    def total(a):
        return lax.psum(a, ("c", "a"))

    spec = P("x", "y")
    gather = shard_map(gather, mesh=first, in_specs=spec, out_specs=spec, **UNCHECKED)
    total = shard_map(total, mesh=second, in_specs=P("a", ("b", "c")), out_specs=P(None, "b"), **UNCHECKED)
    a = ramp(8, 8)
    result = jax.jit(lambda a: total(gather(a)))(a)
    close(result, np.tile(a, (4, 1)).reshape(2, 16, 2, 2, 2).sum((0, 3)).reshape(16, 4))


def sharded_layers():
    """Data and model parallel training of two layers: reduce-scatter and all-gather in the gradient."""
    mesh = mesh_of((4, 2), [1, 0, 3, 2, 5, 4, 7, 6])
    x, w, v = ramp(8, 6) / 8, ramp(6, 4) / 8, ramp(4, 2) / 8
    specs = (P("x", None), P(None, "y"), P("y", None))

    def loss(x, w, v):
        hidden = jnp.tanh(x @ w)
        out = lax.psum_scatter(hidden @ v, "y", scatter_dimension=1, tiled=True)
        out = lax.all_gather(out, "y", axis=1, tiled=True)
        return lax.psum(jnp.sum(out**2), ("x", "y")) / 2

    total = shard_map(lambda *of: loss(*of)[None], mesh=mesh, in_specs=specs, out_specs=P(None), **UNCHECKED)
    value = jax.jit(lambda *of: total(*of)[0])(x, w, v)
    close(value, np.sum((np.tanh(x @ w) @ v) ** 2))
    plain = jax.jit(jax.grad(lambda w, v: jnp.sum((jnp.tanh(x @ w) @ v) ** 2), argnums=(0, 1)))
    by_sharding = jax.jit(
        jax.grad(lambda x, w, v: jnp.sum((jnp.tanh(x @ w) @ v) ** 2), argnums=(1, 2)),
        in_shardings=tuple(NamedSharding(mesh, spec) for spec in specs),
    )
    for actual, expected in zip(by_sharding(x, w, v), plain(w, v)):
        close(actual, np.asarray(expected))


def partly_manual():
    """Manual along one axis, partitioned by the compiler along the other."""
    mesh = mesh_of((4, 2), [7, 6, 5, 4, 3, 2, 1, 0])
    if "axis_names" in PARAMETERS:
        manual = {"axis_names": {"x"}}
    elif "auto" in PARAMETERS:
        manual = {"auto": frozenset({"y"}), "check_rep": False}
    else:
        raise Lacking("shard_map along some axes of a mesh")
    a = ramp(8, 6)
    function = shard_map(lambda a: lax.psum(jnp.sin(a), "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), **manual)
    argument = jax.device_put(a, NamedSharding(mesh, P("x", "y")))
    close(jax.jit(function)(argument), np.sin(a).reshape(4, 2, 6).sum(0))


def explicit_meshes():
    if not hasattr(jax.sharding, "AxisType") or not hasattr(jax.sharding.AxisType, "Explicit"):
        raise Lacking("jax.sharding.AxisType.Explicit")
    use = getattr(jax, "set_mesh", None) or getattr(jax.sharding, "use_mesh", None)
    if use is None:
        raise Lacking("jax.set_mesh")
    kinds = jax.sharding.AxisType
    a, b = ramp(8, 12), ramp(12, 4)
    for kind in (kinds.Auto, kinds.Explicit):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
        with use(mesh):
            left, right = (jax.device_put(of, NamedSharding(mesh, spec)) for of, spec in ((a, P("x")), (b, P(None, "y"))))
            result = jax.jit(lambda a, b: jnp.sin(a @ b / 16))(left, right)
            close(result, np.sin(a @ b / 16))
            assert kind != kinds.Explicit or result.sharding.spec == P("x", "y"), result.sharding
            gradient = jax.jit(jax.grad(lambda a: jnp.sum(jnp.cos(a) * a)))(left)
            close(gradient, np.cos(a) - a * np.sin(a))
            summed = jax.jit(lambda a: jnp.sum(a, axis=0) + jnp.max(a))(left)
            close(summed, a.sum(0) + a.max())
            if kind == kinds.Explicit and hasattr(jax.sharding, "reshard"):
                moved = jax.jit(lambda a: jax.sharding.reshard(a, P(None, "y")) * 2)(left)
                assert moved.sharding.spec == P(None, "y"), moved.sharding
                close(moved, a * 2)


CHECKS = (
    sums,
    extremes,
    gathers,
    exchanges,
    scatters,
    permutations,
    indices,
    broadcasts,
    groups_in_pmap,
    groups_in_shard_map,
    pmaps,
    jit_with_shardings,
    programs_without_results,
    loops_in_shard_map,
    two_meshes,
    sharded_layers,
    partly_manual,
    explicit_meshes,
)


if __name__ == "__main__":
    run(CHECKS)
