"""What programs are compared with: XLA's CPU backend and the StableHLO reference interpreter, both in jaxlib.

Each runs in a child process, because both end the process at times. Arrays of types that NumPy lacks travel in others, and
the program is wrapped so that it converts them.
"""

import multiprocessing
import os
import re

# Optimization would only cost time; what it must not do is keep more precision than the program's types have.
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false "
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_parallel_codegen_split_count=1"
)
os.environ["XLA_FLAGS"] = FLAGS
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from arrays import BITS, COMPLEX, DIRECT, NARROW, TINY, Type, numpy_of  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402
from jaxlib.mlir.passmanager import PassManager  # noqa: E402

SECONDS = 60
PER_COMPILATION = 48


# Programs that end XLA's process: a pattern of the text, and why.
XLA_LACKS = [
    ("f6E[23]M[23]FN", "there are no 6-bit floats"),
    ("stablehlo.(unary_einsum|dynamic_conv)", "is not translated to HLO"),
]

# Operations that only move elements: on quantized ones they are those on the storage type.
MOVES = """broadcast broadcast_in_dim concatenate constant dynamic_broadcast_in_dim dynamic_gather dynamic_pad dynamic_reshape
dynamic_slice dynamic_update_slice gather get_dimension_size optimization_barrier pad real_dynamic_slice reshape reverse select
set_dimension_size slice torch_index_select transpose tuple get_tuple_element""".split()
QUANTIZED = re.compile(r"!quant\.uniform<i(\d+):f32, [^>]*>")


def new_context():
    context = mlir.make_ir_context()
    stablehlo.register_stablehlo_passes()
    # Reading an artifact loads the dialects that others build on, such as `quant`.
    with context:
        artifact = stablehlo.serialize_portable_artifact(ir.Module.parse(""), stablehlo.get_current_version())
        stablehlo.deserialize_portable_artifact(context, artifact)
    return context


class Wrapped:
    """A program as functions of a module, with a call that takes and gives arrays of types that NumPy has."""

    def __init__(self, program, text, number):
        self.types = {a["name"]: Type.parse(a["type"]).storage for a in program["arguments"]}
        defined = {v["name"]: Type.parse(v["type"]).storage for s in program["statements"] for v in s["defines"] if v["type"].startswith("tensor")}
        self.results = [(self.types | defined)[name] for name in program["results"]]
        if "!quant" in text:
            text = without_quantization(program, text)
        body = text[text.index("{\n") + 2 : text.rindex("}")]
        body = body.replace("@main", f"@p{number}_").replace('"main_', f'"p{number}__').replace("func.func @", "func.func private @")
        self.functions = body
        self.parameters, self.inputs, self.lines, self.outputs = [], [], [], []
        prefix = f"p{number}_"
        arguments = [self.argument(f"%{prefix}a{n}", a) for n, a in enumerate(program["arguments"])]
        types = ", ".join(str(ty) for ty in self.types.values())
        results = ", ".join(str(ty) for ty in self.results)
        if self.results:
            count = len(self.results)
            left = f"%{prefix}r:{count} = " if count > 1 else f"%{prefix}r = "
            self.lines.append(f"{left}func.call @{prefix}({', '.join(arguments)}) : ({types}) -> ({results})")
        for n, ty in enumerate(self.results):
            self.result(f"%{prefix}r#{n}" if len(self.results) > 1 else f"%{prefix}r", f"%{prefix}o{n}", ty)

    def parameter(self, name, ty, array):
        self.parameters.append(f"{name}: {ty}")
        self.inputs.append(array.reshape(ty.dims))

    def argument(self, name, argument):
        ty = Type.parse(argument["type"]).storage
        element, array = ty.element, numpy_of(argument["data"], ty)
        if element in TINY:
            data = f'"0x{argument["data"]}"' if argument["data"] else ""
            self.lines.append(f"{name} = stablehlo.constant dense<{data}> : {ty}")
        elif element in NARROW:
            carrier = ty.of(NARROW[element])
            self.parameter(f"{name}c", carrier, array)
            self.lines.append(f"{name} = stablehlo.convert {name}c : ({carrier}) -> {ty}")
        elif element in BITS:
            carrier = ty.of(BITS[element])
            self.parameter(f"{name}c", carrier, array)
            self.lines.append(f"{name} = stablehlo.bitcast_convert {name}c : ({carrier}) -> {ty}")
        elif element in COMPLEX:
            part = ty.of(COMPLEX[element])
            self.parameter(f"{name}r", part, array[0::2])
            self.parameter(f"{name}i", part, array[1::2])
            self.lines.append(f"{name} = stablehlo.complex {name}r, {name}i : ({part}, {part}) -> {ty}")
        else:
            self.parameter(name, ty, array)
        return name

    def result(self, value, name, ty):
        element = ty.element
        if element in NARROW or element in TINY:
            carrier = ty.of(NARROW.get(element, "f32"))
            self.lines.append(f"{name} = stablehlo.convert {value} : ({ty}) -> {carrier}")
        elif element in BITS:
            carrier = ty.of(BITS[element])
            self.lines.append(f"{name} = stablehlo.bitcast_convert {value} : ({ty}) -> {carrier}")
        elif element in COMPLEX:
            carrier = ty.of(COMPLEX[element])
            for part in ("real", "imag"):
                self.lines.append(f"{name}{part} = stablehlo.{part} {value} : ({ty}) -> {carrier}")
                self.outputs.append((f"{name}{part}", carrier))
            return
        else:
            carrier, name = ty, value
        self.outputs.append((name, carrier))

    def collect(self, arrays):
        """The results as bytes in hexadecimal, of the program's own types."""
        arrays, collected = iter(arrays), []
        for ty in self.results:
            if ty.element in COMPLEX:
                real, imag = np.ravel(next(arrays)), np.ravel(next(arrays))
                data = np.stack([real, imag], axis=-1).tobytes()
            elif ty.element in TINY:
                data = np.ravel(next(arrays)).astype(TINY[ty.element]).tobytes()
            else:
                data = np.ravel(next(arrays)).astype(DIRECT[BITS.get(ty.element, NARROW.get(ty.element, ty.element))]).tobytes()
            collected.append({"type": str(ty), "data": data.hex()})
        return collected


