"""Samples a hierarchical model of eight schools with NUTS, and fits it by stochastic variational inference."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO, autoguide

numpyro.enable_x64()

PACKAGES = ("numpyro",)
TOLERANCE = 1e-6

EFFECTS = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools():
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.HalfCauchy(5))
    with numpyro.plate("schools", 8):
        offset = numpyro.sample("offset", dist.Normal(0, 1))
        numpyro.sample("effect", dist.Normal(mean + spread * offset, ERRORS), obs=EFFECTS)


def run():
    sampler = MCMC(NUTS(schools), num_warmup=30, num_samples=50, num_chains=2, chain_method="vectorized", progress_bar=False)
    sampler.run(jax.random.key(7))
    samples = sampler.get_samples()
    guide = autoguide.AutoMultivariateNormal(schools)
    fit = SVI(schools, guide, numpyro.optim.Adam(0.01), Trace_ELBO()).run(jax.random.key(8), 300, progress_bar=False)
    return {**samples, "losses": fit.losses, "locations": fit.params["auto_loc"]}
