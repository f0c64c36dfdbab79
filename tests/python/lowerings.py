"""Writes what JAX makes of many functions, in every form in which a program leaves JAX.

    python lowerings.py FOLDER [--hlo]

FOLDER gets `manifest.jsonl`, one object a line: `name`, `format` (`mlir-text`, `mlir-bytecode`, `hlo`) and `program`, the file;
and those files: the text, the text with locations, the portable artifact, and with `--hlo` the HloModuleProto before XLA's passes.

Runs with JAX from 0.4.35 on. A function that a release does not have, or that it cannot lower, is left out and named.
"""

import argparse
import io
import json
import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import export, lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib.mlir.dialects import stablehlo

f32, f64, bf16, f16 = jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16
i8, i32, i64, u8, u32 = jnp.int8, jnp.int32, jnp.int64, jnp.uint8, jnp.uint32
c64 = jnp.complex64


def of(*shape, dtype=f32):
    """An argument: its shape and type."""
    return jax.ShapeDtypeStruct(shape, dtype)


X, Y, V, W = of(4, 6), of(6, 3), of(6), of(4)
S, B, I, U = of(), of(4, 6, dtype=bool), of(4, 6, dtype=i32), of(4, 6, dtype=u32)
Z, SQUARE, BATCH = of(4, 6, dtype=c64), of(5, 5), of(2, 5, 5)
IMAGE, KERNEL = of(2, 9, 8, 3), of(3, 2, 3, 4)
INDEX, KEY = of(3, dtype=i32), of(2, dtype=u32)

FUNCTIONS = {}
# More than releases lack: the share of lowerings that may fail.
MAX_LEFT_OUT = 0.05


def add(name, function, *arguments, **options):
    """A function to lower; `options` are those of jax.jit."""
    assert name not in FUNCTIONS, name
    FUNCTIONS[name] = (function, arguments, options)


def program(*arguments, **options):
    """Adds the function that follows."""
    return lambda function: add(function.__name__, function, *arguments, **options) or function


UNARY_FLOAT = """abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh digamma erf erf_inv erfc exp
exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal round rsqrt sign sin sinh sqrt square tan tanh""".split()
for _name in UNARY_FLOAT:
    for _label, _argument in {"f32": X, "bf16": of(3, dtype=bf16), "f64": of(dtype=f64)}.items():
        add(f"lax_{_name}_{_label}", lambda x, n=_name: getattr(lax, n)(x), _argument)
for _name in "abs acos asin atan conj cos cosh exp imag log log1p neg real rsqrt sign sin sinh sqrt tan tanh".split():
    add(f"lax_{_name}_c64", lambda x, n=_name: getattr(lax, n)(x), Z)
for _name in "abs bitwise_not clz neg population_count sign".split():
    for _label, _argument in {"i32": I, "i8": of(7, dtype=i8)}.items():
        add(f"lax_{_name}_{_label}", lambda x, n=_name: getattr(lax, n)(x), _argument)
for _name in "add atan2 div eq ge gt igamma igammac le lt max min mul ne nextafter pow rem sub zeta polygamma".split():
    add(f"lax_{_name}_f32", lambda x, y, n=_name: getattr(lax, n)(x, y), X, X)
for _name in """add bitwise_and bitwise_or bitwise_xor div eq ge max min mul mulhi ne rem shift_left shift_right_arithmetic
shift_right_logical sub""".split():
    for _label, _argument in {"i32": I, "u32": U}.items():
        add(f"lax_{_name}_{_label}", lambda x, y, n=_name: getattr(lax, n)(x, y), _argument, _argument)
for _name in "add complex div eq mul pow sub".split():
    _argument = X if _name == "complex" else Z
    add(f"lax_{_name}_c64", lambda x, y, n=_name: getattr(lax, n)(x, y), _argument, _argument)
for _name in "and or xor not".split():
    add(f"logical_{_name}", lambda *x, n=_name: getattr(jnp, f"logical_{n}")(*x), *[B] * (1 if _name == "not" else 2))
add("betainc", lambda a, b, x: lax.betainc(a, b, x), X, X, X)
add("random_gamma_grad", lambda a, x: lax.random_gamma_grad(a, x), X, X)
add("integer_pow", lambda x: x**5, X)
add("clamp", lambda x: lax.clamp(jnp.float32(0), x, jnp.float32(1)), X)
add("select_n", lambda p, x, y: lax.select_n(p, x, y), B, X, X)
add("nan_to_num", jnp.nan_to_num, X)

