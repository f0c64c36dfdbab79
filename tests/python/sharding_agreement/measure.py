"""Runs the programs of one platform and partitioner, and writes their results and the shardings of these.

The file gets every program before and after it runs, so that a process that ends in a program can be followed by another
that continues after it.

A program is a function with one dimension of one argument split over a mesh. Its name is that of the function, the
argument, the dimension and the mesh, such as `matmul/1.0/8`.
"""

import argparse
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MESHES = {"2": (2,), "4": (4,), "8": (8,), "2x4": (2, 4)}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platform", help="the platform of JAX to measure")
    parser.add_argument("partitioner", choices=["shardy", "gspmd"])
    parser.add_argument("output", type=Path, help="the file to write")
    parser.add_argument("--mesh", action="append", choices=MESHES, help="only this mesh; may be given several times")
    parser.add_argument("--only", help="only functions whose name contains this text")
    return parser.parse_args()


OPTIONS = arguments()
os.environ["JAX_PLATFORMS"] = OPTIONS.platform
os.environ["REFCPU_NUM_DEVICES"] = "8"
os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from sharding_agreement.programs import Function, functions  # noqa: E402
from sharding_agreement.record import read  # noqa: E402

jax.config.update("jax_use_shardy_partitioner", OPTIONS.partitioner == "shardy")


def spec(rank: int, dim: int, axes: int) -> PartitionSpec:
    """Splits a dimension along the first axis of a mesh, and the next dimension along the second axis. An array of one
    dimension is split along both."""
    if axes == 1:
        return PartitionSpec(*([None] * dim + ["x"]))
    if rank == 1:
        return PartitionSpec(("x", "y"))
    dims: list = [None] * rank
    dims[dim], dims[(dim + 1) % rank] = "x", "y"
    return PartitionSpec(*dims)


def is_split(array: np.ndarray, spec: PartitionSpec, mesh: Mesh) -> bool:
    """Returns whether the array can be split equally."""
    parts = lambda axes: math.prod(mesh.shape[axis] for axis in ([axes] if isinstance(axes, str) else axes or []))  # noqa: E731
    return all(size % parts(axes) == 0 for size, axes in zip(array.shape, spec))


def seen(sharding, shape: tuple[int, ...]) -> list:
    """Returns the part of the array that each device holds, in the order of the devices, as a user of JAX sees it."""
    parts = sharding.devices_indices_map(shape)
    ranges = {device.id: [s.indices(n)[:2] for s, n in zip(part, shape)] for device, part in parts.items()}
    return [ranges[device] for device in sorted(ranges)]


def measure_whole(function: Function) -> dict:
    """Runs a function on one device."""
    return {"values": [np.asarray(x) for x in jax.tree.leaves(jax.jit(function.function)(*function.arguments))]}


def measure(function: Function, index: int, split: PartitionSpec, mesh: Mesh) -> dict:
    """Runs a function with one argument split, and the others on every device."""
    specs = [split if i == index else PartitionSpec() for i in range(len(function.arguments))]
    placed = [jax.device_put(x, NamedSharding(mesh, s)) for x, s in zip(function.arguments, specs)]
    try:
        results = jax.tree.leaves(jax.jit(function.function)(*placed))
        values = [np.asarray(x) for x in results]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:2000]}
    return {
        "spec": str(split),
        "values": values,
        "shapes": [x.shape for x in results],
        "specs": [str(getattr(x.sharding, "spec", x.sharding)) for x in results],
        "shardings": [seen(x.sharding, x.shape) for x in results],
    }


def programs() -> Iterator[tuple[str, Callable[[], dict]]]:
    """Yields every program: its name, and what runs it. The first one of a function runs it on one device."""
    devices = np.array(jax.devices())
    for function in functions():
        if OPTIONS.only and OPTIONS.only not in function.name:
            continue
        yield function.name, partial(measure_whole, function)
        for name in OPTIONS.mesh or MESHES:
            mesh = Mesh(devices[: math.prod(MESHES[name])].reshape(MESHES[name]), ("x", "y")[: len(MESHES[name])])
            for index, argument in enumerate(function.arguments):
                for dim in range(argument.ndim):
                    split = spec(argument.ndim, dim, len(mesh.shape))
                    if is_split(argument, split, mesh):
                        yield f"{function.name}/{index}.{dim}/{name}", partial(measure, function, index, split, mesh)


def main() -> None:
    known = read(OPTIONS.output)
    with OPTIONS.output.open("ab") as file:
        for number, (name, run) in enumerate(programs()):
            if name in known:
                continue
            pickle.dump((name, {"error": "the process ended"}), file)
            file.flush()
            pickle.dump((name, run()), file)
            file.flush()
            if number % 20 == 0:
                jax.clear_caches()


if __name__ == "__main__":
    main()
