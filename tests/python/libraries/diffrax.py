"""Solves a stiff, a nonstiff and a stochastic differential equation, and differentiates a solution by its parameters."""

import diffrax
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

PACKAGES = ("diffrax",)
TOLERANCE = 1e-8


def robertson(t, y, args):
    slow, fast = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return jnp.stack([-slow, slow - fast, fast])


def predator_and_prey(t, y, parameters):
    a, b, c, d = parameters
    return jnp.stack([a * y[0] - b * y[0] * y[1], -c * y[1] + d * y[0] * y[1]])


def solve(field, solver, end, y0, parameters=None):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        t0=0.0,
        t1=end,
        dt0=1e-4,
        y0=y0,
        args=parameters,
        stepsize_controller=diffrax.PIDController(rtol=1e-7, atol=1e-9),
        saveat=diffrax.SaveAt(ts=jnp.linspace(0, end, 20)),
    ).ys


def stochastic_path(key):
    noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(), key=key)
    drift = diffrax.ODETerm(lambda t, y, args: -y)
    terms = diffrax.MultiTerm(drift, diffrax.ControlTerm(lambda t, y, args: 0.3 * jnp.cos(t), noise))
    return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.01, 1.0).ys


def run():
    parameters = jnp.array([1.1, 0.4, 0.4, 0.1])

    @jax.jit
    @jax.value_and_grad
    def final_prey(parameters):
        return solve(predator_and_prey, diffrax.Tsit5(), 10.0, jnp.array([10.0, 5.0]), parameters)[-1, 0]

    prey, gradient = final_prey(parameters)
    stiff = jax.jit(lambda y: solve(robertson, diffrax.Kvaerno5(), 100.0, y))(jnp.array([1.0, 0.0, 0.0]))
    paths = jax.jit(jax.vmap(stochastic_path))(jax.random.split(jax.random.key(4), 32))
    return {"prey": prey, "gradient": gradient, "stiff": stiff, "paths": paths}
