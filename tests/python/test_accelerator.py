"""The simulated accelerator under JAX: a device with memory and queues of its own."""

import gc
import threading

import plugins

LIBRARY = plugins.library("TEST_ACCELERATOR")
MEMORY_LIMIT = 1 << 20
plugins.use(
    "accelerator,cpu",
    PJRT_NAMES_AND_LIBRARY_PATHS=f"accelerator:{LIBRARY}",
    JAX_PJRT_CLIENT_CREATE_OPTIONS=f"memory_limit:{MEMORY_LIMIT}",
)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jaxlib import _jax  # noqa: E402

# As a plugin's Python package would do: JAX leaves donation out for platforms that it does not know.
mlir._platforms_with_donation.append("accelerator")

FIRST, SECOND, *OTHERS = jax.devices("accelerator")
CPU = jax.devices("cpu")[0]


def in_use(device=FIRST) -> int:
    # What an exception of an earlier test refers to is garbage of a kind that stays for a while.
    gc.collect()
    return device.memory_stats()["bytes_in_use"]


def agree(f, *arguments, tolerance=1e-5):
    """Whether a function has the same results on the accelerator as on XLA's CPU backend."""

    def run(device):
        return jax.jit(f)(*jax.device_put(arguments, device))

    actual, expected = run(FIRST), run(CPU)
    for array in jax.tree.leaves(actual):
        assert array.devices() == {FIRST}
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance),
        actual,
        expected,
    )


def convolution(x, kernel, stride=1, **options):
    return jax.lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME" if not options else ((1, 2), (2, 0)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        **options,
    )


@jax.jit
def slow(x):
    """Adds 1, and takes a second or more for it."""

    def step(state):
        i, x = state
        return i + 1, x + (i == 0)

    return jax.lax.while_loop(lambda state: state[0] < 100_000, step, (0, x))[1]


def test_there_are_four_devices_with_two_memories_each():
    assert len(OTHERS) == 2
    for device in (FIRST, SECOND, *OTHERS):
        assert device.platform == "accelerator"
        assert [memory.kind for memory in device.addressable_memories()] == ["device", "pinned_host"]
        assert device.memory_stats()["bytes_limit"] == MEMORY_LIMIT


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.lax.scan(lambda carry, row: (carry + row, carry * row), x[0], x),
        lambda x: jax.lax.fori_loop(0, 5, lambda i, x: x * 0.5 + i, x),
        lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
        lambda x: jax.lax.switch(jnp.int32(7), [jnp.exp, jnp.tanh, jnp.square], x),
        lambda x: (jnp.argmax(x, axis=1), x.max(), x.min(axis=0), jnp.prod(x), jnp.any(x > 1)),
        lambda x: jnp.concatenate([x.T, jnp.pad(x.T, ((0, 0), (1, 1)))[:, ::2]], axis=1),
        lambda x: (jnp.floor(x), jnp.round(x), x.astype(jnp.int8), x // 0.3, x % 0.3),
        lambda x: jnp.einsum("ij,kj->ik", x, x),
        lambda x: (jax.random.normal(jax.random.key(1), (7,)), jax.random.bits(jax.random.key(2), (3,))),
        lambda x: jax.scipy.special.erf(x) + jax.nn.sigmoid(x),
        lambda x: (jnp.arange(5, dtype=jnp.uint8) << 7, -jnp.arange(5) // 2, jnp.arange(-2, 3) >> 1),
        lambda x: jnp.zeros((0, 3)).sum(axis=0) + x[:, :3],
        lambda x: (x[jnp.array([2, 0, 9])], x.at[jnp.array([1, 1, 7])].add(1), jnp.take(x, jnp.array([[1], [0]]), axis=1)),
        lambda x: jnp.take_along_axis(x, jnp.array([[1], [0], [5], [2]]), axis=1),
        lambda x: (jnp.expm1(x), jnp.log1p(jnp.abs(x)), jnp.cumsum(x, axis=0), jnp.clip(x, -1, 0.5)),
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 3), (1, 2), "SAME"),
        lambda x: jax.grad(lambda x: (jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "SAME") ** 2).sum())(x),
        lambda x: convolution(x.reshape(1, 4, 6, 1), x[:2, :3].reshape(2, 3, 1, 1)),
        lambda x: convolution(x.reshape(2, 2, 3, 2), x.reshape(2, 3, 2, 2), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
        lambda x: jax.grad(lambda k: (convolution(x.reshape(1, 4, 3, 2), k, stride=2) ** 2).sum())(x.reshape(2, 3, 2, 2)),
        lambda x: (x[::-1, 1::2], jnp.roll(x, 1, axis=1), jax.lax.dynamic_slice(x, (2, 4), (2, 2))),
    ],
)
def test_programs_agree_with_xla(function):
    agree(function, np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32))


