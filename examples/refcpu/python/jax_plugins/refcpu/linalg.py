"""How JAX's linear algebra is lowered for refcpu.

JAX knows these primitives on its own platforms only, or on others by loops over single columns. Each becomes one custom
call of refcpu, with the primitive's operands and results and a few typed attributes; `compile/lower/linalg.rs` has the
other end of this table. Exported functions contain these calls, so names and attributes are not to change. What JAX lowers
to operations of StableHLO that refcpu is fast at (cholesky, triangular_solve, geqrf, householder_product,
symmetric_product) is not here.
"""

from collections.abc import Callable
from typing import Any

from jax_plugins.refcpu import _private

# A primitive's parameters to a custom call's attributes.
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
        raise NotImplementedError("refcpu has no Schur form with sorted eigenvalues")
    return {"compute_schur_vectors": bool(compute_schur_vectors)}


def _ormqr(*, left: bool, transpose: bool, **_) -> dict[str, Any]:
    return {"left": bool(left), "transpose": bool(transpose)}


def _permutation(*, permutation_size: int, **_) -> dict[str, Any]:
    return {"permutation_size": permutation_size}


def _tridiagonal_solve(*, perturb_singular: bool = False, **_) -> dict[str, Any]:
    return {"perturb_singular": bool(perturb_singular)}


# Name of the primitive, which is also that of the custom call after "refcpu.".
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
    """Makes the rules those of a platform, for the primitives that this version of JAX has."""
    for name, attributes in CALLS.items():
        primitive = _private.linalg_primitive(name)
        if primitive is not None:
            _private.register_lowering(primitive, _rule(name, attributes), platform)
    _private.allow_export(f"refcpu.{name}" for name in CALLS)


def _rule(name: str, attributes: Attributes):
    def rule(ctx, *operands, **parameters):
        values = attributes(shape=ctx.avals_in[0].shape, **parameters)
        return _private.ffi_lowering(f"refcpu.{name}")(ctx, *operands, **values)

    return rule


def _whole(name: str, subset_by_index, count) -> None:
    if subset_by_index is not None and tuple(subset_by_index) != (0, count):
        raise NotImplementedError(f"refcpu has no {name} of a part of the spectrum (subset_by_index)")


def _supported(name: str, algorithm, *names: str) -> None:
    if algorithm is not None and algorithm.name not in names:
        raise NotImplementedError(f"refcpu has no {name} by {algorithm.name}; it has {', '.join(names)}")
