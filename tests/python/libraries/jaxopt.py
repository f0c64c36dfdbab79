"""Computes a lasso by proximal gradients, a projection onto a simplex, a quadratic program and derivatives of a ridge fit."""

import warnings

import jax
import jax.numpy as jnp

# The package warns on import that it is not developed further.
warnings.simplefilter("ignore", DeprecationWarning)

import jaxopt  # noqa: E402

jax.config.update("jax_enable_x64", True)

PACKAGES = ("jaxopt",)
TOLERANCE = 1e-8


def run():
    keys = jax.random.split(jax.random.key(6), 3)
    x = jax.random.normal(keys[0], (60, 20))
    y = x[:, :4] @ jnp.array([3.0, -2.0, 1.5, 1.0]) + 0.1 * jax.random.normal(keys[1], (60,))
    lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=500, tol=1e-9)
    quadratic = jaxopt.OSQP(tol=1e-8, maxiter=4000)
    matrix = x.T @ x / 60 + 0.1 * jnp.eye(20)
    bounded = quadratic.run(
        params_obj=(matrix, -x.T @ y / 60), params_eq=(jnp.ones((1, 20)), jnp.ones(1)), params_ineq=(-jnp.eye(20), jnp.zeros(20))
    )

    def validation_error(strength):
        def ridge(w, strength):
            return jnp.mean((x[:40] @ w - y[:40]) ** 2) + strength * jnp.sum(w**2)

        w = jaxopt.LBFGS(ridge, maxiter=100, tol=1e-9).run(jnp.zeros(20), strength).params
        return jnp.mean((x[40:] @ w - y[40:]) ** 2)

    return {
        "lasso": lasso.run(jnp.zeros(20), hyperparams_prox=0.1, data=(x, y)).params,
        "simplex": jax.vmap(jaxopt.projection.projection_simplex)(jax.random.normal(keys[2], (8, 30))),
        "quadratic": bounded.params.primal,
        "ridge": jnp.stack(jax.value_and_grad(validation_error)(0.5)),
    }