TYPES = [
    "bool_", "int4", "uint4", "int2", "uint2", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn",
]  # fmt: skip
for _name in TYPES:
    add(f"convert_to_{_name}", lambda x, n=_name: x.astype(getattr(jnp, n)), X)
    add(f"constant_{_name}", lambda n=_name: jnp.asarray(np.arange(6).reshape(2, 3), getattr(jnp, n)))
add("bitcast_narrower", lambda x: lax.bitcast_convert_type(x, u8), X)
add("bitcast_wider", lambda x: lax.bitcast_convert_type(x, i32), of(3, 4, dtype=u8))
add("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), X)
add("splat_constants", lambda: (jnp.zeros((3, 4)), jnp.ones(7, i32), jnp.full((2,), True), jnp.full((), jnp.nan)))
add("special_constants", lambda: jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0, 1e-45, 3.4e38], f32))
add("bool_constant", lambda: jnp.arange(19) % 3 == 0)
add("literal_bools", lambda: np.arange(19) % 3 == 0)
add("large_constant", lambda x: x + np.random.RandomState(0).randn(40, 50).astype(np.float32), of(40, 50))
add("complex_constant", lambda: np.array([1 + 2j, -0.5j], np.complex64))

# Shapes and indices.
add("reshape", lambda x: x.reshape(3, 2, 4), X)
add("transpose", lambda x: jnp.transpose(x, (2, 0, 1)), of(2, 3, 4))
add("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (2, 4, 6), (1, 2)), X)
add("concatenate", lambda x, y: jnp.concatenate([x, y, x], 0), X, X)
add("pad", lambda x: lax.pad(x, jnp.float32(0), [(1, -1, 2), (0, 3, 0)]), X)
add("slice_strided", lambda x: x[1::2, ::-1], X)
add("rev", lambda x: lax.rev(x, (0, 1)), X)
add("iota", lambda: lax.broadcasted_iota(i32, (3, 5), 1))
add("eye_tri", lambda: (jnp.eye(4), jnp.tri(3), jnp.tril(jnp.ones((3, 3)))))
add("linspace", lambda a, b: jnp.linspace(a, b, 7), S, S)
add("roll", lambda x, n: jnp.roll(x, n, 1), X, of(dtype=i32))
add("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)), X, of(dtype=i32))
add("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), X, of(2, 2), of(dtype=i32))
add("gather_rows", lambda x, i: x[i], X, INDEX)
add("gather_pairs", lambda x, i: x[i, i], X, INDEX)
add("gather_fill", lambda x, i: x.at[i].get(mode="fill", fill_value=0), X, INDEX)
add("gather_clip", lambda x, i: jnp.take(x, i, axis=1, mode="clip"), X, INDEX)
add("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), X, of(4, 2, dtype=i32))
add("gather_batched", jax.vmap(lambda x, i: x[i]), of(3, 7), of(3, 2, dtype=i32))
for _name in ["set", "add", "multiply", "min", "max"]:
    add(f"scatter_{_name}", lambda x, i, u, n=_name: getattr(x.at[i], n)(u), X, INDEX, of(3, 6))
add("scatter_batched", jax.vmap(lambda x, i, u: x.at[i].add(u)), of(3, 7), of(3, 2, dtype=i32), of(3, 2))
add("scatter_apply", lambda x, i: x.at[i].apply(jnp.sin), X, INDEX)
add("scatter_sorted_unique", lambda x, i: x.at[i].set(0.0, indices_are_sorted=True, unique_indices=True), X, INDEX)
add("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, num_segments=3), X, of(4, dtype=i32))
add("one_hot", lambda i: jax.nn.one_hot(i, 5), INDEX)
add("where_nonzero", lambda x: jnp.nonzero(x, size=3), V)
add("searchsorted", lambda x, y: jnp.searchsorted(x, y), V, W)
add("histogram", lambda x: jnp.histogram(x, bins=5), V)
add("bincount", lambda i: jnp.bincount(i, length=4), INDEX)
add("unique", lambda i: jnp.unique(i, size=3), INDEX)
add("interp", lambda x, y, z: jnp.interp(x, y, z), W, V, V)
add("meshgrid", lambda x, y: jnp.meshgrid(x, y), V, W)
add("split", lambda x: jnp.split(x, 3, 1), X)
add("stack_tile_repeat", lambda x: (jnp.stack([x, x]), jnp.tile(x, (2, 1)), jnp.repeat(x, 2)), X)

# Reductions and windows.
for _name in "sum prod max min mean var std any all argmax argmin median ptp nansum nanmax cumsum cumprod".split():
    add(f"jnp_{_name}", lambda x, n=_name: getattr(jnp, n)(x, axis=1), X)
add("quantile", lambda x: jnp.quantile(x, 0.3, axis=0), X)
add("logsumexp", lambda x: jsp.special.logsumexp(x, axis=1), X)
for _name in ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]:
    add(f"lax_{_name}_reverse", lambda x, n=_name: getattr(lax, n)(x, axis=1, reverse=True), X)
add("reduce_custom", lambda x: lax.reduce(x, np.float32(1), lambda a, b: a * b + 1, (0,)), X)
add("reduce_pair", lambda x, i: lax.reduce((x, i), (np.float32(0), np.int32(0)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)), X, I)
add("reduce_and_or", lambda b: (jnp.all(b, 0), jnp.any(b), lax.reduce_xor(b, (0,))), B)
add("max_pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), IMAGE)
add("avg_pool_dilated", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", None, (1, 2, 2, 1)), IMAGE)
add("max_pool_grad", jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()), IMAGE)
add("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x, axis=1), X)
add("sort", lambda x: jnp.sort(x, axis=0), X)
add("argsort_descending", lambda x: jnp.argsort(x, descending=True), X)
add("sort_pairs", lambda x, i: lax.sort((x, i), dimension=1, num_keys=1), X, I)
add("sort_two_keys", lambda x, i: lax.sort((i, x), dimension=0, num_keys=2, is_stable=False), X, I)
add("top_k", lambda x: lax.top_k(x, 3), X)
add("approx_max_k", lambda x: lax.approx_max_k(x, 2), of(3, 64))

# Products.
add("matmul", lambda x, y: x @ y, X, Y)
add("matvec", lambda x, v: x @ v, X, V)
add("dot_batched", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), BATCH, BATCH)
add("einsum_many", lambda x, y, z: jnp.einsum("ij,jk,kl->li", x, y, z), X, Y, of(3, 4))
add("dot_highest", lambda x, y: lax.dot(x, y, precision=lax.Precision.HIGHEST), X, Y)
add("dot_high_default", lambda x, y: lax.dot(x, y, precision=("high", "default")), X, Y)
add("dot_preferred", lambda x, y: lax.dot(x, y, preferred_element_type=f32), of(3, 4, dtype=bf16), of(4, 5, dtype=bf16))
add("dot_integers", lambda x, y: lax.dot(x, y, preferred_element_type=i32), of(3, 4, dtype=i8), of(4, 5, dtype=i8))
for _name in ["F32_F32_F32", "BF16_BF16_F32", "BF16_BF16_F32_X3", "TF32_TF32_F32", "F16_F16_F32", "BF16_BF16_F32_X9"]:
    add(f"dot_algorithm_{_name}", lambda x, y, n=_name: lax.dot(x, y, precision=getattr(lax.DotAlgorithmPreset, n)), X, Y)
add("ragged_dot", lambda x, y, n: lax.ragged_dot(x, y, n), of(8, 4), of(3, 4, 5), of(3, dtype=i32))
add("tensordot_kron_outer", lambda x, v: (jnp.tensordot(x, x, 2), jnp.kron(x, x), jnp.outer(v, v)), X, V)
add("conv", lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGE, KERNEL)
add("conv_padded", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), [(1, 2), (-1, 0)], (2, 1), (1, 2), ("NHWC", "HWIO", "NCHW")), IMAGE, KERNEL)
add("conv_groups", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", feature_group_count=3), of(2, 3, 8, 8), of(6, 1, 3, 3))
add("conv_batch_groups", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "VALID", batch_group_count=2), of(2, 3, 8, 8), of(6, 3, 3, 3))
add("conv_1d", lambda x, k: jnp.convolve(x, k, "same"), of(9), of(3))
add("conv_3d", lambda x, k: lax.conv(x, k, (1, 1, 1), "SAME"), of(1, 2, 4, 5, 6), of(3, 2, 2, 2, 2))
add("conv_transpose", lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), IMAGE, of(2, 2, 3, 4))
add("conv_grad", jax.grad(lambda x, k: lax.conv(x, k, (2, 2), "SAME").sum(), (0, 1)), of(1, 2, 8, 8), of(3, 2, 3, 3))
add("conv_precision", lambda x, k: lax.conv(x, k, (1, 1), "SAME", precision="highest"), of(1, 2, 8, 8), of(3, 2, 3, 3))

# Control flow.
add("cond", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x), of(dtype=bool), X)
add("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x.sum() + x], x), of(dtype=i32), X)
add("while_loop", lambda x: lax.while_loop(lambda s: s[1] < 9, lambda s: (s[0] * 2, s[1] + 1), (x, 0)), X)
add("fori_loop", lambda x, n: lax.fori_loop(0, n, lambda i, x: x.at[i].add(i), x), V, of(dtype=i32))
add("scan", lambda x: lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(6), x), X)
add("scan_reverse_unroll", lambda x: lax.scan(lambda c, x: (c + x, None), jnp.zeros(6), x, reverse=True, unroll=2), X)
add("map", lambda x: lax.map(lambda v: jnp.sort(v), x), X)
add("nested_control", lambda x: lax.scan(lambda c, v: (lax.cond(c > 0, lambda: v.sum(), lambda: lax.while_loop(lambda a: a < 3, lambda a: a + 1, c)), c), f32(0), x), X)
add("scan_grad", jax.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), c), jnp.zeros(6, f32), x)[0].sum()), X)
add("while_jvp", lambda x: jax.jvp(lambda x: lax.while_loop(lambda s: s.sum() < 9, lambda s: s * 2, x), (x,), (x,)), X)
add("cond_vmap", jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), of(4, dtype=bool), of(4))
add("custom_root", lambda x: lax.custom_root(lambda y: y**2 - x, x, lambda f, y: lax.fori_loop(0, 9, lambda i, y: y - f(y) / (2 * y), y), lambda g, y: y / g(f32(1))), S)
add("linear_solve_cg", lambda a, b: jsp.sparse.linalg.cg(a, b, maxiter=3)[0], SQUARE, of(5))
add("tokens_ordered", lambda x: (jax.debug.print("{}", x, ordered=True), x)[1], S)
add("pure_callback", lambda x: jax.pure_callback(np.sin, x, x), X)
add("io_callback", lambda x: jax.experimental.io_callback(np.sin, x, x), X)
add("optimization_barrier", lambda x, y: lax.optimization_barrier((x, y)), X, Y)

