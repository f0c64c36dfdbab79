"""The functions of the comparison, each with its arguments. Every dimension of every argument is split in turn."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LETTERS = "abcdefgh"


@dataclass
class Function:
    """A function and arguments for it."""

    name: str
    function: Callable
    arguments: tuple[np.ndarray, ...]


def floats(*dims: int) -> np.ndarray:
    """Returns numbers between -1 and 1 that are all different."""
    count = int(np.prod(dims))
    order = np.random.RandomState(count).permutation(count)
    return ((order - (count - 1) / 2) / count * 2).astype(np.float32).reshape(dims)


def positive(*dims: int) -> np.ndarray:
    return np.abs(floats(*dims)) + np.float32(0.5)


def whole(bound: int, *dims: int) -> np.ndarray:
    """Returns integers from 0 to `bound` (exclusive)."""
    return np.random.RandomState(bound).randint(0, bound, dims).astype(np.int32)


def flags(*dims: int) -> np.ndarray:
    return floats(*dims) > 0


def definite(*dims: int) -> np.ndarray:
    """Returns symmetric positive definite matrices."""
    x = floats(*dims)
    return (x @ np.swapaxes(x, -1, -2) + 2 * np.eye(dims[-1])).astype(np.float32)


def grad(function: Callable) -> Callable:
    """Returns the gradient of a weighted sum of the function's results with respect to all arguments of floats."""

    def gradient(*arguments):
        chosen = tuple(i for i, x in enumerate(arguments) if jnp.issubdtype(x.dtype, jnp.floating))

        def total(*arguments):
            return sum((jnp.sin(y) * y).sum() for y in jax.tree.leaves(function(*arguments)))

        return jax.grad(total, chosen)(*arguments)

    return gradient


def conv(x, kernel, strides=(1, 1), padding="SAME", groups=1, rhs_dilation=None, lhs_dilation=None):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, strides, padding, lhs_dilation, rhs_dilation, numbers, feature_group_count=groups
    )


def window(operation, initial, dims, strides, padding):
    return lambda x: lax.reduce_window(x, initial, operation, dims, strides, padding)


def attention(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def layer_norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3) * scale


def mlp(x, w1, w2):
    return jax.nn.relu(x @ w1) @ w2


def loss(x, w1, w2):
    return ((mlp(x, w1, w2) - x) ** 2).mean()


def train_step(x, w1, w2):
    value, (g1, g2) = jax.value_and_grad(loss, (1, 2))(x, w1, w2)
    return value, w1 - 0.1 * g1, w2 - 0.1 * g2


