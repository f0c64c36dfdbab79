"""What JAX does with refcpu, recorded and replayed by `cargo pjrt`."""

import os
import subprocess
import sys

import plugins

REFCPU = plugins.library("TEST_REFCPU")
CARGO_PJRT = plugins.library("TEST_CARGO_PJRT")
RECORDER = plugins.library("TEST_RECORDER")

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w), donate_argnums=0)
w, x = jnp.ones((4, 3)), np.arange(8, dtype=np.float32).reshape(2, 4)
for _ in range(3):
    w = step(w, x)
print(np.asarray(w).shape, jnp.sort(jnp.asarray(x.T, jnp.bfloat16)))
sharded = jax.device_put(x, NamedSharding(Mesh(np.array(jax.devices()), "d"), P("d")))
print((sharded @ sharded.T).sum(), jax.device_put(sharded, jax.devices()[1]))
"""


def cargo_pjrt(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, **variables}
    for name in ("JAX_PLATFORMS", "PJRT_NAMES_AND_LIBRARY_PATHS"):
        environment.pop(name, None)
    command = [CARGO_PJRT, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_a_recorded_program_gives_the_same_again(tmp_path):
    log = str(tmp_path / "log")
    host = [sys.executable, "-c", PROGRAM]
    recorded = cargo_pjrt(
        "record", REFCPU, "-o", log, "--recorder", RECORDER, "--", *host, REFCPU_NUM_DEVICES="2"
    )
    assert recorded.returncode == 0, recorded.stderr
    assert "(4, 3)" in recorded.stdout
    replayed = cargo_pjrt("replay", log, REFCPU, "--option", "num_devices=2")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    summary = replayed.stdout.splitlines()[-1]
    assert "results: 0 the same" not in summary, summary
    assert summary.endswith("0 within the tolerance, 0 skipped; 0 differences"), summary
    # On one device, the programs for two cannot be compiled, which is said.
    replayed = cargo_pjrt("replay", log, REFCPU)
    assert replayed.returncode == 1
    assert "note: the recorded client had 2 devices, but this one has 1" in replayed.stdout
