"""Registers refcpu, a CPU plugin written in Rust, with PyTorch/XLA.

torch_xla loads this module through the entry point `torch_xla.plugins` and creates a `RefcpuPlugin`. The environment variable
`PJRT_DEVICE=REFCPU` selects it. The client has `REFCPU_NUM_DEVICES` devices, 1 by default.
"""

import os
import pathlib

from torch_xla.experimental import plugins

# The wheel contains the library once, in the package for JAX. Importing that package would import JAX.
LIBRARY = pathlib.Path(__file__).parent / "jax_plugins" / "refcpu" / "librefcpu.so"


class RefcpuPlugin(plugins.DevicePlugin):
    """The library of this package, or the one that `PJRT_LIBRARY_PATH` names."""

    def library_path(self) -> str:
        return os.environ.get("PJRT_LIBRARY_PATH", str(LIBRARY))

    def configure_single_process(self) -> None:
        """Does nothing: a single process needs no configuration. torch_xla calls this method before debugging."""
