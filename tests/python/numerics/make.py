"""Writes the suites of `cargo pjrt numerics`: cargo-pjrt/data/numerics/ops.zip, dimensions.zip and models.zip.

    python make.py [--only OP]

Programs are portable artifacts, as JAX sends them. Expected results of floats come from NumPy or XLA's CPU backend in a wider
type, rounded once; all others from NumPy or XLA in their own. Results that XLA's CPU backend computes in the type itself are
compared with them by the suite's own rules, and every disagreement is printed. `cargo pjrt numerics` on refcpu is the second
comparison.
"""

import argparse
import json
import os
import pathlib
import sys
import zipfile

os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false "
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1"
)
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import blocks  # noqa: E402
import constants  # noqa: E402
import dimensions  # noqa: E402
import elementwise  # noqa: E402
import from_jax  # noqa: E402
import fusions  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
import structured  # noqa: E402
from case import COMPLEX, DTYPES, FLOATS, NAMES, WIDER, Case, unit  # noqa: E402
from jax.extend import mlir  # noqa: E402
from jaxlib import _jax  # noqa: E402

FOLDER = pathlib.Path(__file__).parents[3] / "cargo-pjrt/data/numerics"
# The oldest version of VHLO that has the operations; a plugin reads all versions from the oldest that it supports on.
VERSIONS = ("1.0.0", "1.4.0", "1.8.0", "1.13.7")
# XLA's CPU backend flushes them, which the specification does not permit.
FLUSHED = "denormals"


def xla(text: str, inputs: list) -> list:
    """The results of a program on XLA's CPU backend."""
    device = jax.devices("cpu")[0]
    executable = device.client.compile_and_load(text, _jax.DeviceList((device,)), _jax.CompileOptions())
    arrays = executable.execute_sharded([jax.device_put(x, device) for x in inputs])
    return [np.asarray(shards[0]) for shards in arrays.disassemble_into_single_device_arrays()]


def expected(case: Case, narrow: list) -> tuple[list, list]:
    """The expected results in their own types, and as they were before they were rounded."""
    own = [x.dtype for x in narrow]
    with np.errstate(all="ignore"):
        if case.true:
            wide_type = case.true_type
            inputs = [x.astype(wide_type) if x.dtype == DTYPES[case.element] else x for x in case.inputs]
            wide = case.true(*inputs)
            wide = [np.asarray(x) for x in (wide if isinstance(wide, list) else [wide])]
        elif case.exact or case.element not in WIDER:
            wide = narrow
        else:
            element = WIDER[case.element]
            inputs = [x.astype(DTYPES[element]) if x.dtype == DTYPES[case.element] else x for x in case.inputs]
            wide = xla(case.text(element), inputs)
        rounded = [x.astype(dtype) for x, dtype in zip(wide, own, strict=True)]
    return rounded, wide


def tolerance(case: Case, result: np.ndarray, wide: list, position: int) -> dict:
    """The rule of a case as the distances that a result's elements may have."""
    rule, element = case.rule, NAMES[result.dtype]
    within = {"reason": rule.reason}
    if element not in FLOATS + COMPLEX:
        return {"reason": "integers and truth values are exact"}
    if rule.ulps:
        within["ulps"] = rule.ulps
    if rule.relative:
        within["relative"] = rule.relative
    if rule.sums:
        size = float(np.abs(wide[position].astype(np.complex128)).max(initial=0)) if rule.size == "each" else rule.size(wide)
        # Two digits: it is a bound.
        within["absolute"] = float(f"{rule.sums * unit(element) * size:.1e}")
    if rule.any_zero or rule.ulps or rule.sums:
        within["any_zero"] = True
    return within


def agrees(found: np.ndarray, wanted: np.ndarray, within: dict) -> np.ndarray:
    """The elements that are as the tolerance permits."""
    element = NAMES[wanted.dtype]
    with np.errstate(all="ignore"):
        if element in COMPLEX or element in FLOATS:
            wide = np.complex128 if element in COMPLEX else np.float64
            f, w = found.astype(wide), wanted.astype(wide)
            same = (f == w) | ((f != f) & (w != w))
            if element in FLOATS and not within.get("any_zero"):
                same &= ~((f == 0) & (np.signbit(f) != np.signbit(w)))
            bound = np.maximum(
                np.abs(w) * 2 * unit(element) * within.get("ulps", 0), np.abs(w) * within.get("relative", 0) + within.get("absolute", 0)
            )
            return same | (np.abs(f - w) <= bound)
        return found == wanted