def rnn(xs, w):
    def step(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h * 2

    return lax.scan(step, jnp.zeros(xs.shape[1:]), xs)


def cnn(x, k1, k2):
    x = jax.nn.relu(conv(x, k1))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return conv(x, k2).mean((1, 2))


def moe(x, gate, w):
    weights = jax.nn.softmax(x @ gate)
    return jnp.einsum("te,td,edf->tf", weights, x, w)


def rotary(x):
    first, second = jnp.split(x, 2, axis=-1)
    angle = jnp.arange(x.shape[1])[:, None] * 0.1
    return jnp.concatenate([first * jnp.cos(angle) - second, second * jnp.sin(angle) + first], axis=-1)


def newton(x):
    return lax.while_loop(lambda s: s[1] < 4, lambda s: ((s[0] + 2 / s[0]) / 2, s[1] + 1), (x, 0))[0]


def cumulative_loop(x):
    def body(i, carry):
        total, out = carry
        total = total + x[i]
        return total, out.at[i].set(total)

    return lax.fori_loop(0, x.shape[0], body, (jnp.zeros(x.shape[1:]), jnp.zeros_like(x)))[1]


KEY = np.array([1, 2], np.uint32)
M = (16, 8)
A = (8, 16, 24)
IMAGE = (8, 16, 16, 8)
KERNEL = (3, 3, 8, 16)


def elementwise() -> dict[str, tuple]:
    x = floats(*M)
    return {
        "sin": (jnp.sin, x),
        "add": (jnp.add, x, floats(*M)),
        "add_row": (jnp.add, x, floats(8)),
        "add_outer": (lambda x, y: x[:, None] + y, floats(16), floats(8)),
        "where": (jnp.where, flags(*M), x, floats(*M)),
        "clip": (lambda x: jnp.clip(x, -0.5, 0.5), x),
        "astype": (lambda x: x.astype(jnp.int8), x * 50),
        "complex": (lambda x: jnp.abs(x + 1j * x), x),
        "erf": (jax.scipy.special.erf, x),
        "lgamma": (jax.scipy.special.gammaln, positive(*M)),
        "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), x),
        "bitcast_smaller": (lambda x: lax.bitcast_convert_type(x, jnp.int16), x),
        "isclose": (lambda x: jnp.isclose(x, x[0]), x),
        "scalar_mix": (lambda x: x * x.sum(), x),
        "softmax": (jax.nn.softmax, x),
        "softmax_axis0": (lambda x: jax.nn.softmax(x, 0), x),
        "log_softmax": (jax.nn.log_softmax, x),
        "gelu": (jax.nn.gelu, x),
        "one_hot": (lambda i: jax.nn.one_hot(i, 8), whole(8, 16)),
        "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), x),
        "remat": (jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), x),
    }


def reductions() -> dict[str, tuple]:
    x, a = floats(*M), floats(*A)
    return {
        "sum": (lambda x: x.sum(), x),
        "sum_axis0": (lambda x: x.sum(0), x),
        "sum_axis1": (lambda x: x.sum(1), a),
        "sum_keepdims": (lambda x: x.sum(1, keepdims=True), a),
        "max_axis1": (lambda x: x.max(1), a),
        "prod": (lambda x: x.prod(0), x),
        "mean_var": (lambda x: (x.mean(1), x.var(1)), x),
        "argmax": (lambda x: x.argmax(0), x),
        "argmin_axis1": (lambda x: x.argmin(1), x),
        "any": (lambda x: (x > 0).any(1), x),
        "nanmedian": (lambda x: jnp.median(x, 1), x),
        "norm": (lambda x: jnp.linalg.norm(x, axis=1), x),
        "ptp": (lambda x: jnp.ptp(x, 0), x),
        "cumsum": (lambda x: x.cumsum(0), x),
        "cumsum_axis1": (lambda x: x.cumsum(1), a),
        "cumprod": (lambda x: x.cumprod(1), x),
        "cummax": (lambda x: lax.cummax(x, 0), x),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, 1), x),
        "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), x),
        "associative_scan_axis1": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), x),
        "diff": (lambda x: jnp.diff(x, axis=0), x),
        "bincount": (lambda i: jnp.bincount(i, length=8), whole(8, 16)),
        "histogram": (lambda x: jnp.histogram(x, 8, (-1.0, 1.0))[0], floats(64)),
        "average": (lambda x, w: jnp.average(x, 0, w), x, positive(16)),
        "cov": (jnp.cov, x),
    }