def without_quantization(program, text):
    """The program as arithmetic on the storage types: the anchors have no quantized types."""
    quantized = [s["op"].removeprefix("stablehlo.") for s in program["statements"] if "!quant" in s["text"]]
    if all(op in MOVES for op in quantized) and not program["functions"]:
        return QUANTIZED.sub(r"i\1", text)
    module = ir.Module.parse(selecting_as_floats(program, text))
    PassManager.parse("builtin.module(func.func(stablehlo-legalize-quantized-op-to-qdq,stablehlo-legalize-quant-to-math,chlo-legalize-to-stablehlo))").run(module.operation)
    text = str(module)
    return text[text.index("module") :]


def selecting_as_floats(program, text):
    """`select_and_scatter` of quantized elements as that of the floats which they stand for: the passes leave it as it is."""
    for statement in program["statements"]:
        line = statement["text"]
        if statement["op"] != "stablehlo.select_and_scatter" or "!quant" not in line:
            continue
        [result] = statement["defines"]
        quantized = QUANTIZED.search(line)[0]
        operands = re.search(r"\(([^()]*)\)", line)[1]
        *_, types = re.findall(r"\(([^()]*)\) -> \(", line)
        before, names = [], []
        for name, ty in zip(operands.split(", "), re.split(", (?=tensor)", types), strict=True):
            names.append(f"{result['name']}_float{len(names)}")
            before.append(f'{names[-1]} = "stablehlo.uniform_dequantize"({name}) : ({ty}) -> ({ty.replace(quantized, "f32")})')
        selected = f"{result['name']}_float"
        floats = line.replace(f"({operands})", f"({', '.join(names)})", 1).replace(quantized, "f32")
        floats = floats.replace(result["name"], selected, 1)
        after = f'{result["name"]} = "stablehlo.uniform_quantize"({selected}) : ({result["type"].replace(quantized, "f32")}) -> ({result["type"]})'
        text = text.replace(line, "\n    ".join([*before, floats, after]))
    return text


def module_of(parts):
    parameters = ", ".join(p for part in parts for p in part.parameters)
    outputs = [output for part in parts for output in part.outputs]
    types = ", ".join(str(ty) for _, ty in outputs)
    lines = "\n    ".join(line for part in parts for line in part.lines)
    names = ", ".join(name for name, _ in outputs)
    functions = "\n".join(part.functions for part in parts)
    end = f"return {names} : {types}" if outputs else "return"
    return f"module @differential {{\n  func.func @main({parameters}) -> ({types}) {{\n    {lines}\n    {end}\n  }}\n{functions}\n}}\n"


