"""Programs that call Python: pure_callback, io_callback, debug.print, debug.callback, buffer_callback, checkify."""

import threading
import time

import plugins

# JAX's CPU backend, where it puts what it hands to Python, is not among the platforms.
plugins.use("refcpu", REFCPU_NUM_DEVICES="4")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.experimental import checkify, io_callback  # noqa: E402
from jax.experimental.buffer_callback import buffer_callback  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

FLOAT = jax.ShapeDtypeStruct((), jnp.float32)


def like(x):
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def call(function, *operands, **options):
    return jax.pure_callback(function, like(operands[0]), *operands, **options)


def mesh_of_4():
    return jax.sharding.Mesh(np.array(jax.devices()), ("i",))


def test_a_function_of_python_is_part_of_a_program():
    x = np.linspace(0, 1, 7, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(lambda x: 2 * call(np.sin, x))(x), 2 * np.sin(x), rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [bool, "int8", "uint16", "int32", "float16", "float32", "complex64", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
    + [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2],
)
def test_arrays_of_every_type_make_the_trip(dtype):
    x = np.arange(-2, 4).astype(dtype).reshape(2, 3)

    def check(given):
        assert given.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(given), x)
        return np.asarray(given)[::-1]

    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: call(check, x))(x)), x[::-1])


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_wide_types_make_the_trip(dtype):
    # Not by the context manager: that is for one thread, and JAX calls on another.
    jax.config.update("jax_enable_x64", True)
    try:
        x = np.arange(5).astype(dtype)
        y = jax.jit(lambda x: call(lambda x: np.asarray(x) * 3, x))(x)
        assert y.dtype == dtype
        np.testing.assert_array_equal(np.asarray(y), x * 3)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_arrays_without_elements_make_the_trip():
    shapes = []

    def function(*arrays):
        shapes.append([np.shape(array) for array in arrays])
        return np.zeros((3, 0), np.float32), np.float32(1)

    results = (jax.ShapeDtypeStruct((3, 0), jnp.float32), FLOAT)
    empty, one = jax.jit(lambda x, y: jax.pure_callback(function, results, x, y))(np.zeros((0, 2), np.float32), 1.0)
    assert (empty.shape, float(one), shapes) == ((3, 0), 1.0, [[(0, 2), ()]])
    assert float(jax.jit(lambda: jax.pure_callback(lambda: np.float32(5), FLOAT))()) == 5


def test_loops_and_branches_call_as_often_as_they_run():
    calls = []

    def count(i, x):
        calls.append(int(i))
        return np.asarray(x) + 1

    @jax.jit
    def f(x):
        step = lambda i, x: jax.pure_callback(count, FLOAT, i, x)  # noqa: E731
        x = jax.lax.fori_loop(0, 3, step, x)
        x, _ = jax.lax.scan(lambda x, i: (step(i, x), i), x, jnp.arange(10, 12))
        less = lambda x: jax.pure_callback(lambda x: np.asarray(x) < 8, like(True), x)  # noqa: E731
        x = jax.lax.while_loop(less, lambda x: x + 1, x)
        return jax.lax.cond(x > 100, lambda x: step(98, x), lambda x: step(99, x), x)

    assert float(f(0.0)) == 9
    assert calls == [0, 1, 2, 10, 11, 99]


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_callbacks_are_batched(method):
    f = lambda x, y: call(np.add, x, y, vmap_method=method)  # noqa: E731
    x, y = np.arange(4.0, dtype=np.float32), np.float32(10)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, in_axes=(0, None)))(x, y), x + 10)


def test_a_derivative_may_call_too():
    @jax.custom_jvp
    def sin(x):
        return call(np.sin, x)

    sin.defjvp(lambda primals, tangents: (sin(*primals), call(np.cos, *primals) * tangents[0]))
    np.testing.assert_allclose(jax.jit(jax.grad(sin))(0.5), np.cos(0.5), rtol=1e-6)


