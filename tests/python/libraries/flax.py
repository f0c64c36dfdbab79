"""Trains a convolutional network with batch normalization (`flax.nnx`) to recognize noisy patterns."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

PACKAGES = ("flax",)
TOLERANCE = 1e-4


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Conv(1, 16, kernel_size=(3, 3), use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.second = nnx.Conv(16, 32, kernel_size=(3, 3), strides=2, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(32 * 4 * 4, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.norm(self.first(x))), (2, 2), strides=(2, 2))
        x = nnx.gelu(self.second(x)).reshape(len(x), -1)
        return self.out(self.dropout(x))


@nnx.jit
def step(model, optimizer, images, labels):
    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

    value, gradients = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradients)
    return value


def run():
    keys = jax.random.split(jax.random.key(0), 3)
    patterns = jax.random.normal(keys[0], (10, 16, 16, 1))
    labels = jax.random.randint(keys[1], (128,), 0, 10)
    images = patterns[labels] + 0.5 * jax.random.normal(keys[2], (128, 16, 16, 1))
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    losses = [step(model, optimizer, images, labels) for _ in range(20)]
    model.eval()
    return {"losses": jnp.stack(losses), "logits": model(images), "means": model.norm.mean[...]}
