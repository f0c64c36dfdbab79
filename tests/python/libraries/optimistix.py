"""Fits a curve by Levenberg-Marquardt, minimizes by BFGS, and finds roots by Newton's method and their derivatives."""

import jax
import jax.numpy as jnp
import optimistix as optx

jax.config.update("jax_enable_x64", True)

PACKAGES = ("optimistix",)
TOLERANCE = 1e-8


def fitted_decay():
    time = jnp.linspace(0, 4, 50)
    noise = 0.01 * jax.random.normal(jax.random.key(5), time.shape)
    data = 2.5 * jnp.exp(-1.3 * time) * jnp.cos(3 * time) + noise

    def residuals(p, _):
        return p[0] * jnp.exp(-p[1] * time) * jnp.cos(p[2] * time) - data

    solver = optx.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    return optx.least_squares(residuals, solver, jnp.array([1.0, 1.0, 2.8])).value


def minimum():
    def bowl(x, _):
        return jnp.sum(jnp.cosh(x - jnp.arange(6.0))) + jnp.sum(x[1:] * x[:-1]) / 20

    return optx.minimise(bowl, optx.BFGS(rtol=1e-10, atol=1e-10), jnp.zeros(6)).value


def kepler(mean_anomaly):
    """Solves Kepler's equation for the eccentric anomaly."""
    solver = optx.Newton(rtol=1e-12, atol=1e-12)
    return optx.root_find(lambda e, m: e - 0.6 * jnp.sin(e) - m, solver, mean_anomaly, mean_anomaly).value


def run():
    anomalies = jnp.linspace(0.1, 3, 30)
    return {
        "fit": jax.jit(fitted_decay)(),
        "minimum": jax.jit(minimum)(),
        "roots": jax.jit(jax.vmap(kepler))(anomalies),
        "derivatives": jax.jit(jax.vmap(jax.grad(kepler)))(anomalies),
    }
