"""torchax, PyTorch on JAX, on refcpu beside XLA's CPU backend."""

import os
import subprocess
import sys

import numpy as np

TRAIN = """
import jax, jax.numpy as jnp, optax, torch, torchax
from torch import nn
from torchax.interop import jax_view
from torchax.train import make_train_step

assert jax.devices()[0].platform == jax.default_backend()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
x, y = torch.randn(8, 16), torch.arange(8) % 4
env = torchax.default_env()
with env:
    model = model.to("jax")
    weights, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def run(weights, buffers, args):
        return torch.func.functional_call(model, {**weights, **buffers}, args)

    optimizer = optax.adamw(1e-2)
    state = torchax.interop.call_jax(optimizer.init, weights)
    step = make_train_step(run, lambda output, label: nn.functional.cross_entropy(output, label), optimizer)
    step = torchax.interop.jax_jit(step)
    x, y = x.to("jax"), y.to("jax")
    for _ in range(5):
        loss, weights, state = step(weights, buffers, state, x, y)
        print(float(jax_view(loss)))
"""


def losses(platform: str) -> list[float]:
    environment = os.environ | {"JAX_PLATFORMS": platform}
    done = subprocess.run([sys.executable, "-c", TRAIN], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split()]


def test_a_perceptron_learns_as_on_xla():
    expected, found = losses("cpu"), losses("refcpu")
    assert len(found) == 5 and found[-1] < found[0]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