# Differentiation and transformations.
add("grad_mlp", jax.grad(lambda w, x: jnp.mean(jax.nn.relu(x @ w) ** 2)), Y, X)
add("hessian", jax.hessian(lambda v: jnp.sum(jnp.sin(v) ** 3)), V)
add("jacfwd", jax.jacfwd(lambda v: jnp.cumsum(jnp.exp(v))), V)
add("jacrev_vmap", jax.vmap(jax.jacrev(lambda v: jnp.outer(v, v))), X)
add("checkpoint_grad", jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()), X)
add("linearize", lambda x: jax.linearize(jnp.tanh, x)[1](x), X)
add("stop_gradient", jax.grad(lambda x: (x * lax.stop_gradient(x)).sum()), X)


@jax.custom_jvp
def _softplus(x):
    return jnp.log1p(jnp.exp(x))


_softplus.defjvp(lambda primals, tangents: (_softplus(*primals), tangents[0] * jax.nn.sigmoid(primals[0])))
add("custom_jvp_grad", jax.grad(lambda x: _softplus(x).sum()), X)


@jax.custom_vjp
def _clip_gradient(x):
    return x


_clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
add("custom_vjp_grad", jax.grad(lambda x: (_clip_gradient(x) ** 2).sum()), X)
add("nested_jit", lambda x: jax.jit(jnp.sin)(x) + jax.jit(lambda y: jax.jit(jnp.cos)(y), inline=False)(x), X)
add("named_scope", lambda x: jax.named_scope("layer/1")(jnp.tanh)(x), X)
add("donated", lambda x: x + 1, X, donate_argnums=0)
add("unused_kept", lambda x, y: x * 2, X, Y, keep_unused=True)
add("trees", lambda d: {"a": d["b"][0] + 1, "c": (d["b"][1], None)}, {"b": [X, Y]})
add("no_results", lambda x: (), X)
add("tuples_many", lambda *x: x[::-1], X, Y, V, W)

