"""Writes tests/data/static.{jsonl,bin}: a small sample of programs with inputs and expected outputs.

    python make_sample.py

`cargo xtask corpus` runs it where no larger corpus is at hand. The programs are JAX functions as portable artifacts, the
expected outputs XLA's CPU backend's. A record's arrays and programs are byte ranges of the .bin file.
"""

import plugins

plugins.use("cpu")

import json  # noqa: E402
import pathlib  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import programs  # noqa: E402
from jax import lax  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[1] / "data"
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "bool": "i1", "int32": "i32", "int8": "i8"}
NAMES |= {"uint8": "ui8", "uint32": "ui32", "complex64": "complex<f32>"}
TOLERANCE = {
    "float32": {"ulp": 3, "rtol": 2e-5, "atol": 2e-6},
    "complex64": {"ulp": 3, "rtol": 2e-5, "atol": 2e-6},
    "float16": {"ulp": 3, "rtol": 4e-3, "atol": 1e-3},
    "bfloat16": {"ulp": 3, "rtol": 3e-2, "atol": 1e-2},
}


def f32(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def s32(*shape, low=-50, high=50, seed=0):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def scan(x):
    return lax.scan(lambda carry, x: (carry * 0.5 + x, carry.sum()), jnp.zeros(3), x)


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


SAMPLE = {
    "abs": (jnp.abs, f32(4, 5)),
    "add": (jnp.add, f32(4, 5), f32(4, 5, seed=1)),
    "add_bf16": (jnp.add, f32(9).astype(jnp.bfloat16), f32(9, seed=1).astype(jnp.bfloat16)),
    "add_f16": (jnp.add, f32(9).astype(np.float16), f32(9, seed=1).astype(np.float16)),
    "add_i32": (jnp.add, s32(7), s32(7, seed=1)),
    "add_i8": (jnp.add, s32(7).astype(np.int8) * 2, s32(7, seed=1).astype(np.int8) * 2),
    "and_bool": (jnp.logical_and, f32(9) > 0, f32(9, seed=1) > 0),
    "argmax": (lambda x: jnp.argmax(x, axis=1), f32(5, 9)),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (3, 4)), f32(3)),
    "compare_select": (lambda x, y: jnp.where(x < y, x, y * 2), f32(11), f32(11, seed=1)),
    "complex_multiply": (jnp.multiply, (f32(5) + 1j * f32(5, seed=1)).astype(np.complex64), f32(5, seed=2) * (1 + 2j)),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), f32(2, 3), f32(2, 4, seed=1)),
    "cond": (lambda i, x: lax.cond(i > 0, jnp.sin, jnp.cos, x), np.int32(1), f32(4)),
    "convolution": (lambda x, w: lax.conv(x, w, (2, 1), "SAME"), f32(1, 2, 7, 6), f32(3, 2, 3, 3, seed=1)),
    "cumsum": (jnp.cumsum, f32(20)),
    "divide": (jnp.divide, f32(8), f32(8, seed=1)),
    "divide_i32": (lax.div, s32(30), s32(30, low=1, seed=1)),
    "dot": (jnp.matmul, f32(5, 7), f32(7, 3, seed=1)),
    "dot_batched": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), f32(2, 3, 4), f32(2, 5, 4, seed=1)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 2), (2, 3)), f32(5, 6), np.int32(9)),
    "dynamic_update_slice": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)), f32(9), f32(3, seed=1), np.int32(4)),
    "exp": (jnp.exp, f32(33)),
    "gather": (lambda x, i: x[i], f32(6, 3), s32(4, low=0, high=6)),
    "grad": (jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)), f32(9)),
    "iota": (lambda: lax.broadcasted_iota(jnp.int32, (3, 5), 1),),
    "logistic": (jax.nn.sigmoid, f32(33)),
    "max_pool": (pool, f32(1, 6, 4, 2)),
    "pad": (lambda x: lax.pad(x, 1.5, ((1, 2, 1), (-1, 0, 0))), f32(4, 5)),
    "random_bits": (lambda key: jax.random.bits(key, (13,)), np.array([1, 2], np.uint32)),
    "reduce_max": (lambda x: jnp.max(x, axis=(0, 2)), f32(3, 4, 5)),
    "reduce_sum": (lambda x: jnp.sum(x, axis=1), f32(4, 50)),
    "reverse": (lambda x: x[::-1], f32(5, 2)),
    "scan": (scan, f32(6, 3)),
    "scatter_add": (lambda x, i, u: x.at[i].add(u), f32(8), s32(5, low=0, high=8), f32(5, seed=1)),
    "shift_right": (lambda x: x >> 3, s32(20)),
    "softmax": (jax.nn.softmax, f32(4, 10)),
    "sort": (lambda x: jnp.sort(x, axis=1), f32(3, 20)),
    "sort_pairs": (lambda k, v: lax.sort((k, v), num_keys=1), s32(30, low=0, high=5), s32(30, seed=1)),
    "top_k": (lambda x: lax.top_k(x, 3), f32(2, 12)),
    "transpose": (lambda x: jnp.transpose(x, (2, 0, 1)), f32(2, 3, 4)),
    "while": (lambda n: lax.while_loop(lambda s: s < 1000, lambda s: s * 3 + 1, n), np.int32(2)),
}


class Blob:
    """Byte ranges in one file, each aligned to 64 bytes."""

    def __init__(self):
        self.data = bytearray()

    def add(self, data):
        self.data += bytes(-len(self.data) % 64)
        place = {"off": len(self.data), "len": len(data)}
        self.data += data
        return place


def array(blob, value):
    return {"dtype": NAMES[value.dtype.name], "shape": list(value.shape), **blob.add(value.tobytes())}


def record(blob, name, function, inputs):
    # Without locations, which would hold the paths of the machine that this runs on.
    program = programs.text_to_artifact(jax.jit(function).lower(*inputs).as_text())
    outputs = [np.asarray(output) for output in jax.tree.leaves(jax.jit(function)(*inputs))]
    return {
        "name": name,
        "group": "static",
        "category": "static",
        "kind": "exec",
        "programs": {"vhlo": {**blob.add(program), "version": programs.VERSION}},
        "inputs": [array(blob, np.asarray(value)) for value in inputs],
        "outputs": [{**array(blob, v), "tol": TOLERANCE.get(v.dtype.name, {"exact": True})} for v in outputs],
        "expected_from": "xla_cpu",
    }


def main():
    jax.config.update("jax_default_matmul_precision", "highest")
    blob = Blob()
    lines = []
    for name, (function, *inputs) in SAMPLE.items():
        inputs = [value.astype(np.complex64) if value.dtype == np.complex128 else value for value in inputs]
        lines.append(json.dumps(record(blob, name, function, inputs)))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "static.jsonl").write_text("\n".join(lines) + "\n")
    (FOLDER / "static.bin").write_bytes(blob.data)
    print(f"{len(lines)} programs in {FOLDER}")


if __name__ == "__main__":
    main()
