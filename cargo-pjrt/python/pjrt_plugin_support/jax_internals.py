"""All uses of private symbols of JAX in this package.

JAX has no public interface for some tasks of a plugin's package. The functions below change JAX for one platform each, so that
the packages of several plugins, each with its own copy of this module, work in one process.
"""

import contextlib
import ctypes
import dataclasses
import functools
import gc
import importlib
import importlib.util
import inspect
import itertools
import os
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import (
    array,
    callback,
    compilation_cache,
    compiler,
    debugging,
    dispatch,
    distributed,
    dlpack,
    op_shardings,
    xla_bridge,
)
from jax._src.export import _export
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax._src.lax import linalg
from jax._src.lax.control_flow import conditionals

try:
    from jax._src import ffi
except ImportError:  # JAX 0.4
    from jax._src.extend import ffi

from . import buffer_callback
from . import ffi as plugin_ffi

# The lowerings that JAX provides only for its own platforms, as (module, primitive, lowering rule). Older versions lack some.
CALLBACKS = (
    ("jax._src.debugging", "debug_callback_p", "debug_callback_lowering"),
    ("jax._src.debugging", "debug_print_p", "debug_print_lowering_rule"),
    ("jax._src.checkify", "check_p", "check_lowering_rule"),
)


def register_plugin(name: str, *, priority: int, library_path: str, options: dict[str, Any]) -> None:
    """Loads a plugin's library and registers it as the backend `name`."""
    xla_bridge.register_plugin(name, priority=priority, library_path=library_path, options=options)


def replace_backend(replaced: str, name: str, settings: Callable[[], dict[str, str]]) -> None:
    """Replaces a backend with the registered backend `name`, whose client is then available under both names.

    The client is created with the environment variables that `settings` returns at that time. JAX does not print that the
    replaced backend is experimental.
    """
    factories = xla_bridge._backend_factories
    if name not in factories or hasattr(factories[name].factory, "serves"):
        return
    create = factories[name].factory

    def client() -> Any:
        known = xla_bridge._backends
        existing = known.get(name) or known.get(replaced)
        if existing is not None:
            return existing
        with _variables(settings()):
            return create()

    client.serves = (name, replaced)
    # The keys of the dictionary do not change, because JAX may iterate over it.
    for key in client.serves:
        priority = factories[key].priority
        factories[key] = dataclasses.replace(factories[name], factory=client, experimental=False, priority=priority)


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    """Sets environment variables, and restores them at the end, so that child processes do not inherit them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def num_cpu_devices() -> int | None:
    """Returns the number of devices that the user has requested for JAX's CPU backend with `jax_num_cpu_devices`."""
    # JAX before 0.5 does not have the option. Its default is negative.
    count = getattr(jax.config, "jax_num_cpu_devices", -1)
    return count if count > 0 else None


def select_alias_of(name: str, alias: str) -> None:
    """Replaces a platform in `JAX_PLATFORMS` with the name under which the backend is also available."""
    if is_named_as_platform(name):
        names = [alias if each == name else each for each in jax.config.jax_platforms.split(",")]
        jax.config.update("jax_platforms", ",".join(dict.fromkeys(names)))


def is_named_as_platform(name: str) -> bool:
    """Returns whether the user has selected a platform by name, for example with `JAX_PLATFORMS`."""
    return name in (jax.config.jax_platforms or "").split(",")


def is_named_in_environment(name: str) -> bool:
    """Returns whether `PJRT_NAMES_AND_LIBRARY_PATHS` contains a library for a platform.

    JAX ignores entries that are not a name and a path.
    """
    return library_in_environment(name) is not None


def library_in_environment(name: str) -> str | None:
    """Returns the path of the library that `PJRT_NAMES_AND_LIBRARY_PATHS` contains for a platform."""
    entries = (entry.split(os.pathsep) for entry in os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(","))
    return next((entry[1] for entry in entries if len(entry) == 2 and entry[0] == name and entry[1]), None)


