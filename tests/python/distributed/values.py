"""Compares what several processes compute on refcpu and on XLA's CPU backend over Gloo, with the JAX that runs this program.

    python values.py [SHAPE...]

A shape such as `2x4` is a number of processes and of devices in each.
"""

import os
import sys
import tempfile

import numpy as np

import launch

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "computations.py")


def computed(platform: str, shape: tuple[int, int], folder, *names: str) -> list[dict[str, np.ndarray]]:
    """The values that each process computes, in all computations or those with the names."""
    processes, devices = shape
    output = f"{folder}/{platform}-INDEX.npz"
    for index, text in enumerate(launch.outputs(launch.start([PROGRAM, output, *names], processes, devices, platform))):
        # At the end, JAX logs that its service has ended.
        assert "\ndone\n" in f"\n{text}", f"process {index} of {platform}:\n{text}"
    return [dict(np.load(output.replace("INDEX", str(index)))) for index in range(processes)]


def compare(shape: tuple[int, int], folder) -> int:
    """Compares the values of all processes. Returns their number."""
    expected, actual = computed("cpu", shape, folder), computed("refcpu", shape, folder)
    for process, (ours, theirs) in enumerate(zip(actual, expected)):
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            assert ours[name].dtype == value.dtype and ours[name].shape == value.shape, (process, name)
            if name.startswith("topology"):
                # XLA's ids are not consecutive.
                continue
            np.testing.assert_allclose(
                ours[name].astype(np.complex64), value.astype(np.complex64), rtol=1e-5, atol=1e-6, err_msg=f"{process}, {name}"
            )
    return sum(map(len, actual))


def main():
    import jax

    for text in sys.argv[1:] or ["2x2", "4x1"]:
        processes, devices = map(int, text.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            count = compare((processes, devices), folder)
        print(f"JAX {jax.__version__}, {processes} processes of {devices} devices: {count} arrays are equal to XLA's", flush=True)


if __name__ == "__main__":
    main()
