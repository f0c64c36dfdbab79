"""A part of `cargo xtask accuracy --check` that takes seconds: fewer points, and threads."""

import math
import os
import pathlib
import subprocess
import sys

import plugins

plugins.use("refcpu,cpu", JAX_ENABLE_X64="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from accuracy import backends, measure, page, sums  # noqa: E402
from accuracy.functions import COMPLEX, REAL  # noqa: E402
from accuracy.ulps import errors, ulp  # noqa: E402

PAGE = pathlib.Path(__file__).parents[2] / "docs/accuracy.md"
CASES = [(f, ty) for f in REAL for ty in ("f64", "f32", "bf16", "f8E4M3FN")]
CASES += [(f, ty) for f in COMPLEX for ty in ("complex<f64>", "complex<f32>")]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("function,ty", CASES, ids=lambda v: getattr(v, "name", v))
def test_no_function_is_worse_than_the_page_says(function, ty):
    row = measure.measure(function, ty, 0.02, platforms=("refcpu",))
    ours = row.figures["refcpu"]
    key = (ty, function.name)
    allowed = page.bounds(PAGE)
    if ours.unsupported:
        assert key not in allowed
        return
    ulps, _, missed = allowed[key]
    # A debug build and other instructions may round otherwise, but not by much.
    assert ours.ulps <= ulps * 1.1 + 0.1, f"{ours.ulps} at {ours.at}"
    assert ours.wrong <= missed, ours.wrong_at


def test_sums_are_as_good_as_sums_in_pairs():
    rows = list(sums.rows(20_000))
    assert len(rows) == len(sums.FUNCTIONS) * len(sums.REAL) * 2
    assert [row for row in rows if row.ulps["refcpu"] > 4] == []


def test_errors_are_counted_in_ulps_of_the_true_value():
    one = np.array([1.0], np.float64)
    assert errors(np.nextafter(np.float32([1]), np.float32(2)), one).ulps == [1]
    assert errors(np.float32([np.inf]), one * 2.0**128 * (1 - 2.0**-26)).ulps == [pytest.approx(0.25)]
    assert errors(np.float32([-0.0]), one * 0).wrong == [True]
    assert errors(np.float32([np.nan]), one).wrong == [True]
    assert errors(np.float32([0.0]), one * 1e-45).denormal == [True]
    assert ulp(np.array([1e-45]), np.float32) == 2.0**-149


LENGTHS = [1, 1023, 1025, 32_769, 99_991, 1_000_003]


def reductions(length: int) -> bytes:
    """The bits of some reductions of a vector of odd length and of a matrix along either side."""
    x = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    y = x[: math.isqrt(length) ** 2].reshape(math.isqrt(length), -1)
    bits = b""
    for function, argument in [
        (jnp.sum, x),
        (jnp.cumsum, x),
        (lambda x: jnp.dot(x, x), x),
        (lambda y: jnp.sum(y, 0), y),
        (lambda y: jnp.sum(y, 1), y),
        (lambda y: jnp.cumsum(y, 0), y),
        (lambda y: y @ y, y),
    ]:
        program = jax.jit(function).lower(argument).as_text()
        bits += backends.run_in_jax("refcpu", program, (argument,)).tobytes()
    return bits


def test_reductions_have_the_same_bits_on_any_number_of_threads():
    code = (
        "import hashlib, test_accuracy\n"
        "for n in test_accuracy.LENGTHS: print(hashlib.sha256(test_accuracy.reductions(n)).hexdigest())"
    )

    def on(threads: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "REFCPU_NUM_THREADS": str(threads)},
            cwd=pathlib.Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert on(1) == on(2) == on(3)
