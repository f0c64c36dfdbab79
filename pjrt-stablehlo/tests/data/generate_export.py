"""Writes `export_VERSION.jax`: a function that the installed release of JAX exports and serializes.

Needs JAX 0.4.30 or newer and flatbuffers. The files are checked in.
"""

import pathlib

import jax
import jax.numpy as jnp
from jax import export

# Locations name this file without its folder.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def add(x, y):
    return x + y


argument = jax.ShapeDtypeStruct((2, 3), jnp.float32)
exported = export.export(jax.jit(add))(argument, argument)
file = pathlib.Path(__file__).with_name(f"export_{jax.__version__}.jax")
file.write_bytes(exported.serialize())
