"""Every family of operations on refcpu against XLA's CPU backend, with the same arguments in the same process."""

import plugins

plugins.use("refcpu,cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402

# Tolerances of floating-point results: relative to the element, and to the largest element (sums cancel). All other types
# must be equal.
TOLERANCE = {"float64": (1e-12, 1e-12), "float32": (2e-5, 2e-6), "float16": (4e-3, 1e-3), "bfloat16": (3e-2, 1e-2)}
TOLERANCE |= {"complex64": TOLERANCE["float32"], "complex128": TOLERANCE["float64"]}


def check(function, *arguments):
    """Runs a function on both platforms, compiled, and compares every result."""
    results = []
    for platform in ("refcpu", "cpu"):
        device = jax.devices(platform)[0]
        with jax.default_device(device):
            outputs = jax.jit(function)(*jax.device_put(arguments, device))
            results.append([np.asarray(output) for output in jax.tree.leaves(outputs)])
    assert len(results[0]) == len(results[1])
    for actual, expected in zip(*results):
        assert actual.dtype == expected.dtype
        assert actual.shape == expected.shape
        if expected.dtype.name not in TOLERANCE:
            np.testing.assert_array_equal(actual, expected)
            continue
        relative, absolute = TOLERANCE[expected.dtype.name]
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        actual, expected = actual.astype(wide), expected.astype(wide)
        largest = np.max(np.abs(expected), initial=1, where=np.isfinite(expected))
        np.testing.assert_allclose(actual, expected, rtol=relative, atol=absolute * largest)


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(*shape, low=-100, high=100, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


class TestElementwise:
    FUNCTIONS = (
        "abs ceil floor negative sign exp expm1 log1p sin cos tan tanh sinh cosh arctan sqrt cbrt square reciprocal "
        "rint isfinite isnan"
    ).split()

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_unary(self, name):
        check(getattr(jnp, name), np.abs(normal(7, 33)) + 0.1 if name == "sqrt" else normal(7, 33))

    @pytest.mark.parametrize("name", "log log2 log10 erf lgamma digamma rsqrt logistic erf_inv".split())
    def test_unary_on_the_unit_interval(self, name):
        function = getattr(lax, name, None) or getattr(jnp, name)
        check(function, np.random.default_rng(0).uniform(0.05, 0.95, (5, 40)).astype(np.float32))

    @pytest.mark.parametrize("name", "add subtract multiply divide maximum minimum arctan2 hypot nextafter".split())
    def test_binary(self, name):
        check(getattr(jnp, name), normal(4, 31), normal(4, 31, seed=1))

    def test_power_and_remainders(self):
        x, y = np.abs(normal(50)) + 0.5, normal(50, seed=1)
        check(lambda x, y: (x**y, x % y, lax.rem(x, y), jnp.floor_divide(x, y)), x, y)

    def test_integer_division_rounds_as_the_host_does(self):
        x, y = integers(200), integers(200, low=1, high=17, seed=1)
        check(lambda x, y: (x // y, x % y, -x // y, lax.rem(x, y), lax.div(x, y)), x, y)

    def test_bits(self):
        x, y = integers(100, dtype=np.uint32, low=0, high=2**32 - 1), integers(100, low=0, high=31, dtype=np.uint32)
        check(lambda x, y: (x & y, x | y, x ^ y, ~x, x << y, x >> y, lax.population_count(x), lax.clz(x)), x, y)
        check(lambda x: (x >> 3, lax.shift_right_logical(x, jnp.int32(3))), integers(100))

    def test_comparisons_and_selects(self):
        x, y = normal(64), normal(64, seed=1)
        x[::5] = y[::5]
        x[1] = np.nan
        check(lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y, jnp.where(x > y, x, y), jnp.clip(x, -1, y)), x, y)

    def test_special_values(self):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], np.float32)
        check(lambda x: (jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.tanh(x), jnp.maximum(x, 0), 1 / x, jnp.sign(x)), x)

    def test_broadcasting(self):
        check(lambda x, y, z: x[:, None] * y + z, normal(5), normal(7), np.float32(3))


class TestElementTypes:
    @pytest.mark.parametrize("dtype", "float32 float16 bfloat16".split())
    def test_floats(self, dtype):
        x, y = normal(64).astype(jnp.dtype(dtype)), normal(64, seed=1).astype(jnp.dtype(dtype))
        check(lambda x, y: (x + y, x * y, x - y, jnp.exp(x), jnp.sum(x), jnp.max(y), x < y), x, y)

    @pytest.mark.parametrize("dtype", "int8 int16 int32 uint8 uint16 uint32".split())
    def test_integers_wrap(self, dtype):
        info = np.iinfo(dtype)
        x = np.random.default_rng(0).integers(info.min, info.max, 100, dtype=dtype, endpoint=True)
        y = np.random.default_rng(1).integers(info.min, info.max, 100, dtype=dtype, endpoint=True)
        check(lambda x, y: (x + y, x * y, x - y, jnp.maximum(x, y), jnp.sum(x), x < y, -x), x, y)

    def test_bools(self):
        x, y = normal(50) > 0, normal(50, seed=1) > 0
        check(lambda x, y: (x & y, x | y, x ^ y, ~x, jnp.all(x), jnp.any(y), jnp.sum(x), x + y), x, y)

    def test_complex_numbers(self):
        x = (normal(40) + 1j * normal(40, seed=1)).astype(np.complex64)
        y = (normal(40, seed=2) + 1j * normal(40, seed=3)).astype(np.complex64)
        check(lambda x, y: (x + y, x * y, x / y, jnp.abs(x), jnp.real(x), jnp.imag(y), jnp.conj(x), jnp.exp(x)), x, y)

    def test_sixty_four_bits(self):
        with jax.enable_x64(True):
            x, y = normal(50, dtype=np.float64), integers(50, dtype=np.int64)
            check(lambda x, y: (x * 2 + 1, jnp.exp(x), jnp.sum(x), y * y * 10**9, x + y, jnp.cumsum(y)), x, y)
            check(lambda x: (x + 1, x >> 40), np.array([2**63, 2**64 - 1], np.uint64))

    @pytest.mark.parametrize("source", "float32 bfloat16 float16 int8 int32 uint8 uint32 bool".split())
    def test_conversions(self, source):
        x = np.random.default_rng(0).uniform(0, 100, 64).astype(jnp.dtype(source))
        types = (jnp.float32, jnp.bfloat16, jnp.float16, jnp.int8, jnp.int32, jnp.uint8, jnp.uint32, jnp.bool_)
        check(lambda x: tuple(x.astype(dtype) for dtype in types), x)

    def test_bitcasts(self):
        check(lambda x: lax.bitcast_convert_type(x, jnp.int32), normal(10))
        check(lambda x: lax.bitcast_convert_type(x, jnp.uint8), normal(3, 4))
        check(lambda x: lax.bitcast_convert_type(x, jnp.float32), integers(6, 4, low=0, high=60, dtype=np.uint8))


class TestTransformations:
    def test_grad(self):
        def loss(w, x):
            return jnp.mean(jnp.tanh(x @ w[0] + w[1]) ** 2) + jnp.sum(jax.nn.softmax(x[0]) * x[1])

        check(jax.value_and_grad(loss), (normal(8, 5), normal(5, seed=1)), normal(16, 8, seed=2))

    def test_second_derivatives(self):
        check(jax.hessian(lambda x: jnp.sum(jnp.sin(x) * jnp.exp(-x) * x[::-1])), normal(6))

    def test_vmap(self):
        check(jax.vmap(lambda a, b: jnp.linalg.norm(a @ b)), normal(5, 3, 4), normal(5, 4, 2, seed=1))

    def test_jacobian_by_vmap(self):
        check(jax.jacfwd(lambda x: jnp.sin(x) * jnp.sum(x)), normal(7))


class TestControl:
    def test_scan(self):
        def body(carry, x):
            carry = carry * 0.9 + x
            return carry, carry.sum()

        check(lambda x: lax.scan(body, jnp.zeros(4), x), normal(20, 4))

    def test_grad_of_scan(self):
        def loss(w, xs):
            def cell(h, x):
                return jnp.tanh(h @ w + x), None

            return lax.scan(cell, jnp.zeros(3), xs)[0].sum()

        check(jax.grad(loss), normal(3, 3), normal(12, 3, seed=1))

    def test_while(self):
        def collatz(n):
            def step(state):
                n, count = state
                return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

            return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]

        check(collatz, np.int32(27))
        check(jax.vmap(collatz), np.array([1, 7, 27, 97], np.int32))

    def test_for_with_many_steps(self):
        check(lambda x: lax.fori_loop(0, 5000, lambda i, x: x * 1.0001 + i, x), np.float32(0))

    def test_cond(self):
        for flag in (True, False):
            check(lambda flag, x: lax.cond(flag, jnp.sin, lambda x: x * 2, x), flag, normal(5))

    def test_switch_clamps_its_index(self):
        branches = [lambda x: x, lambda x: x + 1, lambda x: x * 10]
        for index in (-1, 0, 1, 2, 3):
            check(lambda i, x: lax.switch(i, branches, x), np.int32(index), normal(3))

    def test_map_with_nested_loops(self):
        def inner(x):
            return lax.fori_loop(0, 3, lambda _, y: y + lax.fori_loop(0, 2, lambda _, z: z * x, y), x)

        check(lambda xs: lax.map(inner, xs), normal(4))


