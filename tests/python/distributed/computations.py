"""One process of a distributed computation: computes values over the devices of all, and writes those of its own devices.

    python computations.py ADDRESS INDEX COUNT OUTPUT [NAME...]

The names select computations; without them, all run that XLA's CPU backend can run too.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback, multihost_utils, serialize_executable, topologies
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

address, index, count, output, *names = sys.argv[1:]
jax.distributed.initialize(address, num_processes=int(count), process_id=int(index), initialization_timeout=60)

# XLA's CPU backend does not copy between processes, and JAX 0.6 has no arrays without devices of this process.
NOT_ON_XLA = ["copies", "elsewhere"]

results = {}


def computation(run):
    """Runs a function, and keeps its arrays: the shards of this process, in the order of the devices."""
    if run.__name__ not in names and (names or run.__name__ in NOT_ON_XLA):
        return
    returned = run()
    for number, value in enumerate(returned if isinstance(returned, tuple) else (returned,)):
        if isinstance(value, jax.Array):
            shards = sorted(value.addressable_shards, key=lambda shard: shard.device.id)
            value = np.stack([np.asarray(shard.data) for shard in shards])
        results[f"{run.__name__}.{number}"] = np.asarray(value)


devices = np.array(jax.devices())
line = jax.sharding.Mesh(devices, "i")
grid = jax.sharding.Mesh(devices.reshape(2, 2), ("x", "y"))


def split(array, mesh, spec):
    """A global array, of which each process has the shards of its devices."""
    array = np.asarray(array)
    return jax.make_array_from_callback(array.shape, NamedSharding(mesh, spec), lambda place: array[place])


def numbers(*shape, dtype=np.float32):
    return (np.arange(np.prod(shape)).reshape(shape) % 97).astype(dtype)


def mapped(function, mesh, in_specs, out_specs):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))


@computation
def topology():
    return (
        np.array([jax.process_count(), jax.process_index(), jax.device_count(), jax.local_device_count()]),
        np.array([[device.id, device.process_index] for device in jax.devices()]),
        np.array([device.id for device in jax.local_devices()]),
    )


@computation
def multihost():
    multihost_utils.sync_global_devices("the name of a place")
    own = np.arange(3) + 10 * jax.process_index()
    multihost_utils.assert_equal(np.arange(3), "equal values are equal")
    return (
        multihost_utils.broadcast_one_to_all(own),
        multihost_utils.broadcast_one_to_all(own, is_source=jax.process_index() == 1),
        multihost_utils.process_allgather(own),
        multihost_utils.process_allgather(own, tiled=True),
        multihost_utils.process_allgather(split(numbers(8, 3), line, P("i")), tiled=True),
    )


@computation
def psum():
    x = split(numbers(8, 5), line, P("i"))
    return (
        mapped(lambda x: jax.lax.psum(x, "i"), line, P("i"), P())(x),
        mapped(lambda x: jax.lax.pmax(x, "i"), line, P("i"), P())(x),
        mapped(lambda x: jax.lax.pmean(x, "i"), line, P("i"), P())(x),
        mapped(lambda x: jax.lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]), line, P("i"), P("i"))(x),
    )


@computation
def psum_of_types():
    sums = []
    for dtype in (np.int32, np.uint8, np.float16, jnp.bfloat16, np.complex64, np.bool_):
        x = split(numbers(8, 5, dtype=dtype), line, P("i"))
        combine = jax.lax.pmax if dtype == np.bool_ else jax.lax.psum
        total = mapped(lambda x: combine(x, "i"), line, P("i"), P())(x)
        sums.append(total.astype(np.float32) if dtype == jnp.bfloat16 else total)
    return tuple(sums)


@computation
def large_psum():
    x = split(numbers(4, 1 << 18), line, P("i"))
    total = mapped(lambda x: jax.lax.psum(x, "i"), line, P("i"), P())(x)
    y = split(numbers(4, (1 << 18) + 3, dtype=np.int32), line, P("i"))
    return total, mapped(lambda x: jax.lax.psum(x, "i"), line, P("i"), P())(y)


@computation
def psum_along_axes():
    x = split(numbers(4, 6), grid, P("x", "y"))
    both = P("x", "y")
    return tuple(mapped(lambda x, axes=axes: jax.lax.psum(x, axes), grid, both, both)(x) for axes in ("x", "y", ("x", "y")))


@computation
def all_gather():
    x = split(numbers(8, 5), line, P("i"))
    y = split(numbers(4, 6), grid, P("x", "y"))
    return (
        mapped(lambda x: jax.lax.all_gather(x, "i"), line, P("i"), P())(x),
        mapped(lambda x: jax.lax.all_gather(x, "i", axis=1, tiled=True), line, P("i"), P())(x),
        mapped(lambda x: jax.lax.all_gather(x, "x"), grid, P("x", "y"), P(None, "x", "y"))(y),
        mapped(lambda x: jax.lax.all_gather(x, "y"), grid, P("x", "y"), P(None, "x", "y"))(y),
    )


@computation
def psum_scatter():
    x = split(numbers(16, 5), line, P("i"))
    y = split(numbers(8, 12), grid, P("x", "y"))
    return (
        mapped(lambda x: jax.lax.psum_scatter(x, "i", tiled=True), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.psum_scatter(x, "i"), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), grid, P("x", "y"), P("x", "y"))(y),
        mapped(lambda x: jax.lax.psum_scatter(x, "y", scatter_dimension=1, tiled=True), grid, P("x", "y"), P("x", "y"))(y),
    )


@computation
def all_to_all():
    x = split(numbers(16, 4), line, P("i"))
    y = split(numbers(8, 12), grid, P("x", "y"))
    return (
        mapped(lambda x: jax.lax.all_to_all(x, "i", 0, 1, tiled=True), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.all_to_all(x, "i", 1, 0, tiled=True), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.all_to_all(x, "y", 0, 1, tiled=True), grid, P("x", "y"), P("x", "y"))(y),
    )


@computation
def ppermute():
    x = split(numbers(8, 5), line, P("i"))
    y = split(numbers(4, 6), grid, P("x", "y"))
    return (
        mapped(lambda x: jax.lax.ppermute(x, "i", [(i, (i + 1) % 4) for i in range(4)]), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.ppermute(x, "i", [(0, 3), (2, 1)]), line, P("i"), P("i"))(x),
        mapped(lambda x: jax.lax.ppermute(x, "x", [(0, 1)]), grid, P("x", "y"), P("x", "y"))(y),
        mapped(lambda x: jax.lax.ppermute(x, "y", [(0, 1), (1, 0)]), grid, P("x", "y"), P("x", "y"))(y),
    )


@computation
def loops():
    def body(x):
        def step(carry, _):
            passed = jax.lax.ppermute(carry, "i", [(i, (i + 1) % 4) for i in range(4)])
            return passed + x, jax.lax.psum(carry, "i")

        return jax.lax.scan(step, x, length=5)

    return mapped(body, line, P("i"), (P("i"), P()))(split(numbers(8, 5), line, P("i")))


@computation
def pmap():
    local = jax.local_device_count()
    x = numbers(local, 6) + 100 * jax.process_index()
    sums = jax.pmap(lambda x: jax.lax.psum(x, "i"), "i")(x)
    gathered = jax.pmap(lambda x: jax.lax.all_gather(x, "i"), "i")(x)
    return sums, gathered


@computation
def automatic_sharding():
    a = split(numbers(8, 16), grid, P("x", "y"))
    b = split(numbers(16, 8), grid, P("y", None))
    everywhere = NamedSharding(grid, P())
    return (
        jax.jit(lambda a, b: a @ b, out_shardings=NamedSharding(grid, P("x", "y")))(a, b),
        jax.jit(lambda a, b: a @ b, out_shardings=everywhere)(a, b),
        jax.jit(lambda a: a.sum(), out_shardings=everywhere)(a),
        jax.jit(lambda a: jnp.sort(a, axis=0), out_shardings=everywhere)(a),
        jax.jit(lambda a: a.T.reshape(4, 32), out_shardings=NamedSharding(grid, P("y", "x")))(a),
        jax.jit(lambda a: a + 1)(a),
    )


@computation
def gradients():
    weights = split(numbers(16, 3) / 100, line, P())
    inputs = split(numbers(32, 16) / 100, line, P("i"))

    def loss(weights, inputs):
        return jnp.mean(jnp.tanh(inputs @ weights) ** 2)

    step = jax.jit(lambda weights, inputs: weights - 0.1 * jax.grad(loss)(weights, inputs))
    for _ in range(5):
        weights = step(weights, inputs)
    return weights


@computation
def random():
    key = jax.random.key(7)
    sharding = NamedSharding(line, P("i"))
    return jax.jit(lambda: jax.random.normal(key, (8, 4)), out_shardings=sharding)()


@computation
def reshardings():
    x = split(numbers(8, 12), grid, P("x", "y"))
    return (
        jax.device_put(x, NamedSharding(grid, P("y", "x"))),
        jax.device_put(x, NamedSharding(grid, P())),
        jax.device_put(numbers(8, 12), NamedSharding(grid, P("x", "y"))),
    )


@computation
def ahead_of_time():
    """Programs that are compiled for the topology of all processes, as a program that is not loaded, saved, and loaded again."""
    mesh = jax.sharding.Mesh(np.array(topologies.get_attached_topology().devices), "i")
    x = split(numbers(8, 3), mesh, P("i"))
    argument = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)
    compiled = mapped(lambda x: (jax.lax.psum(x, "i"), x + 1), mesh, P("i"), (P(), P("i"))).lower(argument).compile()
    loaded = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    return (*compiled(x), *loaded(x))


@computation
def copies():
    """Copies from the devices of the first process to those of the last one, and back."""
    first, last = jax.devices()[0].process_index, jax.devices()[-1].process_index
    line_of = [
        jax.sharding.Mesh(np.array([device for device in jax.devices() if device.process_index == process]), "i")
        for process in (first, last)
    ]
    results = []
    for size in (8, 1 << 16):
        sharding, target = (NamedSharding(mesh, P("i")) for mesh in line_of)
        values = numbers(size, 3)
        x = jax.make_array_from_callback(values.shape, sharding, lambda place: values[place], dtype=values.dtype)
        if jax.process_index() in (first, last):
            y = jax.device_put(x, target)
            z = jax.device_put(y, sharding)
            results += [array for array in (y, z) if array.addressable_shards]
    return tuple(results)


@computation
def elsewhere():
    """Programs on devices of the first process only, which all processes launch."""
    first = [device for device in jax.devices() if device.process_index == 0]
    array, sharding = numbers(4, 5), NamedSharding(jax.sharding.Mesh(np.array(first), "i"), P("i"))
    x = jax.make_array_from_callback(array.shape, sharding, lambda place: array[place], dtype=array.dtype)
    y = jax.jit(lambda x: 2 * x + 1)(x)
    return (np.array(y.shape), *([y] if y.addressable_shards else []))


@computation
def subsets():
    """Programs on some of the devices: all of one process, and some of two."""
    first = jax.sharding.Mesh(np.array([devices[0], devices[-1]]), "i")
    own = jax.sharding.Mesh(np.array(jax.local_devices()), "i")
    y = split(numbers(4, 5), own, P("i"))
    sums = [mapped(lambda y: jax.lax.psum(y, "i"), own, P("i"), P())(y)]
    if jax.process_index() in (devices[0].process_index, devices[-1].process_index):
        x = split(numbers(4, 5), first, P("i"))
        sums.append(mapped(lambda x: jax.lax.psum(x, "i"), first, P("i"), P())(x))
    return tuple(sums)


@computation
def callback_of_one_process():
    """A program of the last process only, which calls Python."""
    if jax.process_index() != jax.devices()[-1].process_index:
        return np.zeros(0)
    double = jax.jit(lambda x: jax.pure_callback(lambda x: 2 * x, jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    return double(numbers(4))


@computation
def ordered_callbacks():
    """What ordered callbacks receive, in the order of the calls: in programs of all processes, and of this one between them."""
    received = []

    def receive(number, x):
        received.append((int(number), float(np.sum(x))))
        return np.float32(2 * np.sum(x))

    def call(number, x):
        return io_callback(receive, jax.ShapeDtypeStruct((), np.float32), number, x, ordered=True)

    def taken():
        jax.effects_barrier()
        # The devices of one process call concurrently.
        taken = sorted(received, key=lambda call: call[0] // 10)
        received.clear()
        return np.array(taken, np.float32).reshape(-1, 2)

    @jax.jit
    def on_the_first_device(x):
        call(1, x)
        jax.lax.fori_loop(0, 3, lambda i, _: (call(2, i), None)[1], None)
        jax.lax.cond(x.sum() > 0, lambda x: call(3, x), lambda x: call(4, x), x.sum())
        return x + 1

    def on_each_device(x):
        number = 10 * jax.lax.axis_index("i")
        y = call(number, x)
        return jax.lax.psum(call(number + 1, y), "i")

    everywhere, own = split(numbers(8, 5), line, P("i")), jax.sharding.Mesh(np.array(jax.local_devices()), "i")
    here = split(numbers(4, 5), own, P("i"))
    for _ in range(2):
        everywhere, here = on_the_first_device(everywhere), on_the_first_device(here)
        on_the_first_device(numbers(2))
    jax.jit(lambda x: jax.debug.callback(receive, 5, x, ordered=True))(numbers(3))
    on_first = taken()
    total = mapped(on_each_device, line, P("i"), P())(everywhere)
    on_each = taken()
    try:
        # JAX refuses this: a callback without results has no device of its own.
        jax.jit(lambda x: jax.debug.callback(receive, 6, x, ordered=True))(everywhere)
        is_refused = False
    except ValueError:
        is_refused = True
    return everywhere, on_first, total, on_each, np.array(is_refused)


np.savez(output, **results)
print("done", flush=True)
