"""Samples a logistic regression with window adaptation and NUTS, and a mixture with tempered sequential Monte Carlo."""

import blackjax
import blackjax.smc.resampling as resampling
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

PACKAGES = ("blackjax",)
TOLERANCE = 1e-6


def regression(key):
    first, second, third = jax.random.split(key, 3)
    x = jax.random.normal(first, (100, 4))
    y = jax.random.bernoulli(second, jax.nn.sigmoid(x @ jnp.array([1.0, -2.0, 0.5, 0.0])))

    def log_density(w):
        return jnp.sum(jnp.where(y, 1, -1) * 0.5 * (x @ w) - jnp.logaddexp(0.5 * x @ w, -0.5 * x @ w)) - jnp.sum(w**2) / 8

    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
    (state, parameters), _ = adaptation.run(third, jnp.zeros(4), num_steps=100)
    kernel = blackjax.nuts(log_density, **parameters)

    def step(state, key):
        state, information = kernel.step(key, state)
        return state, (state.position, information.acceptance_rate)

    return jax.jit(lambda state, keys: jax.lax.scan(step, state, keys)[1])(state, jax.random.split(key, 100))


def mixture(key):
    def log_likelihood(x):
        return jnp.logaddexp(-jnp.sum((x - 2) ** 2), -jnp.sum((x + 2) ** 2) - 1)

    kernel = blackjax.adaptive_tempered_smc(
        lambda x: -jnp.sum(x**2) / 50,
        log_likelihood,
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        blackjax.smc.extend_params({"step_size": 0.3, "inverse_mass_matrix": jnp.eye(2), "num_integration_steps": 8}),
        resampling.systematic,
        target_ess=0.6,
        num_mcmc_steps=2,
    )
    key, start = jax.random.split(key)
    state = kernel.init(5 * jax.random.normal(start, (128, 2)))
    step = jax.jit(kernel.step)
    while state.tempering_param < 1:
        key, current = jax.random.split(key)
        state, _ = step(current, state)
    return state.particles


def run():
    positions, acceptance = regression(jax.random.key(9))
    return {"positions": positions, "acceptance": acceptance, "particles": mixture(jax.random.key(10))}
