"""Asks MLIR itself, in jaxlib, whether it sees the same modules as this project's reader.

    python mlir_agreement.py to_text [--lowerings FOLDER]... [--only-lowerings] [--every-version]

`to_text` is the example of that name of pjrt-stablehlo, built. The programs are those of the folders that PJRT_CORPUS
and PJRT_CAPTURED name (without them a sample in this repository), and those of the given folders of `lowerings.py`.

For each program, in text or bytecode: it is read and printed by this project, the text is parsed by MLIR, and that is
compared with the original, parsed by MLIR. The same holds for what this project writes of it: StableHLO bytecode, and a
portable artifact of some version, which this project can write if and only if MLIR can. Then MLIR writes each text as bytecode with its native dialects, in all
versions of the format, which has to read as the same module as the text. What is in HLO has to read as a module that MLIR
accepts, with the arguments and results of the function that it was made of.
"""

import argparse
import concurrent.futures
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

ROOT = pathlib.Path(__file__).parents[2]
BYTECODE_MAGIC = b"ML\xefR"
NEWEST_FORMAT = 6
SHOWN_FAILURES = 30
CUT = 300

# The parts of the programs, each of which a process checks. The part of a program decides in which versions it is written.
PARTS = 2

# Programs that MLIR in this jaxlib cannot read, or that are not one module: pattern of the name, reason.
EXCEPTIONS = [
    (r"compat/stablehlo_legalize_to_vhlo_1_(18|19|20)_\d+ ", "VHLO is newer than this jaxlib's"),
    # A pretty form that lost types when it was printed: a loop whose arguments have other types than its operands.
    (r"ops_stablehlo_quantized__025 pretty", "MLIR does not read it either"),
    (r"transforms_stablehlo_legalize_quantized_op_to_qdq__023 pretty", "MLIR does not read it either"),
    (r"text/quantized as artifact ", "MLIR writes types of other dialects for every version of VHLO"),
    (r"scatter_apply\S* as artifact (0|1\.0)\.", "MLIR neither converts nor reads older forms in the region of an older scatter"),
    (r"transforms_stablehlo_refine_shapes__085 ", "one replica group without members is read as no group"),
]
MAX_EXCEPTIONS = 0.005

# The first versions of VHLO with other dialects, and with locations that are ranges of a file.
MIXED_DIALECTS = (1, 11)
FILE_RANGES = (1, 9)

# The versions of VHLO with the newest forms of operations whose attributes are encoded differently since then.
NEWEST_FORMS = {"stablehlo.collective_broadcast": (1, 20)}

