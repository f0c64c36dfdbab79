"""Fits the kernel of a Gaussian process, predicts with it, and samples a posterior with Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
import optax
from tensorflow_probability.substrates import jax as tfp

jax.config.update("jax_enable_x64", True)

PACKAGES = ("tfp-nightly",)
TOLERANCE = 1e-8

tfd, tfk = tfp.distributions, tfp.math.psd_kernels


def gaussian_process(x, y, new):
    def kernel(log):
        return tfk.MaternFiveHalves(jnp.exp(log[0]), jnp.exp(log[1]))

    def loss(log):
        return -tfd.GaussianProcess(kernel(log), x, observation_noise_variance=jnp.exp(log[2]), jitter=1e-8).log_prob(y)

    optimizer = optax.adam(0.1)

    def step(state, _):
        log, inner = state
        updates, inner = optimizer.update(jax.grad(loss)(log), inner)
        return (log + updates, inner), None

    start = jnp.array([0.0, 0.0, -2.0])
    (log, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), length=60)
    prediction = tfd.GaussianProcessRegressionModel(kernel(log), new, x, y, observation_noise_variance=jnp.exp(log[2]), jitter=1e-8)
    return log, prediction.mean(), prediction.stddev()


def posterior(y, key):
    # Distributions compute in f32 if all their parameters are numbers of Python.
    prior = [tfd.Gamma(jnp.float64(2), 1.0), tfd.StudentT(jnp.float64(4), 0.0, 1.0)]
    model = tfd.JointDistributionSequential(prior)

    def log_density(scale, location):
        return model.log_prob(scale, location) + jnp.sum(tfd.Laplace(location, scale).log_prob(y))

    hmc = tfp.mcmc.HamiltonianMonteCarlo(log_density, step_size=0.02, num_leapfrog_steps=10)
    kernel = tfp.mcmc.TransformedTransitionKernel(hmc, [tfp.bijectors.Softplus(), tfp.bijectors.Identity()])
    start = [jnp.float64(1.0), jnp.float64(0.0)]
    return tfp.mcmc.sample_chain(100, start, kernel=kernel, num_burnin_steps=50, trace_fn=None, seed=key)


def run():
    x = jnp.linspace(0, 3, 40)[:, None]
    y = jnp.sin(3 * x[:, 0]) + 0.1 * jax.random.normal(jax.random.key(27), (40,))
    log, mean, deviation = jax.jit(gaussian_process)(x, y, jnp.linspace(-1, 4, 25)[:, None])
    scales, locations = jax.jit(posterior)(y, jax.random.key(28))
    return {"parameters": log, "mean": mean, "deviation": deviation, "scales": scales, "locations": locations}
