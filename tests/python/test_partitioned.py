"""Programs in the form that each of several devices has: what it communicates, and that it computes what the whole program
does."""

import plugins

plugins.use("refcpu,cpu", REFCPU_NUM_DEVICES="4")

import re  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
X = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)
BATCH = np.random.default_rng(1).standard_normal((4, 3, 3)).astype(np.float32)


def split(array, *spec):
    return jax.device_put(array, NamedSharding(MESH, P(*spec)))


@pytest.fixture
def partitioned(monkeypatch):
    """Programs run in the form that is partitioned. It is read when a program is compiled."""
    monkeypatch.setenv("REFCPU_PARTITIONED", "1")
    jax.clear_caches()
    yield
    jax.clear_caches()


def collectives(function, *arguments) -> set[str]:
    text = jax.jit(function).lower(*arguments).compile().as_text()
    names = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|collective-broadcast"
    return set(re.findall(rf" ({names})\(", text))


def constrained(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, P(*spec)))


COMMUNICATION = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + jnp.arange(12), set()),
    "sum over what is whole": (lambda x: x.sum(axis=1), set()),
    "sum over what is divided": (lambda x: x.sum(axis=0), {"all-reduce"}),
    "contraction of what is divided": (lambda x: x.T @ x, {"all-reduce"}),
    "all of it": (lambda x: constrained(x, None, None), {"all-gather"}),
    "another dimension": (lambda x: constrained(x, None, "x"), {"all-to-all"}),
    "another axis": (lambda x: constrained(x, "y", None), {"collective-permute"}),
    "a finer division": (lambda x: constrained(x, "x", "y"), set()),
    "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda _, y: y * x, x), set()),
    "branches": (lambda x: jax.lax.cond(jnp.array(True), jnp.sin, lambda y: y * 0, x), set()),
    "random numbers": (lambda x: x + jax.random.normal(jax.random.key(0), x.shape), set()),
    "sort of rows": (lambda x: jnp.sort(x, axis=1), set()),
    "sort of columns": (lambda x: jnp.sort(x, axis=0), {"all-gather"}),
}


@pytest.mark.parametrize("name", COMMUNICATION)
def test_a_compiled_program_says_what_is_communicated(name):
    function, expected = COMMUNICATION[name]
    assert collectives(function, split(X, "x")) == expected


def test_shapes_in_a_compiled_program_are_those_of_parts():
    text = jax.jit(lambda x: jnp.sin(x) + 1).lower(split(X, "x", "y")).compile().as_text()
    assert "f32[4,6]" in text
    assert "f32[8,12]" not in text


@pytest.mark.parametrize("function", [jnp.linalg.qr, jnp.linalg.svd, jnp.linalg.eigh, jnp.linalg.inv, jnp.linalg.cholesky])
def test_a_batch_of_matrices_is_factored_where_it_is(function):
    matrices = BATCH @ BATCH.transpose(0, 2, 1) + np.eye(3, dtype=np.float32)
    assert collectives(function, split(matrices, ("x", "y"))) == set()
    assert "all-gather" in collectives(function, split(np.pad(matrices, ((0, 0), (0, 1), (0, 1))), None, "x"))


PROGRAMS = {
    "softmax": lambda x: jax.nn.softmax(x, axis=0),
    "product": lambda x: x @ x.T,
    "mean and variance": lambda x: (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-3),
    "sort": lambda x: jnp.sort(x, 0),
    "cumulative sum": lambda x: jnp.cumsum(x, 1),
    "take": lambda x: jnp.take(x, jnp.array([0, 5, 2, 7]), axis=0),
    "update": lambda x: x.at[jnp.array([1, 6])].add(1),
    "reshape": lambda x: x.reshape(4, 2, 12).swapaxes(0, 1).reshape(8, 12),
    "argmax": lambda x: jnp.argmax(x, axis=0),
    "special functions": lambda x: jax.scipy.special.erf(x) + jnp.arctan2(x, 2),
    "top k": lambda x: jax.lax.top_k(x, 3)[0],
    "random": lambda x: x * jax.random.uniform(jax.random.key(3), x.shape),
    "transform": lambda x: jnp.abs(jnp.fft.fft(x, axis=1)),
    "scan": lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(12), x)[1],
    "gradient": jax.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).sum()),
    "convolution": lambda x: jax.lax.conv(x.reshape(8, 1, 3, 4), jnp.ones((2, 1, 2, 2)), (1, 1), "SAME"),
    "while": lambda x: jax.lax.while_loop(lambda s: s[1].sum() < 1000, lambda s: (s[0] + 1, s[1] + 3), (0, x))[1],
    "branches": lambda x: jax.lax.switch(2, [jnp.sin, jnp.cos, lambda y: y.sum() + y], x),
}


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y"), P("y", "x"), P(("x", "y"))], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_partitioned_program_computes_what_the_whole_one_does(partitioned, name, spec):
    got = jax.jit(PROGRAMS[name])(split(X, *spec))
    on_one = jax.jit(PROGRAMS[name])(X)
    np.testing.assert_allclose(np.asarray(got), np.asarray(on_one), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("axes", [{"x"}, {"x", "y"}], ids=str)
def test_manual_computations_in_a_partitioned_program(partitioned, axes):
    def body(x):
        return jax.lax.psum(jnp.sin(x), "x") + jax.lax.axis_index("x")

    mapped = jax.shard_map(body, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names=axes, check_vma=False)
    got = jax.jit(lambda x: mapped(x).sum(axis=1))(split(X, "x", "y"))
    both = np.sin(X[:4]) + np.sin(X[4:])
    np.testing.assert_allclose(got, np.concatenate([both, both + 1]).sum(axis=1), rtol=1e-5)


def test_copies_of_a_result_that_differ_are_each_device_s_own():
    mapped = jax.shard_map(
        lambda x: x + jax.lax.axis_index("x"), mesh=MESH, in_specs=P(), out_specs=P(), check_vma=False
    )
    got = jax.jit(mapped)(split(X))
    for shard in got.addressable_shards:
        row = np.argwhere(MESH.devices == shard.device)[0][0]
        np.testing.assert_array_equal(shard.data, X + np.float32(row))


def test_a_callback_runs_once_whatever_the_form_is(partitioned):
    calls = []

    def note(x):
        calls.append(x.shape)
        return np.asarray(x) * 2

    got = jax.jit(lambda x: jax.pure_callback(note, jax.ShapeDtypeStruct(X.shape, X.dtype), x))(split(X, "x"))
    np.testing.assert_array_equal(got, X * 2)
    assert calls == [(8, 12)]


def test_a_wrong_value_of_the_variable_is_refused():
    code = "import jax; jax.devices()"
    with pytest.raises(AssertionError, match="REFCPU_PARTITIONED"):
        plugins.run_python(code, REFCPU_PARTITIONED="maybe", JAX_PLATFORMS="refcpu")
