"""Times refcpu beside XLA's CPU backend, in one process, on random programs and on a sweep of array sizes.

The two backends run each program in turn (A B A B). A ratio is XLA's time divided by refcpu's: above 1, refcpu is faster.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

import generator
import jax
import numpy as np


def parse():
    """Reads the arguments."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("out", type=pathlib.Path, help="the folder of the results")
    p.add_argument("--platform", default="refcpu")
    p.add_argument("--kind", choices=generator.KINDS, action="append", help="only programs of this kind")
    p.add_argument("--count", type=int, default=30, help="programs of each kind")
    p.add_argument("--seed", type=int, default=0, help="the first seed")
    p.add_argument("--seconds", type=float, default=0.3, help="time for each program and backend")
    return p.parse_args()


def agree(a, b):
    """Returns whether two results are equal within the accuracy of their type."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        tolerance = 5e-2 if x.dtype == jax.numpy.bfloat16 else 2e-3
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        if not np.allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(y), initial=0)))):
            return False
    return True


def measure(platforms, run, args, seconds):
    """Returns the median time of one call on each platform, and its results."""
    sides = []
    for platform in platforms:
        device = jax.devices(platform)[0]
        placed = jax.device_put(args, device)
        compiled = jax.jit(run).lower(*placed).compile()
        sides.append((compiled, placed))
    results = [jax.block_until_ready(compiled(*placed)) for compiled, placed in sides]
    times = [[], []]
    start = time.perf_counter()
    while len(times[0]) < 5 or time.perf_counter() - start < 2 * seconds and len(times[0]) < 400:
        for side, (compiled, placed) in zip(times, sides, strict=True):
            begin = time.perf_counter()
            jax.block_until_ready(compiled(*placed))
            side.append(time.perf_counter() - begin)
    return [statistics.median(t) for t in times], results


def mean(ratios):
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def programs(options, platforms):
    """Measures random programs."""
    rows = []
    for kind in options.kind or generator.KINDS:
        for seed in range(options.seed, options.seed + options.count):
            p = generator.program(kind, seed)
            (own, xla), results = measure(platforms, p.run, p.args, options.seconds)
            row = {"kind": kind, "seed": seed, "name": p.name, "us": own * 1e6, "xla_us": xla * 1e6,
                   "ratio": xla / own, "agree": agree(*results)}
            rows.append(row)
            remark = "" if row["agree"] else "   RESULTS DIFFER"
            print(f"{kind:6} {seed:6} {row['us']:11.1f} us {row['xla_us']:11.1f} us {row['ratio']:7.2f}  {p.name}{remark}",
                  flush=True)
    return rows


def sweep(options, platforms):
    """Measures the sum of two arrays from 1 KB to 256 MB."""
    rows = []
    for power in range(10, 29, 2):
        x = np.ones(2**power // 4, np.float32)
        times, _ = measure(platforms, lambda a, b: a + b, (x, x), options.seconds)
        rows.append({"bytes": 2**power, "gb_per_s": [3 * 2**power / t / 1e9 for t in times]})
        print(f"sum of two arrays of {2**power:10} bytes: {rows[-1]['gb_per_s'][0]:7.1f} GB/s, XLA "
              f"{rows[-1]['gb_per_s'][1]:7.1f} GB/s", flush=True)
    return rows


def chart(rows, path):
    """Draws the ratio of each program, sorted within its kind, on a logarithmic scale."""
    kinds = list(dict.fromkeys(r["kind"] for r in rows))
    width, height, left = 760, 300, 60
    scale = lambda ratio: height / 2 - max(-5, min(5, math.log2(ratio))) * height / 11  # noqa: E731
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 40}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height + 40}" fill="white"/>']
    for ratio in (1 / 16, 1 / 4, 1, 4, 16):
        label = f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"
        parts.append(f'<line x1="{left}" x2="{width}" y1="{scale(ratio):.1f}" y2="{scale(ratio):.1f}" stroke="#ccc"/>'
                     f'<text x="{left - 8}" y="{scale(ratio) + 4:.1f}" text-anchor="end">{label}</text>')
    step = (width - left) / max(1, len(rows) + 2 * len(kinds))
    x = left + step
    for kind in kinds:
        ratios = sorted(r["ratio"] for r in rows if r["kind"] == kind)
        parts.append(f'<text x="{x:.1f}" y="{height + 24}">{kind}: geometric mean {mean(ratios):.2f}</text>')
        for ratio in ratios:
            top, bottom = min(scale(ratio), scale(1)), max(scale(ratio), scale(1))
            color = "#2a7" if ratio >= 1 else "#c53"
            parts.append(f'<rect x="{x:.1f}" y="{top:.1f}" width="{step * 0.8:.2f}" height="{bottom - top + 0.5:.1f}" '
                         f'fill="{color}"/>')
            x += step
        x += 2 * step
    path.write_text("\n".join([*parts, "</svg>\n"]))


def main():
    """Measures, prints a summary, and writes the results as JSON and as a chart."""
    options = parse()
    platforms = (options.platform, "cpu")
    rows = programs(options, platforms)
    sizes = sweep(options, platforms)
    print()
    for kind in dict.fromkeys(r["kind"] for r in rows):
        ratios = [r["ratio"] for r in rows if r["kind"] == kind]
        print(f"{kind:6} geometric mean {mean(ratios):6.2f}, least {min(ratios):6.2f} ({len(ratios)} programs)")
    print("slowest:")
    for row in sorted(rows, key=lambda r: r["ratio"])[:10]:
        print(f"  {row['ratio']:6.2f}  {row['kind']} {row['seed']}: {row['name']}")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bench.json").write_text(json.dumps({"programs": rows, "sweep": sizes}, indent=1))
    chart(rows, options.out / "bench.svg")
    print(f"wrote {options.out / 'bench.json'} and {options.out / 'bench.svg'}")
    wrong = [r for r in rows if not r["agree"]]
    print(f"{len(rows) - len(wrong)} programs agree, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "refcpu,cpu")
    sys.exit(main())
