"""Tracks a target with a particle filter of Chex's data classes, with checks of shapes and of values inside compiled code."""

import chex
import jax
import jax.numpy as jnp

PACKAGES = ("chex",)
TOLERANCE = 1e-4


@chex.dataclass(frozen=True)
class Particles:
    position: chex.Array
    velocity: chex.Array


def advance(particles: Particles, observed, key):
    chex.assert_equal_shape([particles.position, particles.velocity])
    chex.assert_rank(particles.position, 1)
    noise, draw = jax.random.split(key)
    position = particles.position + particles.velocity
    velocity = particles.velocity + 0.1 * jax.random.normal(noise, position.shape)
    weights = jax.nn.softmax(-0.5 * ((observed - position) / 0.5) ** 2)
    chex.assert_tree_all_finite(weights)
    estimate = jnp.sum(weights * position)
    chosen = jax.random.choice(draw, len(position), position.shape, p=weights)
    return Particles(position=position[chosen], velocity=velocity[chosen]), estimate


def run():
    keys = jax.random.split(jax.random.key(15), 22)
    particles = Particles(position=jax.random.normal(keys[0], (400,)), velocity=0.5 * jax.random.normal(keys[1], (400,)))
    target = 0.3 * jnp.arange(1.0, 21.0) + jnp.sin(jnp.arange(20) / 4)
    step = chex.chexify(jax.jit(chex.assert_max_traces(advance, 1)), async_check=False)
    estimates = []
    for observed, key in zip(target, keys[2:], strict=True):
        particles, estimate = step(particles, observed, key)
        estimates.append(estimate)
    chex.assert_trees_all_close(estimates[-1], target[-1], atol=1.0)
    detected = 0.0
    try:
        step(particles, jnp.float32(jnp.nan), keys[0])
    except AssertionError:
        detected = 1.0
    return {"estimates": jnp.stack(estimates), "nan_detected": detected}
