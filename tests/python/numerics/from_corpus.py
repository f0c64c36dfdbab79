"""Writes a suite of `cargo pjrt numerics` from a corpus: a folder of `GROUP.jsonl` and `GROUP.bin` files.

    python from_corpus.py FOLDER corpus.zip

A line of a `.jsonl` file describes a program for one device, with its inputs and expected outputs, whose bytes are in the `.bin` file.
The category of a program takes the place of the operation. Programs for several devices are left out, because a suite has none.
"""

import argparse
import json
import pathlib
import zipfile

FORMS = ("vhlo", "mlir")
"""The forms of programs that plugins can compile, in the order of preference: the one that JAX sends comes first."""


class Writer:
    """The index and the data of a suite."""

    def __init__(self):
        self.tolerances: list[dict] = []
        self.cases: list[dict] = []
        self.data = bytearray()

    def push(self, piece: bytes) -> int:
        at = len(self.data)
        self.data += piece
        return at

    def array(self, array: dict, blob: bytes) -> dict:
        return {"type": array["dtype"], "dims": array["shape"], "at": self.push(slice_of(blob, array))}

    def within(self, tolerance: dict) -> int:
        """Returns the index of a tolerance."""
        own = {
            "reason": "the tolerance of the corpus",
            "ulps": tolerance.get("ulp") or 0,
            "relative": tolerance.get("rtol", 0.0),
            "absolute": tolerance.get("atol", 0.0),
            "any_zero": True,
        }
        if own not in self.tolerances:
            self.tolerances.append(own)
        return self.tolerances.index(own)

    def add(self, record: dict, blob: bytes) -> None:
        """Adds a program, if it is one that a suite can have."""
        form = next((form for form in FORMS if form in record["programs"]), None)
        if record["kind"] != "exec" or "devices" in record or form is None:
            return
        program = slice_of(blob, record["programs"][form])
        first = (record["outputs"] or record["inputs"] or [{"dtype": ""}])[0]
        results = [self.array(output, blob) | {"within": self.within(output["tol"])} for output in record["outputs"]]
        self.cases.append({
            "op": record["category"],
            "element": first["dtype"],
            "name": f"{record['group']}/{record['name']}",
            "program": [self.push(program), len(program)],
            "inputs": [self.array(array, blob) for array in record["inputs"]],
            "results": results,
        })  # fmt: skip

    def write(self, path: pathlib.Path) -> None:
        index = {"version": 1, "tolerances": self.tolerances, "cases": self.cases}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("index.json", json.dumps(index))
            archive.writestr("data.bin", bytes(self.data))


def slice_of(blob: bytes, piece: dict) -> bytes:
    return blob[piece["off"] : piece["off"] + piece["len"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path, help="the folder")
    parser.add_argument("suite", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    writer = Writer()
    groups = sorted(arguments.corpus.glob("*.jsonl"))
    if not groups:
        parser.error(f"{arguments.corpus} contains no .jsonl file")
    for group in groups:
        blob = group.with_suffix(".bin").read_bytes()
        for line in group.read_text(encoding="utf-8").splitlines():
            writer.add(json.loads(line), blob)
    writer.write(arguments.suite)
    print(f"{arguments.suite}: {len(writer.cases)} programs")


if __name__ == "__main__":
    main()
