"""Writes the programs of this folder: JAX functions as portable artifacts of several VHLO versions, and some as HLO.

Run with JAX 0.10.2 (`pip install jax==0.10.2`): `python generate.py`. The files are checked in.
"""

import io
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

HERE = pathlib.Path(__file__).parent
TEXTS = HERE.parents[2] / "tests/data/mlir"
# Locations name this file without its folder.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def mlp(weights, biases, images):
    hidden = jax.nn.relu(images @ weights[0] + biases[0])
    return jax.nn.log_softmax(hidden @ weights[1] + biases[1])


def mlp_gradient(weights, biases, images, labels):
    def loss(weights):
        chosen = jnp.take_along_axis(mlp(weights, biases, images), labels[:, None], axis=1)
        return -chosen.mean()

    return jax.grad(loss)(weights)


def convolution(images, kernel):
    result = jax.lax.conv_general_dilated(
        images, kernel, (2, 1), ((1, 2), (0, 1)), rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.lax.reduce_window(result, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def collatz(start):
    def step(state):
        value, count = state
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1

    return jax.lax.while_loop(lambda state: state[0] != 1, step, (start, 0))[1]


def branches(index, value):
    scale = value.sum()
    return jax.lax.switch(index, [lambda: value * scale, lambda: value - scale, lambda: jnp.sort(value)[::-1]])


def indexing(table, places, updates):
    table = table.at[places].add(updates)
    return table[places, ::2], jax.lax.dynamic_slice(table, (places[0], 1), (2, 2))


def plain_double(x):
    return x + x


double = jax.lax.composite(plain_double, "example.double", 1)


def composite(x):
    return double(double(x))


def random(seed):
    return jax.random.normal(jax.random.PRNGKey(seed), (4,), jnp.bfloat16)


def constants():
    return (
        jnp.asarray([[1.5, -2.0], [float("inf"), float("nan")]], jnp.float32),
        np.arange(12) % 3 == 0,
        np.full((3, 5), 7, np.uint8),
        np.asarray([1 + 2j, -3j], np.complex64),
        np.asarray([-8, 7, 3], jnp.int4),
        np.asarray([0.5, 448.0], jnp.float8_e4m3fn),
        np.arange(100, dtype=np.int16),
    )


def manual(x):
    mesh = jax.sharding.AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def part(x):
        return jax.lax.psum(x * 2, "model")

    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    return jax.shard_map(part, mesh=mesh, in_specs=P("data", "model"), out_specs=P("data", None))(x)


def spec(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


LAYERS = ([spec((64, 32)), spec((32, 10))], [spec((32,)), spec((10,))])
PROGRAMS = {
    "mlp": (mlp, (*LAYERS, spec((8, 64)))),
    "mlp_gradient": (mlp_gradient, (*LAYERS, spec((8, 64)), spec((8,), jnp.int32))),
    "convolution": (convolution, (spec((2, 9, 8, 3)), spec((3, 2, 3, 4)))),
    "collatz": (collatz, (spec((), jnp.int32),)),
    "branches": (branches, (spec((), jnp.int32), spec((5,)))),
    "indexing": (indexing, (spec((6, 4)), spec((3,), jnp.int32), spec((3, 4)))),
    "composite": (composite, (spec((3,)),)),
    "random": (random, (spec((), jnp.uint32),)),
    "constants": (constants, ()),
    "manual": (manual, (spec((4, 8)),)),
}
VERSIONS = {"mlp": ["0.17.0", "1.0.0", "1.8.0", "1.13.7", "1.17.0"]}
HLO = ["mlp_gradient", "convolution", "collatz", "branches", "indexing", "constants"]

for name, (function, arguments) in PROGRAMS.items():
    lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",))
    for version in VERSIONS.get(name, ["1.17.0"]):
        module = lowered.compiler_ir("stablehlo")
        artifact = stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=True)
        (HERE / f"{name}_{version}.mlirbc").write_bytes(artifact)
        print(name, version, len(artifact))
    if name in HLO:
        proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
        (HERE / f"{name}.hlo").write_bytes(proto)
        print(name, "HLO", len(proto))

# Programs that the repository has as text: also in native bytecode.
for name in ("mesh_axes", "mesh_in_place"):
    with mlir.make_ir_context():
        module = ir.Module.parse((TEXTS / f"{name}.mlir").read_text())
        native = io.BytesIO()
        module.operation.write_bytecode(native)
        (HERE / f"{name}_native.mlirbc").write_bytes(native.getvalue())
        if name == "mesh_axes":
            computation = _jax.mlir.mlir_module_to_xla_computation(str(module), False, False)
            (HERE / f"{name}.hlo").write_bytes(computation.as_serialized_hlo_module_proto())
        # This changes the module.
        artifact = stablehlo.serialize_portable_artifact(module, "1.17.0", allow_other_dialects=True)
        (HERE / f"{name}_1.17.0.mlirbc").write_bytes(artifact)