def is_loaded(name: str) -> bool:
    """Returns whether this process has loaded a library for a platform. Loading a second one fails."""
    return xla_client.pjrt_plugin_loaded(name)


def num_processes() -> int:
    """Returns the number of processes of a distributed program, or 1 if the program is not distributed."""
    return distributed.global_state.num_processes or 1


def wait_for_callbacks() -> None:
    """Waits for the launches of programs that call Python, and raises the error of one that has failed. Later calls do not."""
    try:
        dispatch.runtime_tokens.block_until_ready()
    finally:
        dispatch.runtime_tokens.clear()


def backends_are_initialized() -> bool:
    """Returns whether JAX has created its clients, whose options cannot change afterwards."""
    return xla_bridge.backends_are_initialized()


@functools.cache
def survive_forks(platform: str) -> None:
    """Prevents processes that are forked from one with a client of a platform from waiting for JAX's threads.

    These threads do not exist in the child. JAX lowers, compiles and loads programs on them, and waits for them when it destroys
    a client.
    """

    def refuse(*_: Any, **__: Any) -> Any:
        raise jax.errors.JaxRuntimeError(
            f"FAILED_PRECONDITION: this process was forked after JAX was used with {platform}, and cannot compile or load a"
            " program; start processes with multiprocessing's start method 'spawn' or 'forkserver', or fork before the first use of JAX"
        )

    make_ir_context = mlir.make_ir_context

    def make_context_without_threads() -> Any:
        context = make_ir_context()
        context.enable_multithreading(False)
        return context

    def in_child() -> None:
        if platform not in xla_bridge._backends:
            return
        # The additional references keep the objects from being destroyed, which waits for threads.
        for waits in [*xla_bridge._backends.values(), mlir.global_thread_pool if hasattr(mlir, "global_thread_pool") else None]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(waits))
        # MLIR also verifies and prints modules on its threads.
        for program in gc.get_objects():
            if isinstance(program, ir.Module):
                program.context.enable_multithreading(False)
        mlir.make_ir_context = make_context_without_threads
        mlir.lower_jaxpr_to_module = refuse
        for name in ("compile", "compile_and_load", "deserialize_executable"):
            for kind in {type(client) for client in xla_bridge._backends.values()}:
                if hasattr(kind, name):
                    setattr(kind, name, refuse)
        if hasattr(compiler, "backend_compile_and_load"):
            compiler.backend_compile_and_load = refuse

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=in_child)


def allow_donation(platform: str) -> None:
    """Enables donation of arguments for a platform, which JAX supports only for platforms that it knows."""
    if platform not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(platform)


@functools.cache
def allow_compilation_cache(platform: str) -> None:
    """Enables JAX's persistent compilation cache for a platform, which JAX supports only for platforms that it knows."""
    if not hasattr(compilation_cache, "is_cache_used"):  # JAX before 0.4.31
        return
    is_cache_used = compilation_cache.is_cache_used

    @functools.wraps(is_cache_used)
    def is_used(backend: Any) -> bool:
        return is_cache_used(_Renamed(backend, "cpu") if backend.platform == platform else backend)

    compilation_cache.is_cache_used = is_used


class _Renamed:
    """A backend with the name of another platform."""

    def __init__(self, backend: Any, platform: str) -> None:
        self._backend = backend
        self.platform = platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)


