"""A smoke test of a platform that runs under every release of JAX from 0.4.30 on.

    JAX_PLATFORMS=refcpu PJRT_NAMES_AND_LIBRARY_PATHS=refcpu:/path/librefcpu.so python smoke.py

Every check compares with numpy. Prints a line per check and a summary; exits with 1 if a check fails.
"""

import sys
import traceback
import warnings

import jax
import jax.numpy as jnp
import numpy as np


def add():
    assert jnp.add(1, 1) == 2
    np.testing.assert_array_equal(np.asarray(jnp.add(jnp.arange(4.0), 1.0)), [1, 2, 3, 4])


def jit():
    assert jax.jit(lambda x: x * 2)(1.0) == 2.0
    x = np.linspace(-2, 2, 50, dtype=np.float32)
    close(jax.jit(lambda x: jnp.where(x > 0, jnp.exp(-x), jnp.sin(x)))(x), np.where(x > 0, np.exp(-x), np.sin(x)))


def grad():
    x = np.linspace(0.1, 1, 20, dtype=np.float32)
    close(jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)))(x), np.cos(x) * x + np.sin(x))


def matmul():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((33, 20), np.float32), random.standard_normal((20, 17), np.float32)
    close(jax.jit(lambda a, b: a @ b)(a, b), a @ b)


def device_put():
    for array in (np.arange(12, dtype=np.int32).reshape(3, 4), np.ones((2, 3), np.float16), np.array([True, False])):
        np.testing.assert_array_equal(np.asarray(jax.device_put(array)), array)


def scan():
    _, sums = jax.jit(lambda x: jax.lax.scan(lambda c, x: (c + x, c + x), 0.0, x))(np.arange(10, dtype=np.float32))
    close(sums, np.cumsum(np.arange(10, dtype=np.float32)))


def while_loop():
    assert jax.jit(lambda n: jax.lax.while_loop(lambda s: s < 100, lambda s: s * 3, n))(2) == 162


def vmap():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    close(jax.vmap(jnp.sum)(x), x.sum(1))


def sort_and_index():
    x = np.random.default_rng(1).standard_normal(40).astype(np.float32)
    close(jnp.sort(x), np.sort(x))
    close(jnp.asarray(x)[np.array([3, 0, 39])], x[[3, 0, 39]])
    close(jnp.zeros(5).at[np.array([1, 1, 4])].add(2.0), [0, 4, 0, 0, 2])


def random_bits():
    # The test vector of the Threefish family's 2x32 generator with an all-zero key and counter.
    from jax.extend.random import threefry_2x32

    key = np.zeros(2, np.uint32)
    assert np.asarray(jax.jit(threefry_2x32)(key, key)).tolist() == [0x6B200159, 0x99BA4EFE]


def convolution():
    x, w = np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 3, 3), np.float32)
    assert np.asarray(jax.lax.conv(x, w, (1, 1), "SAME"))[0, 0].tolist()[0] == [4, 6, 6, 6, 4]


def donation():
    x = jnp.arange(8.0) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    close(y, (np.arange(8) + 1) * 2)
    assert x.is_deleted(), "the donated array is still there"


def dlpack():
    np.testing.assert_array_equal(np.from_dlpack(jnp.arange(4.0) + 1), [1, 2, 3, 4])


def errors():
    compiled = jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
    try:
        compiled(jnp.ones(4))
    except Exception as error:
        assert "4" in str(error), error
    else:
        raise AssertionError("an argument of the wrong shape is accepted")
    deleted = jnp.ones(3) + 1
    deleted.delete()
    try:
        np.asarray(deleted)
    except RuntimeError as error:
        assert "deleted" in str(error), error
    else:
        raise AssertionError("a deleted array can be read")
    assert jnp.add(1, 1) == 2


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-4, atol=1e-5)


CHECKS = (
    add,
    jit,
    grad,
    matmul,
    device_put,
    scan,
    while_loop,
    vmap,
    sort_and_index,
    random_bits,
    convolution,
    donation,
    dlpack,
    errors,
)


class Lacking(Exception):
    """A check is about something that this release of JAX, or the platform under it, does not have."""


def run(checks):
    failed, lacking = 0, 0
    for check in checks:
        try:
            check()
            print(f"ok      {check.__name__}")
        except Lacking as error:
            lacking += 1
            print(f"lacking {check.__name__}: {error}")
        except Exception:
            failed += 1
            print(f"FAILED  {check.__name__}\n{traceback.format_exc()}")
    count = len(checks) - lacking
    without = f", which lacks what {lacking} are about" if lacking else ""
    print(f"{count - failed} of {count} checks pass on {jax.default_backend()} with JAX {jax.__version__}{without}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    run(CHECKS)
