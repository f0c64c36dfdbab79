"""Trains a network of a convolution and an LSTM with `Model.fit` to name the frequency of noisy waves."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras  # noqa: E402
import numpy as np  # noqa: E402

PACKAGES = ("keras",)
TOLERANCE = 1e-4


def waves(count):
    random = np.random.default_rng(16)
    labels = random.integers(0, 4, count)
    time = np.linspace(0, 1, 32)
    phases = random.uniform(0, 2 * np.pi, (count, 1))
    signal = np.sin(2 * np.pi * (labels[:, None] + 1) * time + phases) + 0.2 * random.normal(size=(count, 32))
    return signal[..., None].astype(np.float32), labels


def run():
    keras.utils.set_random_seed(17)
    signals, labels = waves(256)
    model = keras.Sequential(
        [
            keras.Input((32, 1)),
            keras.layers.Conv1D(16, 5, activation="relu"),
            keras.layers.MaxPooling1D(2),
            keras.layers.BatchNormalization(),
            keras.layers.LSTM(16),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(4),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss, metrics=["accuracy"])
    history = model.fit(signals, labels, batch_size=64, epochs=5, verbose=0).history
    return {"losses": history["loss"], "logits": model.predict(signals[:32], verbose=0)}
