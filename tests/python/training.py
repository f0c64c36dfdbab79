"""Trains a small model on two devices of a platform, and prints the losses of each step: the argument is the name of a model.

    python training.py cnn accelerator

Each device computes the gradients of half of a batch. The first device averages them and updates the weights, so every step
copies arrays between host and devices and between devices.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir

STEPS = 12
RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, logits.shape[-1]), axis=-1))


def mlp():
    """A network with one hidden layer."""
    weights = {"hidden": normal(4, 16), "bias": np.zeros(16, np.float32), "out": normal(16, 3)}
    inputs = RANDOM.normal(size=(16, 4)).astype(np.float32)

    def predict(weights, inputs):
        return jax.nn.gelu(inputs @ weights["hidden"] + weights["bias"]) @ weights["out"]

    return weights, predict, inputs, RANDOM.integers(0, 3, 16)


def cnn():
    """A convolution, a pooling layer and a strided convolution."""
    weights = {"first": normal(3, 3, 1, 4), "second": normal(3, 3, 4, 4), "out": normal(16, 3)}
    inputs = RANDOM.normal(size=(8, 8, 8, 1)).astype(np.float32)

    def convolution(x, kernel, stride):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=numbers)

    def predict(weights, inputs):
        hidden = jax.nn.relu(convolution(inputs, weights["first"], 1))
        hidden = jax.lax.reduce_window(hidden, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        hidden = jax.nn.relu(convolution(hidden, weights["second"], 2))
        return hidden.reshape(len(inputs), -1) @ weights["out"]

    return weights, predict, inputs, RANDOM.integers(0, 3, 8)


def transformer():
    """An embedding and a block with causal attention and layer normalization, which predicts the next token."""
    vocabulary, width, length = 7, 8, 6
    weights = {
        "embedding": normal(vocabulary, width) * 2,
        "position": normal(length, width),
        "attention": normal(3, width, width),
        "up": normal(width, 2 * width),
        "down": normal(2 * width, width),
        "scale": np.ones(width, np.float32),
    }
    tokens = RANDOM.integers(0, vocabulary, (4, length + 1))

    def normalized(x, scale):
        x = x - x.mean(axis=-1, keepdims=True)
        return x * scale / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5)

    def predict(weights, tokens):
        x = weights["embedding"][tokens] + weights["position"]
        query, key, value = jnp.einsum("btd,cde->cbte", normalized(x, weights["scale"]), weights["attention"])
        scores = jnp.einsum("bqe,bke->bqk", query, key) / np.sqrt(width)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        x = x + jnp.einsum("bqk,bke->bqe", jax.nn.softmax(scores), value)
        x = x + jax.nn.gelu(normalized(x, weights["scale"]) @ weights["up"]) @ weights["down"]
        return x @ weights["embedding"].T

    return weights, predict, tokens[:, :-1], tokens[:, 1:]


def train(model, devices) -> None:
    weights, predict, inputs, labels = model()
    first, second = devices
    gradients_of = jax.jit(
        jax.value_and_grad(lambda weights, inputs, labels: cross_entropy(predict(weights, inputs), labels))
    )

    def average(weights, one, other):
        return jax.tree.map(lambda w, x, y: w - 0.25 * (x + y), weights, one, other)

    update = jax.jit(average, donate_argnums=0)
    half = len(inputs) // 2
    weights = jax.device_put(weights, first)
    for _ in range(STEPS):
        one = gradients_of(weights, *jax.device_put((inputs[:half], labels[:half]), first))
        copy = jax.device_put(weights, second)
        other = gradients_of(copy, *jax.device_put((inputs[half:], labels[half:]), second))
        weights = update(weights, one[1], jax.device_put(other[1], first))
        print(float(one[0]), float(other[0]), flush=True)


def main(model: str, platform: str) -> None:
    # As a plugin's Python package would do: JAX leaves donation out for platforms that it does not know.
    if platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(platform)
    devices = jax.devices(platform)
    try:
        train({"mlp": mlp, "cnn": cnn, "transformer": transformer}[model], (devices[0], devices[-1]))
    except jax.errors.JaxRuntimeError as error:
        print(str(error).replace("\n", " "))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
