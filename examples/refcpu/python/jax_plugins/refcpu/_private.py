"""Every private symbol of JAX that this package uses, and nothing else.

JAX has no public interface for what a plugin's package must do. `tests/python/test_private_api.py` pins these symbols
for the JAX version that the tests run with, and checks that the rest of the package uses none.
"""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from jax._src import xla_bridge
from jax._src.interpreters import mlir

# (module, attribute): what the functions below need.
SYMBOLS = (
    ("jax._src.xla_bridge", "register_plugin"),
    ("jax._src.xla_bridge", "backends_are_initialized"),
    ("jax._src.xla_bridge", "register_plugin_callbacks"),
    ("jax._src.xla_bridge", "is_known_platform"),
    ("jax._src.xla_bridge", "backends"),
    ("jax._src.xla_bridge", "_backend_lock"),
    ("jax._src.xla_bridge", "_backends"),
    ("jax._src.xla_bridge", "_init_backend"),
    ("jax._src.interpreters.mlir", "_platforms_with_donation"),
    ("jax._src.interpreters.mlir", "register_lowering"),
)

# (module, primitive, lowering rule): what calls Python, as JAX's own platforms lower it. Older versions lack some.
CALLBACKS = (
    ("jax._src.callback", "pure_callback_p", "pure_callback_lowering"),
    ("jax._src.callback", "io_callback_p", "io_callback_lowering"),
    ("jax._src.debugging", "debug_callback_p", "debug_callback_lowering"),
    ("jax._src.debugging", "debug_print_p", "debug_print_lowering_rule"),
    ("jax._src.checkify", "check_p", "check_lowering_rule"),
)


def register_plugin(name: str, *, priority: int, library_path: str, options: dict[str, int]) -> None:
    """Loads a plugin's library and makes it a backend named `name`."""
    xla_bridge.register_plugin(name, priority=priority, library_path=library_path, options=options)


def backends_are_initialized() -> bool:
    """Whether JAX has created its clients; from then on their options are fixed."""
    return xla_bridge.backends_are_initialized()


def allow_donation(platform: str) -> None:
    """Lets programs for a platform donate their arguments, which JAX does only on platforms that it knows."""
    if platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(platform)


def when_registered(platform: str, then: Callable[[], None]) -> None:
    """Calls back once JAX knows a platform, also one that `PJRT_NAMES_AND_LIBRARY_PATHS` names; perhaps several times."""

    def plugin_is_registered(c_api: Any) -> None:
        if xla_bridge.is_known_platform(platform):
            then()

    xla_bridge.register_plugin_callbacks(plugin_is_registered)


def allow_callbacks(platform: str) -> None:
    """Lets programs for a platform that JAX knows call Python, which JAX has only on its own platforms.

    For a TPU, JAX makes such a call an operation that sends arrays to the host and one that receives arrays from it. These
    are ordinary StableHLO, so any plugin can have them: the rules here are JAX's own, told that the module is for a TPU.
    """
    for module_name, primitive_name, rule_name in CALLBACKS:
        module = importlib.import_module(module_name)
        if hasattr(module, primitive_name):
            rule = _as_on_tpu(getattr(module, rule_name))
            _register_uncached(getattr(module, primitive_name), rule, platform)


class _ModuleOnTpu:
    """The context of a module, saying that the module is for a TPU."""

    platforms = ("tpu",)

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _as_on_tpu(rule: Callable[..., Any]) -> Callable[..., Any]:
    def lower(context: Any, *operands: Any, **parameters: Any) -> Any:
        if len(context.module_context.platforms) > 1:
            return rule(context, *operands, **parameters)  # JAX's own error.
        if parameters.get("partitioned"):
            raise NotImplementedError("refcpu has no callbacks with partitioned=True: it runs sharded programs in one piece")
        _start_cpu_backend()
        inner = context.replace(module_context=_ModuleOnTpu(context.module_context))
        results = rule(inner, *operands, **parameters)
        if inner.tokens_out is not None:
            context.set_tokens_out(inner.tokens_out)
        return results

    return lower


def _register_uncached(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    # Every call has channels of its own, so no two share their lowering. Before 0.7, JAX does not cache lowerings.
    cached = "cacheable" in inspect.signature(mlir.register_lowering).parameters
    mlir.register_lowering(primitive, rule, platform=platform, **({"cacheable": False} if cached else {}))


def _start_cpu_backend() -> None:
    """Starts JAX's CPU backend, where it puts what it hands to Python, even if `JAX_PLATFORMS` does not name it."""
    if "cpu" in xla_bridge.backends():
        return
    with xla_bridge._backend_lock:
        if "cpu" not in xla_bridge._backends:
            xla_bridge._backends["cpu"] = xla_bridge._init_backend("cpu")