def movements() -> dict[str, tuple]:
    x, a = floats(*M), floats(*A)
    return {
        "transpose": (jnp.transpose, a),
        "swapaxes": (lambda x: x.swapaxes(1, 2), a),
        "reshape_flat": (lambda x: x.reshape(-1), a),
        "reshape_merge": (lambda x: x.reshape(8, 384), a),
        "reshape_merge_front": (lambda x: x.reshape(128, 24), a),
        "reshape_split": (lambda x: x.reshape(8, 4, 4, 24), a),
        "reshape_split_front": (lambda x: x.reshape(2, 4, 16, 24), a),
        "reshape_other": (lambda x: x.reshape(24, 16, 8), a),
        "reshape_one": (lambda x: x[:, None, :, None], x),
        "squeeze": (lambda x: x.reshape(16, 1, 8).squeeze(1), x),
        "broadcast_to": (lambda x: jnp.broadcast_to(x, (4, 16, 8)), x),
        "broadcast_in": (lambda x: lax.broadcast_in_dim(x, (16, 4, 8), (0, 2)), x),
        "tile": (lambda x: jnp.tile(x, (2, 1)), x),
        "repeat": (lambda x: jnp.repeat(x, 2, axis=0), x),
        "flip": (lambda x: x[::-1], x),
        "flip_axis1": (lambda x: jnp.flip(x, 1), a),
        "rot90": (jnp.rot90, x),
        "roll": (lambda x: jnp.roll(x, 3, 0), x),
        "roll_axis1": (lambda x: jnp.roll(x, -2, 1), a),
        "roll_dynamic": (lambda x, n: jnp.roll(x, n.sum(), 0), x, whole(8, 8)),
        "slice_front": (lambda x: x[:8], x),
        "slice_back": (lambda x: x[8:], x),
        "slice_odd": (lambda x: x[1:10], x),
        "slice_inner": (lambda x: x[:, 4:12], a),
        "slice_strided": (lambda x: x[::2], x),
        "slice_keep": (lambda x: x[:, :, :16], a),
        "index": (lambda x: x[3], x),
        "index_last": (lambda x: x[..., -1], a),
        "pad": (lambda x: jnp.pad(x, ((4, 4), (0, 0))), x),
        "pad_odd": (lambda x: jnp.pad(x, ((1, 0), (0, 0))), x),
        "pad_interior": (lambda x: lax.pad(x, 0.0, ((0, 1, 1), (0, 0, 0))), x),
        "pad_negative": (lambda x: lax.pad(x, 0.0, ((-4, -4, 0), (0, 0, 0))), x),
        "pad_wrap": (lambda x: jnp.pad(x, ((4, 4), (0, 0)), mode="wrap"), x),
        "pad_edge": (lambda x: jnp.pad(x, ((8, 8), (0, 0)), mode="edge"), x),
        "pad_reflect": (lambda x: jnp.pad(x, ((0, 0), (4, 4)), mode="reflect"), x),
        "concatenate": (lambda x, y: jnp.concatenate([x, y]), x, floats(*M)),
        "concatenate_axis1": (lambda x, y: jnp.concatenate([x, y], 1), a, floats(8, 8, 24)),
        "concatenate_self": (lambda x: jnp.concatenate([x, 2 * x]), x),
        "concatenate_constant": (lambda x: jnp.concatenate([jnp.zeros_like(x), x]), x),
        "stack": (lambda x, y: jnp.stack([x, y]), x, floats(*M)),
        "stack_last": (lambda x, y: jnp.stack([x, y], -1), x, floats(*M)),
        "split": (lambda x: jnp.split(x, 2), x),
        "split_axis1": (lambda x: jnp.split(x, 2, 1), a),
        "unstack": (lambda x: jnp.unstack(x[:4]), x),
        "halves_swapped": (lambda x: jnp.concatenate([x[8:], x[:8]]), x),
        "triu": (jnp.triu, floats(16, 16)),
        "diag": (jnp.diag, floats(16)),
        "diagonal": (jnp.diagonal, floats(16, 16)),
        "trace": (jnp.trace, floats(16, 16)),
        "fftshift": (jnp.fft.fftshift, x),
        "meshgrid": (jnp.meshgrid, floats(16), floats(8)),
        "kron": (jnp.kron, floats(8, 4), floats(2, 8)),
        "interleave": (lambda x, y: jnp.stack([x, y], 1).reshape(32, 8), x, floats(*M)),
        "rotary": (rotary, floats(8, 16, 16)),
        "depth_to_space": (
            lambda x: x.reshape(8, 4, 4, 2, 2, 4).transpose(0, 1, 3, 2, 4, 5).reshape(8, 8, 8, 4),
            floats(8, 4, 4, 16),
        ),
        "barrier": (lax.optimization_barrier, x),
    }


