"""One of several processes that train a classifier, and save a sharded checkpoint with orbax or start from one.

    python checkpoints.py ADDRESS INDEX COUNT FOLDER BEGIN END

The program trains from step BEGIN to step END. It starts from the checkpoint in FOLDER unless BEGIN is 0, and saves one at the end.
The numbers of processes and of devices may differ from those that saved the checkpoint. It prints a checksum of the weights, and the
library of Gloo that is loaded.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

address, index, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
folder, begin, end = pathlib.Path(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
if count > 1:
    jax.distributed.initialize(address, num_processes=count, process_id=index, initialization_timeout=60)
mesh = jax.sharding.Mesh(np.array(jax.devices()), "i")
rows, everywhere = NamedSharding(mesh, P("i")), NamedSharding(mesh, P())


def placed(array, sharding):
    """A global array, of which each process has the shards of its devices."""
    return jax.make_array_from_callback(array.shape, sharding, lambda place: array[place])


def initial():
    """The weights and their momentum. The first layer is split by rows, and the second one is not split."""
    random = np.random.default_rng(3)
    shapes = {"first": (24, 16), "second": (16, 1)}
    weights = {name: random.normal(size=shape).astype(np.float32) / 5 for name, shape in shapes.items()}
    shardings = {"first": rows, "second": everywhere}
    weights = {name: placed(array, shardings[name]) for name, array in weights.items()}
    return {"weights": weights, "momentum": jax.tree.map(jnp.zeros_like, weights), "step": placed(np.int32(0), everywhere)}


def batch(step: int):
    random = np.random.default_rng(step)
    x = random.normal(size=(48, 24)).astype(np.float32)
    return placed(x, rows if 48 % jax.device_count() == 0 else everywhere), placed(x[:, :1] * x[:, 1:2], everywhere)


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["first"]) @ weights["second"] - y) ** 2)


@jax.jit
def train(state, x, y):
    gradients = jax.grad(loss)(state["weights"], x, y)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, state["momentum"], gradients)
    weights = jax.tree.map(lambda w, m: w - 0.05 * m, state["weights"], momentum)
    return {"weights": weights, "momentum": momentum, "step": state["step"] + 1}


state = initial()
shardings = jax.tree.map(lambda array: array.sharding, state)
checkpointer = ocp.StandardCheckpointer()
if begin:
    target = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding), state)
    state = checkpointer.restore(folder / str(begin), target)
    restored = jax.tree.map(lambda array: array.sharding, state)
    assert jax.tree.all(jax.tree.map(lambda a, b, x: a.is_equivalent_to(b, x.ndim), restored, shardings, state)), restored
for step in range(begin, end):
    state = jax.device_put(train(state, *batch(step)), shardings)
checkpointer.save(folder / str(end), state)
checkpointer.wait_until_finished()
total = jax.jit(lambda weights: sum(jnp.sum(jnp.abs(w)) for w in jax.tree.leaves(weights)), out_shardings=everywhere)
number = int(np.asarray(state["step"].addressable_data(0)))
print(f"step {number}: weights {float(np.asarray(total(state['weights']).addressable_data(0))):.5f}", flush=True)
for path in sorted({line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8") if "libgloo" in line}):
    print(f"gloo {path}", flush=True)
