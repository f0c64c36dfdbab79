"""Runs the program of one library in this process, and writes its results and their cost to a file.

The seconds are processor time of all threads, with tracing and compilation but without the imports.
"""

import importlib
import importlib.metadata
import json
import resource
import sys
import time
from pathlib import Path

# The folder of this file has a module with the name of each library.
sys.path[0] = str(Path(__file__).resolve().parents[1])

import jax  # noqa: E402
import numpy as np  # noqa: E402


def main(name: str, backend: str, file: str) -> None:
    program = importlib.import_module(f"libraries.{name}")
    client = jax.devices()[0].client
    loaded = "refcpu" if "refcpu" in client.platform_version else "XLA"
    if (client.platform, loaded) != ("cpu", backend):
        raise RuntimeError(f"the platform is {client.platform} of {loaded}, expected cpu of {backend}")
    started = time.process_time()
    results = {key: np.asarray(value, np.float64) for key, value in program.run().items()}
    measured = {
        "seconds": time.process_time() - started,
        "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "description": program.__doc__.strip(),
        "packages": [f"{package} {importlib.metadata.version(package)}" for package in program.PACKAGES],
        "tolerance": program.TOLERANCE,
        "results": {key: value.tolist() for key, value in results.items()},
    }
    Path(file).write_text(json.dumps(measured))


if __name__ == "__main__":
    main(*sys.argv[1:])