class TestProducts:
    @pytest.mark.parametrize(
        "spec, a, b",
        [
            ("ij,jk->ik", (7, 5), (5, 9)),
            ("ij,kj->ik", (7, 5), (9, 5)),
            ("bij,bjk->bik", (3, 4, 5), (3, 5, 6)),
            ("bhqd,bhkd->bhqk", (2, 3, 4, 8), (2, 3, 6, 8)),
            ("ijk,kjl->il", (2, 3, 4), (4, 3, 5)),
            ("i,i->", (50,), (50,)),
            ("i,j->ij", (4,), (5,)),
            ("ij,j->i", (64, 33), (33,)),
        ],
    )
    def test_dot_general(self, spec, a, b):
        check(lambda a, b: jnp.einsum(spec, a, b, precision="highest"), normal(*a), normal(*b, seed=1))

    def test_large_product(self):
        check(lambda a, b: jnp.matmul(a, b, precision="highest") / 16, normal(130, 257), normal(257, 100, seed=1))

    @pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
    def test_narrow_product_with_wide_result(self, dtype):
        a, b = normal(9, 17).astype(dtype), normal(17, 4, seed=1).astype(dtype)
        check(lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32), a, b)

    def test_integer_product(self):
        a, b = integers(5, 6, dtype=np.int8), integers(6, 7, seed=1, dtype=np.int8)
        check(lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), a, b)


