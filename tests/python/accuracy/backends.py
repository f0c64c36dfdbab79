"""Runs programs on refcpu or on XLA's CPU backend.

Real functions go through JAX: those of CHLO arrive at plugins as composites, some only where JAX itself lowers them, by a rule
of refcpu's package. Functions of complex numbers go to refcpu through the C API as they are: JAX rewrites some before a plugin
sees them, which then have the figures of XLA's CPU backend.
"""

import functools

import jax
import numpy as np
import plugins
from jaxlib import _jax
from pypjrt import Client
from pypjrt.errors import PjrtError

# Element types as programs and the C API (PJRT_Buffer_Type) name them, by NumPy's names.
TYPES = {
    "float16": ("f16", 10),
    "float32": ("f32", 11),
    "float64": ("f64", 12),
    "bfloat16": ("bf16", 13),
    "complex64": ("complex<f32>", 14),
    "complex128": ("complex<f64>", 15),
    "float8_e5m2": ("f8E5M2", 16),
    "float8_e4m3fn": ("f8E4M3FN", 17),
}


class Unsupported(Exception):
    """A backend does not compile an operation of a type."""


def run(backend: str, op: str, operands: tuple[np.ndarray, ...], result=None) -> np.ndarray:
    """The result of an operation on `refcpu` or `cpu`; its element type is that of the operands unless `result` is another."""
    result = np.dtype(result or operands[0].dtype)
    types = [tensor(x.dtype, x.shape) for x in operands]
    out = tensor(result, operands[0].shape)
    parameters = ", ".join(f"%{i}: {ty}" for i, ty in enumerate(types))
    names = ", ".join(f"%{i}" for i in range(len(types)))
    program = (
        f"module {{\n  func.func public @main({parameters}) -> {out} {{\n"
        f'    %r = "{op}"({names}) : ({", ".join(types)}) -> {out}\n'
        f"    return %r : {out}\n  }}\n}}\n"
    )
    if backend == "refcpu" and np.iscomplexobj(operands[0]):
        return run_directly(program, operands, jax.ShapeDtypeStruct(operands[0].shape, result))
    try:
        dialect, name = op.split(".")
        if backend == "refcpu" and dialect == "chlo" and hasattr(jax.lax, name):
            return run_in_jax(backend, lowered(getattr(jax.lax, name), operands), operands)
        return run_in_jax(backend, program, operands)
    except Unsupported:
        if backend != "refcpu":
            raise
        # What JAX cannot hand on.
        return run_directly(program, operands, jax.ShapeDtypeStruct(operands[0].shape, result))


def lowered(function, operands) -> str:
    """The program that JAX makes of a function for refcpu."""
    jax.devices("refcpu")
    try:
        return jax.jit(function).trace(*operands).lower(lowering_platforms=("refcpu",)).as_text()
    except TypeError as error:
        raise Unsupported(str(error)) from error


def tensor(dtype, shape) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{TYPES[dtype.name][0]}>"


@functools.cache
def refcpu() -> Client:
    return Client.create(plugins.library("TEST_REFCPU"))


def run_directly(program: str, operands, result: jax.ShapeDtypeStruct) -> np.ndarray:
    """The only result of a program on refcpu, whose shape and type are given, by way of the C API."""
    try:
        compiled = refcpu().compile(program.encode())
    except PjrtError as error:
        raise Unsupported(str(error)) from error
    with refcpu().device() as device:
        # pypjrt takes memory that it may write only.
        arguments = [
            refcpu().buffer_from_host(bytearray(x.tobytes()), TYPES[x.dtype.name][1], list(x.shape), device)
            for x in operands
        ]
    (output,) = compiled(*arguments)
    with output:
        found = np.frombuffer(bytes(output.to_host()), result.dtype).reshape(result.shape)
    for argument in arguments:
        argument.close()
    compiled.close()
    return found


def run_in_jax(platform: str, program: str, operands) -> np.ndarray:
    """The only result of a program."""
    device = jax.devices(platform)[0]
    try:
        compiled = device.client.compile_and_load(program, _jax.DeviceList((device,)), _jax.CompileOptions())
    except jax.errors.JaxRuntimeError as error:
        raise Unsupported(str(error)) from error
    found = compiled.execute_sharded([jax.device_put(x, device) for x in operands])
    return np.asarray(found.disassemble_into_single_device_arrays()[0][0])
