"""The records of runs: a file for each test file, with a JSON object a line for each test that starts or ends."""

import json
import pathlib


def path(folder: pathlib.Path, file: str) -> pathlib.Path:
    """Returns the path of a test file's record. The file is named by its path in the folder of tests, without `.py`."""
    return folder / (file.replace("/", ".") + ".jsonl")


def read(record: pathlib.Path) -> list[dict]:
    if not record.exists():
        return []
    return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def add(record: pathlib.Path, entry: dict) -> None:
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def running(record: pathlib.Path) -> str | None:
    """Returns the test that was started last and has no outcome."""
    last = (read(record) or [{}])[-1]
    return last.get("start")


def forget_failures(record: pathlib.Path) -> None:
    """Leaves what passed in a record, so that the rest runs again."""
    passed = [entry for entry in read(record) if entry.get("outcome") == "pass"]
    record.write_text("".join(json.dumps(entry) + "\n" for entry in passed), encoding="utf-8")