class TestConvolution:
    @pytest.mark.parametrize(
        "options",
        [
            {"padding": "SAME", "window_strides": (1, 1)},
            {"padding": "VALID", "window_strides": (2, 2)},
            {"padding": ((2, 1), (0, 3)), "window_strides": (1, 2), "rhs_dilation": (2, 1)},
            {"padding": ((1, 1), (1, 1)), "window_strides": (1, 1), "lhs_dilation": (2, 2)},
        ],
    )
    def test_two_dimensions(self, options):
        numbers = ("NHWC", "HWIO", "NHWC")
        check(
            lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, precision="highest", **options),
            normal(2, 9, 8, 3),
            normal(3, 2, 3, 5, seed=1),
        )

    def test_groups(self):
        check(
            lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4, precision="highest"),
            normal(2, 8, 6, 6),
            normal(12, 2, 3, 3, seed=1),
        )

    def test_one_and_three_dimensions(self):
        check(lambda x, w: lax.conv(x, w, (2,), "SAME", precision="highest"), normal(2, 3, 20), normal(4, 3, 5, seed=1))
        check(
            lambda x, w: lax.conv(x, w, (1, 1, 1), "VALID", precision="highest"),
            normal(1, 2, 5, 5, 5),
            normal(3, 2, 2, 2, 2, seed=1),
        )

    def test_gradients(self):
        def loss(x, w):
            return jnp.sum(lax.conv(x, w, (2, 2), "SAME", precision="highest") ** 2)

        check(jax.grad(loss, argnums=(0, 1)), normal(2, 3, 8, 8), normal(4, 3, 3, 3, seed=1))


