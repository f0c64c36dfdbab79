"""Runs the programs that are named on standard input on a plugin, and prints one line of JSON for each.

    python worker.py PLUGIN

A line of the input is a file of the corpus and a line number. See `run.py`.
"""

import json
import os
import pathlib
import sys

import ml_dtypes
import numpy as np

FOLDER = pathlib.Path(os.environ["PJRT_CORPUS"])
DTYPES = {
    "i1": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}


def dtype(name):
    """Returns NumPy's type for MLIR's spelling."""
    if name in DTYPES:
        return np.dtype(DTYPES[name])
    if name.startswith("f"):
        return np.dtype(getattr(ml_dtypes, "float" + name[1:].lower().replace("e", "_e", 1)))
    kind = "uint" if name.startswith("u") else "int"
    bits = name.lstrip("uis")
    return np.dtype(getattr(ml_dtypes, kind + bits) if bits in ("2", "4") else kind + bits)


def array(blob, entry):
    """Returns an array of the corpus."""
    blob.seek(entry["off"])
    return np.frombuffer(blob.read(entry["len"]), dtype(entry["dtype"])).reshape(entry["shape"])


def steps(values):
    """Returns the index of each number among all numbers of its type."""
    bits = values.view(f"i{values.itemsize}").astype(object)
    return np.where(bits < 0, -(bits + (1 << (8 * values.itemsize - 1))), bits)


def difference(actual, expected, tolerance):
    """Returns where an array is not within the tolerance, or None."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return f"{actual.dtype}{actual.shape} in place of {expected.dtype}{expected.shape}"
    if actual.dtype.kind == "c":
        parts = [difference(np.ascontiguousarray(a), np.ascontiguousarray(e), {**tolerance, "of": np.abs(expected)})
                 for a, e in ((actual.real, expected.real), (actual.imag, expected.imag))]
        return parts[0] or parts[1]
    equal = actual == expected
    if actual.dtype.kind not in "biu" and "int" not in actual.dtype.name:
        wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
        equal |= np.isnan(wide) & np.isnan(wanted)
        if not tolerance.get("exact"):
            finite = np.isfinite(wide) & np.isfinite(wanted)
            with np.errstate(all="ignore"):
                limit = tolerance.get("atol", 0) + tolerance.get("rtol", 0) * tolerance.get("of", np.abs(wanted))
                equal |= finite & (np.abs(wide - wanted) <= limit)
            equal |= finite & (np.abs(steps(actual) - steps(expected)) <= tolerance.get("ulp", 0)).astype(bool)
    elif not tolerance.get("exact"):
        equal |= np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= tolerance.get("atol", 0)
    if equal.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(equal))[0])
    return f"{np.atleast_1d(actual)[at]} in place of {np.atleast_1d(expected)[at]} at {at}, {int((~equal).sum())} of {equal.size}"


class Plugin:
    """A plugin's first device."""

    def __init__(self, path):
        import jax
        from jax._src import xla_bridge

        xla_bridge.register_plugin("corpus", library_path=path)
        jax.config.update("jax_platforms", "corpus")
        jax.config.update("jax_enable_x64", True)
        self.put = jax.device_put
        self.backend = xla_bridge.get_backend()
        self.device = self.backend.local_devices()[0]

    def run(self, text, inputs):
        """Compiles a program, and returns its results."""
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jaxlib.mlir import ir

        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            executable = self.backend.compile_and_load(
                module, xla_client.DeviceList((self.device,)), xla_client.CompileOptions())
        arguments = [self.put(value, self.device) for value in inputs]
        results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
        return [np.asarray(result[0]) for result in results]


def outcome(plugin, file, number):
    """Runs a program of the corpus."""
    with (FOLDER / file).open() as lines:
        record = json.loads(next(line for index, line in enumerate(lines) if index == number))
    with (FOLDER / file).with_suffix(".bin").open("rb") as blob:
        form = record["programs"].get("mlir_legalized") or record["programs"]["mlir"]
        blob.seek(form["off"])
        text = blob.read(form["len"])
        inputs = [array(blob, entry) for entry in record["inputs"]]
        expected = [array(blob, entry) for entry in record["outputs"]]
    try:
        actual = plugin.run(text, inputs)
    except Exception as error:
        kind = "refused" if "UNIMPLEMENTED" in str(error) else "error"
        return {"outcome": kind, "detail": str(error)[:600]}
    for index, (value, wanted, entry) in enumerate(zip(actual, expected, record["outputs"], strict=True)):
        found = difference(value, wanted, entry["tol"])
        if found:
            return {"outcome": "wrong", "detail": f"result {index}: {found}"}
    return {"outcome": "right", "detail": ""}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    plugin = Plugin(sys.argv[1])
    for line in sys.stdin:
        file, number = line.split()
        answers.write(json.dumps(outcome(plugin, file, int(number))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