def test_ordered_effects_keep_their_order_within_and_across_programs():
    seen = []

    def see(name, x):
        io_callback(lambda x: seen.append((name, int(x))), None, x, ordered=True)

    @jax.jit
    def f(x):
        see("a", x)
        jax.lax.fori_loop(0, 2, lambda i, _: see("b", i), None)

    for i in range(3):
        f(i)
    jax.effects_barrier()
    assert seen == [entry for i in range(3) for entry in (("a", i), ("b", 0), ("b", 1))]


def test_prints_of_one_program_after_the_other_come_in_order(capfd):
    f = jax.jit(lambda x: jax.debug.print("x = {x}", x=x))
    for i in range(10):
        f(i)
    jax.effects_barrier()
    assert capfd.readouterr().out == "".join(f"x = {i}\n" for i in range(10))


def test_the_barrier_waits_for_what_has_no_result():
    done = []
    jax.jit(lambda x: jax.debug.callback(lambda x: (time.sleep(0.3), done.append(int(x))), x))(7)
    jax.effects_barrier()
    assert done == [7]


def test_the_caller_does_not_wait_for_python():
    go = threading.Event()
    y = jax.jit(lambda x: call(lambda x: (go.wait(60), x)[1], x))(1.0)
    go.set()
    assert float(y) == 1


def test_an_exception_is_the_error_of_the_results_and_of_what_depends_on_them():
    def fail(x):
        if x > 0:
            raise ValueError(f"cannot take {float(x)}")
        return x

    f = jax.jit(lambda x: call(fail, x))
    y = f(3.0)
    for result in (y, y + 1):
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"ValueError: cannot take 3\.0"):
            result.block_until_ready()
    # The program is none the worse for it.
    assert float(f(-1.0)) == -1
    with pytest.raises(jax.errors.JaxRuntimeError, match="Incorrect output shape"):
        jax.jit(lambda x: call(lambda x: np.zeros(3, np.float32), x))(1.0).block_until_ready()


def test_a_callback_may_use_jax_and_call_back_again():
    refcpu = jax.devices()[0]

    def innermost(x):
        return np.asarray(x) + 1

    def inner(x):
        x = jax.device_put(np.asarray(x), refcpu)
        # Long enough for a thread of the device, and then a program that calls Python on the same device.
        y = jax.jit(lambda x: x + jnp.ones((300, 300)).dot(jnp.ones((300, 300))).sum() / 300**3)(x)
        y = jax.jit(lambda x: call(innermost, x))(y)
        return np.asarray(y)

    assert float(jax.jit(lambda x: call(inner, x))(jax.device_put(1.0, refcpu))) == 3


def test_many_programs_call_at_once():
    f = jax.jit(lambda x: call(lambda x: np.asarray(x) * 2, x))
    results = {}

    def work(i):
        results[i] = [float(f(jax.device_put(np.float32(100 * i + j), jax.devices()[i % 4]))) for j in range(25)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {i: [2.0 * (100 * i + j) for j in range(25)] for i in range(8)}


def test_a_sharded_operand_is_handed_over_whole_and_once():
    shapes = []

    def double(x):
        shapes.append(np.shape(x))
        return np.asarray(x) * 2

    sharding = NamedSharding(mesh_of_4(), PartitionSpec("i"))
    x = jax.device_put(np.arange(8.0, dtype=np.float32), sharding)
    y = jax.jit(lambda x: call(double, x), out_shardings=sharding)(x)
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(8.0))
    assert shapes == [(8,)]


def test_each_device_of_a_shard_map_calls_with_its_part():
    parts = []

    def double(x):
        parts.append(np.asarray(x).tolist())
        return np.asarray(x) * 2

    mesh = mesh_of_4()
    spec = PartitionSpec("i")
    f = jax.shard_map(lambda x: call(double, x), mesh=mesh, in_specs=spec, out_specs=spec)
    parted = NamedSharding(mesh, spec)
    y = jax.jit(f, in_shardings=parted, out_shardings=parted)(np.arange(8.0, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(8.0))
    assert sorted(parts) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_print_in_a_shard_map_over_some_axes_comes_once_for_each_of_their_positions(capfd):
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("i", "j"))
    spec = PartitionSpec("i")

    def f(x):
        jax.debug.print("at {i}: {x}", i=jax.lax.axis_index("i"), x=x)
        return x

    parted = NamedSharding(mesh, spec)
    f = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"i"})
    jax.jit(f, in_shardings=parted, out_shardings=parted)(np.arange(4))
    jax.effects_barrier()
    assert sorted(capfd.readouterr().out.splitlines()) == ["at 0: [0 1]", "at 1: [2 3]"]