class TestReductions:
    @pytest.mark.parametrize("name", "sum prod max min mean var std argmax argmin".split())
    @pytest.mark.parametrize("axis", [None, 0, 1, -1])
    def test_reduce(self, name, axis):
        check(lambda x: getattr(jnp, name)(x, axis=axis), normal(6, 5, 7))

    def test_reduce_of_pairs(self):
        def larger(a, b):
            take = a[0] >= b[0]
            return jnp.where(take, a[0], b[0]), jnp.where(take, a[1], b[1])

        check(
            lambda x, i: lax.reduce((x, i), (jnp.float32(-jnp.inf), jnp.int32(0)), larger, (1,)),
            normal(5, 9),
            integers(5, 9, seed=1),
        )

    def test_softmax_and_normalisation(self):
        check(lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, axis=0), jax.nn.logsumexp(x, axis=1)), normal(8, 30))
        check(lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), normal(8, 30))

    def test_cumulative(self):
        check(lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x / 2, 1), lax.cummax(x, 1), lax.cummin(x, 0)), normal(9, 11))

    def test_reduce_window(self):
        def pool(x):
            largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
            total = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0), (1, 0), (0, 1), (0, 0)))
            return largest, total

        check(pool, normal(2, 9, 8, 3))

    def test_gradient_of_max_pooling(self):
        def loss(x):
            return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)

        check(jax.grad(loss), normal(2, 8, 8, 3))


class TestIndexing:
    def test_gather(self):
        x, i = normal(10, 6), np.array([[0, 9], [3, -1], [12, 4]], np.int32)
        check(lambda x, i: (x[i], x[:, i[0]], x[i[:, 0], i[:, 1] % 6], jnp.take(x, i, axis=0, mode="clip")), x, i)

    def test_gather_out_of_bounds_modes(self):
        x, i = normal(5, 3), np.array([-7, -1, 0, 4, 5, 100], np.int32)
        for mode in ("fill", "clip", "wrap"):
            check(lambda x, i: jnp.take(x, i, axis=0, mode=mode), x, i)

    def test_take_along_axis(self):
        check(lambda x, i: jnp.take_along_axis(x, i, axis=1), normal(6, 9), integers(6, 4, low=0, high=9))

    @pytest.mark.parametrize("method", "set add multiply min max".split())
    def test_scatter(self, method):
        i = np.array([1, 3, 7, 20], np.int32)
        check(lambda x, i, u: getattr(x.at[i], method)(u), normal(8, 3), i, normal(4, 3, seed=1))

    def test_scatter_with_repeated_indices(self):
        i = integers(200, low=0, high=10)
        check(lambda i, u: jnp.zeros(10).at[i].add(u), i, integers(200, seed=1).astype(np.float32))
        check(lambda i: jnp.bincount(i, length=10), i)

    def test_gradient_of_a_lookup(self):
        check(jax.grad(lambda table, i: jnp.sum(jnp.sin(table[i]))), normal(20, 4), integers(30, low=0, high=20))

    def test_dynamic_slices_clamp(self):
        x = normal(10, 8)
        for start in ((0, 0), (7, 6), (100, 100), (-3, 2)):
            i, j = np.int32(start[0]), np.int32(start[1])
            check(lambda x, i, j: lax.dynamic_slice(x, (i, j), (4, 3)), x, i, j)
            check(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), x, normal(4, 3, seed=1), i, j)

    def test_slices_pads_and_concatenations(self):
        x = normal(9, 7)
        check(lambda x: (x[1:8:3, ::-2], lax.pad(x, 0.5, ((1, 2, 1), (-1, 0, 0))), jnp.concatenate([x, x[:2]], 0)), x)
        check(lambda x: (x.T, x.reshape(7, 9), jnp.flip(x, 1), jnp.tile(x, (2, 3)), jnp.roll(x, 3, 0)), x)

    def test_iota(self):
        check(lambda: (jnp.arange(17), jnp.arange(5.0), lax.broadcasted_iota(jnp.int32, (3, 4), 1), jnp.eye(4), jnp.tri(5)))


