"""A plugin around a compiler in C++ under JAX."""

from concurrent.futures import ThreadPoolExecutor

import plugins

plugins.use("vendor", PJRT_NAMES_AND_LIBRARY_PATHS=f"vendor:{plugins.library('TEST_MLIR')}")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.experimental import serialize_executable  # noqa: E402


def affine(x, y):
    return jnp.square(x) * 2.5 + y - 1, y


def test_values_are_those_of_numpy():
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[1.5, -2, np.inf]])
    result, same = jax.jit(affine)(x, y)
    np.testing.assert_array_equal(np.asarray(result), x * x * np.float32(2.5) + y - 1)
    np.testing.assert_array_equal(np.asarray(same), y)
    i = np.array([2**31 - 1, -5], np.int32)
    np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x * x + np.int32([7, 8]))(i)), i * i + np.int32([7, 8]))


def test_an_unsupported_operation_is_refused_with_the_users_line():
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: jnp.sin(x))(np.ones(3, np.float32))
    text = str(caught.value)
    for part in ("UNIMPLEMENTED", "stablehlo.sine", "line ", "test_mlir.py"):
        assert part in text, text


def test_an_unsupported_type_is_refused_with_the_argument():
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED: argument 0: .*3xf16"):
        jax.jit(lambda x: x + x)(np.ones(3, np.float16))


def test_compiler_options_reach_the_compiler():
    # The square of x is 1 + 2^-11 + 2^-24, whose last term one rounding keeps.
    x, y = np.float32([1 + 2**-12]), np.float32([-(1 + 2**-11)])
    function = jax.jit(lambda x, y: x * x + y).lower(x, y)
    options = {"fuse_multiply_add": True}
    assert [np.asarray(function.compile(o)(x, y)).item() for o in ({}, options)] == [0, 2**-24]
    with pytest.raises(jax.errors.JaxRuntimeError, match="fuse_multiply_add"):
        function.compile({"fuse_multiply_ad": True})


def test_a_saved_program_runs():
    x = np.float32([1, 2, 3])
    saved = serialize_executable.serialize(jax.jit(affine).lower(x, x).compile())
    result, _ = serialize_executable.deserialize_and_load(*saved)(x, x)
    np.testing.assert_array_equal(np.asarray(result), [2.5, 11, 24.5])


def test_threads_compile_and_run_at_once():
    def work(n):
        x = np.arange(n, dtype=np.float32)
        return np.array_equal(np.asarray(jax.jit(lambda x: x * n + x)(x)), x * n + x)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 65)))
