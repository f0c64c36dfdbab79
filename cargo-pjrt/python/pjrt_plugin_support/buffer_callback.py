"""The arguments of functions that are passed to `jax.experimental.buffer_callback`."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


class Buffer:
    """An array to read, or a result to fill in place, through `numpy.asarray` or DLPack, as on JAX's CPU backend."""

    def __init__(self, array: np.ndarray, *, writeable: bool) -> None:
        self._array = array
        self.writeable = writeable

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self._array.view()
        view.flags.writeable = self.writeable
        if copy or (dtype is not None and np.dtype(dtype) != view.dtype):
            return view.astype(dtype or view.dtype)
        return view

    def __dlpack__(self, **options: Any) -> Any:
        # numpy exports only writeable arrays, because DLPack cannot express that an array is read-only.
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class ExecutionContext:
    """The context of a call. It has no stream, because the function runs on the host."""

    @property
    def stage(self) -> Any:
        from jax.experimental.buffer_callback import ExecutionStage

        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available: the function runs on the host")


def on_arrays(
    callback: Callable[..., None],
    in_tree: Any,
    out_tree: Any,
    aliases: Sequence[tuple[int, int]],
    results: Sequence[Any],
) -> Callable[..., tuple[np.ndarray, ...]]:
    """Returns a function from arrays to arrays that calls `callback` with buffers.

    The results have the shapes and types of `results`. `aliases` contains pairs of the index of an argument and the index of the
    result that shares its memory.
    """
    sources = {result: argument for argument, result in aliases}

    def call(*operands: Any) -> tuple[np.ndarray, ...]:
        # The memory of operands is borrowed and must not be written.
        arguments = [
            np.array(operand) if i in sources.values() else np.asarray(operand) for i, operand in enumerate(operands)
        ]
        filled = [
            arguments[sources[i]] if i in sources else np.zeros(result.shape, result.dtype)
            for i, result in enumerate(results)
        ]
        args, kwargs = jax.tree.unflatten(in_tree, [Buffer(array, writeable=False) for array in arguments])
        out = jax.tree.unflatten(out_tree, [Buffer(array, writeable=True) for array in filled])
        if callback(ExecutionContext(), out, *args, **kwargs) is not None:
            raise ValueError("a function that is passed to buffer_callback must fill its results in place and return None")
        return tuple(filled)

    return call
