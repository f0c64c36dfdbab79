"""Custom calls of C and C++ functions that `jax.ffi` registers, compiled here against the headers that jaxlib brings."""

import ctypes

import plugins

plugins.use("refcpu", REFCPU_NUM_DEVICES="2")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from ffi_library import compiled  # noqa: E402

HANDLERS_C = ("weigh", "count", "as_it_lies", "add_in_place", "where", "types")
HANDLERS_CPP = ("normalize", "attributes", "sum")


def registered(library, names):
    for name in names:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="refcpu")
    return library


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    return registered(compiled("ffi_handlers.c", "cc", tmp_path_factory.mktemp("c")), HANDLERS_C)


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    library = compiled("ffi_handlers.cc", "g++", tmp_path_factory.mktemp("cpp"), "-std=c++17")
    return registered(library, HANDLERS_CPP)


def like(x):
    return jax.ShapeDtypeStruct(np.shape(x), x.dtype)


def weigh(x, scale=2.0, offsets=(0.5, 1.5), **options):
    by = {"scale": np.float32(scale), "name": "scale"}
    return jax.ffi.ffi_call("weigh", like(x), **options)(x, by=by, offsets=np.array(offsets))


# The first test: nothing has started JAX's backends yet, and what is registered waits for them.
def test_a_c_function_is_part_of_a_program(c):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = 2 * x + np.array([0.5, 1.5, 0.5, 1.5, 0.5, 1.5], np.float32).reshape(2, 3)
    np.testing.assert_array_equal(jax.jit(weigh)(x), expected)
    np.testing.assert_array_equal(jax.jit(lambda x: 3 * weigh(x + 1) - 1)(x - 1), 3 * expected - 1)


def test_loops_and_maps_call_it_too(c):
    x = np.ones(4, np.float32)
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: weigh(x, offsets=(1.0,)), x))
    np.testing.assert_array_equal(looped(x), 15 * x)
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    mapped = jax.jit(jax.vmap(lambda x: weigh(x, offsets=(0.0,), vmap_method="sequential")))
    np.testing.assert_array_equal(mapped(rows), 2 * rows)


