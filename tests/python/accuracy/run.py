"""Measures functions, and writes docs/accuracy.md or compares with it."""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import plugins  # noqa: E402

os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"refcpu:{plugins.library('TEST_REFCPU')}"
plugins.use("refcpu,cpu", JAX_ENABLE_X64="1")

from accuracy import measure, page, sums  # noqa: E402

PAGE = Path(__file__).resolve().parents[3] / "docs/accuracy.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a function is worse than the page says")
    parser.add_argument("--only", action="append", help="only this function; may be given several times")
    parser.add_argument("--type", action="append", help="only this type; may be given several times")
    parser.add_argument("--scale", type=float, default=1, help="the part of the points to measure at, up to 1")
    options = parser.parse_args()
    # NumPy's about overflow and NaN, which are what is measured.
    warnings.simplefilter("ignore", RuntimeWarning)
    started = time.monotonic()
    rows = []
    for row in measure.rows(options.only, options.type, options.scale):
        rows.append(row)
        print(f"{row.type:13}", page.line(row), *(f.wrong_at for f in row.figures.values()), sep="  ", flush=True)
    chosen = options.only or options.type
    totals = [] if chosen else list(sums.rows())
    print(f"{len(rows)} functions in {time.monotonic() - started:.0f} s")
    if not options.check:
        if chosen or options.scale != 1:
            return 0
        PAGE.write_text(page.page(rows, totals))
        return 0
    complaints = page.complaints(rows, PAGE)
    print("\n".join(complaints) or "nothing is worse than before")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
