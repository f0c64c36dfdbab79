"""Writes docs/accuracy.md, and compares measurements with it."""

import re
from pathlib import Path

from .measure import Figures, Row
from .sums import Row as SumRow
from .ulps import TYPES

# Figures of a machine and those of another differ by the instructions that they have; the page rounds to two decimals.
TOLERANCE = 0.02

HEAD = """# Accuracy

The largest errors of refcpu's functions and of those of XLA's CPU backend, in units of the last place (ulps) of the true value:
0.5 is as good as it gets, unless the result is exact. `cargo xtask accuracy` measures them and writes this page;
`cargo xtask accuracy --check` fails where a function has become worse than here or than XLA's.

* **Points.** All numbers of the types of 16 and 8 bits, and all pairs of those of 8 bits. Of f32 some 1,300,000 and of f64 some
  400,000 numbers: as many in every binade of either sign, the neighbours of poles, zeros, multiples of pi/2 and points where
  functions change their formula, and more in the middle of the range. 400,000 pairs: any bits, near in size, moderate. 30,000
  complex numbers: of any size, moderate, near the axes, near 1, -1, i and -i, near the unit circle. 50,000 numbers or 2,000
  pairs where true values take long (the functions of CHLO from bessel_i1e to zeta).
* **True values** of types of 32 bits and fewer are computed in f64, those of f64 and complex numbers in long double, those of
  special functions and where C has none by [Arb](https://arblib.org) with 128 bits and more.
* **Special values.** NaN, infinities and zeros among operands and results must be met exactly, with their signs; *missed*
  counts the points where one is not. Of complex functions these are the values of C99, Annex G, on both sides of branch cuts
  too; of real ones what IEEE 754 and SciPy say.
* **Denormals.** XLA's CPU backend takes denormal numbers for zero and returns zero for them. Points where an operand or the
  result is denormal are therefore not in the first columns; the largest error there has columns of its own, `inf` where zero,
  an infinity or NaN takes the place of another value.
* **CHLO's functions** of reals are measured as JAX lowers them for refcpu, so that they reach it whole. From a program that was
  lowered for another platform, jaxlib replaces the special functions (but `erf`) by formulas, which have the errors of XLA's.
* **Complex numbers.** The modulus of the error, in ulps of the modulus of the true value; and the larger error of both parts,
  in ulps of that part. Programs go to refcpu through the C API as they are: JAX rewrites some of these functions before a
  plugin sees them, and they then have the errors of XLA's.

**Bold** marks figures above XLA's. Measured on x86-64 with AVX-512 with jaxlib 0.10.2. On machines without fused multiply-add,
errors of up to half a unit are not made up for.
"""

REAL_TABLE = "| function | refcpu | XLA | at | refcpu: missed | XLA: missed | refcpu: denormals | XLA: denormals |\n|---|---|---|---|---|---|---|---|"
COMPLEX_TABLE = "| function | refcpu | XLA | at | refcpu: parts | XLA: parts | refcpu: missed | XLA: missed |\n|---|---|---|---|---|---|---|---|"
SUMS_HEAD = """## Sums

Of 1,000,000 elements; in ulps of the same sum of the elements' magnitudes. They do not depend on the number of threads.

| function | type | elements | refcpu | XLA |
|---|---|---|---|---|"""


def page(rows: list[Row], sums: list[SumRow]) -> str:
    parts = [HEAD]
    for name in TYPES:
        table = COMPLEX_TABLE if "complex" in name else REAL_TABLE
        lines = [line(row) for row in rows if row.type == name and not row.figures["refcpu"].unsupported]
        if lines:
            parts.append(f"## {name}\n\n{table}\n" + "\n".join(lines) + "\n")
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
        if heading := re.fullmatch(r"## (.*)", text):
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