def test_a_partitioned_callback_gets_the_parts_of_each_device():
    parts = []
    x = jax.device_put(np.arange(8.0), NamedSharding(mesh_of_4(), PartitionSpec("i")))

    @jax.jit
    def f(x):
        jax.debug.callback(lambda y, whole: parts.append((y.tolist(), float(whole))), x + 1, x.sum(), partitioned=True)

    f(x)
    jax.effects_barrier()
    assert parts == [([1, 2], 28), ([3, 4], 28), ([5, 6], 28), ([7, 8], 28)]


def test_a_partitioned_callback_in_a_loop_or_a_branch_runs_for_each_device():
    x = jax.device_put(np.arange(8.0), NamedSharding(mesh_of_4(), PartitionSpec("i")))
    parts = []

    def note(x):
        jax.debug.callback(lambda x: parts.append(x.tolist()), x, partitioned=True)
        return x + 1

    jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda _, x: note(x), x))(x).block_until_ready()
    jax.effects_barrier()
    assert sorted(parts) == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8]]
    parts.clear()
    jax.jit(lambda x, p: jax.lax.cond(p, note, lambda x: x, x))(x, True).block_until_ready()
    jax.effects_barrier()
    assert sorted(parts) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_partitioned_callback_on_one_device_is_an_ordinary_one(capfd):
    jax.jit(lambda x: jax.debug.print("{x}", x=x, partitioned=True))(1)
    jax.effects_barrier()
    assert capfd.readouterr().out == "1\n"


def test_a_buffer_callback_fills_its_results():
    def add(context, out, x, y):
        assert not x.writeable and out.writeable and x.shape == out.shape
        with pytest.raises(jax.errors.JaxRuntimeError, match="stream|context"):
            context.stream  # noqa: B018
        np.asarray(out)[...] = np.asarray(x) + np.from_dlpack(y)

    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(jax.jit(buffer_callback(add, like(x)))(x, x), 2 * x)


def test_a_check_that_fails_is_an_error():
    def f(x):
        checkify.check(x > 0, "x is {x}", x=x)
        return x

    error, _ = jax.jit(checkify.checkify(f))(-1.0)
    assert "x is -1.0" in error.get()
    jax.config.update("jax_experimental_unsafe_xla_runtime_errors", True)
    try:
        with pytest.raises(jax.errors.JaxRuntimeError, match="x is -2.0"):
            jax.jit(f)(-2.0).block_until_ready()
        assert float(jax.jit(f)(2.0)) == 2
    finally:
        jax.config.update("jax_experimental_unsafe_xla_runtime_errors", False)


PROGRAM = """
import time
import jax, jax.numpy as jnp, numpy as np
def slowly(x):
    time.sleep(0.5)
    return np.asarray(x) + 1
y = jax.jit(lambda x: jax.pure_callback(slowly, jax.ShapeDtypeStruct((), jnp.float32), x))(1.0)
"""


def test_python_may_end_while_it_is_called():
    assert plugins.run_python(PROGRAM + "print('end')") == "end"


def test_a_library_that_the_environment_names_may_call_too():
    library = plugins.library("TEST_REFCPU")
    code = PROGRAM + "print(float(y), jax.default_backend())"
    assert plugins.run_python(code, PJRT_NAMES_AND_LIBRARY_PATHS=f"refcpu:{library}") == "2.0 refcpu"


def test_lowerings_that_call_through_the_public_interface_work():
    from jax.experimental.sparse.linalg import spsolve

    data, indices, rows = np.array([2.0, 4.0], np.float32), np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32)
    got = jax.jit(spsolve)(data, indices, rows, np.array([2.0, 2.0], np.float32))
    np.testing.assert_allclose(got, [1.0, 0.5])
