"""One process of a distributed computation that fails: prints the error with the seconds that passed since the failure.

    python failures.py ADDRESS INDEX COUNT CASE

The last process fails, but not the one with the service of JAX, which is process 0. In the cases "callback", "ended" and
"uninitialized", the processes end as JAX ends them.
"""

import contextlib
import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

address, index, count, case = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
fails = index == count - 1
if case == "exhausted" and fails:
    # Enough for the argument, but not for the result in addition.
    os.environ["REFCPU_MEMORY_LIMIT"] = str(6 << 20)
if case == "uninitialized" and fails:
    os.environ["REFCPU_GLOO_HOST"] = "no.such.host.invalid"
# The launches of programs that call Python return at once, so that their results are in error when the programs fail.
if case in ("argument", "late argument"):
    os.environ["REFCPU_ASYNC_CALLBACKS"] = "1"
jax.distributed.initialize(address, num_processes=count, process_id=index, initialization_timeout=60)
mesh = jax.sharding.Mesh(np.array(jax.devices()), "i")
sharding = NamedSharding(mesh, P("i"))
width = 1 << 20 if case == "exhausted" else 4
x = jax.make_array_from_callback((count, width), sharding, lambda place: np.ones((1, width), np.float32))


def over_all(function):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P(), check_vma=False))


total = over_all(lambda x: jax.lax.psum(x, "i"))
if case != "exhausted":
    total(x).block_until_ready()

if case == "killed" and fails:
    os.kill(os.getpid(), signal.SIGKILL)
if case == "slow" and fails:
    time.sleep(15)
if case == "different" and fails:
    total = over_all(lambda x: jax.lax.psum(x, "i") + jax.lax.pmax(x, "i"))
if case == "constant":
    factor = 3 if fails else 2
    total = over_all(lambda x: jax.lax.psum(factor * x, "i"))
if case == "callback":

    def identity(x):
        if fails:
            raise ValueError("planted in a callback")
        return x

    total = over_all(lambda x: jax.lax.psum(jax.pure_callback(identity, jax.ShapeDtypeStruct((1, 4), np.float32), x), "i"))
if case == "callback after a collective":

    def identity(x):
        if fails:
            raise ValueError("planted in a callback")
        return x

    of_first = jax.ShapeDtypeStruct((1, 4), np.float32)
    total = over_all(lambda x: jax.lax.psum(jax.pure_callback(identity, of_first, jax.lax.psum(x, "i")), "i"))
argument = x
if case == "mesh":
    first_mesh, mesh = mesh, jax.sharding.Mesh(np.array(jax.devices()[::-1] if fails else jax.devices()), "i")
    sharding = NamedSharding(mesh, P("i"))
    argument = jax.make_array_from_callback((count, width), sharding, lambda place: np.ones((1, width), np.float32))
    total = over_all(lambda x: jax.lax.all_gather(x, "i"))
if case in ("argument", "late argument") and fails:

    def late(x):
        time.sleep(1)
        raise ValueError("planted in an argument")

    own = x.addressable_data(0)
    own = jax.jit(lambda x: jax.pure_callback(late, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(own)
    if case == "argument":
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            own.block_until_ready()
    argument = jax.make_array_from_single_device_arrays(x.shape, sharding, [own])
if case == "ended" and fails:
    raise ValueError("planted at the end")

begin = time.monotonic()
try:
    result = np.asarray(total(argument).addressable_data(0))
    print(f"result {result[0, 0]:g} after {time.monotonic() - begin:.1f} s", flush=True)
except jax.errors.JaxRuntimeError as error:
    if case == "callback after a collective" and fails:
        os._exit(0)
    print(f"failed after {time.monotonic() - begin:.1f} s: {error}", flush=True)
    if case == "mesh":
        mesh = first_mesh
    if case in ("different", "constant", "mesh", "callback", "exhausted", "argument", "late argument"):
        # The processes can go on with equal programs.
        again = over_all(lambda x: jax.lax.psum(2 * x[:, :4], "i"))
        print(f"then {np.asarray(again(x).addressable_data(0))[0, 0]:g}", flush=True)
if case in ("callback", "ended"):
    sys.exit()
# JAX would wait at the end for processes that have ended.
os._exit(0)
