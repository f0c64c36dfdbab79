"""Runs decomposed programs on XLA's CPU backend: they compute what the originals do.

`cargo test -p pjrt-stablehlo --test decompose_corpus` writes the programs to the folder PJRT_DECOMPOSED; the expected
values are in the corpus, PJRT_CORPUS. Without both the test is skipped.
"""

import json
import os
import pathlib

import numpy as np
import pytest

DECOMPOSED = os.environ.get("PJRT_DECOMPOSED")
CORPUS = os.environ.get("PJRT_CORPUS")

pytestmark = pytest.mark.skipif(
    not (DECOMPOSED and CORPUS), reason="PJRT_DECOMPOSED and PJRT_CORPUS have to be set"
)

def dtype_of(name):
    import ml_dtypes

    plain = {"i1": "bool", "complex<f32>": "complex64", "complex<f64>": "complex128", "bf16": "bfloat16"}
    if name in plain:
        name = plain[name]
    elif name.startswith("ui"):
        name = "uint" + name[2:]
    elif name.startswith("i"):
        name = "int" + name[1:]
    elif name in ("f16", "f32", "f64"):
        name = "float" + name[1:]
    elif name.startswith("f"):
        name = "float" + name[1:].lower()
    return np.dtype(getattr(ml_dtypes, name, name))


def read(blob, place):
    dtype = dtype_of(place["dtype"])
    data = np.frombuffer(blob, np.uint8, place["len"], place["off"])
    if place["dtype"] in ("i2", "i4"):
        data = data.view(np.int8)
    elif place["dtype"] not in ("ui2", "ui4"):
        data = data.view(dtype)
    return data.astype(dtype).reshape(place["shape"])


def ordered_bits(values):
    """Floats as integers in their order."""
    bits = values.view(f"i{values.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{values.dtype.itemsize}").min - bits, bits)


def passes(actual, expected, tol):
    """The corpus's criterion, for each element."""
    if np.issubdtype(expected.dtype, np.complexfloating):
        magnitude = np.abs(expected)
        return passes_real(actual.real, expected.real, tol, magnitude) & passes_real(
            actual.imag, expected.imag, tol, magnitude
        )
    return passes_real(actual, expected, tol, None)


def passes_real(actual, expected, tol, magnitude):
    if expected.dtype.kind in "biu" or "int" in expected.dtype.name:
        return actual == expected
    nan = np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    ok = (actual == expected) | nan
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(e)
    if "ulp" in tol and expected.dtype.itemsize > 1:
        ok |= finite & (np.abs(ordered_bits(actual) - ordered_bits(expected)) <= tol["ulp"])
    if "atol" in tol or "rtol" in tol:
        scale = np.abs(e) if magnitude is None else magnitude.astype(np.float64)
        with np.errstate(all="ignore"):
            ok |= finite & (np.abs(a - e) <= tol.get("atol", 0) + tol.get("rtol", 0) * scale)
    return ok


def records():
    for path in sorted(pathlib.Path(CORPUS).glob("*.jsonl")):
        blob = path.with_suffix(".bin").read_bytes()
        for line in path.open():
            record = json.loads(line)
            if record["kind"] == "exec" and "inputs" in record:
                yield blob, record


def run(text, inputs):
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    backend = jax.devices("cpu")[0].client
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        overrides = {"xla_allow_excess_precision": "False"}
        options = compiler.get_compile_options(1, 1, env_options_overrides=overrides)
        devices = xla_client.DeviceList(tuple(jax.devices("cpu")[:1]))
        executable = backend.compile_and_load(module, devices, options)
    arrays = [jax.device_put(value) for value in inputs]
    results = executable.execute_sharded(arrays)
    return [np.asarray(parts[0]) for parts in results.disassemble_into_single_device_arrays()]


@pytest.mark.parametrize("core", ["default", "smallest"])
def test_decomposed_programs_compute_the_same(core):
    import jax

    jax.config.update("jax_enable_x64", True)
    only = os.environ.get("PJRT_DECOMPOSED_ONLY", "")
    failures, count = [], 0
    for blob, record in records():
        for form in ("vhlo", "mlir"):
            name = f"{record['group']}/{record['name']}"
            path = pathlib.Path(DECOMPOSED, core, f"{name}.{form}.mlir")
            if only not in str(path) or not path.exists():
                continue
            # Where XLA differs on the original, it says nothing about the decomposition.
            if record["anchors"].get("xla_cpu", {}).get("status", "pass") != "pass":
                continue
            count += 1
            try:
                actual = run(path.read_text(), [read(blob, place) for place in record["inputs"]])
            except Exception as error:  # Whatever XLA says of a program is a failure of that program.
                failures.append(f"{name} {form}: {str(error)[:300]}")
                continue
            for index, place in enumerate(record["outputs"]):
                expected = read(blob, place)
                ok = passes(actual[index].astype(expected.dtype), expected, place["tol"])
                if not np.all(ok):
                    at = np.argwhere(~ok)[0]
                    failures.append(
                        f"{name} {form}: result {index}: {np.sum(~ok)} of {ok.size} differ: expected "
                        f"{expected[tuple(at)]}, found {actual[index][tuple(at)]} ({place['tol']})"
                    )
    print(f"{core}: {count - len(failures)} of {count} programs compute the same")
    assert not failures, "\n".join(failures[:200])
    assert count > 0