class Archive:
    """A suite: an index, and one blob in which equal parts are stored once."""

    def __init__(self):
        self.cases, self.tolerances, self.blob, self.places = [], [], bytearray(), {}

    def place(self, data: bytes) -> list:
        if data not in self.places:
            self.places[data] = len(self.blob)
            self.blob += data
        return [self.places[data], len(data)]

    def array(self, array: np.ndarray) -> dict:
        return {"type": NAMES[array.dtype], "dims": list(array.shape), "at": self.place(np.ascontiguousarray(array).tobytes())[0]}

    def within(self, tolerance: dict) -> int:
        if tolerance not in self.tolerances:
            self.tolerances.append(tolerance)
        return self.tolerances.index(tolerance)

    def add(self, case: Case, text: str, results: list, tolerances: list) -> None:
        self.cases.append({
            "op": case.op, "element": case.element, "name": case.name, "program": self.place(artifact(text)),
            "inputs": [self.array(x) for x in case.inputs],
            "results": [{**self.array(x), "within": self.within(t)} for x, t in zip(results, tolerances, strict=True)],
        })  # fmt: skip

    def write(self, path: pathlib.Path) -> None:
        index = {"version": 1, "tolerances": self.tolerances, "cases": self.cases}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, data in (("index.json", json.dumps(index, separators=(",", ":")).encode()), ("data.bin", bytes(self.blob))):
                # With one date, so that equal suites are equal files.
                archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)


def artifact(text: str) -> bytes:
    for version in VERSIONS:
        try:
            return mlir.serialize_portable_artifact(text.encode(), version)
        except Exception as error:  # noqa: BLE001 - the binding has no type for it
            last = error
    raise last


def make(cases, archive: Archive) -> int:
    """Adds cases to a suite, and returns the number of those on which XLA disagrees."""
    disagreements = 0
    for case in cases:
        text = case.text(case.element)
        label = f"{case.op} {case.element} {case.name}"
        try:
            narrow = xla(text, case.inputs)
        except jax.errors.JaxRuntimeError as error:
            print(f"left out: {label}: XLA: {str(error)[:300]}")
            continue
        results, wide = expected(case, narrow)
        tolerances = [tolerance(case, x, wide, n) for n, x in enumerate(results)]
        for n, (found, wanted, within) in enumerate(zip(narrow, results, tolerances, strict=True)):
            assert found.shape == wanted.shape and found.dtype == wanted.dtype, (label, found, wanted)
            if case.rule.size == "each":
                apart = float(np.abs(found.astype(np.float64) - wide[n]).max() / within["absolute"])
                print(f"{label} result {n}: XLA uses {apart:.3f} of the tolerance")
            right = agrees(found, wanted, within)
            if not right.all():
                disagreements += FLUSHED not in case.name
                at = np.unravel_index(int(np.argmin(right)), right.shape)
                inputs = [x[at] for x in case.inputs if x.shape == right.shape]
                print(f"XLA disagrees: {label} result {n} at {at}: {found[at]!r}, not {wanted[at]!r} ({(~right).sum()} elements) of {inputs}")
        archive.add(case, text, results, tolerances)
    return disagreements


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    disagreements = 0
    suites = {"ops": [elementwise.cases, constants.cases, fusions.cases, structured.cases, from_jax.functions], "dimensions": [dimensions.cases, blocks.cases], "models": [from_jax.models]}
    for name, groups in suites.items():
        archive = Archive()
        cases = (case for group in groups for case in group() if not options.only or case.op in options.only)
        disagreements += make(cases, archive)
        if not options.only:
            path = FOLDER / f"{name}.zip"
            archive.write(path)
            print(f"{path.name}: {len(archive.cases)} programs, {path.stat().st_size} bytes")
    print(f"XLA's CPU backend disagrees on {disagreements} results, those about denormals apart")
    return int(disagreements > 0)


if __name__ == "__main__":
    sys.exit(main())
