"""`jax.lax.ragged_all_to_all` on eight devices, beside a model of it in NumPy."""

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="8")

import functools  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

DEVICES = 8


def offsets(sizes):
    """The offsets of slices that follow one another, along the last axis."""
    return np.cumsum(sizes, -1) - sizes


def exchange(rng, groups, slices, trailing, dtype):
    """Random arguments by device: each sends `slices` slices to each device of its group. Returns them with the results."""
    group = len(groups[0])
    count = group * slices
    send = rng.integers(0, 5, (DEVICES, count)).astype(np.int32)
    receive = np.zeros_like(send)
    for members in groups:
        for s, source in enumerate(members):
            for d, destination in enumerate(members):
                block = slice(s * slices, (s + 1) * slices)
                receive[destination, block] = send[source, d * slices : (d + 1) * slices]
    starts = offsets(receive) + 1
    target = np.zeros_like(send)
    for members in groups:
        for s, source in enumerate(members):
            for d, destination in enumerate(members):
                target[source, d * slices : (d + 1) * slices] = starts[destination, s * slices : (s + 1) * slices]
    rows, out_rows = int(send.sum(1).max()) + 2, int(receive.sum(1).max()) + 3
    operand = rng.integers(-100, 100, (DEVICES, rows, *trailing)).astype(dtype)
    output = rng.integers(-100, 100, (DEVICES, out_rows, *trailing)).astype(dtype)
    arguments = (operand, output, offsets(send) + 2, send, target, receive)
    expected = output.copy()
    for members in groups:
        for source in members:
            for i in range(count):
                taken = operand[source, arguments[2][source, i] :][: send[source, i]]
                expected[members[i // slices], target[source, i] :][: send[source, i]] = taken
    return tuple(a.astype(np.int32) if i > 1 else a for i, a in enumerate(arguments)), expected


def on_devices(function, mesh, spec):
    """Maps a function of one device over arrays whose first dimension counts the devices."""

    def of_device(*arguments):
        return function(*(a[0] for a in arguments))[None]

    return jax.jit(jax.shard_map(of_device, mesh=mesh, in_specs=spec, out_specs=spec))


CASES = {
    "one slice": (1, (3,), np.float32),
    "several slices": (3, (2, 2), np.float32),
    "vectors": (2, (), np.int32),
    "half precision": (1, (4,), jnp.bfloat16),
}


@pytest.mark.parametrize("name", CASES)
def test_slices_arrive_where_their_senders_say(name):
    slices, trailing, dtype = CASES[name]
    mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    program = on_devices(functools.partial(jax.lax.ragged_all_to_all, axis_name="x"), mesh, P("x"))
    for seed in range(3):
        arguments, expected = exchange(np.random.default_rng(seed), [list(range(DEVICES))], slices, trailing, dtype)
        np.testing.assert_array_equal(np.asarray(program(*arguments)), expected)


@pytest.mark.parametrize("axis, groups", [("x", [[0, 4], [1, 5], [2, 6], [3, 7]]), ("y", [[0, 1, 2, 3], [4, 5, 6, 7]])])
def test_the_groups_are_those_of_an_axis(axis, groups):
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    program = on_devices(functools.partial(jax.lax.ragged_all_to_all, axis_name=axis), mesh, P(("x", "y")))
    arguments, expected = exchange(np.random.default_rng(7), groups, 2, (3,), np.float32)
    np.testing.assert_array_equal(np.asarray(program(*arguments)), expected)


def test_gradients_flow_back_to_their_senders():
    mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    arguments, _ = exchange(np.random.default_rng(3), [list(range(DEVICES))], 1, (2,), np.float32)
    operand, output, *indices = arguments
    program = on_devices(functools.partial(jax.lax.ragged_all_to_all, axis_name="x"), mesh, P("x"))
    weights = np.random.default_rng(4).normal(size=output.shape).astype(np.float32)

    def loss(operand):
        return (program(operand, output, *indices) * weights).sum()

    # A row has the weight of the place that it is sent to.
    expected = np.zeros_like(operand)
    first, send, target, _ = indices
    for source in range(DEVICES):
        for i in range(DEVICES):
            rows = slice(first[source, i], first[source, i] + send[source, i])
            expected[source, rows] = weights[i, target[source, i] :][: send[source, i]]
    np.testing.assert_allclose(np.asarray(jax.grad(loss)(operand)), expected)


def test_vectors_of_different_lengths_are_refused():
    mesh = jax.make_mesh((DEVICES,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    program = on_devices(functools.partial(jax.lax.ragged_all_to_all, axis_name="x"), mesh, P("x"))
    (operand, output, *indices), _ = exchange(np.random.default_rng(0), [list(range(DEVICES))], 1, (), np.float32)
    with pytest.raises(Exception, match="multiple of the group size 8"):
        program(operand, output, *(vector[:, :6] for vector in indices))