# Neural networks.
for _name in """celu elu gelu glu hard_sigmoid hard_swish hard_tanh leaky_relu log_sigmoid log_softmax mish relu relu6 selu
sigmoid silu softmax softplus soft_sign sparse_plus squareplus standardize""".split():
    add(f"nn_{_name}", lambda x, n=_name: getattr(jax.nn, n)(x), X)
add("nn_gelu_exact", lambda x: jax.nn.gelu(x, approximate=False), X)
add("attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), *[of(2, 8, 4, 16)] * 3)


@program(of(2, 7, 16), of(16, 48), of(16, 16), of(16, 64), of(64, 16))
def transformer(x, qkv, out, up, down):
    def normed(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    q, k, v = jnp.split(normed(x) @ qkv, 3, -1)
    scores = jnp.einsum("bqc,bkc->bqk", q, k) / 4
    scores = jnp.where(jnp.tril(jnp.ones((7, 7), bool)), scores, -jnp.inf)
    x = x + jax.nn.softmax(scores) @ v @ out
    return x + jax.nn.gelu(normed(x) @ up) @ down


add("transformer_grad", jax.grad(lambda *a: transformer(*a).sum(), (1, 2, 3)), *FUNCTIONS["transformer"][1])


@program(of(2, 8, 8, 3), of(3, 3, 3, 8), of(8, 10), of(2, dtype=i32))
def convnet_grad(x, kernel, head, labels):
    def loss(kernel, head):
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = y.mean((1, 2)) @ head
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return jax.value_and_grad(loss, (0, 1))(kernel, head)


# Random numbers.
for _name in """normal uniform bits gumbel exponential laplace logistic cauchy bernoulli rademacher truncated_normal gamma beta
dirichlet poisson categorical permutation choice randint multivariate_normal ball orthogonal rayleigh maxwell pareto t
double_sided_maxwell generalized_normal weibull_min triangular wald geometric binomial chisquare f lognormal""".split():
    _further = {
        "truncated_normal": (-1.0, 1.0), "gamma": (2.0,), "beta": (2.0, 3.0), "dirichlet": (np.ones(3, np.float32),),
        "poisson": (3.0,), "categorical": (np.zeros(4, np.float32),), "permutation": (6,), "choice": (6,), "randint": ((3,), 0, 9),
        "multivariate_normal": (np.zeros(2, np.float32), np.eye(2, dtype=np.float32)), "ball": (3,), "orthogonal": (3,),
        "rayleigh": (1.0,), "pareto": (2.0,), "t": (3.0,), "double_sided_maxwell": (0.0, 1.0), "generalized_normal": (2.0,),
        "weibull_min": (1.0, 2.0), "triangular": (0.0, 0.5, 1.0), "wald": (1.0,), "geometric": (0.5,), "binomial": (5, 0.5),
        "chisquare": (3.0,), "f": (3.0, 4.0),
    }.get(_name, ())  # fmt: skip
    add(f"random_{_name}", lambda k, n=_name, a=_further: getattr(jax.random, n)(k, *a), KEY)
add("random_split_fold", lambda k: jax.random.fold_in(jax.random.split(k, 3)[1], 7), KEY)
for _name in ["rbg", "unsafe_rbg", "threefry2x32"]:
    add(f"random_key_{_name}", lambda s, n=_name: jax.random.normal(jax.random.key(s, impl=n), (3,)), of(dtype=i32))
add("rng_bit_generator", lambda k: lax.rng_bit_generator(k, (3, 4)), of(4, dtype=u32))
add("rng_uniform", lambda a, b: lax.rng_uniform(a, b, (3,)), S, S)

# Linear algebra and transforms.
for _name in "cholesky det inv qr slogdet pinv svd eigh matrix_rank eigvalsh".split():
    add(f"linalg_{_name}", lambda x, n=_name: getattr(jnp.linalg, n)(x), BATCH if _name != "matrix_rank" else SQUARE)
for _name in ["eig", "eigvals"]:
    add(f"linalg_{_name}", lambda x, n=_name: getattr(jnp.linalg, n)(x), SQUARE)
add("linalg_solve", jnp.linalg.solve, SQUARE, of(5, 2))
add("linalg_lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], of(6, 4), of(6, 2))
add("linalg_norm_power", lambda x: (jnp.linalg.norm(x, 2), jnp.linalg.matrix_power(x, 3)), SQUARE)
add("triangular_solve", lambda a, b: jsp.linalg.solve_triangular(a, b, trans=1, lower=True, unit_diagonal=True), SQUARE, of(5, 2))
add("triangular_solve_complex", lambda a, b: jsp.linalg.solve_triangular(a, b, trans=2), of(3, 3, dtype=c64), of(3, 2, dtype=c64))
add("lu", lambda a: jsp.linalg.lu(a), SQUARE)
add("expm", jsp.linalg.expm, SQUARE)
add("schur", lambda a: jsp.linalg.schur(a), SQUARE)
add("cholesky_grad", jax.grad(lambda a: jnp.linalg.cholesky(a).sum()), SQUARE)
add("tridiagonal_solve", lambda a, b, c, d: lax.linalg.tridiagonal_solve(a, b, c, d), V, V, V, of(6, 2))
for _name in "fft ifft rfft fft2 ifftn rfftn fftshift".split():
    add(f"fft_{_name}", lambda x, n=_name: getattr(jnp.fft, n)(x), of(4, 8))
add("fft_irfft", lambda x: jnp.fft.irfft(x, 8), Z)
add("fft_grad", jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()), V)
for _name in "bessel_jn betaln digamma entr expi gammainc i0 i1 logit ndtr ndtri xlogy erf gammaln expit zeta".split():
    _arity = {"betaln": 2, "gammainc": 2, "xlogy": 2, "zeta": 2}.get(_name, 1)
    if _name != "bessel_jn":
        add(f"special_{_name}", lambda *x, n=_name: getattr(jsp.special, n)(*x), *[X] * _arity)
add("special_bessel_jn", lambda x: jsp.special.bessel_jn(x, v=3), V)
add("map_coordinates", lambda x, c: jsp.ndimage.map_coordinates(x, list(c), order=1), X, of(2, 5))
add("image_resize", lambda x: jax.image.resize(x, (2, 5, 4, 3), "bilinear"), IMAGE)
add("polynomial", lambda p, x: (jnp.polyval(p, x), jnp.convolve(p, p)), W, S)


# Devices.
def _mesh(*names):
    return Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(names)), names)


