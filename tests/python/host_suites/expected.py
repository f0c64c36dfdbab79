"""The tests that are known not to pass on refcpu, each with its cause.

Each host has a list, `HOST.toml`, with an entry for each cause. The runner prints the tests of the list that pass, because their
entries are out of date.
"""

import dataclasses
import pathlib
import tomllib


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why tests of a file do not pass."""

    component: str
    """The operation or the part of the project, of the host or of XLA that stands in the way."""
    text: str


Causes = dict[tuple[str, str], Cause]
"""File and test to the cause."""


def read(path: pathlib.Path) -> Causes:
    """Reads a list. Raises ValueError if an entry lacks something or a test is there twice."""
    causes: Causes = {}
    for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("failure", []), start=1):
        try:
            file, tests, cause = entry["file"], entry["tests"], Cause(entry["component"], entry["cause"].strip())
        except KeyError as missing:
            raise ValueError(f"{path}: entry {number} has no {missing}") from None
        for test in tests:
            if (file, test) in causes:
                raise ValueError(f"{path}: {file} {test} is there twice")
            causes[file, test] = cause
    return causes
