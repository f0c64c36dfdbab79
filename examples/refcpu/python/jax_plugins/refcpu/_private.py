"""Every private symbol of JAX that this package uses, and nothing else.

JAX has no public interface for what a plugin's package must do. `tests/python/test_private_api.py` pins these symbols
for the JAX version that the tests run with, and checks that the rest of the package uses none.
"""

import functools
import importlib
import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

from jax._src import callback, xla_bridge
from jax._src.interpreters import mlir
from jax._src.lax import linalg

try:
    from jax._src import ffi
except ImportError:  # JAX 0.4
    from jax._src.extend import ffi

from jax_plugins.refcpu import buffer_callback

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
    ("jax._src.ffi", "ffi_lowering"),
    ("jax._src.callback", "emit_python_callback"),
    ("jax._src.buffer_callback", "buffer_callback_p"),
)

# (module, primitive, lowering rule): what JAX lowers on its own platforms only. Older versions lack some.
CALLBACKS = (
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
    """Calls back once JAX knows a platform, be it by `PJRT_NAMES_AND_LIBRARY_PATHS`; perhaps several times."""

    def plugin_is_registered(c_api: Any) -> None:
        if xla_bridge.is_known_platform(platform):
            then()

    xla_bridge.register_plugin_callbacks(plugin_is_registered)


@functools.cache
def allow_callbacks(platform: str) -> None:
    """Lets programs for a platform that JAX knows call Python, which JAX has only on its own platforms.

    For a TPU, JAX makes such a call operations that send arrays to the host and receive arrays from it. These are
    ordinary StableHLO, so any plugin can have them. Whatever the call comes from, one function decides by the platform's
    name, so it is told here that the module is for a TPU.
    """
    module = _callback_module()
    emit = module.emit_python_callback

    @functools.wraps(emit)
    def emit_python_callback(context: Any, *arguments: Any, **options: Any) -> Any:
        if tuple(context.module_context.platforms) != (platform,):
            return emit(context, *arguments, **options)
        if options.get("partitioned"):
            options["partitioned"] = False
            if _is_partitioned_by_compiler(context.module_context):
                raise NotImplementedError(
                    f"{platform} runs programs that the compiler would partition in one piece, so it has no callbacks"
                    " with partitioned=True outside of shard_map"
                )
        _start_cpu_backend()
        on_tpu = context.replace(module_context=_ModuleOnTpu(context.module_context))
        return emit(on_tpu, *arguments, **options)

    module.emit_python_callback = emit_python_callback
    for module_name, primitive, rule in CALLBACKS:
        module = importlib.import_module(module_name)
        if hasattr(module, primitive):
            _register_uncached(getattr(module, primitive), getattr(module, rule), platform)
    if importlib.util.find_spec("jax._src.buffer_callback") is not None:
        primitive = importlib.import_module("jax._src.buffer_callback").buffer_callback_p
        _register_uncached(primitive, _buffer_callback_lowering, platform)


def _buffer_callback_lowering(
    context: Any,
    *operands: Any,
    callback: Callable[..., None],
    in_tree: Any,
    out_tree: Any,
    has_side_effect: bool,
    input_output_aliases: Any,
    **_: Any,
) -> Any:
    run = buffer_callback.on_arrays(callback, in_tree, out_tree, input_output_aliases, context.avals_out)
    results, *_ = _callback_module().emit_python_callback(
        context,
        run,
        None,
        list(operands),
        context.avals_in,
        context.avals_out,
        has_side_effect=has_side_effect,
    )
    return results


def _callback_module() -> Any:
    """The module that lowers calls of Python: before 0.5 another one."""
    return callback if hasattr(callback, "emit_python_callback") else mlir


class _ModuleOnTpu:
    """The context of a module, saying that the module is for a TPU."""

    platforms = ("tpu",)

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _is_partitioned_by_compiler(module_context: Any) -> bool:
    axes = module_context.axis_context
    manual = getattr(axes, "manual_axes", frozenset())
    return getattr(axes, "num_devices", 1) > 1 or (hasattr(axes, "mesh") and manual != frozenset(axes.mesh.axis_names))


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


def linalg_primitive(name: str) -> Any:
    """A primitive of linear algebra, or None where this version of JAX does not have it."""
    return getattr(linalg, f"{name}_p", None)


def register_lowering(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    """Makes a rule that of a platform that JAX knows."""
    mlir.register_lowering(primitive, rule, platform=platform)


def ffi_lowering(target: str) -> Callable[..., Any]:
    """The rule that makes a typed custom call: of the primitive's operands, keyword arguments as attributes."""
    return ffi.ffi_lowering(target)
