"""refcpu in the place of JAX's CPU backend, with `REFCPU_AS_CPU=1` or `install_as_cpu()`."""

import ctypes

import plugins

plugins.use("refcpu", REFCPU_AS_CPU="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from ffi_library import compiled  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import sparse  # noqa: E402


@pytest.fixture(scope="module")
def handlers(tmp_path_factory):
    return compiled("ffi_handlers.c", "cc", tmp_path_factory.mktemp("c"))


def register(name, function, **options):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu", **options)


def number(name):
    return int(jax.jit(lambda: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((), jnp.int32))())())


# The first test: nothing has started JAX's backends yet, so what is registered waits for them.
def test_handlers_for_the_cpu_are_called_whenever_they_are_registered(handlers):
    register("before", handlers.count)
    with pytest.warns(RuntimeWarning, match="programs cannot call the handler 'untyped': .*api_version=0"):
        register("untyped", handlers.count, api_version=0)
        jax.devices()
    register("after", handlers.count)
    assert (number("before"), number("after")) == (0, 1)
    with pytest.raises(jax.errors.JaxRuntimeError, match='no custom call target "untyped"'):
        number("untyped")


def test_types_for_the_cpu_get_a_number(handlers):
    pointer = ctypes.addressof(ctypes.c_int64.in_dll(handlers, "a_type"))
    jax.ffi.register_ffi_type("a type", {"type_id": jax.ffi.pycapsule(pointer)}, platform="cpu")
    assert ctypes.c_int64.in_dll(handlers, "a_type").value > 0


def test_a_handler_for_the_cpu_overrides_one_of_refcpu(handlers):
    before = number("before")
    register("lapack_sgetrf_ffi", handlers.count)
    assert number("lapack_sgetrf_ffi") == before + 1


def test_the_lapack_routines_of_jaxlib_do_not_replace_those_of_refcpu():
    # jaxlib's routine crashes unless JAX's own lowering for the CPU has initialized it.
    call = jax.ffi.ffi_call("lapack_dpotrf_ffi", (jax.ShapeDtypeStruct((2, 2), "float64"), jax.ShapeDtypeStruct((), "int32")))
    with jax.enable_x64(True):
        factor, _ = jax.jit(lambda x: call(x, uplo=np.uint8(ord("L"))))(4 * np.eye(2))
    np.testing.assert_array_equal(factor, 2 * np.eye(2))


def test_products_of_sparse_matrices_use_the_handlers_of_jaxlib():
    matrix = np.array([[1, 0, 2], [0, 0, 3]], np.float32)
    rows = sparse.BCSR.fromdense(matrix)
    np.testing.assert_array_equal(jax.jit(lambda x: rows @ x)(np.ones(3, np.float32)), [3, 3])
    np.testing.assert_array_equal(jax.jit(lambda x: rows @ x)(np.ones((3, 2), np.float32)), [[3, 3], [3, 3]])


def test_the_platform_and_its_devices_have_the_names_of_the_cpu_backend():
    (device, *_) = jax.devices()
    assert (jax.default_backend(), device.platform, device.device_kind) == ("cpu", "cpu", "cpu")
    assert (repr(device), str(device)) == ("CpuDevice(id=0)", "cpu:0")
    assert jax.devices("cpu") == jax.devices()
    assert "refcpu" in device.client.platform_version


def test_a_callback_runs_before_the_call_returns():
    seen = []
    f = jax.jit(lambda x: jax.debug.callback(lambda value: seen.append(float(value)), x.sum()))
    f(jnp.ones(3))
    assert seen == [3.0]


def test_the_error_of_a_callback_is_raised_by_the_call():
    def fail(x):
        raise ValueError("no value")

    f = jax.jit(lambda x: jax.pure_callback(fail, x, x))
    x = jnp.ones(2)
    with pytest.raises(jax.errors.JaxRuntimeError, match="no value"):
        f(x)


def test_a_callback_may_run_programs():
    def sine(x):
        return np.asarray(jnp.sin(jnp.asarray(x)))

    f = jax.jit(lambda x: jax.pure_callback(sine, x, x) + 1)
    np.testing.assert_allclose(f(jnp.ones(2)), np.sin(np.ones(2)) + 1, rtol=1e-6)


def test_branches_and_linear_algebra_are_those_of_the_cpu():
    f = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))
    np.testing.assert_allclose(f(jnp.ones(3)), np.sin(np.ones(3)), rtol=1e-6)
    matrix = np.array([[2, 1], [1, 3]], np.float32)
    np.testing.assert_allclose(jnp.linalg.eigvalsh(matrix), np.linalg.eigvalsh(matrix), rtol=1e-5)
    np.testing.assert_allclose(jnp.linalg.svd(matrix)[1], np.linalg.svd(matrix)[1], rtol=1e-5)


