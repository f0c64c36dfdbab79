"""The registration of a plugin with JAX."""

import atexit
import dataclasses
import logging
import pathlib
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import jax

from . import jax_internals
from .eigh import eigh

# The oldest JAX whose programs and interfaces the plugins support.
OLDEST_JAX = (0, 4, 30)

# JAX's default for plugins. It is above the priorities of JAX's CPU backend (0) and of TPUs (300), and below that of CUDA (500),
# so that an installed plugin replaces the CPU backend, but not a GPU.
PRIORITY = 400


@dataclasses.dataclass
class JaxPlugin:
    """A plugin for JAX.

    JAX imports the module `jax_plugins.NAME` and calls its function `initialize`:

        plugin = JaxPlugin("mine", pathlib.Path(__file__).with_name("libmine.so"))
        initialize = plugin.initialize
    """

    # The name of the platform, by which `JAX_PLATFORMS` and `jax.devices` select the plugin.
    name: str
    # The path of the shared library.
    library: pathlib.Path
    # If `JAX_PLATFORMS` is unset, JAX selects the platform with the highest priority.
    priority: int = PRIORITY
    # The create options of the client. JAX reads them when it creates the client.
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Whether programs may call Python (`jax.pure_callback`, `jax.debug.print`). The plugin must support StableHLO's `send` and
    # `recv`.
    callbacks: bool = False
    # Whether the plugin supports programs of several processes (`jax.distributed`).
    multi_process: bool = False
    # A function that is called when one of several processes ends, with the error that ends it, or an empty text.
    at_end_of_process: Callable[[str], None] | None = None
    # The platform of JAX whose lowering rules, branches of `platform_dependent`, and exported functions this platform uses, if
    # it has none of its own.
    similar_platform: str | None = None
    # The functions of `jax.lax` that the plugin receives as a single operation of CHLO, instead of jaxlib's decomposition.
    whole_functions: tuple[str, ...] = ()
    # Whether the plugin reports the shardings of `jax.debug.inspect_array_sharding` in the cost analysis of an executable.
    sharding_inspection: bool = False

    _registered: bool = dataclasses.field(default=False, init=False, repr=False)
    _uses_package: bool = dataclasses.field(default=False, init=False, repr=False)

    def initialize(self) -> None:
        """Registers the plugin once. JAX calls this function when it searches for plugins.

        If `PJRT_NAMES_AND_LIBRARY_PATHS` contains a library with the name of the plugin, or if the process has loaded one, that
        library is used instead of the one in the package.
        """
        if self._registered:
            return
        if jax.__version_info__ < OLDEST_JAX:
            raise ImportError(
                f"{self.name} requires JAX {'.'.join(map(str, OLDEST_JAX))} or newer, found {jax.__version__}: pip install --upgrade jax"
            )
        self._registered = True
        jax_internals.survive_forks(self.name)
        jax_internals.allow_donation(self.name)
        jax_internals.allow_compilation_cache(self.name)
        jax_internals.allow_dlpack(self.name)
        jax_internals.when_registered(self.name, self.add_lowerings)
        if self.at_end_of_process is not None:
            # It runs before the functions that JAX has registered.
            atexit.register(self._end)
        if jax_internals.is_named_in_environment(self.name):
            return
        if jax_internals.is_loaded(self.name):
            logging.getLogger(__name__).warning(
                "the process has already loaded a library for %s; JAX uses that instead of %s", self.name, self.library
            )
            return
        several = jax_internals.num_processes() > 1 and not self.multi_process
        if several and not jax_internals.is_named_as_platform(self.name):
            # Registering the plugin would make JAX fail on all platforms, because the plugin cannot create a client.
            warnings.warn(
                f"{self.name} does not support several processes; JAX uses another platform", RuntimeWarning, stacklevel=2
            )
            return
        if not self.library.exists():
            raise FileNotFoundError(f"{self.library} is missing: install the wheel of {self.name} instead of its source folder")
        jax_internals.register_plugin(
            self.name, priority=self.priority, library_path=str(self.library), options=self.options
        )
        self._uses_package = True

    def _end(self) -> None:
        """Ends a process that is one of several.

        JAX waits at the end of a process for the others, and does not tell them that the process ends. They may wait for it in a
        program. If a launch of a program that calls Python has failed, JAX raises its error before that, and would not wait.
        """
        if jax_internals.num_processes() <= 1 or not jax_internals.is_loaded(self.name):
            return
        error = getattr(sys, "last_value", None)
        self.at_end_of_process("" if error is None else "".join(traceback.format_exception_only(error)).strip())
        try:
            jax_internals.wait_for_callbacks()
        except jax.errors.JaxRuntimeError as failed:
            logging.getLogger(__name__).error("a program that calls Python has failed: %s", failed)

    def set_option(self, name: str, value: str | int | float | bool) -> None:
        """Sets a create option of the client. It must be called before the first use of JAX."""
        if jax_internals.backends_are_initialized():
            raise RuntimeError(
                f"the option {name} of {self.name} must be set before the first use of JAX; JAX has already created its devices"
            )
        if jax_internals.is_named_in_environment(self.name):
            raise RuntimeError(
                f"the option {name} has no effect on {self.name}, because its library is from PJRT_NAMES_AND_LIBRARY_PATHS"
            )
        if jax_internals.is_loaded(self.name) and not self._uses_package:
            raise RuntimeError(
                f"the option {name} has no effect on {self.name}, because the process has loaded another library for it"
            )
        self.options[name] = value

    def add_lowerings(self) -> None:
        """Adds the lowering rules that JAX has only for its own platforms. It is called after each registration of a platform."""
        if self.similar_platform is not None:
            jax_internals.take_branches_for(self.similar_platform, self.name)
            jax_internals.take_rules_of(self.similar_platform, self.name)
            jax_internals.call_exported_for(self.similar_platform, self.name)
        jax_internals.pass_on_handlers(self.name)
        self.add_lowerings_for(self.name)

    def add_lowerings_for(self, platform: str) -> None:
        """Adds the rules for a platform, which is the plugin's own or one that the plugin replaces."""
        if self.callbacks:
            jax_internals.allow_callbacks(platform)
        if self.sharding_inspection:
            jax_internals.allow_sharding_inspection(platform)
        for function in self.whole_functions:
            jax_internals.keep_whole(function, platform)
        jax_internals.lower_where_missing("eigh", eigh, platform)
