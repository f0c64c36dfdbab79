"""The private symbols of JAX that the Python packages of plugins use, pinned for the version under test."""

import importlib
import inspect
import pathlib
import re

from jax_plugins import refcpu
from jax_plugins.refcpu._support import jax_internals

PACKAGE = pathlib.Path(refcpu.__file__).parent

# The symbols that `jax_internals` uses, as (module, attribute).
SYMBOLS = (
    ("jax._src.xla_bridge", "register_plugin"),
    ("jax._src.xla_bridge", "backends_are_initialized"),
    ("jax._src.xla_bridge", "register_plugin_callbacks"),
    ("jax._src.xla_bridge", "is_known_platform"),
    ("jax._src.xla_bridge", "backends"),
    ("jax._src.xla_bridge", "_backend_lock"),
    ("jax._src.xla_bridge", "_backends"),
    ("jax._src.xla_bridge", "_init_backend"),
    ("jax._src.xla_bridge", "_backend_factories"),
    ("jax._src.compilation_cache", "is_cache_used"),
    ("jax._src.array", "ArrayImpl"),
    ("jax._src.compiler", "backend_compile_and_load"),
    ("jax._src.distributed", "global_state"),
    ("jax._src.dispatch", "runtime_tokens"),
    ("jax._src.interpreters.mlir", "lower_jaxpr_to_module"),
    ("jax._src.interpreters.mlir", "global_thread_pool"),
    ("jax._src.interpreters.mlir", "make_ir_context"),
    ("jaxlib.mlir.ir", "Module"),
    ("jax._src.debugging", "inspect_sharding_p"),
    ("jax._src.debugging", "_inspect_sharding_lowering_rule"),
    ("jax._src.dlpack", "to_dlpack"),
    ("jax._src.dlpack", "from_dlpack"),
    ("jax._src.dlpack", "DLDeviceType"),
    ("jax._src.interpreters.mlir", "_platforms_with_donation"),
    ("jax._src.export._export", "call_exported_p"),
    ("jax._src.export._export", "_CUSTOM_CALL_TARGETS_GUARANTEED_STABLE"),
    ("jax._src.export._export", "_call_exported_lowering"),
    ("jax._src.interpreters.mlir", "register_lowering"),
    ("jax._src.interpreters.mlir", "lower_fun"),
    ("jax._src.interpreters.mlir", "_lowerings"),
    ("jax._src.interpreters.mlir", "_platform_specific_lowerings"),
    ("jax._src.interpreters.mlir", "custom_call"),
    ("jax._src.op_shardings", "op_sharding_to_numpy_indices"),
    ("jax._src.ffi", "ffi_lowering"),
    ("jax._src.callback", "emit_python_callback"),
    ("jax._src.buffer_callback", "buffer_callback_p"),
    ("jaxlib.xla_client", "HloSharding"),
    ("jaxlib.xla_client", "_xla"),
    ("jaxlib.xla_client", "pjrt_plugin_loaded"),
    ("jaxlib.xla_client", "make_cpu_client"),
    ("jaxlib.xla_client", "register_custom_call_handler"),
    ("jaxlib.lapack", "_lapack"),
    ("jaxlib.mlir.ir", "InsertionPoint"),
    ("jaxlib.mlir.ir", "StringAttr"),
    ("jaxlib.mlir.ir", "FlatSymbolRefAttr"),
    ("jaxlib.mlir.ir", "FunctionType"),
    ("jaxlib.mlir.ir", "Operation"),
    ("jaxlib.mlir.ir", "OpView"),
    ("jaxlib.mlir.ir", "RankedTensorType"),
    ("jaxlib.mlir.ir", "TypeAttr"),
    ("jax._src.lax.control_flow.conditionals", "cond_p"),
    ("jax._src.lax.control_flow.conditionals", "_cond_lowering"),
    ("jax._src.lax.control_flow.conditionals", "platform_index_p"),
    ("jax._src.lax.control_flow.conditionals", "_platform_index_lowering"),
)


def test_every_private_symbol_exists():
    for module, attribute in SYMBOLS:
        assert hasattr(importlib.import_module(module), attribute), f"{module}.{attribute} is gone"


def test_register_plugin_takes_what_the_package_gives():
    from jax._src import xla_bridge

    parameters = inspect.signature(xla_bridge.register_plugin).parameters
    assert list(parameters)[0] == "plugin_name"
    assert {"priority", "library_path", "options"} <= set(parameters)


def test_the_platforms_with_donation_are_a_list_of_names():
    from jax._src.interpreters import mlir

    assert isinstance(mlir._platforms_with_donation, list)
    assert "cpu" in mlir._platforms_with_donation


def test_rules_are_registered_by_primitive_and_platform():
    from jax._src.interpreters import mlir

    parameters = inspect.signature(mlir.register_lowering).parameters
    assert list(parameters)[:2] == ["prim", "rule"]
    assert "platform" in parameters


def test_every_primitive_that_has_a_rule_exists():
    from jax_plugins.refcpu import linalg

    missing = [name for name in linalg.CALLS if jax_internals.linalg_primitive(name) is None]
    assert not missing


def test_private_symbols_are_used_in_one_file_only():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "jax_internals.py":
            assert "jax._src" not in path.read_text(), f"{path.name} uses private symbols of JAX"


def test_every_private_symbol_that_is_used_is_listed():
    source = pathlib.Path(jax_internals.__file__).read_text()
    code = source[source.index("def ") :]
    modules = (
        "xla_bridge|mlir|ffi|array|compilation_cache|compiler|conditionals|debugging|dispatch|distributed|dlpack"
        r"|_export|ir|module|op_shardings|xla_client|_callback_module\(\)"
    )
    used = set(re.findall(rf"\b(?:{modules})\.([a-zA-Z_]\w*)", code))
    used |= {attribute for _, attribute in re.findall(r'import_module\("([\w.]+)"\)\.(\w+)', code)}
    assert used == {attribute for _, attribute in SYMBOLS}


def test_what_jax_lowers_on_its_own_platforms_is_there():
    for module, primitive, rule in jax_internals.CALLBACKS:
        for name in (primitive, rule):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name} is gone"


def test_calls_of_python_are_lowered_as_the_package_expects():
    from jax._src import callback
    from jax._src.interpreters import mlir

    parameters = inspect.signature(callback.emit_python_callback).parameters
    assert list(parameters)[:6] == ["ctx", "callback", "token", "operands", "operand_avals", "result_avals"]
    assert {"has_side_effect", "partitioned"} <= set(parameters)
    assert {"platform", "cacheable"} <= set(inspect.signature(mlir.register_lowering).parameters)
    assert callable(mlir.LoweringRuleContext.replace)
    # Read through `_ModuleOnTpu`, which has `platforms` of its own.
    assert "platforms" in mlir.ModuleContext.__dataclass_fields__