FLAG = "--xla_force_host_platform_device_count"


@pytest.mark.parametrize(
    ("count", "variables"),
    [
        (3, {"XLA_FLAGS": f"--xla_cpu_enable_fast_math=false {FLAG}=8 {FLAG}=3"}),
        (3, {"JAX_NUM_CPU_DEVICES": "3"}),
        (3, {"JAX_NUM_CPU_DEVICES": "3", "XLA_FLAGS": f"{FLAG}=8", "REFCPU_NUM_DEVICES": "2"}),
        (2, {"XLA_FLAGS": f"{FLAG}=8", "REFCPU_NUM_DEVICES": "2"}),
        (1, {}),
    ],
)
def test_the_settings_of_the_cpu_backend_give_the_number_of_devices(count, variables):
    variables = dict.fromkeys(("XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "REFCPU_NUM_DEVICES")) | variables
    code = "import jax, os; print(len(jax.devices()), os.environ.get('REFCPU_NUM_DEVICES'))"
    assert plugins.run_python(code, **variables) == f"{count} {variables['REFCPU_NUM_DEVICES']}"


def test_a_program_may_set_the_number_of_devices():
    code = "import jax; jax.config.update('jax_num_cpu_devices', 4); print(len(jax.devices('cpu')))"
    assert plugins.run_python(code, XLA_FLAGS=f"{FLAG}=8") == "4"


def test_a_forked_child_gets_an_error_instead_of_waiting_for_threads():
    code = """
import jax, os, warnings
warnings.simplefilter("ignore")
jax.block_until_ready(jax.numpy.arange(4.0) + 1)
child = os.fork()
if child == 0:
    try:
        jax.jit(lambda x: x - 3)(1.0)
    except jax.errors.JaxRuntimeError as error:
        print(str(error).partition(" after ")[0], flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    assert plugins.run_python(code) == "FAILED_PRECONDITION: this process was forked"


def test_a_program_for_which_the_memory_never_suffices_fails_at_its_launch():
    f = jax.jit(lambda: jnp.zeros(2**50, jnp.uint8))
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        f()


def test_jax_copies_arrays_that_it_imports_through_dlpack():
    matrix = np.arange(24_000, dtype=np.float32).reshape(6, -1)
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(matrix.T), matrix.T)
    np.testing.assert_array_equal(jnp.from_dlpack(matrix.T, copy=True), matrix.T)
    copied = jax.dlpack.from_dlpack(matrix, copy=True)
    matrix[0, 1] = -1
    assert copied[0, 1] == 1
    with pytest.raises(jax.errors.JaxRuntimeError, match="row-major"):
        jax.dlpack.from_dlpack(matrix.T, copy=False)
    narrow = jnp.ones(3, jnp.bfloat16)
    assert jax.dlpack.from_dlpack(narrow, copy=True).unsafe_buffer_pointer() != narrow.unsafe_buffer_pointer()


def test_the_first_use_of_jax_may_be_an_import_through_dlpack():
    code = "import jax, numpy as np; print(jax.dlpack.from_dlpack(np.arange(6.0, dtype='f').reshape(2, 3).T)[2, 1])"
    assert plugins.run_python(code) == "5.0"


def test_numpy_and_jax_exchange_arrays_through_dlpack():
    np.testing.assert_array_equal(np.from_dlpack(jnp.arange(4)), np.arange(4))
    np.testing.assert_array_equal(jnp.from_dlpack(np.arange(64.0, dtype=np.float32)), np.arange(64.0))


INSTALL = """
from jax_plugins import refcpu
refcpu.install_as_cpu()
import jax
print(jax.devices()[0].platform, "refcpu" in jax.devices()[0].client.platform_version)
"""


@pytest.mark.parametrize("platforms", ["refcpu", "cpu", None])
def test_it_can_be_installed_by_a_call(platforms):
    assert plugins.run_python(INSTALL, REFCPU_AS_CPU=None, JAX_PLATFORMS=platforms) == "cpu True"


def test_it_cannot_be_installed_after_the_first_use():
    from jax_plugins import refcpu

    jax.devices()
    with pytest.raises(RuntimeError, match="before the first use"):
        refcpu.install_as_cpu()


def test_jax_does_not_warn_that_the_platform_is_experimental():
    code = "import sys; sys.stderr = sys.stdout; import jax; jax.devices()"
    assert "experimental" not in plugins.run_python(code)


def test_callbacks_can_be_asynchronous():
    code = """
import jax, threading
import jax.numpy as jnp
gate = threading.Event()
f = jax.jit(lambda x: jax.debug.callback(lambda _: gate.wait(60), x))
f(jnp.ones(3))
gate.set()
jax.effects_barrier()
print("returned")
"""
    assert plugins.run_python(code, REFCPU_ASYNC_CALLBACKS="1") == "returned"