def _sharded(spec, *arguments):
    """Arguments with a sharding over a mesh of one device."""
    mesh = _mesh("x", "y")
    return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, spec)) for a in arguments]


def _shard_map(function, in_specs, out_specs):
    """shard_map, wherever this release has it."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(function, mesh=_mesh("x"), in_specs=in_specs, out_specs=out_specs)
    from jax.experimental.shard_map import shard_map

    return shard_map(function, _mesh("x"), in_specs, out_specs)


add("sharded_arguments", lambda x, y: x @ y, *_sharded(P("x", "y"), X, Y))
add("sharding_constraint", lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(_mesh("x", "y"), P("y", None))), *_sharded(P("x"), X))
add("sharded_out", lambda x: x + 1, X, out_shardings=NamedSharding(_mesh("x"), P("x")))
add("sharding_unconstrained", lambda x: lax.with_sharding_constraint(x, NamedSharding(_mesh("x"), P(P.UNCONSTRAINED, "x"))), X)
for _name, _body in {
    "psum": lambda x: lax.psum(x, "x"),
    "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.psum(lax.all_gather(x, "x", tiled=True), "x"),
    "ppermute": lambda x: lax.psum(lax.ppermute(x, "x", [(0, 0)]), "x"),
    "psum_scatter": lambda x: lax.psum(lax.psum_scatter(x, "x", tiled=True), "x"),
    "all_to_all": lambda x: lax.psum(lax.all_to_all(x, "x", 0, 0, tiled=True), "x"),
    "axis_index": lambda x: lax.psum(x * lax.axis_index("x"), "x"),
}.items():
    add(f"shard_map_{_name}", lambda x, b=_body: _shard_map(b, P("x"), P())(x), X)
add("shard_map_while", lambda x: _shard_map(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x), P("x"), P("x"))(x), X)
add("shard_map_grad", lambda x: jax.grad(lambda x: _shard_map(lambda x: lax.psum(x * x, "x"), P("x"), P())(x).sum())(x), X)
add("memory_kind", lambda x: jax.device_put(x, NamedSharding(_mesh("x"), P(), memory_kind="unpinned_host")) * 2, X)

# Functions of symbolic sizes: the sizes of each argument, and the function.
DYNAMIC = {
    "add": (lambda x, y: x + y, "a, b", "a, b"),
    "broadcast": (lambda x, y: x + y, "a, b", "b"),
    "reshape": (lambda x: x.reshape(-1), "a, b"),
    "matmul": (lambda x, y: x @ y, "a, b", "b, 3"),
    "softmax": (lambda x: jax.nn.softmax(x), "a, b"),
    "pad_slice": (lambda x: jnp.pad(x, 2)[1:-1, ::2], "a, b"),
    "gather": (lambda x: x[jnp.arange(x.shape[0]) % 2], "a, 4"),
    "iota": (lambda x: x * jnp.arange(x.shape[0]), "a"),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), "a, b"),
    "sort_cumsum": (lambda x: (jnp.sort(x), jnp.cumsum(x)), "a"),
    "convolution": (lambda x: lax.conv(x, jnp.ones((4, 3, 2, 2), f32), (1, 1), "VALID"), "a, 3, b, b"),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), jnp.zeros(x.shape[1:], f32), x), "a, b"),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1, 0), (1, x.shape[1])), "a, b"),
    "top_k": (lambda x: lax.top_k(x, 2), "a, 9"),
    "random": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape, f32), "a, 2"),
}


def forms(name, platforms, hlo):
    """The forms of a function: suffix, format, content."""
    function, arguments, options = FUNCTIONS[name]
    lowered = jax.jit(function, **options).trace(*arguments).lower(lowering_platforms=platforms)
    module = lowered.compiler_ir("stablehlo")
    yield "", "mlir-text", lowered.as_text().encode()
    # Releases differ in how they are asked for locations.
    yield ".debug", "mlir-text", module.operation.get_asm(enable_debug_info=True).encode()
    yield ".artifact", "mlir-bytecode", artifact(module, stablehlo.get_current_version())
    if hlo:
        yield ".hlo", "hlo", lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()


def dynamic_forms(name):
    """The forms of a function of symbolic sizes, as jax.export has them."""
    function, *sizes = DYNAMIC[name]
    scope = export.SymbolicScope()
    shapes = [jax.ShapeDtypeStruct(export.symbolic_shape(size, scope=scope), f32) for size in sizes]
    exported = export.export(jax.jit(function), platforms=["tpu"])(*shapes)
    yield "", "mlir-text", exported.mlir_module().encode()
    yield ".artifact", "mlir-bytecode", exported.mlir_module_serialized


def artifact(module, version):
    """What a client sends: CHLO operations are expanded, and Shardy's stay as they are where a release can do that."""
    try:
        from jax._src.lib import _jax as xla
    except ImportError:
        from jax._src.lib import xla_client

        xla = xla_client._xla
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    serialize = xla.mlir.serialize_portable_artifact
    if "use_mixed_serialization" in serialize.__doc__:
        return serialize(bytecode.getvalue(), version, True)
    return serialize(bytecode.getvalue(), version)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--hlo", action="store_true", help="HloModuleProtos too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    # Another platform than the CPU has no rules that are only the CPU's.
    makers = {name: lambda name=name: forms(name, None, options.hlo) for name in FUNCTIONS}
    makers |= {f"{name}.tpu": lambda name=name: forms(name, ("tpu",), options.hlo) for name in FUNCTIONS}
    makers |= {f"dynamic_{name}": lambda name=name: dynamic_forms(name) for name in DYNAMIC}
    left_out, written = [], 0
    with (options.folder / "manifest.jsonl").open("w") as manifest:
        for name, make in makers.items():
            try:
                made = list(make())
            except Exception as error:  # Whatever a release does not have.
                reason = (str(error).splitlines() or [""])[0][:150]
                left_out.append(f"left out: {name}: {type(error).__name__}: {reason}")
                continue
            for suffix, form, content in made:
                path = options.folder / f"{name}{suffix}"
                path.write_bytes(content)
                manifest.write(json.dumps({"name": name + suffix, "format": form, "program": path.name}) + "\n")
                written += 1
    print(*left_out, sep="\n")
    print(f"JAX {jax.__version__}: {len(makers) - len(left_out)} of {len(makers)} lowerings, {written} programs")
    return 0 if len(left_out) <= MAX_LEFT_OUT * len(makers) else 1


if __name__ == "__main__":
    sys.exit(main())
