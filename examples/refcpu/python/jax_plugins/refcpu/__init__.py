"""Registers refcpu, a CPU plugin written in Rust, with JAX."""

import ctypes
import os
import pathlib
import re

from . import linalg
from ._support import jax_internals
from ._support.jax_plugin import JaxPlugin

NAME = "refcpu"

# The name of JAX's CPU backend, and the variable with which refcpu takes its place. The library reads the variable too.
CPU = "cpu"
AS_CPU = "REFCPU_AS_CPU"

# The variable with the number of devices, and the flag of XLA's CPU backend in `XLA_FLAGS` for it.
NUM_DEVICES = "REFCPU_NUM_DEVICES"
NUM_CPU_DEVICES_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")

# The library that connects several processes: the variable with its path, and its name beside refcpu's.
GLOO = "REFCPU_GLOO"
GLOO_LIBRARY = "librefcpu_gloo.so"

# The functions that refcpu computes more accurately than the formulas by which jaxlib would replace them.
SPECIAL_FUNCTIONS = ("bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "polygamma", "zeta")


class Refcpu(JaxPlugin):
    """refcpu, under its own name or in the place of JAX's CPU backend."""

    def initialize(self) -> None:
        if _is_cpu():
            jax_internals.select_alias_of(NAME, CPU)
        super().initialize()

    def add_lowerings(self) -> None:
        if _is_cpu():
            jax_internals.replace_backend(CPU, NAME, _settings_of_cpu)
            jax_internals.survive_forks(CPU)
            jax_internals.pass_on_handlers_of(CPU, NAME)
            jax_internals.copy_dlpack_imports()
            self.add_lowerings_for(CPU)
        else:
            super().add_lowerings()

    def add_lowerings_for(self, platform: str) -> None:
        super().add_lowerings_for(platform)
        linalg.register(platform)


def _ends(error: str) -> None:
    """Tells the other processes that this one ends."""
    library = pathlib.Path(jax_internals.library_in_environment(NAME) or _plugin.library).with_name(GLOO_LIBRARY)
    path = os.environ.get(GLOO) or (str(library) if library.exists() else GLOO_LIBRARY)
    try:
        gloo = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return  # The client, which loads it, has not been created.
    gloo.refcpu_gloo_host_ends(error.encode().replace(b"\0", b""))


_plugin = Refcpu(
    NAME,
    pathlib.Path(__file__).with_name("librefcpu.so"),
    callbacks=True,
    # Without the library, a program that does not ask for refcpu by name runs on another platform.
    multi_process=GLOO in os.environ or pathlib.Path(__file__).with_name(GLOO_LIBRARY).exists(),
    at_end_of_process=_ends,
    similar_platform=CPU,
    whole_functions=SPECIAL_FUNCTIONS,
    sharding_inspection=True,
)

initialize = _plugin.initialize


def install_as_cpu() -> None:
    """Replaces JAX's CPU backend with refcpu, under the name `cpu`.

    It must be called before the first use of JAX. The environment variable `REFCPU_AS_CPU=1` has the same effect.
    `jax.devices()[0].platform` and `jax.default_backend()` are then "cpu", and `jax.devices("cpu")` are refcpu's devices.
    Launches of programs that call Python return when the program has ended, unless `REFCPU_ASYNC_CALLBACKS=1` is set.
    """
    if jax_internals.backends_are_initialized():
        raise RuntimeError("install_as_cpu must be called before the first use of JAX; JAX has already created its devices")
    os.environ[AS_CPU] = "1"
    jax_internals.select_alias_of(NAME, CPU)


def set_num_devices(count: int) -> None:
    """Sets the number of devices of refcpu.

    It must be called before the first use of JAX. It takes precedence over `REFCPU_NUM_DEVICES`.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"the number of devices must be an int, not {type(count).__name__}")
    if count < 1:
        raise ValueError(f"the number of devices must be at least 1, found {count}")
    _plugin.set_option("num_devices", count)


def _is_cpu() -> bool:
    return os.environ.get(AS_CPU) in ("1", "true")


def _settings_of_cpu() -> dict[str, str]:
    """Returns the environment variables of refcpu for the settings of JAX's CPU backend.

    `jax_num_cpu_devices` takes precedence over the variable, because programs set it, and the variable over XLA's flag.
    """
    count = jax_internals.num_cpu_devices()
    if count is None and NUM_DEVICES not in os.environ:
        flags = NUM_CPU_DEVICES_FLAG.findall(os.environ.get("XLA_FLAGS", ""))
        count = int(flags[-1]) if flags else None
    return {} if count is None else {NUM_DEVICES: str(count)}
