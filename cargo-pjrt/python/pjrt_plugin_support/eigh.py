"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices, from operations that all platforms have.

JAX has lowering rules of `eigh` for its own platforms only. This is Jacobi's method: each rotation makes one pair of elements
zero. Its order is that of a round-robin tournament (Brent and Luk): the rows of both halves form pairs, all of which are rotated
at once, and each row meets every other one in a sweep. JAX computes `svd` with `eigh`.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax

# Far above the number of sweeps that matrices need, which grows with the logarithm of the size.
MAX_SWEEPS = 50


def eigh(
    matrix: Any,
    *,
    lower: bool,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,
) -> tuple[Any, Any]:
    """Returns the eigenvectors, as columns, and the eigenvalues of the Hermitian matrices of which one triangle is given.

    They are NaN for matrices with elements that are not finite. The parameters are those of JAX's primitive `eigh`.
    """
    if algorithm is not None and algorithm.name != "JACOBI":
        raise NotImplementedError(f"eigh with the algorithm {algorithm.name} is not supported on this platform, but JACOBI is")
    size = matrix.shape[-1]
    matrix = _hermitian(matrix, lower)
    # Squares of the elements neither overflow nor vanish.
    largest = jnp.max(jnp.abs(matrix), axis=(-2, -1), keepdims=True, initial=0)
    scale = jnp.where(largest > 0, largest, 1)
    matrix = matrix / scale
    values, vectors = _jacobi(matrix) if size > 1 else (jnp.sum(jnp.real(matrix), axis=-1), jnp.ones_like(matrix))
    values = values * scale[..., 0]
    if sort_eigenvalues:
        order = jnp.argsort(values, axis=-1)
        values = jnp.take_along_axis(values, order, axis=-1)
        vectors = jnp.take_along_axis(vectors, order[..., None, :], axis=-1)
    if subset_by_index is not None:
        start, end = subset_by_index
        values, vectors = values[..., start:end], vectors[..., start:end]
    is_finite = jnp.isfinite(largest)
    return jnp.where(is_finite, vectors, jnp.nan), jnp.where(is_finite[..., 0], values, jnp.nan)


def _hermitian(matrix: Any, lower: bool) -> Any:
    """Replaces one triangle with the other, and the imaginary part of the diagonal with 0."""
    triangle = jnp.tril(matrix, -1) if lower else jnp.triu(matrix, 1)
    diagonal = jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), jnp.real(matrix).astype(matrix.dtype), 0)
    return triangle + jnp.conj(jnp.swapaxes(triangle, -2, -1)) + diagonal


def _jacobi(matrix: Any) -> tuple[Any, Any]:
    """Returns the eigenvalues and eigenvectors of Hermitian matrices with more than one row, in no order."""
    size = matrix.shape[-1]
    # An additional row and column of zeros meets the others without a rotation.
    padding = [(0, 0)] * (matrix.ndim - 2) + [(0, size % 2)] * 2
    matrix = jnp.pad(matrix, padding)
    vectors = jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    tolerance = jnp.finfo(matrix.dtype).eps * jnp.sqrt(_sum_of_squares(matrix))

    def goes_on(state: Any) -> Any:
        sweeps, error, last, *_ = state
        # In the end, errors of rounding remain, which do not become smaller.
        return (sweeps < MAX_SWEEPS) & jnp.any((error > tolerance) & (error < last))

    def sweep(state: Any) -> Any:
        sweeps, error, _, matrix, vectors = state
        matrix, vectors = lax.fori_loop(0, matrix.shape[-1] - 1, lambda _, pair: _round(*pair), (matrix, vectors))
        return sweeps + 1, _off_diagonal(matrix), error, matrix, vectors

    error = _off_diagonal(matrix)
    state = (0, error, jnp.full_like(error, jnp.inf), matrix, vectors)
    *_, matrix, vectors = lax.while_loop(goes_on, sweep, state)
    # After a sweep, all rows and columns are in the places where they began.
    return _diagonal(matrix)[..., :size], vectors[..., :size, :size]


def _round(matrix: Any, vectors: Any) -> tuple[Any, Any]:
    """Makes the element of each pair zero, which are rows at the same place in both halves, and forms the next pairs."""
    top, bottom = jnp.split(matrix, 2, axis=-2)
    top_left, top_right = jnp.split(top, 2, axis=-1)
    first, second = _diagonal(top_left), _diagonal(bottom[..., top_left.shape[-1] :])
    is_diagonal = jnp.eye(top_left.shape[-1], dtype=bool)
    pair = jnp.sum(jnp.where(is_diagonal, top_right, 0), axis=-1)

    size = jnp.abs(pair)
    meets = size > 0
    phase = jnp.where(meets, pair / jnp.where(meets, size, 1).astype(pair.dtype), 1)
    ratio = (second - first) / (2 * jnp.where(meets, size, 1))
    tangent = jnp.where(ratio < 0, -1, 1) / (jnp.abs(ratio) + jnp.sqrt(1 + ratio * ratio))
    tangent = jnp.where(meets, tangent, 0)
    cosine = 1 / jnp.sqrt(1 + tangent * tangent)
    sine = (tangent * cosine) * phase
    cosine = cosine.astype(pair.dtype)

    top, bottom = _rotated(top, bottom, cosine[..., None], sine[..., None])
    matrix = jnp.concatenate([top, bottom], axis=-2)
    left, right = _rotated(*jnp.split(matrix, 2, axis=-1), cosine[..., None, :], jnp.conj(sine)[..., None, :])
    exact = [(first - tangent * size).astype(pair.dtype), jnp.zeros_like(pair)]
    left = jnp.where(jnp.tile(is_diagonal, (2, 1)), jnp.concatenate(exact, axis=-1)[..., None], left)
    exact = [jnp.zeros_like(pair), (second + tangent * size).astype(pair.dtype)]
    right = jnp.where(jnp.tile(is_diagonal, (2, 1)), jnp.concatenate(exact, axis=-1)[..., None], right)
    matrix = _moved_on(*jnp.split(_moved_on(left, right, -1), 2, axis=-2), -2)

    left, right = _rotated(*jnp.split(vectors, 2, axis=-1), cosine[..., None, :], jnp.conj(sine)[..., None, :])
    return matrix, _moved_on(left, right, -1)


def _rotated(first: Any, second: Any, cosine: Any, sine: Any) -> tuple[Any, Any]:
    return first * cosine - second * sine, first * jnp.conj(sine) + second * cosine


def _moved_on(first: Any, second: Any, axis: int) -> Any:
    """Moves all rows or columns but the first to their place in the next pairs, and returns both halves as one array."""
    size = first.shape[axis]
    if size == 1:
        return jnp.concatenate([first, second], axis=axis)
    part = lambda array, start, end: lax.slice_in_dim(array, start, end, axis=axis)
    parts = [part(first, 0, 1), part(second, 0, 1), part(first, 1, size - 1), part(second, 1, size), part(first, size - 1, size)]
    return jnp.concatenate(parts, axis=axis)


def _diagonal(matrix: Any) -> Any:
    return jnp.sum(jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), jnp.real(matrix), 0), axis=-1)


def _off_diagonal(matrix: Any) -> Any:
    """Returns the norm of the elements outside of the diagonal, as matrices of one element."""
    return jnp.sqrt(_sum_of_squares(jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), 0, matrix)))


def _sum_of_squares(matrix: Any) -> Any:
    squares = jnp.real(matrix) ** 2 + jnp.imag(matrix) ** 2
    return jnp.sum(squares, axis=(-2, -1), keepdims=True)
