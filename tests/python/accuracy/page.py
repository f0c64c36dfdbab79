"""Writes docs/accuracy.md, and compares measurements with the page."""

import re
from pathlib import Path

from .measure import Figures, Row
from .sums import Row as SumRow
from .ulps import TYPES

# Figures of a machine and those of another differ by the instructions that they have; the page rounds to two decimals.
TOLERANCE = 0.02

HEAD = """# Accuracy

This page lists the largest errors of refcpu's functions and of the functions of XLA's CPU backend, in units of the last
place (ulps) of the true value. An error of 0.5 is the best possible, unless the result is exact. `cargo xtask accuracy`
measures the errors and writes this page. `cargo xtask accuracy --check` fails if an error is larger than on this page or
larger than XLA's.

* **Points.** Types of 16 and 8 bits are tested with all numbers, and types of 8 bits with all pairs. f32 is tested with
  about 1,300,000 numbers and f64 with about 400,000: the same number in every binade of either sign; the neighbors of
  poles, zeros, multiples of pi/2 and points where functions change their formula; and more in the middle of the range.
  Functions of two operands are tested with 400,000 pairs: random bits, numbers of similar size, and moderate numbers.
  Complex functions are tested with 30,000 numbers: of any size, moderate, near the axes, near 1, -1, i and -i, and near the
  unit circle. Functions whose true values are slow to compute (CHLO's functions from bessel_i1e to zeta) are tested with
  50,000 numbers or 2,000 pairs.
* **True values** are computed in f64 for types of up to 32 bits, and in long double for f64 and complex numbers.
  [Arb](https://arblib.org), with at least 128 bits, computes the true values of special functions and of functions that C lacks.
* **Special values.** NaN, infinities and zeros in operands and results must match exactly, including their signs; *missed*
  counts the points where one does not. For complex functions the expected values are those of C99, Annex G, on both sides of
  branch cuts as well; for real functions, those of IEEE 754 and SciPy.
* **Denormals.** XLA's CPU backend treats denormal operands as zero and returns zero instead of denormal results. Points with
  a denormal operand or result are therefore not in the first columns. Separate columns list the largest error at these
  points; `inf` means that zero, an infinity or NaN replaces another value.
* **CHLO's functions** of real numbers are measured as JAX lowers them for refcpu, as single operations. In a program that
  was lowered for another platform, jaxlib replaces the special functions (except `erf`) with formulas, which have XLA's
  errors.
* **Complex numbers.** The first error is the modulus of the difference, in ulps of the modulus of the true value. The second
  is the larger error of the two parts, in ulps of that part. The test passes programs to refcpu directly through the C API.
  JAX rewrites some of these functions before a plugin receives them; they then have XLA's errors.

**Bold** marks errors above XLA's. The measurements were taken on x86-64 with AVX-512 and jaxlib 0.10.2. On machines without
fused multiply-add, errors can be larger by up to half a unit.
"""

REAL_TABLE = "| function | refcpu | XLA | at | refcpu: missed | XLA: missed | refcpu: denormals | XLA: denormals |\n|---|---|---|---|---|---|---|---|"
COMPLEX_TABLE = "| function | refcpu | XLA | at | refcpu: parts | XLA: parts | refcpu: missed | XLA: missed |\n|---|---|---|---|---|---|---|---|"
SUMS_HEAD = """## Sums

Each sum has 1,000,000 elements. The unit is the ulp of the same sum of the elements' magnitudes. The errors do not depend on
the number of threads.

| function | type | elements | refcpu | XLA |
|---|---|---|---|---|"""


def page(rows: list[Row], sums: list[SumRow]) -> str:
    parts = [HEAD]
    for name in TYPES:
        table = COMPLEX_TABLE if "complex" in name else REAL_TABLE
        lines = [line(row) for row in rows if row.type == name and not row.figures["refcpu"].unsupported]
        if lines:
            parts.append(f"## `{name}`\n\n{table}\n" + "\n".join(lines) + "\n")
    if sums:
        lines = [f"| {s.name} | {s.type} | {s.elements} | {number(s.ulps['refcpu'])} | {number(s.ulps['cpu'])} |" for s in sums]
        parts.append(SUMS_HEAD + "\n" + "\n".join(lines) + "\n")
    missing = [f"{row.name} of {row.type}" for row in rows if row.figures["refcpu"].unsupported and not row.figures["cpu"].unsupported]
    if missing:
        parts.append("## Not supported by refcpu\n\n" + ", ".join(missing) + ".\n")
    return "\n".join(parts)


def line(row: Row) -> str:
    ours, theirs = row.figures["refcpu"], row.figures["cpu"]
    worst = number(ours.ulps)
    if is_worse(ours, theirs):
        worst = f"**{worst}**"
    at = f"`{ours.at}`" if ours.at else ""
    cells = [row.name, worst, "" if theirs.unsupported else number(theirs.ulps), at]
    if "complex" in row.type:
        cells += [number(ours.parts), "" if theirs.unsupported else number(theirs.parts)]
    cells += [str(ours.wrong or ""), "" if theirs.unsupported else str(theirs.wrong or "")]
    if "complex" not in row.type:
        cells += [number(ours.denormal), "" if theirs.unsupported else number(theirs.denormal)]
    return "| " + " | ".join(cells) + " |"


def number(ulps: float) -> str:
    if ulps == 0:
        return "0"
    return f"{ulps:.2f}" if ulps < 1000 else f"{ulps:.0e}"


def is_worse(ours: Figures, theirs: Figures) -> bool:
    """Whether refcpu has the larger error, beyond what rounding once more than exactly can make."""
    return not theirs.unsupported and ours.ulps > max(theirs.ulps, 0.51) + TOLERANCE / 2


def bounds(path: Path) -> dict[tuple[str, str], tuple[float, bool, int]]:
    """By type and function: the error of refcpu in the page, whether it is marked as above XLA's, and the missed values."""
    found, ty, missed = {}, "", 0
    for text in path.read_text().splitlines():
        if heading := re.fullmatch(r"## `?([^`]*)`?", text):
            ty = heading[1]
        cells = [cell.strip() for cell in text.split("|")[1:-1]]
        if ty in TYPES and cells and cells[0] == "function":
            missed = cells.index("refcpu: missed")
        elif ty in TYPES and len(cells) > missed and not cells[0].startswith("-"):
            found[ty, cells[0]] = (float(cells[1].strip("*")), "**" in cells[1], int(cells[missed] or 0))
    return found


def complaints(rows: list[Row], path: Path) -> list[str]:
    """Where measurements are worse than the page or, where it does not say so, than XLA's."""
    allowed, out = bounds(path), []
    for row in rows:
        ours, theirs = row.figures["refcpu"], row.figures["cpu"]
        key = f"{row.name} of {row.type}"
        if (row.type, row.name) not in allowed:
            if not ours.unsupported:
                out.append(f"{key} is not in {path.name}")
            continue
        ulps, marked, missed = allowed[row.type, row.name]
        if ours.unsupported:
            out.append(f"{key} is no longer supported")
        # Large figures have one digit in the page.
        elif ours.ulps > ulps * (1.1 if ulps >= 1000 else 1) + TOLERANCE:
            out.append(f"{key}: {ours.ulps:.3f} ulps at {ours.at}, {ulps} in {path.name}")
        elif is_worse(ours, theirs) and not marked:
            out.append(f"{key}: {ours.ulps:.3f} ulps at {ours.at}, XLA has {theirs.ulps:.3f}")
        if ours.wrong > missed:
            out.append(f"{key}: {ours.wrong} special values missed, {missed} in {path.name}: {ours.wrong_at}")
    return out
