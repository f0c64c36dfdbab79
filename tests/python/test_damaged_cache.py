"""Damaged entries of JAX's compilation cache: the program is compiled again, and gives what it gave."""

import pathlib

import plugins
import pytest

PROGRAM = """
import warnings
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
constants = np.arange(4096, dtype=np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(float(jax.jit(lambda x: (x * constants).sum())(2.0)))
for warning in caught:
    print(warning.message)
"""


def run(folder: pathlib.Path, **variables: str) -> str:
    return plugins.run_python(
        PROGRAM, JAX_PLATFORMS="refcpu", PJRT_NAMES_AND_LIBRARY_PATHS=None, JAX_COMPILATION_CACHE_DIR=str(folder), **variables
    )


def entry(folder: pathlib.Path) -> pathlib.Path:
    """The largest entry: the program with the constants."""
    return max(folder.glob("*-cache"), key=lambda path: path.stat().st_size)


def serialized(path: pathlib.Path) -> tuple[bytes, bytes]:
    """What JAX puts before the executable, and the executable, both as they are before compression."""
    from jax._src import compilation_cache

    whole = compilation_cache.decompress_executable(path.read_bytes())
    start = whole.index(b"PJRTexec")
    return whole[:start], whole[start:]


def damage(path: pathlib.Path, how) -> None:
    from jax._src import compilation_cache

    before, executable = serialized(path)
    path.write_bytes(compilation_cache.compress_executable(before + bytes(how(bytearray(executable)))))


def flipped(at: float):
    def flip(executable: bytearray) -> bytearray:
        executable[int(at * len(executable))] ^= 1
        return executable

    return flip


WAYS = {
    "in the header": flipped(0),
    "in the program": flipped(0.5),
    "at the end": flipped(0.999),
    "cut": lambda executable: executable[: len(executable) // 2],
    "longer": lambda executable: executable + b"more",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_entry_is_compiled_again(tmp_path, way):
    expected = run(tmp_path)
    assert run(tmp_path) == expected
    damage(entry(tmp_path), WAYS[way])
    number, *report = run(tmp_path).splitlines()
    assert number == expected
    assert any("DATA_LOSS" in line for line in report), report


def test_a_whole_entry_is_used(tmp_path):
    expected = run(tmp_path)
    path = entry(tmp_path)
    before = path.stat().st_mtime_ns
    assert run(tmp_path) == expected
    assert path.stat().st_mtime_ns == before
