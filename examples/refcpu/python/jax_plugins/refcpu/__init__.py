"""Registers refcpu, a CPU plugin written in Rust, with JAX.

JAX imports this module and calls `initialize()` when it searches for plugins. It finds the module twice, in the namespace
package `jax_plugins` and through the entry point, so the code of this module may run more than once.
"""

import os
import pathlib
import re
import warnings

from jax_plugins.refcpu import _private, linalg

NAME = "refcpu"

# The name of JAX's CPU backend, and the variable with which refcpu takes its place. The library reads the variable too.
CPU = "cpu"
AS_CPU = "REFCPU_AS_CPU"

# The variable with the number of devices, and the flag of XLA's CPU backend in `XLA_FLAGS` for it.
NUM_DEVICES = "REFCPU_NUM_DEVICES"
NUM_CPU_DEVICES_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")

LIBRARY = pathlib.Path(__file__).with_name("librefcpu.so")

# The priority is above those of JAX's CPU backend (0) and of TPUs (300), and below that of CUDA (500), so that an installed
# refcpu replaces the CPU backend, but not a GPU. It is also JAX's default for plugins.
PRIORITY = 400

# The functions that refcpu computes more accurately than the formulas by which jaxlib would replace them.
SPECIAL_FUNCTIONS = ("bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma", "polygamma", "zeta")

# JAX keeps a reference to this object and reads it when it creates the client.
_options: dict[str, int] = {}

_registered = False


def initialize() -> None:
    """Registers the plugin once. JAX calls this function.

    If `PJRT_NAMES_AND_LIBRARY_PATHS` contains a library with the name `refcpu`, that library is used instead of the one in this
    package.
    """
    global _registered
    if _registered:
        return
    if _is_cpu():
        _private.select_alias_of(NAME, CPU)
    _private.survive_forks(NAME)
    _private.allow_donation(NAME)
    _private.allow_compilation_cache(NAME)
    _private.allow_dlpack(NAME)
    _private.when_registered(NAME, _add_lowerings)
    if _named_in_environment():
        return
    if _private.num_processes() > 1 and not _private.is_named_as_platform(NAME):
        # Registering the plugin would make JAX fail on all platforms, because the plugin cannot create a client.
        warnings.warn("refcpu does not support several processes; JAX uses another platform", RuntimeWarning, stacklevel=2)
        return
    if not LIBRARY.exists():
        raise FileNotFoundError(f"{LIBRARY} is missing: install the wheel that `cargo xtask wheel` builds")
    _private.register_plugin(NAME, priority=PRIORITY, library_path=str(LIBRARY), options=_options)
    _registered = True


def install_as_cpu() -> None:
    """Replaces JAX's CPU backend with refcpu, under the name `cpu`.

    It must be called before the first use of JAX. The environment variable `REFCPU_AS_CPU=1` has the same effect.
    `jax.devices()[0].platform` and `jax.default_backend()` are then "cpu", and `jax.devices("cpu")` are refcpu's devices.
    Launches of programs that call Python return when the program has ended, unless `REFCPU_ASYNC_CALLBACKS=1` is set.
    """
    if _private.backends_are_initialized():
        raise RuntimeError("install_as_cpu must be called before the first use of JAX; JAX has already created its devices")
    os.environ[AS_CPU] = "1"
    _private.select_alias_of(NAME, CPU)


def _is_cpu() -> bool:
    return os.environ.get(AS_CPU) in ("1", "true")


def _settings_of_cpu() -> dict[str, str]:
    """Returns the environment variables of refcpu for the settings of JAX's CPU backend.

    `jax_num_cpu_devices` takes precedence over the variable, because programs set it, and the variable over XLA's flag.
    """
    count = _private.num_cpu_devices()
    if count is None and NUM_DEVICES not in os.environ:
        flags = NUM_CPU_DEVICES_FLAG.findall(os.environ.get("XLA_FLAGS", ""))
        count = int(flags[-1]) if flags else None
    return {} if count is None else {NUM_DEVICES: str(count)}


def _add_lowerings() -> None:
    """Adds the lowerings that JAX provides only for its own platforms."""
    if _is_cpu():
        _private.replace_backend(CPU, NAME, _settings_of_cpu)
        _private.survive_forks(CPU)
        _private.pass_on_handlers_of(CPU, NAME)
        _private.copy_dlpack_imports()
        _private.allow_callbacks(CPU)
        _private.allow_sharding_inspection(CPU)
        for function in SPECIAL_FUNCTIONS:
            _private.keep_whole(function, CPU)
        linalg.register(CPU)
        return
    _private.allow_callbacks(NAME)
    _private.pass_on_handlers(NAME)
    _private.take_branches_for("cpu", NAME)
    _private.take_rules_of("cpu", NAME)
    _private.call_exported_for("cpu", NAME)
    _private.allow_sharding_inspection(NAME)
    for function in SPECIAL_FUNCTIONS:
        _private.keep_whole(function, NAME)
    linalg.register(NAME)


def set_num_devices(count: int) -> None:
    """Sets the number of devices of refcpu.

    It must be called before the first use of JAX. It takes precedence over `REFCPU_NUM_DEVICES`.
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"the number of devices must be an int, not {type(count).__name__}")
    if count < 1:
        raise ValueError(f"the number of devices must be at least 1, found {count}")
    if _private.backends_are_initialized():
        raise RuntimeError("set_num_devices must be called before the first use of JAX; JAX has already created its devices")
    if _named_in_environment():
        raise RuntimeError(
            "set_num_devices has no effect on a library from PJRT_NAMES_AND_LIBRARY_PATHS; set REFCPU_NUM_DEVICES"
        )
    _options["num_devices"] = count


def _named_in_environment() -> bool:
    entries = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(",")
    return any(entry.partition(os.pathsep)[0] == NAME for entry in entries)
