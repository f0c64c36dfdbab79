"""Trains two classifiers of handwritten digits on each of the given platforms with the same seeds, and compares them.

    python digits.py --platforms refcpu,cpu --picture digits.png

The data are the 1797 scanned digits of scikit-learn. The models are an MLP and a small CNN in plain JAX, trained with Adam.
The program exits with an error if the accuracy of a model is too low, or if the platforms differ.
"""

import argparse
import os
import sys
import time

# The maximum difference between platforms in percentage points.
MAX_DIFFERENCE = 0.5


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platforms", default="refcpu,cpu", help="comma-separated; the picture is of the first one")
    parser.add_argument("--picture", help="the PNG file to which sample digits with their predictions are written")
    return parser.parse_args()


arguments = parse_arguments()
# JAX reads this variable when it is imported.
os.environ["JAX_PLATFORMS"] = arguments.platforms

import jax  # noqa: E402
import numpy as np  # noqa: E402
from models import BATCH, EPOCHS, LEAST, MODELS, SEED, load, training  # noqa: E402


def train(name, data, device):
    """Trains a model on a device. Returns (test accuracy in percent, predictions of the test images)."""
    train_x, test_x, train_y, test_y = data
    steps = len(train_x) // BATCH
    start, step, predict = training(name, EPOCHS[name] * steps)

    started = time.perf_counter()
    with jax.default_device(device):
        state = start()
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