def indexing() -> dict[str, tuple]:
    x, a, i = floats(*M), floats(*A), whole(16, 8)
    return {
        "take": (lambda x, i: x[i], x, i),
        "take_axis1": (lambda x, i: jnp.take(x, i, axis=1), a, i),
        "embedding": (lambda table, i: table[i], floats(32, 16), whole(32, 8, 16)),
        "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, 1), x, whole(8, 16, 8)),
        "take_along_axis0": (lambda x, i: jnp.take_along_axis(x, i, 0), x, whole(16, 8, 8)),
        "take_labels": (lambda x, i: jnp.take_along_axis(x, i[:, None], 1)[:, 0], x, whole(8, 16)),
        "advanced": (lambda x, i, j: x[i, j], x, i, whole(8, 8)),
        "mask": (lambda x, m: jnp.where(m[:, None], x, 0), x, flags(16)),
        "at_set": (lambda x, i, u: x.at[i].set(u), x, np.arange(0, 16, 2, dtype=np.int32), floats(8, 8)),
        "at_add": (lambda x, i, u: x.at[i].add(u), x, i, floats(8, 8)),
        "at_max": (lambda x, i, u: x.at[i].max(u), x, i, floats(8, 8)),
        "at_multiply": (lambda x, i, u: x.at[i].multiply(u), x, np.arange(8, dtype=np.int32), floats(8, 8)),
        "at_set_slice": (lambda x, u: x.at[4:12].set(u), x, floats(8, 8)),
        "at_set_column": (lambda x, u: x.at[:, 3].set(u), x, floats(16)),
        "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 8), x, whole(8, 16)),
        "segment_max": (lambda x, i: jax.ops.segment_max(x, i, 8), x, np.arange(16, dtype=np.int32) % 8),
        "dynamic_slice": (lambda x, n: lax.dynamic_slice_in_dim(x, n.sum(), 8), x, whole(2, 8)),
        "dynamic_slice_row": (lambda x, n: lax.dynamic_index_in_dim(x, n.max(), 0), x, i),
        "dynamic_update": (lambda x, u: lax.dynamic_update_slice(x, u, (4, 0)), x, floats(8, 8)),
        "dynamic_update_at": (
            lambda x, u, n: lax.dynamic_update_slice(x, u, (n.max(), 0)), x, floats(8, 8), whole(8, 8),
        ),
        "kv_cache": (
            lambda cache, new, n: lax.dynamic_update_slice(cache, new, (0, n.max(), 0)),
            floats(8, 16, 8), floats(8, 1, 8), whole(8, 8),
        ),
        "searchsorted": (lambda x, v: jnp.searchsorted(x, v), np.sort(floats(16)), floats(8)),
        "interp": (jnp.interp, floats(16), np.sort(floats(8)), floats(8)),
        "batched_gather": (jax.vmap(lambda x, i: x[i]), a, whole(16, 8, 8)),
        "batched_scatter": (jax.vmap(lambda x, i, u: x.at[i].add(u)), a, whole(16, 8, 8), floats(8, 8, 24)),
    }


