"""`eigh` from operations that all platforms have, which packages of plugins give to JAX, beside NumPy's."""

import jax
import numpy as np
import pytest
from jax_plugins.refcpu._support import jax_internals
from jax_plugins.refcpu._support.eigh import eigh

KINDS = ["random", "equal", "of rank one", "diagonal", "large", "small"]


def _matrices(kind: str, size: int, dtype: type) -> np.ndarray:
    random = np.random.default_rng(size)
    matrix = random.normal(size=(2, size, size))
    if np.issubdtype(dtype, np.complexfloating):
        matrix = matrix + 1j * random.normal(size=(2, size, size))
    transposed = lambda array: np.conj(np.swapaxes(array, -2, -1))
    matrix = {
        "random": matrix + transposed(matrix),
        "equal": np.ones_like(matrix),
        "of rank one": matrix[..., :1] @ transposed(matrix[..., :1]),
        "diagonal": matrix * np.eye(size) + transposed(matrix * np.eye(size)),
        "large": (matrix + transposed(matrix)) * 1e25,
        "small": (matrix + transposed(matrix)) * 1e-30,
    }[kind]
    return matrix.astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_values_and_vectors_are_those_of_the_matrix(dtype, size, kind):
    matrix = _matrices(kind, size, dtype)
    vectors, values = map(np.asarray, jax.jit(lambda x: eigh(x, lower=True))(matrix))
    assert (vectors.dtype, values.dtype) == (matrix.dtype, np.float32)
    expected = np.linalg.eigvalsh(matrix.astype(np.complex128))
    norm = np.abs(expected).max()
    np.testing.assert_allclose(values / norm, expected / norm, atol=4e-6)
    vectors = vectors.astype(np.complex128)
    product = (matrix / norm).astype(np.complex128) @ vectors
    np.testing.assert_allclose(product, vectors * (values / norm)[:, None, :], atol=4e-6)
    gram = np.conj(np.swapaxes(vectors, -2, -1)) @ vectors
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(size), gram.shape), atol=8e-6)


@pytest.mark.parametrize("lower", [True, False])
def test_the_other_triangle_is_not_read(lower):
    matrix = _matrices("random", 6, np.complex64)
    kept = np.tril(matrix) if lower else np.triu(matrix)
    values = jax.jit(lambda x: eigh(x, lower=lower))(kept)[1]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-4)


def test_a_part_of_the_values():
    matrix = _matrices("random", 7, np.float32)
    vectors, values = jax.jit(lambda x: eigh(x, lower=True, subset_by_index=(2, 5)))(matrix)
    assert vectors.shape == (2, 7, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[:, 2:5], atol=1e-4)


def test_elements_that_are_not_finite_make_their_matrix_nan():
    matrix = _matrices("random", 4, np.float32)
    matrix[1, 2, 0] = np.inf
    vectors, values = map(np.asarray, jax.jit(lambda x: eigh(x, lower=True))(matrix))
    assert np.isnan(values[1]).all() and np.isnan(vectors[1]).all()
    np.testing.assert_allclose(values[0], np.linalg.eigvalsh(matrix[0]), atol=1e-4)


def test_matrices_without_rows():
    vectors, values = eigh(np.zeros((3, 0, 0), np.float32), lower=True)
    assert (vectors.shape, values.shape) == ((3, 0, 0), (3, 0))


def test_only_platforms_without_a_rule_get_one(monkeypatch):
    registered = []
    monkeypatch.setattr(jax_internals, "register_lowering", lambda primitive, rule, platform: registered.append(platform))
    for platform in ["cpu", "without_eigh"]:
        jax_internals.lower_where_missing("eigh", eigh, platform)
    assert registered == ["without_eigh"]