# Attributes that say what holds without them: operations (a pattern), attribute, its text (a pattern).
DEFAULTS = [
    (r"func\.(func|call)", "arg_attrs", r"\[(\{\}(, )?)*\]"),
    (r"func\.(func|call)", "res_attrs", r"\[(\{\}(, )?)*\]"),
    (r"stablehlo\.(dot|convolution|dynamic_conv)\w*", "precision_config", r"\[(#stablehlo<precision DEFAULT>(, )?)*\]"),
    (r"stablehlo\.\w+", "indices_are_sorted", "false"),
    (r"stablehlo\.\w+", "unique_indices", "false"),
    (r"stablehlo\.sort", "is_stable", "false"),
    (r"stablehlo\.sort", "dimension", "-1 : i64"),
    (r"stablehlo\.cholesky", "lower", "false"),
    (r"stablehlo\.compare", "compare_type", "#stablehlo<comparison_type NOTYPE>"),
    (r"stablehlo\.\w+", "result_accuracy", "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"),
    (r"stablehlo\.\w+", "window_strides", r"array<i64(: (1(, )?)*)?>"),
    (r"stablehlo\.\w+", "window_dilations", r"array<i64(: (1(, )?)*)?>"),
    (r"stablehlo\.\w+", "base_dilations", r"array<i64(: (1(, )?)*)?>"),
    (r"stablehlo\.\w+", "lhs_dilation", r"array<i64(: (1(, )?)*)?>"),
    (r"stablehlo\.\w+", "rhs_dilation", r"array<i64(: (1(, )?)*)?>"),
    (r"stablehlo\.\w+", "window_reversal", r"array<i1(: (false(, )?)*)?>"),
    (r"stablehlo\.(convolution|reduce_window|select_and_scatter)", "padding", r"dense<0?> : tensor<\w+>"),
    (r"stablehlo\.\w+", "known_(non)?expanding_dimensions", r"array<i64>"),
    (r"stablehlo\.\w+", "channel_handle", r"#stablehlo.channel_handle<handle = 0, type = 0>"),
    (r"stablehlo\.(send|recv)", "is_host_transfer", "false"),
    (r"stablehlo\.(send|recv)", "source_target_pairs", "dense<> : tensor<0x2xi64>"),
    (r"stablehlo\.(in|out)feed", "(in|out)feed_config", '""'),
    (r"stablehlo\.custom_call", "has_side_effect", "false"),
    (r"stablehlo\.custom_call", "backend_config", '""|{}'),
    (r"stablehlo\.custom_call", "api_version", "1 : i32"),
    (r"stablehlo\.custom_call", "called_computations|output_operand_aliases", r"\[\]"),
    (r"stablehlo\.composite", "version", "0 : i32"),
    (r"stablehlo\.composite", "composite_attributes", "{}"),
]


def new_context():
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    # Reading an artifact loads the dialects that others build on, such as `quant`.
    with context:
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(""), stablehlo.get_current_version())
        stablehlo.deserialize_portable_artifact(context, artifact)
    return context


def programs():
    """The programs to check, as `to_text` takes them."""
    corpus = pathlib.Path(os.environ.get("PJRT_CORPUS", ROOT / "tests/data"))
    for path in sorted(corpus.glob("*.jsonl")):
        for record in map(json.loads, path.open()):
            for form, place in record["programs"].items():
                if form != "hlo":
                    name = f"{record['group']}/{record['name']} {form}"
                    yield {"name": name, "path": str(path.with_suffix(".bin")), "off": place["off"], "len": place["len"]}
    for path in sorted((ROOT / "pjrt-stablehlo/tests/data").glob("*.mlirbc")):
        yield {"name": f"sample/{path.stem}", "path": str(path)}
    for path in sorted((ROOT / "tests/data/mlir").glob("*.mlir")):
        yield {"name": f"text/{path.stem}", "path": str(path)}
    captured = os.environ.get("PJRT_CAPTURED")
    if captured:
        yield from programs_of(pathlib.Path(captured))


def programs_of(folder, hlo=False):
    """The programs of a folder with a manifest: those in HLO, or all others."""
    for record in map(json.loads, (folder / "manifest.jsonl").open()):
        if (record["format"] == "hlo") == hlo:
            yield {"name": f"{folder.name}/{record['name']}", "path": str(folder / record["program"])}


class Files:
    """Parts of files, which are opened once."""

    def __init__(self):
        self.path = None

    def read(self, program):
        if program["path"] != self.path:
            self.path, self.bytes = program["path"], pathlib.Path(program["path"]).read_bytes()
        start = program.get("off", 0)
        return self.bytes[start : start + program.get("len", len(self.bytes))]