@functools.cache
def allow_dlpack(platform: str) -> None:
    """Exports a platform's arrays through DLPack as arrays of JAX's CPU backend, because JAX exports only arrays of its platforms.

    The exported array shares the memory if the host can read that and its alignment is sufficient for the CPU backend. Imported
    arrays are on JAX's CPU backend, which is started for that.
    """
    to_dlpack, device_of = dlpack.to_dlpack, array.ArrayImpl.__dlpack_device__
    from_dlpack = dlpack.from_dlpack

    @functools.wraps(to_dlpack)
    def export(x: Any, stream: Any = None, src_device: Any = None, *arguments: Any, copy: Any = None, **options: Any) -> Any:
        if isinstance(x, array.ArrayImpl) and x.platform() == platform:
            on_cpu = _on_cpu_backend(x)
            if copy is False and on_cpu.unsafe_buffer_pointer() != x.unsafe_buffer_pointer():
                raise BufferError(f"the memory of an array on {platform} cannot be shared with the host (copy=False)")
            x, (src_device,) = on_cpu, on_cpu.devices()
        return to_dlpack(x, stream, src_device, *arguments, copy=copy, **options)

    @functools.wraps(device_of)
    def device(self: Any) -> Any:
        if self.platform() == platform and len(self.sharding.device_set) == 1:
            return dlpack.DLDeviceType.kDLCPU, 0
        return device_of(self)

    @functools.wraps(from_dlpack)
    def import_(external_array: Any, *arguments: Any, **options: Any) -> Any:
        device = getattr(external_array, "__dlpack_device__", lambda: (None, 0))
        if device()[0] == dlpack.DLDeviceType.kDLCPU and platform in xla_bridge.backends():
            _start_cpu_backend()
        return from_dlpack(external_array, *arguments, **options)

    dlpack.to_dlpack = export
    dlpack.from_dlpack = importlib.import_module("jax.dlpack").from_dlpack = import_
    array.ArrayImpl.__dlpack_device__ = device


@functools.cache
def copy_dlpack_imports() -> None:
    """Enables copies of arrays that JAX imports through DLPack for a plugin in the place of its CPU backend.

    JAX copies arrays with `copy=True`, and arrays that are not row-major. jaxlib requests such copies from its own backends in a
    form that the PJRT C API does not have.
    """
    extension = xla_client._xla
    import_ = extension.dlpack_managed_tensor_to_buffer

    @functools.wraps(import_)
    def import_or_copy(tensor: Any, device: Any, stream: Any = None, copy: bool | None = None, *arguments: Any) -> Any:
        # Older versions of jaxlib do not have the last parameters.
        options = (stream,) if copy is None and not arguments else (stream, None if copy else copy, *arguments)
        try:
            imported = import_(tensor, device, *options)
        except RuntimeError as error:
            if copy is False or "HostBufferSemantics" not in str(error):
                raise
            return jax.device_put(np.from_dlpack(_Tensor(tensor)).copy(), device)
        return jnp.array(imported, copy=True) if copy else imported

    extension.dlpack_managed_tensor_to_buffer = import_or_copy