def test_arrays_move_between_devices():
    x = jax.device_put(np.arange(10, dtype=np.float32), FIRST)
    y = jax.device_put(x, SECOND)
    z = jax.device_put(jnp.add(y, y), FIRST)
    assert (x.devices(), y.devices(), z.devices()) == ({FIRST}, {SECOND}, {FIRST})
    np.testing.assert_array_equal(np.asarray(x + z), 3 * np.arange(10))


def test_devices_exchange_arrays_while_both_are_busy():
    x, y = slow(jax.device_put(1, FIRST)), slow(jax.device_put(10, SECOND))
    for _ in range(20):
        x, y = jax.device_put(y, FIRST) + 1, jax.device_put(x, SECOND) + 1
    assert (int(x), int(y)) == (22, 31)


def test_an_array_may_be_split_over_the_devices():
    mesh = jax.sharding.Mesh([FIRST, SECOND], "x")
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    x = jax.device_put(np.arange(8, dtype=np.float32), sharding)
    np.testing.assert_array_equal(np.asarray(x.addressable_shards[1].data), [4, 5, 6, 7])
    np.testing.assert_array_equal(np.asarray(x), np.arange(8))
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED.*2 partitions"):
        jax.jit(lambda x: x + 1)(x)


def test_replicas_run_on_a_device_each():
    options = _jax.CompileOptions()
    options.num_replicas = 2
    options.device_assignment = _jax.DeviceAssignment.create(np.array([[0], [1]]))
    devices = np.array([FIRST, SECOND])
    code = jax.jit(lambda x: x + x).lower(np.ones(3, np.float32)).as_text()
    replicas = FIRST.client.compile_and_load(code, _jax.DeviceList(tuple(devices)), options)
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(devices, "x"), jax.sharding.PartitionSpec("x"))
    x = jax.device_put(np.arange(6, dtype=np.float32), sharding)
    (results,) = replicas.execute_sharded([x]).disassemble_into_single_device_arrays()
    assert [result.devices() for result in results] == [{FIRST}, {SECOND}]
    np.testing.assert_array_equal(np.concatenate([np.asarray(result) for result in results]), 2 * np.arange(6))


def test_programs_are_launched_without_waiting_for_the_device():
    x = slow(jnp.int32(0))
    results = [x + i for i in range(20)]
    assert not x.is_ready() and not results[-1].is_ready()
    assert int(results[-1]) == 20
    assert x.is_ready()


def test_a_host_that_never_waits_is_a_limited_number_of_launches_ahead():
    x = slow(jax.block_until_ready(jnp.int32(0)))
    results = [x + i for i in range(100)]
    # The launch after the limit waited for the slow program.
    assert x.is_ready()
    assert int(results[-1]) == 100


def test_uploads_do_not_overwrite_what_a_queued_program_reads():
    x = jnp.arange(100)
    y = x + slow(jnp.int32(0))
    x.delete()
    # The copy engine takes the memory, and works at the same time as the processor.
    other = jax.device_put(np.full(100, 7, np.int32), FIRST)
    assert not y.is_ready()
    np.testing.assert_array_equal(np.asarray(y), np.arange(100) + 1)
    np.testing.assert_array_equal(np.asarray(other), [7] * 100)


def test_copies_do_not_wait_for_programs():
    x = jax.block_until_ready(jax.device_put(np.arange(4), FIRST))
    busy = slow(jnp.int32(0))
    np.testing.assert_array_equal(np.asarray(jax.device_put(x, SECOND)), np.arange(4))
    np.testing.assert_array_equal(np.asarray(x), np.arange(4))
    assert not busy.is_ready()
    busy.block_until_ready()


