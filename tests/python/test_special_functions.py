"""CHLO's special functions: JAX hands them to refcpu whole, not as the formulas that jaxlib has for them."""

import plugins

plugins.use("refcpu,cpu", JAX_ENABLE_X64="1")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import scipy.special  # noqa: E402
from jax import export, lax  # noqa: E402
from jax_plugins.refcpu import SPECIAL_FUNCTIONS  # noqa: E402

# Points at which the formulas lose digits: the true value (by Arb), and how close refcpu is.
HARD = [
    (lax.erfc, (23.500000000000057,), 3.4740594956406817e-242, 4e-15),
    (lax.erf_inv, (0.9995309751831198,), 2.473353465940278, 1e-15),
    (lax.lgamma, (2.0000000000000004,), 1.8775396131086244e-16, 4e-15),
    (lax.digamma, (1.4616321449683625,), 1.2245374622004068e-16, 4e-15),
    (lax.bessel_i1e, (-7.50000000000001,), -0.13804121154855412, 1e-15),
    (lax.zeta, (9.0, -10.0291835996353), -65125380226211.99, 1e-13),
    (lax.polygamma, (7.0, -10.0291835996353), 9578988834007314.0, 1e-13),
]


def program(function, *operands) -> str:
    return jax.jit(function).trace(*operands).lower(lowering_platforms=("refcpu",)).as_text()


@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_a_function_is_one_composite(name):
    x = np.ones((2, 3), jnp.bfloat16)
    operands = (x, x) if name in ("polygamma", "zeta") else (x,)
    text = program(lambda *x: getattr(lax, name)(*x) + getattr(lax, name)(*x), *operands)
    assert text.count(f'stablehlo.composite "chlo.{name}"') == 2
    assert text.count(f"= chlo.{name}") == 1


@pytest.mark.parametrize("function,point,true,tolerance", HARD, ids=lambda v: getattr(v, "__name__", ""))
def test_values_are_not_those_of_the_formulas(function, point, true, tolerance):
    found = float(jax.jit(function)(*(np.float64(x) for x in point)))
    assert found == pytest.approx(true, rel=tolerance, abs=0)


def test_functions_in_loops_and_under_transformations():
    x = np.linspace(0.1, 3, 12).reshape(3, 4)

    def loop(x):
        return lax.fori_loop(0, 3, lambda _, y: lax.erfc(y) + x, x)

    once = scipy.special.erfc(x) + x
    twice = scipy.special.erfc(once) + x
    np.testing.assert_allclose(jax.jit(loop)(x), scipy.special.erfc(twice) + x, rtol=1e-14)
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda y: lax.lgamma(y).sum()))(x), scipy.special.digamma(x), rtol=1e-13)


def test_sizes_that_are_not_known_stay_with_the_formulas():
    (size,) = export.symbolic_shape("n")
    exported = export.export(jax.jit(lax.erfc), platforms=["refcpu"])(jax.ShapeDtypeStruct((size,), np.float32))
    assert "composite" not in exported.mlir_module()
    np.testing.assert_allclose(exported.call(np.float32([0.5, 1.0])), scipy.special.erfc([0.5, 1.0]), rtol=1e-6)