class _Tensor:
    """An array in host memory, as a capsule of DLPack."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return self._tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(dlpack.DLDeviceType.kDLCPU), 0


def _on_cpu_backend(x: Any) -> Any:
    _start_cpu_backend()
    # JAX before 0.4.31 does not have the option.
    options = {"may_alias": True} if "may_alias" in inspect.signature(jax.device_put).parameters else {}
    return jax.device_put(np.asarray(x), xla_bridge.backends()["cpu"].local_devices()[0], **options)


def when_registered(platform: str, then: Callable[[], None]) -> None:
    """Calls a function after JAX has registered a platform, also through `PJRT_NAMES_AND_LIBRARY_PATHS`.

    The function may be called several times.
    """

    def plugin_is_registered(c_api: Any) -> None:
        if xla_bridge.is_known_platform(platform):
            then()

    xla_bridge.register_plugin_callbacks(plugin_is_registered)


@functools.cache
def allow_callbacks(platform: str) -> None:
    """Enables Python callbacks in programs for a registered platform, which JAX supports only for its own platforms.

    For TPUs, JAX lowers a callback to StableHLO operations that send arrays to the host and receive arrays from it, which any
    plugin can support. One function of JAX lowers all callbacks and selects the form by the name of the platform, so this
    function passes it a module for a TPU.
    """
    module = _callback_module()
    emit = module.emit_python_callback

    @functools.wraps(emit)
    def emit_python_callback(context: Any, callback: Any, token: Any, operands: Any, *arguments: Any, **options: Any) -> Any:
        if tuple(context.module_context.platforms) != (platform,):
            return emit(context, callback, token, operands, *arguments, **options)
        if options.get("partitioned"):
            options["partitioned"] = False
            if _is_partitioned_by_compiler(context.module_context):
                callback = _on_parts(context, callback, operands, platform)
        _start_cpu_backend()
        on_tpu = context.replace(module_context=_ModuleOn("tpu", context.module_context))
        return emit(on_tpu, callback, token, operands, *arguments, **options)

    # The public module has a reference to the same function.
    for holder in (module, importlib.import_module("jax.interpreters.mlir")):
        if getattr(holder, "emit_python_callback", None) is emit:
            holder.emit_python_callback = emit_python_callback
    for module_name, primitive, rule in CALLBACKS:
        module = importlib.import_module(module_name)
        if hasattr(module, primitive):
            _register_uncached(getattr(module, primitive), getattr(module, rule), platform)
    if importlib.util.find_spec("jax._src.buffer_callback") is not None:
        primitive = importlib.import_module("jax._src.buffer_callback").buffer_callback_p
        _register_uncached(primitive, _buffer_callback_lowering, platform)


def _on_parts(context: Any, callback: Callable[..., Any], operands: Any, platform: str) -> Callable[..., Any]:
    """Returns a callback on whole arrays that calls another callback for each device, with the shards of that device.

    The program runs on whole arrays. Their shardings are known after its compilation.
    """
    axes = context.module_context.axis_context
    if hasattr(axes, "mesh") or not hasattr(compiler, "backend_compile_and_load"):
        raise NotImplementedError(f"{platform} does not support callbacks with partitioned=True in a shard_map over some axes")
    shardings: list[Any] = [None] * len(operands)
    for position, operand in enumerate(operands):
        _inspect(context, operand, functools.partial(shardings.__setitem__, position))

    def on_parts(*arrays: Any) -> tuple[()]:
        if any(sharding is None for sharding in shardings):
            raise NotImplementedError(
                f"{platform} does not support callbacks with partitioned=True inside loops and branches, because the shardings"
                " of the arrays are not known there"
            )
        count = axes.num_devices
        splits = [
            op_shardings.op_sharding_to_numpy_indices(sharding, value.shape, count)
            for sharding, value in zip(shardings, arrays, strict=True)
        ]
        for device in range(count):
            callback(*(np.asarray(value)[split[device]] for value, split in zip(arrays, splits, strict=True)))
        return ()

    return on_parts


def _buffer_callback_lowering(
    context: Any,
    *operands: Any,
    callback: Callable[..., None],
    in_tree: Any,
    out_tree: Any,
    has_side_effect: bool,
    input_output_aliases: Any,
    **_: Any,
) -> Any:
    run = buffer_callback.on_arrays(callback, in_tree, out_tree, input_output_aliases, context.avals_out)
    results, *_ = _callback_module().emit_python_callback(
        context,
        run,
        None,
        list(operands),
        context.avals_in,
        context.avals_out,
        has_side_effect=has_side_effect,
    )
    return results


def take_branches_for(other: str, platform: str) -> None:
    """Configures `jax.lax.platform_dependent` to select the branch for another platform if there is none for this one.

    The branch is selected in two places: by the index of the platform, and by the conditional, which omits the branches of
    other platforms.
    """
    if not hasattr(conditionals, "platform_index_p"):  # JAX before 0.4.21
        return
    also = functools.partial(_also_for, platform, other)

    def platform_index(context: Any, *, platforms: Any, **parameters: Any) -> Any:
        return conditionals._platform_index_lowering(context, platforms=also(platforms), **parameters)

    def cond(context: Any, *operands: Any, **parameters: Any) -> Any:
        if (platforms := parameters.get("branches_platforms")) is not None:
            parameters["branches_platforms"] = also(platforms)
        return conditionals._cond_lowering(context, *operands, **parameters)

    mlir.register_lowering(conditionals.platform_index_p, platform_index, platform=platform)
    mlir.register_lowering(conditionals.cond_p, cond, platform=platform)


def take_rules_of(other: str, platform: str) -> None:
    """Configures a platform to use the lowering rules of another for primitives without a rule for it or for all platforms."""
    rules = mlir._platform_specific_lowerings
    if not isinstance(rules[platform], _Rules):
        rules[platform] = _Rules(rules[platform], rules[other])


def call_exported_for(other: str, platform: str) -> None:
    """Enables calls of functions that were exported for another platform and not for this one."""

    def rule(context: Any, *operands: Any, exported: Any) -> Any:
        only_here = tuple(context.module_context.platforms) == (platform,)
        if not only_here or platform in exported.platforms or other not in exported.platforms:
            return _export._call_exported_lowering(context, *operands, exported=exported)
        on_other = context.replace(module_context=_ModuleOn(other, context.module_context))
        results = _export._call_exported_lowering(on_other, *operands, exported=exported)
        if on_other.tokens_out is not None:
            context.set_tokens_out(on_other.tokens_out)
        return results

    mlir.register_lowering(_export.call_exported_p, rule, platform=platform)


class _Rules(dict):
    """The lowering rules of a platform by primitive, with those of another platform as a fallback."""

    def __init__(self, own: Any, others: Any) -> None:
        super().__init__(own)
        self._others = others

    def __contains__(self, primitive: Any) -> bool:
        return super().__contains__(primitive) or (primitive not in mlir._lowerings and primitive in self._others)

    def __missing__(self, primitive: Any) -> Any:
        return self._others[primitive]


def _also_for(platform: str, other: str, branches: Any) -> tuple[tuple[str, ...] | None, ...]:
    """Adds a platform to the branch of another one, unless a branch already has it.

    Each element is the platforms of a branch, or None for the default branch.
    """
    if any(names and platform in names for names in branches):
        return branches
    return tuple((*names, platform) if names and other in names else names for names in branches)


_inspections: weakref.WeakValueDictionary[str, Callable[[Any], None]] = weakref.WeakValueDictionary()
_numbers = itertools.count()


@functools.cache
def allow_sharding_inspection(platform: str) -> None:
    """Enables `jax.debug.inspect_array_sharding` in programs for several devices of a platform.

    For XLA's partitioner, the program contains the address of a function. Here the program contains a number instead, and the
    compiled executable returns the sharding of the array with each number.
    """
    if not hasattr(compiler, "backend_compile_and_load"):  # JAX before 0.7
        return
    compile_program = compiler.backend_compile_and_load

    @functools.wraps(compile_program)
    def compile_and_show(backend: Any, *arguments: Any, **options: Any) -> Any:
        executable = compile_program(backend, *arguments, **options)
        if _inspections and backend.platform == platform:
            for name, value in (executable.cost_analysis() or {}).items():
                if show := _inspections.get(name.removeprefix("sharding of ")):
                    show(xla_client.HloSharding.from_string(value))
        return executable

    def rule(context: Any, operand: Any, *, callback: Callable[[Any], None]) -> Any:
        keeping = _Keeping(context.module_context)
        results = debugging._inspect_sharding_lowering_rule(
            context.replace(module_context=keeping), operand, callback=callback
        )
        for show in keeping.kept:
            call = ir.InsertionPoint.current.block.operations[-1]
            call.attributes["backend_config"] = _name_inspection(show)
        return results

    compiler.backend_compile_and_load = compile_and_show
    _register_uncached(debugging.inspect_sharding_p, rule, platform)


def _name_inspection(show: Callable[[Any], None]) -> Any:
    name = f"inspection {next(_numbers)}"
    _inspections[name] = show
    return ir.StringAttr.get(name)


def _inspect(context: Any, operand: Any, show: Callable[[Any], None]) -> None:
    """Emits a call that makes the executable return the sharding of an array. The devices need not be known."""
    context.module_context.add_keepalive(show)
    mlir.custom_call(
        "InspectSharding",
        result_types=[operand.type],
        operands=[operand],
        backend_config=_name_inspection(show).value,
        has_side_effect=True,
        api_version=1,
    )


def keep_whole(name: str, platform: str) -> None:
    """Passes a function of `jax.lax` to a platform as a single operation.

    JAX lowers it to an operation of CHLO, which jaxlib replaces by arithmetic before the plugin receives the program. Here the
    operation is wrapped in the decomposition of a composite with its name. Other lowering rules are left unchanged.
    """
    primitive = getattr(jax.lax, f"{name}_p", None)
    if primitive is None or primitive not in mlir._lowerings:
        return
    usual = mlir._lowerings[primitive]
    usual = getattr(usual, "rule", usual)

    def rule(context: Any, *operands: Any, **parameters: Any) -> Any:
        (result,) = usual(context, *operands, **parameters)
        operation = _operation_of(result)
        # A sharding may follow the operation.
        while operation is not None and operation.name != f"chlo.{name}":
            operation = _operation_of(operation.operands[0]) if len(operation.operands) == 1 else None
        whole = operation and _composite(context.module_context, operation)
        if whole:
            (part,) = operation.results
            part.replace_all_uses_with(whole)
            result = whole if result == part else result
            operation.erase()
        return [result]

    mlir.register_lowering(primitive, rule, platform=platform)


def _operation_of(value: Any) -> Any:
    """Returns the operation that defines a value, or None for the argument of a block."""
    return value.owner if isinstance(value.owner, ir.Operation | ir.OpView) else None


def _composite(module_context: Any, operation: Any) -> Any:
    """Inserts a composite with an operation as its decomposition, and returns its result, or None if the shape is dynamic."""
    types = [operand.type for operand in operation.operands]
    (result,) = (result.type for result in operation.results)
    if not ir.RankedTensorType(result).has_static_shape:
        return None
    function = f"{operation.name} {result}"
    symbols = module_context.symbol_table
    if function not in symbols:
        attributes = {
            "sym_name": ir.StringAttr.get(function),
            "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [result])),
        }
        program = module_context.module
        with ir.InsertionPoint.at_block_begin(program.body):
            decomposition = ir.Operation.create("func.func", attributes=attributes, regions=1)
        symbols.insert(decomposition)
        block = decomposition.regions[0].blocks.append(*types)
        with ir.InsertionPoint(block):
            inner = ir.Operation.create(operation.name, results=[result], operands=list(block.arguments))
            ir.Operation.create("func.return", operands=list(inner.results))
    attributes = {
        "name": ir.StringAttr.get(operation.name),
        "decomposition": ir.FlatSymbolRefAttr.get(function),
    }
    with ir.InsertionPoint(operation):
        composite = ir.Operation.create(
            "stablehlo.composite", results=[result], operands=list(operation.operands), attributes=attributes
        )
    return composite.results[0]


class _Keeping:
    """The context of a module, which also lists the objects that the module keeps alive."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.kept: list[Any] = []

    def add_keepalive(self, value: Any) -> None:
        self.kept.append(value)
        self._context.add_keepalive(value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _callback_module() -> Any:
    """Returns JAX's module that lowers Python callbacks, which differs before JAX 0.5."""
    return callback if hasattr(callback, "emit_python_callback") else mlir


class _ModuleOn:
    """The context of a module with another platform."""

    def __init__(self, platform: str, context: Any) -> None:
        self.platforms = (platform,)
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _is_partitioned_by_compiler(module_context: Any) -> bool:
    axes = module_context.axis_context
    manual = getattr(axes, "manual_axes", frozenset())
    return getattr(axes, "num_devices", 1) > 1 or (hasattr(axes, "mesh") and manual != frozenset(axes.mesh.axis_names))


def _register_uncached(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    # Every call has its own channels, so lowerings cannot be shared. JAX before 0.7 does not cache lowerings.
    cached = "cacheable" in inspect.signature(mlir.register_lowering).parameters
    mlir.register_lowering(primitive, rule, platform=platform, **({"cacheable": False} if cached else {}))


def _start_cpu_backend() -> None:
    """Starts JAX's CPU backend, which owns the arrays passed to Python, even if `JAX_PLATFORMS` does not contain it.

    Of several processes, each has a backend of its own. JAX's function waits for all others, which may never call Python.
    """
    if "cpu" in xla_bridge.backends():
        return
    with xla_bridge._backend_lock:
        if "cpu" not in xla_bridge._backends:
            xla_bridge._backends["cpu"] = xla_client.make_cpu_client() if num_processes() > 1 else xla_bridge._init_backend("cpu")


def pass_on_handlers(platform: str) -> None:
    """Forwards the handlers and types of `jax.ffi` to the plugin of a platform, including those registered earlier.

    It does nothing if the plugin does not have the FFI extension.
    """
    plugin = _ffi_plugin(platform)
    if plugin is not None:
        _forward(platform, plugin.register_handler, plugin.register_type)


def pass_on_handlers_of(replaced: str, platform: str) -> None:
    """Forwards the handlers and types that `jax.ffi` registers for a replaced backend to the plugin that replaces it.

    jaxlib registers its LAPACK routines for the CPU backend. They are not forwarded, because the plugin has its own.
    """
    plugin = _ffi_plugin(platform)
    if plugin is not None:
        own = importlib.import_module("jaxlib.lapack")._lapack.registrations().values()
        handlers = plugin_ffi.HandlersOf(plugin, platform, own)
        _forward(replaced, handlers.register_handler, plugin.register_type)


def _ffi_plugin(platform: str) -> plugin_ffi.Plugin | None:
    """Returns the FFI extension of a platform's plugin, or None.

    There is none if the plugin does not have the extension, or if this version of JAX does not pass handlers to plugins.
    """
    c_api = getattr(xla_bridge._backend_factories.get(platform), "c_api", None)
    has_registry = hasattr(xla_client, "register_custom_call_handler")
    return plugin_ffi.Plugin.of(c_api) if c_api is not None and has_registry else None


def _forward(platform: str, register_handler: Callable[..., None], register_type: Callable[..., None]) -> None:
    xla_client.register_custom_call_handler(platform, register_handler)
    # The second name is that of JAX before 0.8.
    for name in ("register_custom_type_handler", "register_custom_type_id_handler"):
        if hasattr(xla_client, name):
            getattr(xla_client, name)(platform, register_type)


def linalg_primitive(name: str) -> Any:
    """Returns a primitive of linear algebra, or None if this version of JAX does not have it."""
    return getattr(linalg, f"{name}_p", None)


def register_lowering(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    """Registers the lowering rule of a primitive for a registered platform."""
    mlir.register_lowering(primitive, rule, platform=platform)


def lower_where_missing(name: str, function: Callable[..., Any], platform: str) -> None:
    """Lowers a primitive of linear algebra with several results by a function of `jax.numpy`, if the platform has no rule for it.

    The function takes the operands and the parameters of the primitive, and returns a sequence of its results.
    """
    primitive = linalg_primitive(name)
    is_lowered = primitive in mlir._lowerings or primitive in mlir._platform_specific_lowerings[platform]
    if primitive is not None and not is_lowered:
        register_lowering(primitive, mlir.lower_fun(function, multiple_results=True), platform)


def allow_export(targets: Iterable[str]) -> None:
    """Allows custom calls with these targets in exported functions. Later versions must continue to support the targets.

    JAX's own list of stable targets does not change.
    """
    stable = _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE
    # The list may be that of another plugin's copy of this module.
    if not hasattr(stable, "own"):
        stable = _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE = _StableTargets(stable)
    stable.own.update(targets)


class _StableTargets(set):
    """JAX's stable targets. The copy that JAX creates for an export also contains those of the plugin."""

    def __init__(self, targets: Iterable[str]) -> None:
        super().__init__(targets)
        self.own: set[str] = set()

    def __copy__(self) -> set[str]:
        return self | self.own


def ffi_lowering(target: str) -> Callable[..., Any]:
    """Returns the lowering rule of a typed custom call with the primitive's operands, and its keyword arguments as attributes."""
    return ffi.ffi_lowering(target)
