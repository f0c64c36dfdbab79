"""The digits, and the models that learn to read them."""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

# The minimum test accuracy of each model in percent.
LEAST = {"MLP": 96.0, "CNN": 97.0}

BATCH = 64
EPOCHS = {"MLP": 40, "CNN": 20}
LEARNING_RATE = 2e-3
SEED = 0


def load():
    """Returns (train images, test images, train labels, test labels). Images have the shape [n, 8, 8, 1] and values in 0..1."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., None]
    labels = digits.target.astype(np.int32)
    return train_test_split(images, labels, test_size=0.3, random_state=SEED, stratify=labels)


def init_dense(key, inputs, outputs):
    return {"w": jax.random.normal(key, (inputs, outputs)) * np.sqrt(2 / inputs), "b": jnp.zeros(outputs)}


def init_conv(key, inputs, outputs):
    kernel = jax.random.normal(key, (3, 3, inputs, outputs)) * np.sqrt(2 / (9 * inputs))
    return {"w": kernel, "b": jnp.zeros(outputs)}


def dense(layer, x):
    return x @ layer["w"] + layer["b"]


def conv(layer, x):
    x = jax.lax.conv_general_dilated(
        x, layer["w"], window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return x + layer["b"]


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def init_mlp(key):
    sizes = (64, 128, 64, 10)
    keys = jax.random.split(key, len(sizes) - 1)
    return [init_dense(*spec) for spec in zip(keys, sizes, sizes[1:])]


def mlp(params, x):
    x = x.reshape(x.shape[0], -1)
    for layer in params[:-1]:
        x = jax.nn.relu(dense(layer, x))
    return dense(params[-1], x)


def init_cnn(key):
    keys = jax.random.split(key, 3)
    return {"conv1": init_conv(keys[0], 1, 16), "conv2": init_conv(keys[1], 16, 32), "out": init_dense(keys[2], 128, 10)}


def cnn(params, x):
    x = max_pool(jax.nn.relu(conv(params["conv1"], x)))
    x = max_pool(jax.nn.relu(conv(params["conv2"], x)))
    return dense(params["out"], x.reshape(x.shape[0], -1))


MODELS = {"MLP": (init_mlp, mlp), "CNN": (init_cnn, cnn)}


def training(name, steps):
    """Returns the functions that train a model for a number of steps: the first state, the step of Adam, and the predictions."""
    init, model = MODELS[name]

    def loss(params, x, y):
        log_probabilities = jax.nn.log_softmax(model(params, x))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, y[:, None], axis=1))

    def step(state, x, y):
        """Runs a step of Adam, with a cosine decay of the learning rate to zero."""
        params, mean, square, count = state
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        count = count + 1
        rate = LEARNING_RATE * 0.5 * (1 + jnp.cos(jnp.pi * count / steps))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        rate = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square, count), value

    # The old state is donated, so that the new one can use its memory.
    step = jax.jit(step, donate_argnums=0)
    predict = jax.jit(lambda params, x: jnp.argmax(model(params, x), axis=-1))

    def start():
        params = init(jax.random.key(SEED))
        zeros = jax.tree.map(jnp.zeros_like, params)
        return params, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0)

    return start, step, predict
