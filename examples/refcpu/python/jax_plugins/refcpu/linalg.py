"""Lowerings of JAX's linear algebra for refcpu.

For other platforms than its own, JAX does not lower these primitives, or lowers them to loops over single columns. Here each
primitive is lowered to one custom call of refcpu, with the operands and results of the primitive and a few typed attributes;
`compile/lower/linalg.rs` contains the other side of this table. The names and attributes must not change, because exported
functions contain these calls. Primitives that JAX lowers to StableHLO operations with fast kernels in refcpu (cholesky,
triangular_solve, geqrf, householder_product, symmetric_product) are not included.
"""

from collections.abc import Callable
from typing import Any

from ._support import jax_internals

# A function from a primitive's parameters to the attributes of a custom call.
Attributes = Callable[..., dict[str, Any]]


def _none(**_) -> dict[str, Any]:
    return {}


def _lower(*, lower: bool, **_) -> dict[str, Any]:
    return {"lower": bool(lower)}


def _eig(*, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, implementation=None, **_) -> dict[str, Any]:
    _supported("eig", implementation, "LAPACK")
    return {"left": bool(compute_left_eigenvectors), "right": bool(compute_right_eigenvectors)}


def _eigh(*, lower: bool, subset_by_index=None, algorithm=None, shape: tuple[int, ...], **_) -> dict[str, Any]:
    _whole("eigh", subset_by_index, shape[-1])
    _supported("eigh", algorithm, "QR")
    return {"lower": bool(lower)}


def _svd(
    *, full_matrices: bool, compute_uv: bool, subset_by_index=None, algorithm=None, shape: tuple[int, ...], **_
) -> dict[str, Any]:
    if subset_by_index is not None:
        _whole("svd", subset_by_index, min(shape[-2:]))
    _supported("svd", algorithm, "DEFAULT", "QR", "DIVIDE_AND_CONQUER")
    return {"compute_uv": bool(compute_uv), "full_matrices": bool(full_matrices)}


def _schur(*, compute_schur_vectors: bool, sort_eig_vals: bool, **_) -> dict[str, Any]:
    if sort_eig_vals:
        raise NotImplementedError("refcpu does not support schur with sorted eigenvalues (sort_eig_vals=True)")
    return {"compute_schur_vectors": bool(compute_schur_vectors)}


def _ormqr(*, left: bool, transpose: bool, **_) -> dict[str, Any]:
    return {"left": bool(left), "transpose": bool(transpose)}


def _permutation(*, permutation_size: int, **_) -> dict[str, Any]:
    return {"permutation_size": permutation_size}


def _tridiagonal_solve(*, perturb_singular: bool = False, **_) -> dict[str, Any]:
    return {"perturb_singular": bool(perturb_singular)}


# The attributes by the name of the primitive. The target of the custom call is "refcpu." followed by the name.
CALLS: dict[str, Attributes] = {
    "cholesky_update": _none,
    "eig": _eig,
    "eigh": _eigh,
    "geqp3": _none,
    "hessenberg": _none,
    "lu": _none,
    "lu_pivots_to_permutation": _permutation,
    "ormqr": _ormqr,
    "schur": _schur,
    "svd": _svd,
    "tridiagonal": _lower,
    "tridiagonal_solve": _tridiagonal_solve,
}


def register(platform: str) -> None:
    """Registers the lowering rules for a platform, for the primitives that this version of JAX has."""
    for name, attributes in CALLS.items():
        primitive = jax_internals.linalg_primitive(name)
        if primitive is not None:
            jax_internals.register_lowering(primitive, _rule(name, attributes), platform)
    jax_internals.allow_export(f"refcpu.{name}" for name in CALLS)


def _rule(name: str, attributes: Attributes):
    def rule(ctx, *operands, **parameters):
        values = attributes(shape=ctx.avals_in[0].shape, **parameters)
        return jax_internals.ffi_lowering(f"refcpu.{name}")(ctx, *operands, **values)

    return rule


def _whole(name: str, subset_by_index, count) -> None:
    if subset_by_index is not None and tuple(subset_by_index) != (0, count):
        raise NotImplementedError(f"refcpu does not support {name} of a part of the spectrum (subset_by_index)")


def _supported(name: str, algorithm, *names: str) -> None:
    if algorithm is not None and algorithm.name not in names:
        raise NotImplementedError(
            f"refcpu does not support {name} with the algorithm {algorithm.name}; it supports {', '.join(names)}"
        )
