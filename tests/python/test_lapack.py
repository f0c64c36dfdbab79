"""Programs that were exported for JAX's CPU backend call LAPACK by its names for it; on refcpu they compute the same."""

import plugins

plugins.use("refcpu,cpu", JAX_ENABLE_X64="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax._src.lax import linalg  # noqa: E402

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
CPU = jax.devices("cpu")[0]


def matrix(shape, dtype):
    random = np.random.RandomState(1)
    values = random.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def positive(a):
    return a @ adjoint(a) + jnp.eye(a.shape[-2], dtype=a.dtype)


def singular_values(full_matrices):
    def product(a):
        u, s, v = linalg.svd(a, full_matrices=full_matrices)
        return (u[..., : s.shape[-1]] * s[..., None, :].astype(a.dtype)) @ v[..., : s.shape[-1], :], s

    return product


def eigenvalues(a):
    w, left, right = linalg.eig(a)
    # Vectors may be turned; a product of those of one value tells whether they are this value's.
    return jnp.sort(w), a @ right - right * w[..., None, :], adjoint(a) @ left - left * jnp.conj(w)[..., None, :]


def eigenvectors(lower):
    def product(a):
        v, w = linalg.eigh(positive(a), lower=lower, symmetrize_input=False)
        return (v * w[..., None, :].astype(a.dtype)) @ adjoint(v), w

    return product


def schur(a):
    form, vectors = linalg.schur(a)
    return vectors @ form @ adjoint(vectors), jnp.tril(form, -2)


def solve(**options):
    def solution(a):
        square = jnp.tril(positive(a)) if options["lower"] else jnp.triu(positive(a))
        right = a if options["left_side"] else jnp.swapaxes(a, -1, -2)
        return linalg.triangular_solve(square, right, **options)

    return solution


def tridiagonal_solve(a):
    below, main, above = (a[..., i, :] for i in range(3))
    return linalg.tridiagonal_solve(below.at[..., 0].set(0), main + 9, above.at[..., -1].set(0), jnp.swapaxes(a, -1, -2))


def pivoted(a):
    q, r, columns = linalg.qr(a, pivoting=True, full_matrices=False)
    return q @ r, columns


FUNCTIONS = {
    "potrf": lambda a: linalg.cholesky(positive(a)),
    "geqrf and orgqr": lambda a: linalg.qr(a, full_matrices=False),
    "geqp3": pivoted,
    "getrf": linalg.lu,
    "gesdd": singular_values(False),
    "gesdd, whole": singular_values(True),
    "gesdd, values": lambda a: linalg.svd(a, compute_uv=False),
    "syevd, lower": eigenvectors(True),
    "syevd, upper": eigenvectors(False),
    "geev": lambda a: eigenvalues(a[..., :3]),
    "gees": lambda a: schur(a[..., :3]),
    "gehrd": lambda a: linalg.hessenberg(a[..., :3]),
    "sytrd, lower": lambda a: linalg.tridiagonal(positive(a), lower=True),
    "sytrd, upper": lambda a: linalg.tridiagonal(positive(a), lower=False),
    "trsm": solve(left_side=True, lower=True),
    "trsm, right": solve(left_side=False, lower=True, unit_diagonal=True),
    "trsm, adjoint": solve(left_side=True, lower=False, transpose_a=True, conjugate_a=True),
    "trsm, transposed": solve(left_side=True, lower=False, transpose_a=True),
    "gtsv": tridiagonal_solve,
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_routine_gives_on_refcpu_what_it_gives_on_the_cpu_backend(name, dtype):
    x = matrix((2, 3, 4), dtype)
    unchecked = [jax.export.DisabledSafetyCheck.custom_call(f"lapack_{letter}geqp3_ffi") for letter in "sdcz"]
    exported = jax.export.export(jax.jit(FUNCTIONS[name]), platforms=("cpu",), disabled_checks=unchecked)(x)
    assert "lapack_" in exported.mlir_module()
    tolerance = 500 * np.finfo(dtype).eps
    got, expected = exported.call(x), exported.call(jax.device_put(x, CPU))
    for ours, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert ours.devices().pop().platform == "refcpu"
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def call(target, x, results, **attributes):
    columns = tuple(reversed(range(x.ndim)))
    layouts = [columns if len(result.shape) == x.ndim else None for result in results]
    routine = jax.ffi.ffi_call(target, results, input_layouts=[columns], output_layouts=layouts)
    return jax.jit(lambda x: routine(x, **attributes))(x)


def array(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def test_a_routine_says_which_matrix_it_cannot_factor():
    good = np.array([[4, 7], [2, 5]], np.float32)
    factor, info = call("lapack_spotrf_ffi", good, [array(2, 2), array(dtype=np.int32)], uplo=np.uint8(ord("L")))
    assert info == 0
    np.testing.assert_allclose(factor, [[2, 7], [1, 2]])  # What is above the diagonal stays.
    *_, info = call("lapack_spotrf_ffi", -good, [array(2, 2), array(dtype=np.int32)], uplo=np.uint8(ord("L")))
    assert info > 0
    singular = np.array([[1, 2], [2, 4]], np.float32)
    *_, info = call("lapack_sgetrf_ffi", singular, [array(2, 2), array(2, dtype=np.int32), array(dtype=np.int32)])
    assert info == 2


def test_eigenvalues_of_a_real_schur_form_are_in_two_parts():
    x = np.array([[1, -2, 0], [2, 1, 0], [0, 0, 5]], np.float32)
    results = [array(3, 3), array(3, 3), array(3), array(3), array(dtype=np.int32), array(dtype=np.int32)]
    _, _, real, imaginary, _, info = call("lapack_sgees_ffi", x, results, mode=np.uint8(ord("V")), sort=np.uint8(ord("N")))
    np.testing.assert_allclose(sorted(real + 1j * imaginary, key=str), sorted([5, 1 + 2j, 1 - 2j], key=str), atol=1e-5)
    assert info == 0


@pytest.mark.parametrize(
    ("target", "results", "attributes", "message"),
    [
        ("lapack_dpotrf_ffi", [array(2, 2), array(dtype=np.int32)], {"uplo": np.uint8(76)}, "matrices of f64"),
        ("lapack_spotrf_ffi", [array(2, 2), array(dtype=np.int32)], {"uplo": np.uint8(65)}, "one of the letters LU"),
        ("lapack_spotrf_ffi", [array(2, 2)], {"uplo": np.uint8(76)}, "the results must have the types"),
        ("lapack_spotrf_ffi", [array(2, 2), array(dtype=np.int32)], {}, "needs the attribute"),
        ("lapack_strsm_ffi", [array(2, 2)], {}, "does not take 1 operands"),
        ("lapack_snothing_ffi", [array(2, 2)], {}, "there is no custom call target"),
    ],
)
def test_a_call_that_is_none_of_the_routine_is_refused(target, results, attributes, message):
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(call(target, np.eye(2, dtype=np.float32), results, **attributes))


def test_a_call_that_is_refused_fails_the_runs_that_come_to_it():
    wrong = jax.ffi.ffi_call("lapack_sgetrf_ffi", array(2))

    @jax.jit
    def f(wanted, x):
        return jax.lax.cond(wanted, lambda x: wrong(x), lambda x: x, x)

    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(f(False, x), x)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the operands of lapack_sgetrf_ffi must be matrices of f32"):
        f(True, x).block_until_ready()