def test_its_error_is_the_error_of_the_program(c):
    x = np.ones(4, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*handler .weigh.: weigh wants two arrays"):
        jax.jit(lambda x: weigh(x.astype(jnp.int32)))(x).block_until_ready()
    call = jax.ffi.ffi_call("weigh", like(x))
    by = {"scale": np.float32(1), "name": "other"}
    with pytest.raises(jax.errors.JaxRuntimeError, match="OUT_OF_RANGE.*strange"):
        jax.jit(lambda x: call(x, by=by, offsets=np.zeros(1)))(x).block_until_ready()
    # What fails once can be run again.
    np.testing.assert_array_equal(jax.jit(weigh)(x)[:1], [2.5])


def test_an_attribute_that_no_handler_can_get_is_refused(c):
    x = np.ones(4, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*'?by'?.*handlers take numbers"):
        jax.jit(lambda x: jax.ffi.ffi_call("weigh", like(x))(x, by=("a", "b")))(x)


def test_effects_happen_as_often_as_the_program_says(c):
    out = jax.ShapeDtypeStruct((), jnp.int32)

    def unused(x, effect):
        jax.ffi.ffi_call("count", out, has_side_effect=effect)()
        return x + 1

    before = c.counted()
    jax.jit(lambda x: unused(x, False))(1.0).block_until_ready()
    assert c.counted() == before
    jax.jit(lambda x: unused(unused(x, True), True))(1.0).block_until_ready()
    assert c.counted() == before + 2
    both = jax.jit(lambda: [jax.ffi.ffi_call("count", out, has_side_effect=True)() for _ in range(3)])()
    assert [int(number) for number in both] == [before + 2, before + 3, before + 4]


def test_arrays_lie_in_memory_as_the_call_asks(c):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    results = (jax.ShapeDtypeStruct((6,), jnp.int32), like(x), jax.ShapeDtypeStruct((2,), jnp.int32))
    rows = jax.jit(jax.ffi.ffi_call("as_it_lies", results))
    flat, same, dims = rows(x)
    assert (flat.tolist(), dims.tolist()) == ([0, 1, 2, 3, 4, 5], [2, 3])
    np.testing.assert_array_equal(same, x)
    columns = jax.ffi.ffi_call("as_it_lies", results, input_layouts=[(1, 0)], output_layouts=[(0,), (1, 0), (0,)])
    flat, same, dims = jax.jit(columns)(x)
    assert (flat.tolist(), dims.tolist()) == ([0, 3, 1, 4, 2, 5], [2, 3])
    np.testing.assert_array_equal(same, x)


def test_a_result_may_begin_with_an_operand(c):
    x = jnp.arange(4, dtype=jnp.float32)
    call = jax.ffi.ffi_call("add_in_place", like(x), input_output_aliases={0: 0})
    np.testing.assert_array_equal(jax.jit(call)(x), [1, 2, 3, 4])
    np.testing.assert_array_equal(x, [0, 1, 2, 3])
    np.testing.assert_array_equal(jax.jit(call, donate_argnums=0)(x), [1, 2, 3, 4])


def test_a_handler_knows_its_device(c):
    where = jax.jit(lambda x: jax.ffi.ffi_call("where", jax.ShapeDtypeStruct((), jnp.int32))(x))
    for device in jax.devices():
        assert int(where(jax.device_put(1.0, device))) == device.id


# The numbers of xla_data.proto's PrimitiveType.
@pytest.mark.parametrize(
    ("dtype", "number"),
    [(bool, 1), ("int8", 2), ("int32", 4), ("uint8", 6), ("float16", 10), ("float32", 11), (ml_dtypes.bfloat16, 16)]
    + [("complex64", 15), (ml_dtypes.float8_e5m2, 19)],
)
def test_arrays_of_every_type_arrive(c, dtype, number):
    call = jax.ffi.ffi_call("types", jax.ShapeDtypeStruct((), jnp.int32))
    assert int(jax.jit(call)(np.zeros(3, dtype))) == number


def test_what_is_no_handler_for_refcpu_is_refused(c):
    def register(name, function, **options):
        jax.ffi.register_ffi_target(name, function, platform="refcpu", **options)

    weigh, count = (jax.ffi.pycapsule(getattr(c, name)) for name in ("weigh", "count"))
    with pytest.raises(ValueError, match="does not report the version"):
        register("silent", jax.ffi.pycapsule(c.silent))
    with pytest.raises(ValueError, match="another handler of the custom call 'weigh'"):
        register("weigh", count)
    register("weigh", weigh)
    with pytest.raises(NotImplementedError, match="api_version=0"):
        register("untyped", weigh, api_version=0)
    with pytest.raises(NotImplementedError, match="stage 'execute'"):
        register("staged", {"prepare": weigh, "execute": weigh})
    register("one stage", {"execute": count})
    out = jax.ShapeDtypeStruct((), jnp.int32)
    assert int(jax.jit(lambda: jax.ffi.ffi_call("one stage", out)())()) == c.counted() - 1


def test_types_get_a_number(c):
    pointer = ctypes.addressof(ctypes.c_int64.in_dll(c, "a_type"))
    for _ in range(2):
        jax.ffi.register_ffi_type("a type", {"type_id": jax.ffi.pycapsule(pointer)}, platform="refcpu")
        assert ctypes.c_int64.in_dll(c, "a_type").value > 0


def test_a_cpp_handler_normalizes_rows(cpp):
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    call = jax.jit(lambda x: jax.ffi.ffi_call("normalize", like(x))(x, epsilon=np.float32(1e-5)))
    np.testing.assert_allclose(call(x), x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + 1e-5), rtol=1e-6)
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT.*normalize wants rows"):
        call(np.float32(1)).block_until_ready()
    # The headers check types.
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)INVALID_ARGUMENT.*Wrong buffer dtype"):
        call(np.ones((2, 2), np.int32)).block_until_ready()


def test_a_cpp_handler_gets_attributes_of_every_kind(cpp):
    with jax.enable_x64(True):
        call = jax.ffi.ffi_call("attributes", jax.ShapeDtypeStruct((6,), jnp.float64))
        numbers = dict(flag=True, number=np.int64(2**40), real=np.float64(0.1), text="four", list=np.arange(5))
        out = jax.jit(lambda: call(**numbers, dictionary={"number": np.int32(-7)}))()
        assert out.tolist() == [1, 2**40, 0.1, 4, 10, -7]


def test_a_cpp_handler_may_finish_later_on_a_thread(cpp):
    arrays = [np.full(100, i, np.float32) for i in range(5)]
    call = jax.jit(lambda *arrays: jax.ffi.ffi_call("sum", like(arrays[0]))(*arrays))
    np.testing.assert_array_equal(call(*arrays), np.full(100, 10, np.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="dtype"):
        call(arrays[0], np.ones(100, np.int32)).block_until_ready()