def sorts() -> dict[str, tuple]:
    x = floats(*M)
    return {
        "sort": (lambda x: jnp.sort(x, 0), x),
        "sort_axis1": (lambda x: jnp.sort(x, 1), x),
        "sort_1d": (jnp.sort, floats(64)),
        "sort_3d": (lambda x: jnp.sort(x, 1), floats(*A)),
        "argsort": (lambda x: jnp.argsort(x, 1), x),
        "argsort_axis0": (lambda x: jnp.argsort(x, 0), x),
        "sort_pairs": (lambda x, y: lax.sort((x, y), num_keys=1), x, floats(*M)),
        "lexsort": (lambda x, y: jnp.lexsort((x, y)), floats(16), whole(4, 16)),
        "top_k": (lambda x: lax.top_k(x, 4), x),
        "top_k_same": (lambda x: lax.top_k(x, 8), x),
        "approx_max_k": (lambda x: lax.approx_max_k(x, 4), x),
        "median": (lambda x: jnp.median(x, 0), x),
        "quantile": (lambda x: jnp.quantile(x, 0.25, 1), x),
        "partition": (lambda x: jnp.partition(x, 4, 1)[:, 4], x),
        "unique_sized": (lambda x: jnp.unique(x, size=16), whole(8, 16)),
        "nonzero_sized": (lambda x: jnp.nonzero(x > 0, size=8)[0], floats(16)),
        "rank": (lambda x: jnp.argsort(jnp.argsort(x)), floats(16)),
    }


def products() -> dict[str, tuple]:
    x = floats(*M)
    return {
        "matmul": (jnp.matmul, x, floats(8, 24)),
        "matmul_transposed": (lambda x, y: x @ y.T, x, floats(24, 8)),
        "matvec": (jnp.matmul, x, floats(8)),
        "batched_matmul": (jnp.matmul, floats(8, 16, 8), floats(8, 8, 24)),
        "broadcast_matmul": (jnp.matmul, floats(8, 16, 8), floats(8, 24)),
        "outer": (jnp.outer, floats(16), floats(8)),
        "inner": (jnp.vdot, floats(16), floats(16)),
        "gram": (lambda x: x @ x.T, x),
        "chain": (lambda x, y, z: x @ y @ z, x, floats(8, 16), floats(16, 24)),
        "einsum_trace": (lambda x: jnp.einsum("iji->j", x), floats(8, 16, 8)),
        "einsum_three": (lambda x, y, z: jnp.einsum("bi,ij,bj->b", x, y, z), x, floats(8, 16), floats(16, 16)),
        "einsum_heads": (lambda x, w: jnp.einsum("bsd,dhk->bshk", x, w), floats(8, 16, 8), floats(8, 4, 8)),
        "einsum_heads_out": (lambda x, w: jnp.einsum("bshk,hkd->bsd", x, w), floats(8, 16, 4, 8), floats(4, 8, 24)),
        "tensordot": (lambda x, y: jnp.tensordot(x, y, 2), floats(8, 16, 8), floats(16, 8, 24)),
        "tensor_sum": (lambda x, y: (x @ y).sum(0), x, floats(8, 16)),
        "convolve": (lambda x, k: jnp.convolve(x, k, "same"), floats(32), floats(4)),
    }


