"""JAX's linear algebra on refcpu, by the equations that define it."""

import os

import plugins

plugins.use("refcpu,cpu", JAX_ENABLE_X64="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import scipy.linalg  # noqa: E402
from jax.lax import linalg  # noqa: E402

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
SQUARES = [(0, 0), (1, 1), (2, 2), (5, 5), (40, 40), (3, 6, 6), (2, 0, 4, 4)]
RECTANGLES = [(0, 3), (3, 0), (1, 4), (4, 1), (7, 4), (4, 7), (30, 50), (2, 3, 6, 5)]


def matrix(shape, dtype, seed=0):
    random = np.random.RandomState(seed)
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def close(a, b, dtype, factor=100):
    a, b = np.asarray(a), np.asarray(b)
    scale = max(1.0, np.abs(b).max(initial=0.0), np.sqrt(max(b.shape, default=1)))
    np.testing.assert_allclose(a, b, rtol=0, atol=factor * np.finfo(dtype).eps * scale)


def unitary(q, dtype):
    q = np.asarray(q)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2), dtype)


def diagonal(values, shape):
    full = np.zeros(values.shape[:-1] + shape[-2:], values.dtype)
    index = np.arange(values.shape[-1])
    full[..., index, index] = values
    return full


def test_the_calls_run_on_refcpu():
    device = jnp.linalg.eigh(np.eye(3))[0].devices().pop()
    assert device.platform == "refcpu"
    assert "refcpu.eigh" in jax.jit(jnp.linalg.eigh).lower(np.eye(3)).as_text()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(shape, dtype, uplo):
    a = matrix(shape, dtype)
    a = a + adjoint(a)
    given = np.tril(a) if uplo == "L" else np.triu(a)
    w, v = map(np.asarray, jnp.linalg.eigh(given, UPLO=uplo, symmetrize_input=False))
    assert w.dtype == np.finfo(dtype).dtype and v.dtype == dtype
    unitary(v, dtype)
    close(a @ v, v * w[..., None, :], dtype)
    close(w, np.linalg.eigvalsh(a), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARES)
def test_eig(shape, dtype):
    a = matrix(shape, dtype)
    w, left, right = map(
        np.asarray, linalg.eig(a, compute_left_eigenvectors=True, compute_right_eigenvectors=True)
    )
    assert w.dtype == left.dtype == right.dtype == np.result_type(dtype, np.complex64)
    close(a @ right, right * w[..., None, :], dtype, 400)
    close(adjoint(a) @ left, left * np.conj(w)[..., None, :], dtype, 400)
    close(np.linalg.norm(right, axis=-2), np.ones(w.shape), dtype)
    values = np.asarray(jnp.linalg.eigvals(a))
    close(np.sort_complex(values), np.sort_complex(w), dtype, 400)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARES + RECTANGLES)
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full):
    a = matrix(shape, dtype)
    u, s, v = map(np.asarray, jnp.linalg.svd(a, full_matrices=full))
    unitary(u, dtype)
    unitary(adjoint(v), dtype)
    middle = diagonal(s, (u.shape[-1], v.shape[-2]))
    close(u @ middle @ v, a, dtype)
    assert (np.diff(s) <= 0).all() and (s >= 0).all()
    close(jnp.linalg.svd(a, compute_uv=False), s, dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARES)
def test_schur_and_hessenberg(shape, dtype):
    a = matrix(shape, dtype)
    t, z = map(np.asarray, linalg.schur(a))
    unitary(z, dtype)
    close(z @ t @ adjoint(z), a, dtype, 400)
    below = -1 if np.issubdtype(dtype, np.complexfloating) else -2
    assert not np.tril(t, below).any()
    h, q = map(np.asarray, jax.scipy.linalg.hessenberg(a, calc_q=True))
    unitary(q, dtype)
    close(q @ h @ adjoint(q), a, dtype, 400)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_tridiagonal_is_that_of_lapack(dtype, lower):
    a = matrix((9, 9), dtype)
    a = a + adjoint(a)
    reduce = scipy.linalg.get_lapack_funcs("hetrd" if np.iscomplexobj(a) else "sytrd", (a,))
    *expected, info = reduce(a, lower=lower)
    assert info == 0
    for found, wanted in zip(linalg.tridiagonal(a, lower=lower), expected, strict=True):
        close(found, wanted, dtype, 200)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARES + RECTANGLES)
