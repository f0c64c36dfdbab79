"""What JAX does with a compiled program, its arrays and its options beyond running it."""

import gc

import plugins

plugins.use("refcpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.experimental import io_callback, serialize_executable  # noqa: E402

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def product(x):
    return jnp.tanh(x @ x)


def compiled(f=product, *arguments, **options):
    return jax.jit(f, **options).lower(*(arguments or (X,))).compile()


def test_a_program_is_compiled_ahead_of_time():
    program = compiled()
    np.testing.assert_allclose(program(X), np.tanh(X @ X), rtol=1e-6)
    with pytest.raises(TypeError, match="compiled"):
        program(X[:2])


def test_its_cost_is_known():
    cost = compiled().cost_analysis()
    assert cost["flops"] == pytest.approx(2 * 4**3, rel=0.5)
    assert cost["transcendentals"] == X.size
    assert cost["bytes accessed"] >= 2 * X.nbytes


def test_its_memory_is_known():
    memory = compiled().memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (X.nbytes, X.nbytes)
    assert memory.alias_size_in_bytes == 0
    assert compiled(lambda x: x + 1, X, donate_argnums=0).memory_analysis().alias_size_in_bytes == X.nbytes
    needs_more = compiled(lambda x: jnp.sort(jnp.sort(x @ x, axis=0) @ x, axis=1), np.ones((64, 64), np.float32))
    assert needs_more.memory_analysis().temp_size_in_bytes >= 64 * 64 * 4


def test_it_has_a_text():
    text = compiled().as_text()
    assert "dot" in text and "tanh" in text


def test_a_serialized_program_runs_without_being_lowered_again():
    payload, *trees = serialize_executable.serialize(compiled())
    loaded = serialize_executable.deserialize_and_load(payload, *trees)
    np.testing.assert_array_equal(loaded(X), compiled()(X))


def test_an_exported_function_has_symbolic_sizes_and_derivatives():
    (n,) = jax.export.symbolic_shape("n")
    exported = jax.export.export(jax.jit(product))(jax.ShapeDtypeStruct((n, n), jnp.float32))
    assert exported.platforms == ("refcpu",)
    again = jax.export.deserialize(exported.serialize(vjp_order=1))
    for size in (2, 4):
        np.testing.assert_allclose(again.call(X[:size, :size]), np.tanh(X[:size, :size] @ X[:size, :size]), rtol=1e-6)
    derivative = jax.grad(lambda x: jnp.sum(again.call(x)))(X)
    np.testing.assert_allclose(derivative, jax.grad(lambda x: jnp.sum(product(x)))(X), rtol=1e-5, atol=1e-6)


def test_options_of_the_compiler_are_checked():
    def with_options(**options):
        return jax.jit(product, compiler_options=options)(X)

    for value in (False, "false", True):
        np.testing.assert_allclose(with_options(refcpu_fusion=value), np.tanh(X @ X), rtol=1e-6)
    # XLA's own are for XLA.
    with_options(xla_cpu_enable_fast_math=True)
    with pytest.raises(jax.errors.JaxRuntimeError, match="refcpu_fuson.*did you mean 'refcpu_fusion'"):
        with_options(refcpu_fuson=False)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*refcpu_fusion.*boolean.*maybe"):
        with_options(refcpu_fusion="maybe")


def test_one_program_is_written_down_and_another_is_not_fused(tmp_path):
    def chain(x):
        return jnp.exp(jnp.sin(x) + 1) * 2

    passes, results = [], []
    for fusion in (True, False):
        folder = tmp_path / str(fusion)
        options = {"refcpu_dump": str(folder), "refcpu_fusion": fusion}
        results.append(jax.jit(chain, compiler_options=options)(X))
        jax.jit(lambda x: x * 4)(X)
        (program,) = folder.iterdir()
        assert {"program", "format", "options.pb"} <= {file.name for file in program.iterdir()}
        (plan,) = program.glob("*-program.plan")
        passes.append(plan.read_text().count("region of"))
    np.testing.assert_allclose(*results, rtol=1e-6)
    assert passes == [1, 4]


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_arrays_are_put_into_every_memory_and_computed_there(kind):
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)
    x = jax.device_put(X, place)
    assert x.sharding.memory_kind == kind
    np.testing.assert_array_equal(x, X)
    out = jax.jit(lambda x: jax.device_put(x, place), out_shardings=place)(X)
    assert out.sharding.memory_kind == kind
    np.testing.assert_array_equal(out, X)


def test_arrays_come_and_go_through_dlpack():
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(X), X)
    x = jax.device_put(X)
    seen = np.from_dlpack(x)
    np.testing.assert_array_equal(seen, X)
    assert seen.__array_interface__["data"][0] == x.unsafe_buffer_pointer()


def test_python_is_called():
    calls = []
    like = jax.ShapeDtypeStruct(X.shape, X.dtype)

    @jax.jit
    def f(x):
        io_callback(lambda x: calls.append(x.sum()), None, x)
        jax.debug.callback(lambda x: calls.append(x.max()), x)
        return jax.pure_callback(lambda x: np.asarray(x).T, like, x)

    np.testing.assert_array_equal(f(X), X.T)
    jax.effects_barrier()
    assert len(calls) == 2


def test_prints_are_printed(capfd):
    jax.jit(lambda x: jax.debug.print("the sum is {}", jnp.sum(x)))(np.arange(4))
    jax.effects_barrier()
    assert capfd.readouterr().out == "the sum is 6\n"


def test_live_arrays_are_those_that_are_held():
    shape = (3, 1, 4, 1, 5)
    held = [jax.device_put(np.zeros(shape)), jnp.ones(shape) + 1]
    of_this_shape = lambda: [x for x in jax.live_arrays("refcpu") if x.shape == shape]  # noqa: E731
    assert len(of_this_shape()) == 2
    held.pop().delete()
    assert len(of_this_shape()) == 1
    held.clear()
    gc.collect()
    assert of_this_shape() == []
