"""One process of several that train the MLP together. Each has its part of every batch.

    python distributed.py ADDRESS INDEX COUNT [EPOCHS]

The program prints its progress, and the test accuracy at the end. It ends with an error if another process ends.
"""

import os
import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from models import BATCH, EPOCHS, SEED, load, training

address, index, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
epochs = int(sys.argv[4]) if len(sys.argv) > 4 else EPOCHS["MLP"]


def main():
    if count > 1:
        jax.distributed.initialize(address, num_processes=count, process_id=index)
    mesh = Mesh(np.array(jax.devices()), "batch")
    everywhere, by_batch = NamedSharding(mesh, P()), NamedSharding(mesh, P("batch"))
    train_x, test_x, train_y, test_y = load()
    steps = len(train_x) // BATCH
    start, step, predict = training("MLP", epochs * steps)
    state = jax.jit(start, out_shardings=everywhere)()
    order = np.random.default_rng(SEED)

    def part(array, places):
        """The batch, of which this process provides the part of its devices."""
        return jax.make_array_from_callback((BATCH, *array.shape[1:]), by_batch, lambda place: array[places[place[0]]])

    for epoch in range(1, epochs + 1):
        shuffled = order.permutation(len(train_x))
        for i in range(steps):
            places = shuffled[i * BATCH : (i + 1) * BATCH]
            state, loss = step(state, part(train_x, places), part(train_y, places))
        if epoch % 10 == 0 or epoch == 1:
            print(f"process {index} of {count}: epoch {epoch}/{epochs}, loss {float(loss):.4f}", flush=True)
    # Every process has all weights.
    params = jax.tree.map(lambda leaf: np.asarray(leaf.addressable_data(0)), state[0])
    predictions = np.asarray(predict(params, test_x))
    print(f"process {index} of {count}: accuracy {100 * np.mean(predictions == test_y):.2f}", flush=True)


try:
    main()
except jax.errors.JaxRuntimeError as error:
    print(f"process {index} of {count}: {error}", flush=True)
    # JAX would wait at the end for the processes that have ended.
    os._exit(3)