def test_lu(shape, dtype):
    a = matrix(shape, dtype)
    packed, pivots, permutation = map(np.asarray, linalg.lu(a))
    m, n = shape[-2:]
    k = min(m, n)
    lower = np.tril(packed[..., :, :k], -1) + np.eye(m, k)
    upper = np.triu(packed[..., :k, :])
    close(lower @ upper, np.take_along_axis(a, permutation[..., None], -2), dtype)
    assert pivots.shape == shape[:-2] + (k,)
    np.testing.assert_array_equal(linalg.lu_pivots_to_permutation(pivots, m), permutation)


@pytest.mark.parametrize("dtype", TYPES)
def test_solving(dtype):
    a, b = matrix((3, 70, 70), dtype), matrix((3, 70, 5), dtype, 1)
    x = np.asarray(jnp.linalg.solve(a, b))
    assert np.linalg.norm(a @ x - b) < 1e4 * np.finfo(dtype).eps * np.linalg.norm(x)
    close(jnp.linalg.det(a[0, :4, :4]), np.linalg.det(a[0, :4, :4]), dtype)


@pytest.mark.skipif(not hasattr(linalg, "qr"), reason="this JAX has no QR")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (6, 4), (4, 6), (30, 30)])
def test_qr_with_pivoting(shape, dtype):
    a = matrix(shape, dtype)
    try:
        q, r, p = map(np.asarray, jax.scipy.linalg.qr(a, pivoting=True))
    except NotImplementedError:
        pytest.skip("this JAX has no pivoting")
    unitary(q, dtype)
    close(q @ r, a[:, p], dtype)
    expected = scipy.linalg.qr(a, pivoting=True)
    np.testing.assert_array_equal(p, expected[2])
    close(r, expected[1], dtype, 400)


@pytest.mark.parametrize("dtype", TYPES)
def test_tridiagonal_solve(dtype):
    below, main, above = (matrix((2, 8), dtype, seed) for seed in range(3))
    b = matrix((2, 8, 3), dtype, 3)
    x = np.asarray(jax.vmap(linalg.tridiagonal_solve)(below, main, above, b))
    for i in range(2):
        a = np.diag(main[i]) + np.diag(below[i, 1:], -1) + np.diag(above[i, :-1], 1)
        close(a @ x[i], b[i], dtype, 1e4)


@pytest.mark.skipif(not hasattr(linalg, "cholesky_update"), reason="this JAX has no update of factors")
def test_cholesky_update():
    a = matrix((6, 6), np.float64)
    r = np.linalg.cholesky(a @ a.T + np.eye(6)).T
    w = matrix((6,), np.float64, 1)
    found = np.asarray(linalg.cholesky_update(r, w))
    close(found.T @ found, r.T @ r + np.outer(w, w), np.float64)


@pytest.mark.parametrize("dtype", TYPES)
def test_nan_gives_nan(dtype):
    a = np.full((4, 4), np.nan, dtype)
    for f in [jnp.linalg.eigh, jnp.linalg.eig, jnp.linalg.svd, linalg.schur]:
        assert all(np.isnan(result).all() for result in f(a))


def test_derivatives_go_through():
    a = matrix((5, 5), np.float64)
    symmetric = a + a.T
    derivative = jax.grad(lambda x: jnp.linalg.eigh(x)[0][0])(symmetric)
    v = np.asarray(jnp.linalg.eigh(symmetric)[1])[:, 0]
    close(derivative, np.outer(v, v), np.float64)


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match="sorted"):
        linalg.schur(np.eye(3), sort_eig_vals=True, select_callable=lambda v: v > 0)


def test_a_library_from_the_environment_has_the_rules_too():
    code = "import jax.numpy as jnp; print(jnp.linalg.eigh(jnp.eye(2))[0])"
    library = os.environ.get("TEST_REFCPU")
    if not library:
        pytest.skip("TEST_REFCPU names no library")
    printed = plugins.run_python(code, PJRT_NAMES_AND_LIBRARY_PATHS=f"refcpu:{library}", JAX_PLATFORMS="refcpu")
    assert printed == "[1. 1.]"