def convolutions() -> dict[str, tuple]:
    x, k = floats(*IMAGE), floats(*KERNEL)
    valid, none = "VALID", ((0, 0),) * 4
    return {
        "conv": (conv, x, k),
        "conv_valid": (lambda x, k: conv(x, k, padding="VALID"), x, k),
        "conv_strided": (lambda x, k: conv(x, k, strides=(2, 2)), x, k),
        "conv_1x1": (conv, x, floats(1, 1, 8, 16)),
        "conv_patches": (lambda x, k: conv(x, k, (4, 4), "VALID"), x, floats(4, 4, 8, 16)),
        "conv_dilated": (lambda x, k: conv(x, k, rhs_dilation=(2, 2)), x, k),
        "conv_transposed": (lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), x, k),
        "conv_groups": (lambda x, k: conv(x, k, groups=2), x, floats(3, 3, 4, 16)),
        "conv_depthwise": (lambda x, k: conv(x, k, groups=8), x, floats(3, 3, 1, 8)),
        "conv_1d": (
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"), floats(8, 8, 16), floats(8, 8, 3),
        ),
        "grad_conv": (grad(conv), x, k),
        "grad_conv_strided": (grad(lambda x, k: conv(x, k, strides=(2, 2))), x, k),
        "max_pool": (window(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1), valid), x),
        "avg_pool_same": (window(lax.add, 0.0, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"), x),
        "pool_overlap": (window(lax.max, -np.inf, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), x),
        "pool_global": (window(lax.add, 0.0, (1, 16, 16, 1), (1, 1, 1, 1), none), x),
        "window_sum": (window(lax.add, 0.0, (3, 1), (1, 1), "SAME"), floats(*M)),
        "grad_max_pool": (grad(window(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1), valid)), x),
        "grad_avg_pool": (grad(window(lax.add, 0.0, (1, 2, 2, 1), (1, 2, 2, 1), valid)), x),
        "resize": (lambda x: jax.image.resize(x, (8, 32, 32, 8), "bilinear"), x),
        "resize_nearest": (lambda x: jax.image.resize(x, (8, 8, 8, 8), "nearest"), x),
        "patches": (lambda x: lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID"), floats(8, 4, 16, 16)),
    }


def transforms() -> dict[str, tuple]:
    x, s = floats(*M), definite(8, 8)
    batch = definite(8, 8, 8)
    return {
        "fft": (jnp.fft.fft, x),
        "fft_axis0": (lambda x: jnp.fft.fft(x, axis=0), x),
        "fft2": (jnp.fft.fft2, floats(*A)),
        "rfft": (jnp.fft.rfft, x),
        "irfft": (lambda x: jnp.fft.irfft(x + 0j), x),
        "fft_filter": (lambda x: jnp.fft.ifft(jnp.fft.fft(x) * 2).real, x),
        "cholesky": (jnp.linalg.cholesky, s),
        "cholesky_batch": (jnp.linalg.cholesky, batch),
        "solve": (jnp.linalg.solve, s, floats(8, 16)),
        "solve_batch": (jnp.linalg.solve, batch, floats(8, 8, 16)),
        "solve_triangular": (lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True), s, floats(8, 16)),
        "cho_solve": (lambda a, b: jax.scipy.linalg.cho_solve((a, True), b), s, floats(8, 16)),
        "inv": (jnp.linalg.inv, s),
        "det": (jnp.linalg.det, batch),
        "slogdet": (lambda a: jnp.linalg.slogdet(a)[1], s),
        "eigvalsh": (jnp.linalg.eigvalsh, batch),
        "eigh": (lambda a: (lambda w, v: (w, jnp.abs(v)))(*jnp.linalg.eigh(a)), s),
        "svdvals": (lambda a: jnp.linalg.svd(a, compute_uv=False), batch),
        "qr": (lambda a: tuple(jnp.abs(y) for y in jnp.linalg.qr(a)), floats(16, 8)),
        "qr_batch": (lambda a: tuple(jnp.abs(y) for y in jnp.linalg.qr(a)), batch),
        "lu": (lambda a: jax.scipy.linalg.lu(a)[2], s),
        "pinv": (jnp.linalg.pinv, floats(16, 8)),
        "lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], floats(16, 8), floats(16)),
        "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 3), s),
        "expm": (lambda a: jax.scipy.linalg.expm(a / 8), s),
        "vander": (lambda x: jnp.vander(x, 8), floats(16)),
        "polyval": (jnp.polyval, floats(8), floats(16)),
    }


