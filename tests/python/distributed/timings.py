"""Times an all-reduce over one device of each process: process 0 prints the size in bytes, and the median and the smallest time
in microseconds.

    python timings.py ADDRESS INDEX COUNT
"""

import sys
import time

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

address, index, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
jax.distributed.initialize(address, num_processes=count, process_id=index, initialization_timeout=60)
mesh = jax.sharding.Mesh(np.array(jax.devices()), "i")


def total(x):
    return jax.lax.psum(x, "i")


for elements in (1, 1 << 18, 1 << 24):
    program = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
    sharding = NamedSharding(mesh, P("i"))
    value = np.ones((1, elements), np.float32)
    x = jax.make_array_from_callback((count, elements), sharding, lambda place: value)
    program(x).block_until_ready()
    repetitions = max(5, min(300, (1 << 24) // elements))
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        program(x).block_until_ready()
        times.append(time.perf_counter() - begin)
    if index == 0:
        print(f"time {4 * elements} {1e6 * np.median(times):.0f} {1e6 * min(times):.0f}", flush=True)
