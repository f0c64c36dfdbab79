"""StableHLO programs as a client of the PJRT C API gets them."""

import jax
from jax.extend import mlir

# What JAX 0.10.2 sends to a plugin that reports no version of its own.
VERSION = "1.13.7"


def text_to_artifact(text: str) -> bytes:
    """A portable artifact (VHLO in MLIR bytecode) of a program given as MLIR text."""
    return mlir.serialize_portable_artifact(text.encode(), VERSION)


def artifact(function, *arguments) -> bytes:
    """The portable artifact of a JAX function; one that `jax.jit` made keeps its donations."""
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return text_to_artifact(jitted.lower(*arguments).as_text(debug_info=True))
