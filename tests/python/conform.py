"""Probes a plugin with pypjrt-conform, an independent client of the PJRT C API.

    python conform.py plugin.so

The prober's own program is StableHLO text; it is given to the plugin as JAX would send it, as a portable artifact.
"""

import plugins

plugins.use("cpu")

import sys  # noqa: E402

import programs  # noqa: E402
from pypjrt import conform  # noqa: E402

conform.ADD_MLIR = programs.text_to_artifact(conform.ADD_MLIR)

sys.exit(conform.main(["--verbose", *sys.argv[1:]]))
