"""One of two processes that train a classifier on the simulated accelerator. Each has half of every batch.

    python accelerator.py ADDRESS INDEX COUNT

The accelerator has no collectives. Each process copies its gradients to a device of the other one, and adds those that it receives.
With one process, the program trains on whole batches. It prints the loss after each epoch, and a checksum of the weights.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

address, index, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BATCH, STEPS, EPOCHS, RATE = 32, 8, 5, 0.5

if count > 1:
    jax.distributed.initialize(address, num_processes=count, process_id=index, initialization_timeout=60)
devices = [next(device for device in jax.devices() if device.process_index == process) for process in range(count)]
assert jax.process_count() == count and jax.device_count() == 4 * count and jax.local_devices()[0] == devices[index]

random = np.random.default_rng(7)
inputs = random.normal(size=(BATCH * STEPS, 16)).astype(np.float32)
labels = (inputs[:, :4].sum(1) > inputs[:, 4:8].sum(1)).astype(np.float32)
weights = [random.normal(size=shape).astype(np.float32) / 4 for shape in ((16, 32), (32, 1))]


def loss(weights, x, y):
    """The part of the batch's mean loss that belongs to some of its examples."""
    hidden = jnp.tanh(x @ weights[0])
    logits = (hidden @ weights[1])[:, 0]
    return jnp.sum(jnp.log(1 + jnp.exp(jnp.where(y > 0, -logits, logits)))) / BATCH


gradients = jax.jit(jax.value_and_grad(loss))
update = jax.jit(lambda weights, *parts: [w - RATE * sum(g) for w, *g in zip(weights, *parts)])


def exchanged(array):
    """The arrays of all processes, in their order, on the device of this one."""
    parts = [array] * count
    for source in range(count):
        for target in range(count):
            if source == target:
                continue
            sharding = SingleDeviceSharding(devices[source])
            own = [array] if source == index else []
            shared = jax.make_array_from_single_device_arrays(array.shape, sharding, own, dtype=array.dtype)
            copied = jax.device_put(shared, SingleDeviceSharding(devices[target]))
            if target == index:
                parts[source] = copied
    return parts


weights = jax.device_put(weights, devices[index])
for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for step in range(STEPS):
        begin = step * BATCH + index * BATCH // count
        own = slice(begin, begin + BATCH // count)
        value, grads = gradients(weights, *jax.device_put((inputs[own], labels[own]), devices[index]))
        parts = [exchanged(leaf) for leaf in (value, *grads)]
        total += sum(float(part) for part in parts[0])
        weights = update(weights, *map(list, zip(*parts[1:])))
    print(f"epoch {epoch}: loss {total / STEPS:.5f}", flush=True)
print(f"weights {sum(float(jnp.abs(w).sum()) for w in weights):.4f}", flush=True)