class Interpreter:
    """The reference interpreter: one program at a time."""

    name = "interpreter"
    batch = 1
    lacks = []

    def __init__(self):
        self.context = new_context()

    def run(self, jobs):
        with self.context, ir.Location.unknown():
            [(program, text)] = jobs
            part = Wrapped(program, text, 0)
            module = ir.Module.parse(module_of([part]))
            arguments = [self.attribute(array) for array in part.inputs]
            results = stablehlo.eval_module(module, arguments)
            return [("results", part.collect([np.array(result) for result in results]))]

    @staticmethod
    def attribute(array):
        if array.dtype == np.bool_:
            # Packed by the bindings in a way of their own.
            words = str(array.tolist()).lower() if array.size else ""
            shape = "".join(f"{size}x" for size in array.shape)
            return ir.Attribute.parse(f"dense<{words}> : tensor<{shape}xi1>".replace("xxi1", "xi1").replace("<xi1", "<i1"))
        element = next(name for name, dtype in DIRECT.items() if dtype == array.dtype.type)
        ty = str(Type(array.shape, element))
        return ir.Attribute.parse(f'dense<"0x{array.tobytes().hex()}"> : {ty}' if array.size else f"dense<> : {ty}")


class Xla:
    """XLA's CPU backend. Programs are compiled many at a time, which takes less time than one by one."""

    name = "xla"
    batch = PER_COMPILATION
    lacks = XLA_LACKS

    def __init__(self):
        self.context = new_context()
        jax.config.update("jax_enable_x64", True)
        self.client = jax.devices("cpu")[0].client
        self.devices = xla_client.DeviceList(tuple(jax.local_devices()))

    def run(self, jobs):
        answers, parts, places = [None] * len(jobs), [], []
        with self.context, ir.Location.unknown():
            for n, (program, text) in enumerate(jobs):
                try:
                    part = Wrapped(program, text, n)
                    ir.Module.parse(module_of([part]))
                except (ir.MLIRError, ValueError) as error:
                    answers[n] = ("error", str(error)[:2000])
                    continue
                parts.append(part)
                places.append(n)
            code = mlir.module_to_bytecode(ir.Module.parse(module_of(parts)))
        executable = self.client.compile_and_load(code, self.devices, xla_client.CompileOptions())
        inputs = [jax.device_put(array) for part in parts for array in part.inputs]
        arrays = [np.asarray(shards[0]) for shards in executable.execute_sharded(inputs).disassemble_into_single_device_arrays()]
        for part, n in zip(parts, places):
            answers[n] = ("results", part.collect(arrays[: len(part.outputs)]))
            del arrays[: len(part.outputs)]
        return answers


def serve(kind, connection):
    """Answers batches of programs until there are no more."""
    side = kind()
    while True:
        jobs = connection.recv()
        try:
            connection.send(("results", side.run(jobs)))
        except Exception as error:  # noqa: BLE001 - whatever a side does not take is an answer
            connection.send(("error", f"{type(error).__name__}: {error}"[:2000]))


class Anchor:
    """A side in a child process, started again when it ends."""

    def __init__(self, kind):
        self.kind = kind
        self.name = kind.name
        self.process = None
        self.crashes = 0

    def ask(self, jobs):
        if self.process is None:
            self.connection, other = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("fork").Process(target=quiet_serve, args=(self.kind, other), daemon=True)
            self.process.start()
            other.close()
        try:
            self.connection.send(jobs)
            if self.connection.poll(SECONDS):
                return self.connection.recv()
            reason = f"no answer in {SECONDS} seconds"
        except (EOFError, OSError):
            reason = "the process ended"
        self.crashes += 1
        self.process.kill()
        self.process.join()
        self.process = None
        return ("crash", reason)

    def run(self, jobs):
        """For each program its results, or why there are none."""
        reasons = [next((why for pattern, why in self.kind.lacks if re.search(pattern, text)), None) for _, text in jobs]
        taken = [job for job, reason in zip(jobs, reasons) if reason is None]
        answers = []
        for start in range(0, len(taken), self.kind.batch):
            answers += self.run_batch(taken[start : start + self.kind.batch])
        answers = iter(answers)
        return [("error", reason) if reason else next(answers) for reason in reasons]

    def run_batch(self, jobs):
        if not jobs:
            return []
        kind, answer = self.ask(jobs)
        if kind == "results":
            return answer
        if len(jobs) == 1:
            return [(kind, answer)]
        # Those that are not taken are few: halves are.
        middle = len(jobs) // 2
        return self.run_batch(jobs[:middle]) + self.run_batch(jobs[middle:])


def quiet_serve(kind, connection):
    # What a side writes before it ends is no news.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        serve(kind, connection)
    except EOFError:
        os._exit(0)
