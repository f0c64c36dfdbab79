"""Trains two classifiers of handwritten digits on each of the given platforms with the same seeds, and compares them.

    python digits.py --platforms refcpu,cpu --picture digits.png

The data are the 1797 scanned digits of scikit-learn. The models are an MLP and a small CNN in plain JAX, trained with Adam.
The program exits with an error if the accuracy of a model is too low, or if the platforms differ.
"""

import argparse
import os
import sys
import time

# The minimum test accuracy of each model in percent, and the maximum difference between platforms in percentage points.
LEAST = {"MLP": 96.0, "CNN": 97.0}
MAX_DIFFERENCE = 0.5

BATCH = 64
EPOCHS = {"MLP": 40, "CNN": 20}
LEARNING_RATE = 2e-3
SEED = 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platforms", default="refcpu,cpu", help="comma-separated; the picture is of the first one")
    parser.add_argument("--picture", help="the PNG file to which sample digits with their predictions are written")
    return parser.parse_args()


arguments = parse_arguments()
# JAX reads this variable when it is imported.
os.environ["JAX_PLATFORMS"] = arguments.platforms

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402


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


def train(name, data, device):
    """Trains a model on a device. Returns (test accuracy in percent, predictions of the test images)."""
    init, model = MODELS[name]
    train_x, test_x, train_y, test_y = data
    steps = len(train_x) // BATCH
    total_steps = EPOCHS[name] * steps

    def loss(params, x, y):
        log_probabilities = jax.nn.log_softmax(model(params, x))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, y[:, None], axis=1))

    def step(state, x, y):
        """Runs a step of Adam, with a cosine decay of the learning rate to zero."""
        params, mean, square, count = state
        value, gradient = jax.value_and_grad(loss)(params, x, y)
        count = count + 1
        rate = LEARNING_RATE * 0.5 * (1 + jnp.cos(jnp.pi * count / total_steps))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
        rate = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square, count), value

    # The old state is donated, so that the new one can use its memory.
    step = jax.jit(step, donate_argnums=0)
    predict = jax.jit(lambda params, x: jnp.argmax(model(params, x), axis=-1))

    started = time.perf_counter()
    with jax.default_device(device):
        params = init(jax.random.key(SEED))
        zeros = jax.tree.map(jnp.zeros_like, params)
        state = (params, zeros, jax.tree.map(jnp.copy, zeros), jnp.float32(0))
        order = np.random.default_rng(SEED)
        for epoch in range(1, EPOCHS[name] + 1):
            shuffled = order.permutation(len(train_x))
            losses = []
            for i in range(steps):
                batch = shuffled[i * BATCH : (i + 1) * BATCH]
                state, value = step(state, train_x[batch], train_y[batch])
                losses.append(value)
            mean_loss = np.mean(jax.device_get(losses))
            progress(
                f"  {name} on {device.platform}: epoch {epoch:2}/{EPOCHS[name]}, loss {mean_loss:.4f}",
                keep=epoch % 10 == 0,
            )
        predictions = np.asarray(predict(state[0], test_x))
    seconds = time.perf_counter() - started
    progress(f"  {name} on {device.platform}: {EPOCHS[name]} epochs in {seconds:.1f} s", keep=True)
    return 100 * float(np.mean(predictions == test_y)), predictions


def progress(text, keep=False):
    """Prints the progress.

    On a terminal, each line replaces the previous one unless that is kept. Elsewhere, only kept lines are printed.
    """
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="\n" if keep else "", flush=True)
    elif keep:
        print(text, flush=True)


def draw(path, platform, images, labels, predictions):
    """Writes a PNG file of the first forty test images with their predictions, of which wrong ones are red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 10, figsize=(10, 5))
    for axis, image, label, prediction in zip(axes.flat, images, labels, predictions):
        axis.imshow(image[..., 0], cmap="gray_r")
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_xlabel(str(prediction), color="black" if prediction == label else "red", fontsize=14)
    figure.suptitle(f"Handwritten digits with the predictions of the CNN that was trained on {platform}")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def main():
    data = load()
    _, test_x, train_y, test_y = data
    platforms = arguments.platforms.split(",")
    print(f"{len(train_y)} training digits, {len(test_y)} test digits, seed {SEED}")
    accuracies = {}
    predictions = {}
    for name in MODELS:
        for platform in platforms:
            accuracies[name, platform], predictions[name, platform] = train(name, data, jax.devices(platform)[0])

    print("\ntest accuracy   " + "".join(f"{platform:>10}" for platform in platforms) + "    minimum")
    failures = []
    for name, least in LEAST.items():
        row = [accuracies[name, platform] for platform in platforms]
        print(f"{name:<16}" + "".join(f"{accuracy:9.2f}%" for accuracy in row) + f"{least:10.1f}%")
        if min(row) < least:
            failures.append(f"the accuracy of {name} is {min(row):.2f} %, expected at least {least} %")
        if max(row) - min(row) > MAX_DIFFERENCE:
            failures.append(f"the accuracies of {name} differ by {max(row) - min(row):.2f} points, more than {MAX_DIFFERENCE}")
    if arguments.picture:
        draw(arguments.picture, platforms[0], test_x, test_y, predictions["CNN", platforms[0]])
        print(f"\nSample digits with predictions: {arguments.picture}")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