def to_texts(tool, asked):
    """What this project makes of each program."""
    lines = "".join(json.dumps(program) + "\n" for program in asked)
    output = subprocess.run([tool], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    answers = [json.loads(line) for line in output.splitlines()]
    assert [answer["name"] for answer in answers] == [program["name"] for program in asked]
    return answers


DEFAULT_PATTERNS = [tuple(map(re.compile, rule)) for rule in DEFAULTS]
RULES = {}


def rules_of(op):
    """The attributes that an operation may have for nothing."""
    if op not in RULES:
        RULES[op] = [(name, text) for ops, name, text in DEFAULT_PATTERNS if ops.fullmatch(op)]
    return RULES[op]


def drop_defaults(op):
    if rules := rules_of(op.name):
        names = [attribute.name if hasattr(attribute, "name") else attribute for attribute in op.attributes]
        for name in names:
            for pattern, text in rules:
                if pattern.fullmatch(name) and text.fullmatch(str(op.attributes[name])):
                    del op.attributes[name]
                    break
    return ir.WalkResult.ADVANCE


def canonical(module, locations):
    """MLIR's text of a module, the same for modules that mean the same."""
    operation = module.operation
    operation.walk(lambda op: drop_defaults(op.operation if hasattr(op, "operation") else op))
    text = operation.get_asm(print_generic_op_form=True, enable_debug_info=locations, use_local_scope=locations)
    # What MLIR makes up where a text has no location.
    text = re.sub(r'loc\("-":[0-9: to]+\)', "loc(unknown)", text)
    # Two spellings of unsigned storage.
    text = text.replace("!quant.uniform<ui", "!quant.uniform<u")
    # GoMLX ends functions like regions.
    return re.sub(r'^    "stablehlo.return"', '    "func.return"', text, flags=re.MULTILINE)


def parse(context, program):
    if program.startswith(BYTECODE_MAGIC):
        return stablehlo.deserialize_portable_artifact(context, program)
    return ir.Module.parse(program.decode())


def first_difference(expected, found):
    for left, right in zip(expected.splitlines(), found.splitlines()):
        if left != right:
            same = os.path.commonprefix([left, right])
            start = max(0, len(same) - 60)
            return f"expected ...{left[start : start + CUT]}\n    found    ...{right[start : start + CUT]}"
    return f"one has {expected.count(chr(10))} lines, the other {found.count(chr(10))}"


def is_exception(name):
    return any(re.search(pattern, name) for pattern, _ in EXCEPTIONS)


class Report:
    def __init__(self):
        self.passed = 0
        self.failures = []
        self.exceptions = []

    def check(self, name, failure):
        if not failure:
            self.passed += 1
        elif reason := next((reason for pattern, reason in EXCEPTIONS if re.search(pattern, name)), None):
            self.exceptions.append(f"{name}: {reason}")
        else:
            self.failures.append((name, failure))

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        self.exceptions += other.exceptions

    def finish(self):
        for name, failure in self.failures[:SHOWN_FAILURES]:
            print(f"{name}: {failure}")
        if len(self.failures) > SHOWN_FAILURES:
            print(f"... and {len(self.failures) - SHOWN_FAILURES} more")
        print(*self.exceptions, sep="\n")
        total = self.passed + len(self.failures) + len(self.exceptions)
        failed = len(self.failures) + (len(self.exceptions) > MAX_EXCEPTIONS * total)
        print(f"{self.passed} passed, {failed} failed, {len(self.exceptions)} exceptions")
        return failed == 0


def artifact_versions():
    """The versions of VHLO from the oldest to this jaxlib's."""
    newest = int(stablehlo.get_current_version().split(".")[1])
    return [f"0.{minor}.0" for minor in range(9, 21)] + [f"1.{minor}.0" for minor in range(newest + 1)]


def is_before(version, other):
    return tuple(map(int, version.split(".")[:2])) < other


def artifact_by_mlir(context, text, version):
    """The module that MLIR reads from its own artifact of a version, or `None` if MLIR cannot write or read it."""
    try:
        mixed = not is_before(version, MIXED_DIALECTS)
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(text), version, mixed)
        return stablehlo.deserialize_portable_artifact(context, artifact)
    except (ir.MLIRError, ValueError):
        return None


