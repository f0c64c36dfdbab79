"""What JAX decides by a platform's name, where the package of refcpu adds its own to those that JAX knows."""

import plugins

plugins.use("refcpu,cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402
from jax._src.lax import linalg  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

X = np.arange(3, dtype=np.float32)


def sine_on_cpu(x):
    return lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_the_branch_for_cpu_is_taken(wrap):
    np.testing.assert_allclose(wrap(sine_on_cpu)(X), np.sin(X), rtol=1e-6)


def test_branches_for_other_platforms_are_left_out():
    text = jax.jit(sine_on_cpu).lower(X).as_text()
    assert "stablehlo.sine" in text
    assert "stablehlo.cosine" not in text


def test_a_branch_for_refcpu_goes_before_that_for_cpu():
    f = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, refcpu=jnp.cos, default=jnp.tan))
    np.testing.assert_allclose(f(X), np.cos(X), rtol=1e-6)


def test_without_a_branch_for_cpu_the_default_is_taken():
    f = jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(f(X), np.cos(X), rtol=1e-6)


def test_on_other_platforms_the_branches_are_those_of_jax():
    f = jax.jit(lambda x: lax.platform_dependent(x, refcpu=jnp.sin, default=jnp.cos))
    on_cpu = jax.device_put(X, jax.devices("cpu")[0])
    np.testing.assert_allclose(f(on_cpu), np.cos(X), rtol=1e-6)


def test_a_program_exported_for_both_takes_the_branch_of_each():
    f = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, refcpu=jnp.cos, default=jnp.tan))
    exported = jax.export.export(f, platforms=("refcpu", "cpu"))(X)
    np.testing.assert_allclose(exported.call(X), np.cos(X), rtol=1e-6)
    on_cpu = jax.device_put(X, jax.devices("cpu")[0])
    np.testing.assert_allclose(exported.call(on_cpu), np.sin(X), rtol=1e-6)


def test_a_function_exported_for_cpu_can_be_called():
    exported = jax.export.export(jax.jit(sine_on_cpu), platforms=("tpu", "cpu"))(X)
    np.testing.assert_allclose(jax.jit(exported.call)(X), np.sin(X), rtol=1e-6)
    only_tpu = jax.export.export(jax.jit(jnp.sin), platforms=("tpu",))(X)
    with pytest.raises(ValueError, match="exported for"):
        only_tpu.call(X)


def test_linear_algebra_can_be_exported():
    matrix = np.array([[2, 1], [1, 3]], np.float32)
    exported = jax.export.export(jax.jit(jnp.linalg.eigvalsh))(matrix)
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(matrix), np.linalg.eigvalsh(matrix), rtol=1e-5)


def primitive(name):
    from jax.extend.core import Primitive

    new = Primitive(name)
    new.def_abstract_eval(lambda x: x)
    return new


def double(context, x):
    return [stablehlo.add(x, x)]


def same(context, x):
    return [x]


def test_a_primitive_with_a_rule_for_cpu_only_is_lowered_by_it():
    only_on_cpu = primitive("only_on_cpu")
    jax.interpreters.mlir.register_lowering(only_on_cpu, double, platform="cpu")
    np.testing.assert_array_equal(jax.jit(only_on_cpu.bind)(X), 2 * X)


def test_a_rule_for_all_platforms_goes_before_that_for_cpu():
    everywhere = primitive("everywhere")
    jax.interpreters.mlir.register_lowering(everywhere, double, platform="cpu")
    jax.interpreters.mlir.register_lowering(everywhere, same)
    np.testing.assert_array_equal(jax.jit(everywhere.bind)(X), X)


@pytest.mark.parametrize("by_columns", [False, True])
def test_routines_of_lapack_have_their_names_on_the_cpu_backend(by_columns):
    x = np.random.default_rng(1).standard_normal((2, 4, 3)).astype(np.float32)
    # A routine reads columns: without a layout that says so it sees other matrices.
    layout = (0, 2, 1) if by_columns else (0, 1, 2)
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct((2, 3), x.dtype)]

    def factors(x):
        call = jax.ffi.ffi_call(
            "lapack_sgeqrf_ffi", results, input_layouts=[layout], output_layouts=[layout, None], vmap_method="broadcast_all"
        )
        return call(x)

    got, scales = jax.jit(factors)(x)
    seen = x if by_columns else x.reshape(2, 3, 4).transpose(0, 2, 1)
    expected, expected_scales = linalg.geqrf(seen)
    got = got if by_columns else np.asarray(got).reshape(2, 3, 4).transpose(0, 2, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    np.testing.assert_allclose(scales, expected_scales, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.uint16])
def test_numpy_sees_an_array_through_dlpack_without_a_copy(dtype):
    x = jax.jit(lambda x: x + x)(np.arange(1024).astype(dtype))
    seen = np.from_dlpack(x)
    np.testing.assert_array_equal(seen, np.asarray(x))
    assert seen.ctypes.data == x.unsafe_buffer_pointer()


def test_an_array_outlives_its_deletion_where_dlpack_has_it():
    x = jnp.arange(1000) * 2
    seen = np.from_dlpack(x)
    x.delete()
    jnp.zeros(1000).block_until_ready()
    np.testing.assert_array_equal(seen, np.arange(1000) * 2)


def test_jax_reads_through_dlpack_what_it_has_on_refcpu():
    x = jnp.arange(8, dtype=jnp.bfloat16)
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(x), x)


COMPILE_TWICE = """
import jax, jax.numpy as jnp
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
print(jax.jit(lambda x: jnp.sin(x) @ x.T)(jnp.ones((2, 3)))[0, 1])
print(hits.count("/jax/compilation_cache/cache_hits") > 0)
"""


def test_a_second_process_finds_programs_in_the_compilation_cache(tmp_path):
    first, second = (
        plugins.run_python(COMPILE_TWICE, JAX_COMPILATION_CACHE_DIR=str(tmp_path)).splitlines() for _ in range(2)
    )
    assert (first[1], second[1]) == ("False", "True")
    assert first[0] == second[0]
