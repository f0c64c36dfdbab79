"""Simulates eight ants with random actions, and improves a policy for a pendulum by gradients through the simulation."""

import jax
import jax.numpy as jnp
from brax import envs

PACKAGES = ("brax",)
TOLERANCE = 1e-4


def ants():
    environment = envs.get_environment("ant", backend="spring")

    def rollout(key):
        start, actions = jax.random.split(key)

        def step(state, action):
            state = environment.step(state, action)
            return state, (state.reward, state.pipeline_state.x.pos[0])

        actions = jax.random.uniform(actions, (20, environment.action_size), minval=-1, maxval=1)
        return jax.lax.scan(step, environment.reset(start), actions)[1]

    return jax.jit(jax.vmap(rollout))(jax.random.split(jax.random.key(29), 8))


def pendulum():
    environment = envs.get_environment("inverted_pendulum", backend="spring")
    start = jax.jit(environment.reset)(jax.random.key(30))

    def cost(gains):
        def step(state, _):
            state = environment.step(state, jnp.tanh(state.obs @ gains)[None])
            return state, jnp.sum(state.obs**2)

        return jnp.mean(jax.lax.scan(step, start, length=15)[1])

    gains, costs = jnp.zeros(environment.observation_size), []
    improve = jax.jit(jax.value_and_grad(cost))
    for _ in range(5):
        value, gradient = improve(gains)
        gains -= 0.5 * gradient
        costs.append(value)
    return jnp.stack(costs), gains


def run():
    rewards, positions = ants()
    costs, gains = pendulum()
    return {"rewards": rewards, "positions": positions, "costs": costs, "gains": gains}