class TestSorting:
    def test_sort(self):
        x = normal(6, 50)
        check(lambda x: (jnp.sort(x), jnp.sort(x, axis=0), -jnp.sort(-x), jnp.argsort(x), jnp.median(x)), x)

    def test_sort_is_stable(self):
        keys = integers(300, low=0, high=7)
        check(lambda k, v: lax.sort((k, v), num_keys=1), keys, np.arange(300, dtype=np.int32))
        check(lambda k, v: lax.sort((k, v), num_keys=2), keys, integers(300, seed=1))

    def test_sort_with_special_values(self):
        check(jnp.sort, np.array([np.nan, 1.0, -np.inf, 0.0, -0.0, np.inf, -1.0, np.nan], np.float32))

    def test_top_k(self):
        check(lambda x: lax.top_k(x, 5), normal(4, 40))

    def test_searchsorted_and_unique(self):
        check(lambda x, v: jnp.searchsorted(x, v), np.sort(normal(100)), normal(20, seed=1))
        check(lambda x: jnp.unique(x, size=8), integers(40, low=0, high=8))


class TestRandom:
    def test_bits_are_those_of_threefry(self):
        check(lambda key: jax.random.bits(key, (101,)), jax.random.PRNGKey(3))
        check(lambda key: jax.random.split(key, 5), jax.random.PRNGKey(7))
        check(lambda key: jax.random.fold_in(key, 9), jax.random.PRNGKey(7))

    @pytest.mark.parametrize("name", "uniform normal exponential gumbel laplace cauchy".split())
    def test_distributions(self, name):
        check(lambda key: getattr(jax.random, name)(key, (64,)), jax.random.PRNGKey(11))

    def test_integers_choices_and_permutations(self):
        key = jax.random.PRNGKey(5)
        check(lambda key: jax.random.randint(key, (50,), -5, 99), key)
        check(lambda key: (jax.random.permutation(key, 31), jax.random.bernoulli(key, 0.3, (40,))), key)
        check(lambda key: jax.random.categorical(key, jnp.arange(5.0), shape=(30,)), key)


class TestModels:
    def test_a_training_step(self):
        def loss(params, x, y):
            h = jax.nn.gelu(x @ params["w1"] + params["b1"])
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h @ params["w2"]), y[:, None], 1))

        def step(params, x, y):
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x, y))

        params = {"w1": normal(12, 16), "b1": normal(16, seed=1), "w2": normal(16, 4, seed=2)}
        check(step, params, normal(32, 12, seed=3), integers(32, low=0, high=4))

    def test_attention(self):
        def attention(q, k, v):
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, precision="highest") / np.sqrt(8)
            scores = jnp.where(jnp.tri(10, dtype=bool), scores, -jnp.inf)
            return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v, precision="highest")

        check(attention, normal(2, 10, 3, 8), normal(2, 10, 3, 8, seed=1), normal(2, 10, 3, 8, seed=2))

    def test_linear_algebra_by_loops(self):
        spd = normal(6, 6) @ normal(6, 6).T + 6 * np.eye(6, dtype=np.float32)
        check(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.det(a)), spd.astype(np.float32), normal(6, 2))