def test_programs_can_be_saved():
    from jax.experimental import serialize_executable

    function = jax.jit(lambda x: {"y": jnp.tanh(x) @ x.T}, donate_argnums=0)
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    saved = serialize_executable.serialize(function.lower(x).compile())
    loaded = serialize_executable.deserialize_and_load(*saved, execution_devices=[FIRST])
    np.testing.assert_array_equal(np.asarray(loaded(x)["y"]), np.asarray(function(x)["y"]))


def test_costs_and_memory_are_those_of_the_fused_program():
    compiled = jax.jit(lambda x: jnp.tanh(x) * 2 + x).lower(np.ones((8, 8), np.float32)).compile()
    cost = compiled.cost_analysis()
    assert cost["flops"] == 3 * 64
    # One command reads the argument and a constant, which another has written, and writes the result.
    assert cost["bytes accessed"] == 2 * 8 * 32 + 2 * 4
    assert compiled.memory_analysis().temp_size_in_bytes == 8 * 32 + 32


def test_traces_show_both_engines_of_a_device(tmp_path):
    with jax.profiler.trace(str(tmp_path)):
        jax.block_until_ready(jnp.tanh(jax.device_put(np.ones(8, np.float32), SECOND)))
    (path,) = tmp_path.rglob("*.xplane.pb")
    trace = path.read_bytes()
    for name in (b"device 1 processor", b"device 1 copy engine", b"jit_tanh", b"upload"):
        assert name in trace, name


def test_what_a_queued_program_reads_may_be_deleted():
    x = jnp.arange(100)
    y = x + slow(jnp.int32(0))
    assert not y.is_ready()
    x.delete()
    # This takes the memory, and is written after the program has read it.
    other = jnp.full(100, 7)
    np.testing.assert_array_equal(np.asarray(y), np.arange(100) + 1)
    np.testing.assert_array_equal(np.asarray(other), [7] * 100)


def test_a_donated_argument_gives_its_memory_to_the_result():
    add = jax.jit(lambda x, y: (x + y, x - y), donate_argnums=0)
    x, y = jnp.full(1000, 5.0), jnp.ones(1000)
    jax.block_until_ready((x, y))
    before = in_use()
    total, difference = add(x, y)
    assert (float(total[0]), float(difference[0])) == (6.0, 4.0)
    assert x.is_deleted() and not y.is_deleted()
    # One of two results has memory of its own, and the scratch memory is free again.
    assert in_use() == before + 4 * 1000
    with pytest.raises(RuntimeError, match="has been deleted"):
        np.asarray(x)


def test_a_donated_argument_that_others_read_stays_as_it_is():
    x = slow(jnp.arange(4))
    reader = x + 1
    y = jax.jit(lambda x: x * 100, donate_argnums=0)(x)
    np.testing.assert_array_equal(np.asarray(reader), [2, 3, 4, 5])
    np.testing.assert_array_equal(np.asarray(y), [100, 200, 300, 400])


def test_out_of_memory_says_who_holds_what():
    kept = jax.block_until_ready([jax.device_put(np.zeros((100, 1000), np.float32), FIRST) for _ in range(2)])
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(jax.device_put(np.zeros((100, 1000), np.float32), FIRST))
    text = str(caught.value)
    for part in (
        "RESOURCE_EXHAUSTED",
        "device 0 cannot allocate f32[100, 1000] from the host",
        f"of its {MEMORY_LIMIT} bytes",
        "2 x f32[100, 1000] from the host",
        "hint: the host holds buffers of",
    ):
        assert part in text, text
    # The other device has a memory of its own.
    jax.block_until_ready(jax.device_put(np.zeros((100, 1000), np.float32), SECOND))
    for array in kept:
        array.delete()
    jax.block_until_ready(jax.device_put(np.zeros((100, 1000), np.float32), FIRST))


def test_out_of_memory_counts_the_launches_in_flight():
    busy = slow(jnp.int32(0))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED.*; (1 launch is|2 launches are) in flight"):
        jax.device_put(np.zeros((1000, 1000), np.float32), FIRST)
    busy.block_until_ready()


