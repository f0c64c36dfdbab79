"""The file in which a process records what it measured."""

import pickle
from pathlib import Path


def read(file: Path) -> dict[str, dict]:
    """Returns what a file says of each program. The last entry of a program counts."""
    measured: dict[str, dict] = {}
    if file.exists():
        with file.open("rb") as entries:
            try:
                while True:
                    name, found = pickle.load(entries)
                    measured[name] = found
            except EOFError:
                pass
    return measured