def check_written(context, program, answer, expected, report):
    """MLIR reads what this project writes of a program, and it is the same module."""
    if not any(f'"{op}"' in answer["text"] for op in newer_operations()):
        name = f"{program['name']} as bytecode"
        report.check(name, difference_of_written(answer, "bytecode", ir.Module.parse, program["locations"], lambda: expected))

    def by_mlir():
        """Some of a module is in no artifact, such as the types of channels."""
        module = artifact_by_mlir(context, answer["text"], program["artifact"])
        return None if module is None else canonical(module, locations)

    # Older artifacts have no locations that are ranges.
    locations = program["locations"] and not is_before(program["artifact"], FILE_RANGES)
    read = lambda written: parse(context, written)
    name = f"{program['name']} as artifact {program['artifact']}"
    report.check(name, difference_of_written(answer, "artifact", read, locations, by_mlir))


def difference_of_written(answer, form, read, locations, by_mlir):
    """The difference of a written module from MLIR's own, which is `None` where MLIR cannot write it."""
    if error := answer.get(f"{form}_error"):
        return None if by_mlir() is None else f"not written: {error}"
    try:
        found = canonical(read(bytes.fromhex(answer[form])), locations)
    except (ir.MLIRError, ValueError) as error:
        return None if by_mlir() is None else f"MLIR does not read it: {str(error)[:CUT]}"
    wanted = by_mlir()
    return None if wanted in (None, found) else first_difference(wanted, found)


def newer_operations():
    """The operations whose newest form, which bytecode without VHLO has, is newer than this jaxlib."""
    newest = stablehlo.get_current_version()
    return [op for op, since in NEWEST_FORMS.items() if is_before(newest, since)]


def check_texts(context, tool, asked, files, report):
    """MLIR parses what this project prints and writes, and it is the same module."""
    versions = artifact_versions()
    for index, program in enumerate(asked):
        # MLIR makes up locations for texts that have none.
        data = files.read(program)
        program["locations"] = data.startswith(BYTECODE_MAGIC) or b"loc(" in data
        program["artifact"] = versions[index % len(versions)]
    answers = to_texts(tool, asked)
    for program, answer in zip(asked, answers):
        failure = None
        try:
            expected = canonical(parse(context, files.read(program)), program["locations"])
        except (ir.MLIRError, ValueError) as error:
            failure = f"MLIR does not read the original: {error}"
        if "error" in answer:
            failure = f"not read: {answer['error']}"
        elif failure is None:
            try:
                found = canonical(ir.Module.parse(answer["text"]), program["locations"])
                if found != expected:
                    failure = first_difference(expected, found)
            except ir.MLIRError as error:
                failure = f"MLIR cannot read the printed text: {str(error)[:CUT]}"
        report.check(program["name"], failure)
        if failure is None:
            check_written(context, program, answer, expected, report)


