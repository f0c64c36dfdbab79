"""Mistakes that only a direct user of the C API can make, on every plugin: an exception each, and the plugin lives on.

The programs are portable artifacts as JAX sends them; the calls go through pypjrt, a client that checks little.
"""

import array
import contextlib

import plugins

plugins.use("cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import programs  # noqa: E402
import pytest  # noqa: E402
from pypjrt import Client  # noqa: E402
from pypjrt.client import State  # noqa: E402
from pypjrt.errors import InvalidArgument, PjrtError, Unimplemented  # noqa: E402

F32, S32 = 11, 4

ADD = programs.artifact(lambda x, y: x + y, jnp.ones(4), jnp.ones(4))


@pytest.fixture(scope="module", params=["TEST_REFCPU", "TEST_HELLO"])
def client(request):
    with Client.create(plugins.library(request.param)) as client:
        yield client


@pytest.fixture(autouse=True)
def the_plugin_lives_on(client):
    yield
    with compiled(client) as add, floats(client, 1, 2, 3, 4) as x, floats(client, 10, 20, 30, 40) as y:
        assert read(add(x, y)) == [11, 22, 33, 44]


@contextlib.contextmanager
def compiled(client, program=ADD):
    executable = client.compile(program)
    try:
        yield executable
    finally:
        executable.close()


@contextlib.contextmanager
def buffer(client, data, element_type, dims):
    with client.device() as device:
        held = client.buffer_from_host(data, element_type, dims, device)
        try:
            yield held
        finally:
            held.close()


def floats(client, *values, dims=None):
    return buffer(client, array.array("f", values), F32, dims or [len(values)])


def read(outputs):
    """The floats of the only result; closes it."""
    (output,) = outputs
    with output:
        return array.array("f", bytes(output.to_host())).tolist()


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 20, 40, len(ADD) // 2, len(ADD) - 30, len(ADD) - 1])
def test_a_truncated_program_is_refused(client, length):
    with pytest.raises(PjrtError) as caught:
        client.compile(ADD[:length] or b"\0")
    assert isinstance(caught.value, (InvalidArgument, Unimplemented)), caught.value
    assert str(caught.value)


@pytest.mark.parametrize(
    "program",
    [b"\x7fELF" + bytes(100), b"print('hello')", bytes(1000), b"ML\xefR" + bytes(100), b"ML\xefR\xff\xff\xff\xff\xff"],
    ids=["an ELF file", "Python", "zeros", "a header and zeros", "a header and ones"],
)
def test_a_foreign_program_is_refused(client, program):
    with pytest.raises(PjrtError) as caught:
        client.compile(program)
    assert isinstance(caught.value, (InvalidArgument, Unimplemented)), caught.value


def test_a_damaged_program_never_kills_the_process(client):
    for position in range(0, len(ADD), 3):
        damaged = bytearray(ADD)
        damaged[position] ^= 0x55
        # Some damage goes unnoticed, in a name or a location.
        with contextlib.suppress(PjrtError):
            client.compile(bytes(damaged)).close()


def test_a_wrong_number_of_arguments_is_refused(client):
    with compiled(client) as add, floats(client, 1, 2, 3, 4) as x:
        for arguments in ((), (x,), (x, x, x)):
            with pytest.raises(InvalidArgument, match="2"):
                add(*arguments)


def test_a_wrong_size_is_refused(client):
    with compiled(client) as add, floats(client, 1, 2, 3, 4) as x, floats(client, 1, 2, 3) as short:
        with pytest.raises(InvalidArgument, match="4"):
            read(add(x, short))


def test_an_argument_of_the_parameters_size_may_have_another_shape_and_type(client):
    with compiled(client) as add, floats(client, 1, 2, 3, 4) as x, floats(client, 1, 2, 3, 4, dims=[2, 2]) as square:
        assert read(add(square, x)) == [2, 4, 6, 8]
        bits = array.array("i", array.array("f", [1, 2, 3, 4]).tobytes())
        with buffer(client, bits, S32, [4]) as whole:
            assert read(add(x, whole)) == [2, 4, 6, 8]


def test_a_deleted_buffer_is_refused(client):
    with compiled(client) as add, floats(client, 1, 2, 3, 4) as x, floats(client, 1, 2, 3, 4) as gone:
        gone.delete()
        # The client would not make the call.
        gone._state = State.LIVE
        with pytest.raises(PjrtError, match="delete"):
            read(add(x, gone))
        with pytest.raises(PjrtError, match="delete"):
            gone.to_host()


# hello takes no donations.
@pytest.mark.parametrize("client", ["TEST_REFCPU"], indirect=True)
def test_a_donated_buffer_is_refused(client):
    step = programs.artifact(jax.jit(lambda x: x + x, donate_argnums=0), jnp.ones(4))
    with compiled(client, step) as double, floats(client, 1, 2, 3, 4) as x:
        assert read(double(x)) == [2, 4, 6, 8]
        assert x.is_deleted
        x._state = State.LIVE
        with pytest.raises(PjrtError, match="donate|delete"):
            read(double(x))


def test_wrong_create_options_are_refused(client):
    path = client._plugin.path
    for options in ({"no_such_option": 1}, {"num_devices": "many"}, {"": True}):
        with pytest.raises(InvalidArgument) as caught:
            Client.create(path, options=options)
        assert next(iter(options)) in str(caught.value)
