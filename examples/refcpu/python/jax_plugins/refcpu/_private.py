"""Every private symbol of JAX that this package uses, and nothing else.

JAX has no public interface for what a plugin's package must do. `tests/python/test_private_api.py` pins these symbols
for the JAX version that the tests run with, and checks that the rest of the package uses none.
"""

from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jax._src.lax import linalg

try:
    from jax._src import ffi
except ImportError:  # JAX 0.4
    from jax._src.extend import ffi

# (module, attribute): what the functions below need.
SYMBOLS = (
    ("jax._src.xla_bridge", "register_plugin"),
    ("jax._src.xla_bridge", "backends_are_initialized"),
    ("jax._src.xla_bridge", "_nonexperimental_plugins"),
    ("jax._src.interpreters.mlir", "_platforms_with_donation"),
    ("jax._src.interpreters.mlir", "register_lowering"),
    ("jax._src.ffi", "ffi_lowering"),
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


def linalg_primitive(name: str):
    """A primitive of linear algebra, or None where this version of JAX does not have it."""
    return getattr(linalg, f"{name}_p", None)


def register_lowering(primitive, rule, platform: str) -> None:
    """Makes a rule that of a platform, also when JAX has yet to hear of it."""
    # JAX refuses platforms that it does not know, and it reads PJRT_NAMES_AND_LIBRARY_PATHS after it has asked this package.
    known = platform in xla_bridge._nonexperimental_plugins
    xla_bridge._nonexperimental_plugins.add(platform)
    try:
        mlir.register_lowering(primitive, rule, platform=platform)
    finally:
        if not known:
            xla_bridge._nonexperimental_plugins.discard(platform)


def ffi_lowering(target: str):
    """The rule that makes a typed custom call: of the primitive's operands, keyword arguments as attributes."""
    return ffi.ffi_lowering(target)