def main_of(module):
    """Types of the arguments and results of a program's function `main`; `None` where it has tokens, which HLO lacks."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func" and op.name.value == "main"]
    ty = str(functions[0].type)
    return None if "token" in ty else ty


def check_hlo(tool, asked, originals, files, report):
    """HLO reads as a module that MLIR accepts, with the arguments and results of the function that it was made of."""
    for program, answer in zip(asked, to_texts(tool, asked)):
        failure = None
        if "error" in answer:
            failure = f"not read: {answer['error']}"
        else:
            try:
                found = main_of(ir.Module.parse(answer["text"]))
                expected = main_of(ir.Module.parse(files.read(originals[program["name"].removesuffix(".hlo")]).decode()))
                if expected and found != expected:
                    failure = f"expected {expected}, found {found}"
            except ir.MLIRError as error:
                failure = f"MLIR cannot read the printed text: {str(error)[:CUT]}"
        report.check(program["name"], failure)


def with_uses_out_of_order():
    """A module whose values are not used in the order that MLIR takes for granted; bytecode says in which."""
    text = """func.func @main(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {
        %0 = stablehlo.add %a, %b : tensor<f32>
        %1 = stablehlo.subtract %b, %0 : tensor<f32>
        %2 = "stablehlo.case"(%i) ({
          %3 = stablehlo.add %1, %a : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }, {
          %3 = stablehlo.add %0, %b : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }) : (tensor<i32>) -> tensor<f32>
        return %2 : tensor<f32>
      }"""
    module = ir.Module.parse(text)
    block = module.body.operations[0].regions[0].blocks[0]
    block.arguments[1].replace_all_uses_with(block.arguments[0])
    block.operations[0].results[0].replace_all_uses_with(block.operations[1].results[0])
    block.operations[1].operation.operands[1] = block.arguments[0]
    return module


def check_native(context, tool, asked, files, report, every_version):
    """What MLIR writes of a text, in its native dialects, reads as the same module as the text."""
    with tempfile.NamedTemporaryFile() as file:
        wanted = []

        def write(module, name, versions):
            """The text first, then what has to be the same."""
            forms = [("generic text", module.operation.get_asm(binary=True, print_generic_op_form=True))]
            for version in versions:
                bytecode = io.BytesIO()
                module.operation.write_bytecode(bytecode, desired_version=version)
                forms.append((f"native bytecode {version}", bytecode.getvalue()))
            for form, content in forms:
                place = {"path": file.name, "off": file.tell(), "len": len(content)}
                wanted.append({"name": f"{name} as {form}", **place})
                file.write(content)

        for index, program in enumerate(asked):
            data = files.read(program)
            if not data.startswith(BYTECODE_MAGIC) and not is_exception(program["name"]):
                wanted.append({**program, "locations": False, "artifact": None})
                versions = range(NEWEST_FORMAT + 1) if every_version else {NEWEST_FORMAT, index % NEWEST_FORMAT}
                write(ir.Module.parse(data.decode()), program["name"], versions)
        wanted.append(None)
        write(with_uses_out_of_order(), "uses out of order", range(NEWEST_FORMAT + 1))
        file.flush()
        answers = iter(to_texts(tool, [program for program in wanted if program]))
    expected = None
    for program in wanted:
        if program is None:
            expected = None
            continue
        answer = next(answers)
        if "error" in answer:
            report.check(program["name"], f"not read: {answer['error']}")
        elif expected is None or program["path"] != file.name:
            expected = answer["text"]
        else:
            failure = None
            if answer["text"] != expected:
                # MLIR writes more than a text has to say in attributes of other dialects.
                texts = [canonical(ir.Module.parse(text), False) for text in (expected, answer["text"])]
                failure = None if texts[0] == texts[1] else first_difference(*texts)
            report.check(program["name"], failure)


def check_part(options, part):
    """The report on one part of the programs."""
    asked = [] if options.only_lowerings else list(programs())
    for folder in options.lowerings:
        asked += programs_of(folder)
    asked, files, report = asked[part::PARTS], Files(), Report()
    with new_context() as context, ir.Location.unknown():
        check_texts(context, options.to_text, asked, files, report)
        for folder in options.lowerings:
            originals = {program["name"]: program for program in programs_of(folder)}
            check_hlo(options.to_text, list(programs_of(folder, hlo=True))[part::PARTS], originals, files, report)
        check_native(context, options.to_text, asked, files, report, options.every_version)
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("to_text")
    parser.add_argument("--lowerings", type=pathlib.Path, action="append", default=[], help="a folder that lowerings.py wrote")
    parser.add_argument("--only-lowerings", action="store_true", help="nothing but those folders")
    parser.add_argument("--every-version", action="store_true", help="write each text in every version of the format")
    options = parser.parse_args()
    report = Report()
    with concurrent.futures.ProcessPoolExecutor(PARTS) as pool:
        for part in pool.map(check_part, [options] * PARTS, range(PARTS)):
            report.add(part)
    return 0 if report.finish() else 1


if __name__ == "__main__":
    sys.exit(main())