def test_a_program_without_room_fails_and_what_depends_on_it():
    grow = jax.jit(lambda x: jnp.broadcast_to(x, (1000, 1000)))
    before = in_use()
    large = grow(jnp.float32(1))
    for array in (large, large[0, :5]):
        with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED.*output 0 of 'jit__lambda"):
            jax.block_until_ready(array)
    del large, array
    assert in_use() == before and float(jnp.float32(2) + 1) == 3


def test_host_memory_is_read_in_place():
    on_host = jax.sharding.SingleDeviceSharding(FIRST, memory_kind="pinned_host")
    x = jax.device_put(np.arange(6, dtype=np.float32), on_host)
    assert x.sharding.memory_kind == "pinned_host"
    before = in_use()
    np.testing.assert_array_equal(np.asarray(x), np.arange(6))
    y = jax.device_put(x, jax.sharding.SingleDeviceSharding(FIRST, memory_kind="device"))
    assert in_use() > before
    back = jax.device_put(y + 1, on_host)
    np.testing.assert_array_equal(np.asarray(back), np.arange(6) + 1)
    moved = jax.device_put(back, SECOND)
    np.testing.assert_array_equal(np.asarray(moved), np.arange(6) + 1)


def test_programs_can_leave_results_in_host_memory():
    on_host = jax.sharding.SingleDeviceSharding(FIRST, memory_kind="pinned_host")
    y = jax.jit(lambda x: x * 2, out_shardings=on_host)(jnp.arange(3))
    assert y.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(np.asarray(y), [0, 2, 4])


def test_memory_is_counted_in_blocks():
    before = in_use()
    x = jax.block_until_ready(jax.device_put(np.zeros((10, 3), np.int16), FIRST))
    assert in_use() == before + 64
    analysis = jax.jit(lambda x: x + 1).lower(x).compile().memory_analysis()
    assert analysis.argument_size_in_bytes == analysis.output_size_in_bytes == 10 * 3 * 2


def test_threads_may_use_a_device_together():
    outcomes = {}

    def work(number):
        x = jnp.int32(number)
        for _ in range(30):
            x = jax.device_put(x + 1, SECOND if x.devices() == {FIRST} else FIRST)
        outcomes[number] = int(x)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {0: 30, 1000: 1030}


@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (lambda x: jnp.fft.rfft(x), ["stablehlo.fft"]),
        (
            lambda x: convolution(x.reshape(1, 1, 1, 3), jnp.ones((1, 1, 1, 3)), feature_group_count=3),
            ["stablehlo.convolution", "the only convolutions are those of one group"],
        ),
        (lambda x: x.astype(jnp.float16) + 1, ["f16"]),
    ],
)
def test_what_the_device_cannot_do_is_refused_with_its_name_and_place(function, parts):
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(function)(np.ones(3, np.float32))
    for part in ["UNIMPLEMENTED", "test_accelerator.py", *parts]:
        assert part in str(caught.value), caught.value


def test_a_process_may_end_with_a_full_queue():
    code = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.lax.while_loop(lambda s: s < 10_000_000, lambda s: s + 1, x))
x = f(jnp.int32(0))
for _ in range(10):
    x = f(x * 0)
y = jax.device_put(x, jax.devices()[1])
print("submitted", x.is_ready())
"""
    printed = plugins.run_python(
        code, JAX_PLATFORMS="accelerator", PJRT_NAMES_AND_LIBRARY_PATHS=f"accelerator:{LIBRARY}"
    )
    assert printed == "submitted False"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("memory_limit:-1", "'memory_limit' passed to PJRT_Client_Create is -1; expected a number from 1"),
        ("latency:much", "latency"),
        ("latancy:1", "latency"),
    ],
)
def test_a_misspelled_or_senseless_option_is_refused(options, part):
    code = f"""
import jax
try:
    jax.devices()
except RuntimeError as error:
    print({part!r} in str(error))
"""
    printed = plugins.run_python(
        code,
        JAX_PLATFORMS="accelerator",
        PJRT_NAMES_AND_LIBRARY_PATHS=f"accelerator:{LIBRARY}",
        JAX_PJRT_CLIENT_CREATE_OPTIONS=options,
    )
    assert printed == "True"
