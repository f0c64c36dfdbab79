"""Every private symbol of JAX that this package uses, and nothing else.

JAX has no public interface for what a plugin's package must do. `tests/python/test_private_api.py` pins these symbols
for the JAX version that the tests run with, and checks that the rest of the package uses none.
"""

from jax._src import xla_bridge
from jax._src.interpreters import mlir

# (module, attribute): what the functions below need.
SYMBOLS = (
    ("jax._src.xla_bridge", "register_plugin"),
    ("jax._src.xla_bridge", "backends_are_initialized"),
    ("jax._src.interpreters.mlir", "_platforms_with_donation"),
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