def control() -> dict[str, tuple]:
    x, w = floats(*M), floats(8, 8)
    return {
        "cond": (lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, x), x),
        "cond_transposed": (lambda x: lax.cond(x.sum() > 0, lambda x: x.T, lambda x: x.T * 2, x), x),
        "cond_constant": (lambda x: lax.cond(x.sum() > 0, lambda x: x, jnp.zeros_like, x), x),
        "cond_outer": (lambda x, p: lax.cond(p.any(), lambda: x * 2, lambda: x), x, flags(8)),
        "switch": (lambda x, i: lax.switch(i.max(), [jnp.sin, jnp.cos, jnp.exp], x), x, whole(3, 8)),
        "cond_vmapped": (
            jax.vmap(lambda x, p: lax.cond(p, lambda x: x * 2, lambda x: x + 1, x)), x, flags(16),
        ),
        "grad_cond": (grad(lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x * x, x)), x),
        "while": (newton, positive(*M)),
        "fori": (lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2 + i, x), x),
        "fori_matmul": (lambda x, w: lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w), x), x, w),
        "fori_new_carry": (
            lambda x, w: lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ w) + x, jnp.zeros(M)), x, w,
        ),
        "fori_writes": (cumulative_loop, x),
        "scan_carry": (lambda x: lax.scan(lambda c, r: (c + r, None), jnp.zeros(8), x)[0], x),
        "scan_results": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x), x),
        "scan_map": (lambda x: lax.map(jnp.sin, x), floats(*A)),
        "scan_map_batches": (lambda x: lax.map(jnp.sin, x, batch_size=4), floats(*A)),
        "scan_reverse": (
            lambda x: lax.scan(lambda c, r: (c * r + 1, c), jnp.ones((16, 24)), x, reverse=True), floats(*A),
        ),
        "scan_unrolled": (
            lambda x: lax.scan(lambda c, r: (c + r, c * 2), jnp.zeros(8), x, unroll=4)[1], x,
        ),
        "scan_matmul": (
            lambda x, w: lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(1)), x, w), x, floats(4, 8, 8),
        ),
        "scan_iota": (lambda x: lax.scan(lambda c, i: (c * 2, c + i), x, jnp.arange(4.0)), x),
        "grad_scan": (grad(rnn), floats(*A), floats(24, 24)),
        "rnn": (rnn, floats(*A), floats(24, 24)),
        "vmap_scan": (jax.vmap(lambda x: lax.scan(lambda c, r: (c + r, c), 0.0, x)[1]), x),
        "nested_scan": (
            lambda x: lax.scan(lambda c, r: (c, lax.scan(lambda d, s: (d + s, d), c, r)[1]), 0.0, x)[1], x,
        ),
        "custom_vjp": (grad(lambda x: jax.nn.relu(x) ** 2), x),
        "linearize": (lambda x: jax.linearize(jnp.sin, x)[1](x), x),
    }


def randoms() -> dict[str, tuple]:
    x = floats(*M)
    return {
        "random_normal": (lambda x: x + jax.random.normal(jax.random.wrap_key_data(KEY), M), x),
        "random_only": (lambda x: jax.random.uniform(jax.random.wrap_key_data(KEY), M), x),
        "dropout": (lambda x: jnp.where(jax.random.bernoulli(jax.random.wrap_key_data(KEY), 0.5, M), x, 0), x),
        "categorical": (lambda x: jax.random.categorical(jax.random.wrap_key_data(KEY), x), x),
        "permutation": (lambda x: jax.random.permutation(jax.random.wrap_key_data(KEY), x), x),
        "split_keys": (
            lambda k: jax.vmap(lambda k: jax.random.uniform(jax.random.wrap_key_data(k), (8,)))(k),
            np.arange(32, dtype=np.uint32).reshape(16, 2),
        ),
        "arange": (lambda x: x + jnp.arange(16.0)[:, None], x),
        "iota_only": (lambda x: jnp.arange(16.0) * 2, x),
        "linspace": (lambda x: x * jnp.linspace(0.0, 1.0, 8), x),
    }


