"""Fits a hidden Markov model by expectation maximization, and smooths a linear Gaussian state space model."""

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM

jax.config.update("jax_enable_x64", True)

PACKAGES = ("dynamax",)
TOLERANCE = 1e-8


def run():
    model = GaussianHMM(num_states=3, emission_dim=2)
    true, _ = model.initialize(
        jax.random.key(20),
        initial_probs=jnp.ones(3) / 3,
        transition_matrix=0.8 * jnp.eye(3) + 0.2 / 3,
        emission_means=jnp.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]),
    )
    _, data = model.sample(true, jax.random.key(21), num_timesteps=300)
    parameters, properties = model.initialize(jax.random.key(22), method="prior")
    fitted, likelihoods = model.fit_em(parameters, properties, data, num_iters=15, verbose=False)
    states = model.most_likely_states(fitted, data)

    tracker = LinearGaussianSSM(state_dim=4, emission_dim=2)
    movement, _ = tracker.initialize(
        jax.random.key(23),
        dynamics_weights=jnp.eye(4) + 0.1 * jnp.eye(4, k=2),
        emission_weights=jnp.eye(2, 4),
    )
    _, observed = tracker.sample(movement, jax.random.key(24), num_timesteps=100)
    smoothed = jax.jit(tracker.smoother)(movement, observed)
    return {
        "likelihoods": likelihoods,
        "means": fitted.emissions.means,
        "states": states,
        "smoothed": smoothed.smoothed_means,
        "covariances": smoothed.smoothed_covariances,
    }