def models() -> dict[str, tuple]:
    x = floats(16, 8)
    w1, w2 = floats(8, 32), floats(32, 8)
    heads = floats(8, 16, 4, 8)
    return {
        "mlp": (mlp, x, w1, w2),
        "loss": (loss, x, w1, w2),
        "train_step": (train_step, x, w1, w2),
        "attention": (attention, heads, heads + 1, heads - 1),
        "causal_attention": (
            lambda q: jnp.where(jnp.tril(jnp.ones((16, 16), bool)), jnp.einsum("bqhd,bkhd->bhqk", q, q), -1e9), heads,
        ),
        "grad_attention": (grad(attention), heads, heads + 1, heads - 1),
        "layer_norm": (layer_norm, x, positive(8)),
        "grad_layer_norm": (grad(layer_norm), x, positive(8)),
        "batch_norm": (lambda x: (x - x.mean((0, 1, 2))) / x.std((0, 1, 2)), floats(*IMAGE)),
        "cnn": (cnn, floats(8, 16, 16, 8), floats(3, 3, 8, 8), floats(3, 3, 8, 16)),
        "grad_cnn": (grad(cnn), floats(8, 16, 16, 8), floats(3, 3, 8, 8), floats(3, 3, 8, 16)),
        "embedding_loss": (
            lambda table, i: -jnp.take_along_axis(jax.nn.log_softmax(table[i] @ table.T), i[..., None], -1).mean(),
            floats(32, 16), whole(32, 8, 16),
        ),
        "moe": (moe, x, floats(8, 8), floats(8, 8, 16)),
        "grad_embedding": (grad(lambda table, i: table[i]), floats(32, 16), whole(32, 8, 16)),
        "vmap_matmul": (jax.vmap(lambda x, w: x @ w, (0, None)), x, w1),
        "vmap_grad": (jax.vmap(jax.grad(lambda x, w: jnp.tanh(x @ w).sum()), (0, None)), x, w1),
        "hessian_product": (lambda x: jax.jvp(jax.grad(lambda x: (jnp.sin(x) ** 3).sum()), (x,), (x,))[1], x),
        "jacobian": (jax.jacrev(lambda x: jnp.tanh(x) @ np.ones((8, 8), np.float32)), floats(8)),
        "grad_gather": (grad(lambda x, i: x[i]), floats(*M), whole(16, 8)),
        "grad_concatenate": (grad(lambda x, y: jnp.concatenate([x, y])), x, floats(*M)),
        "grad_pad": (grad(lambda x: jnp.pad(x, ((4, 4), (0, 0)))), x),
        "grad_slice": (grad(lambda x: x[4:12]), x),
        "grad_cumsum": (grad(lambda x: x.cumsum(0)), x),
        "grad_sort": (grad(lambda x: jnp.sort(x, 0)), x),
        "adam": (
            lambda w, g, m, v: (lambda m, v: (w - 0.1 * m / (jnp.sqrt(v) + 1e-3), m, v))(
                0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
            ),
            floats(*M), floats(*M), floats(*M), positive(*M),
        ),
        "stencil": (lambda x: x.at[1:-1].set((x[:-2] + x[2:]) / 2), x),
        "jacobi_loop": (
            lambda x: lax.fori_loop(0, 3, lambda _, x: x.at[1:-1].set((x[:-2] + x[2:]) / 2), x), x,
        ),
        "game_of_life": (
            lambda x: sum(jnp.roll(x, s, (0, 1)) for s in [(0, 1), (1, 0), (1, 1), (-1, 0)]), whole(2, 16, 16),
        ),
        "nbody": (lambda x: ((x[:, None] - x[None]) / (((x[:, None] - x[None]) ** 2).sum(-1, keepdims=True) + 1)).sum(1), floats(16, 4)),
        "power_iteration": (
            lambda a, v: lax.fori_loop(0, 4, lambda _, v: (lambda w: w / jnp.linalg.norm(w))(a @ v), v),
            definite(16, 16), positive(16),
        ),
    }


FAMILIES = [
    elementwise, reductions, movements, indexing, sorts, products, convolutions, transforms, control, randoms, models,
]


def functions() -> list[Function]:
    """Returns all functions; their names are different."""
    table: dict[str, tuple] = {}
    for family in FAMILIES:
        entries = family()
        assert not table.keys() & entries.keys(), table.keys() & entries.keys()
        table |= entries
    return [Function(name, function, arguments) for name, (function, *arguments) in table.items()]
