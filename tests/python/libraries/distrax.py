"""Trains a normalizing flow of masked couplings and rational-quadratic splines on points of two moons."""

import distrax
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_enable_x64", True)

PACKAGES = ("distrax",)
TOLERANCE = 1e-6

BINS, LAYERS, WIDTH = 6, 4, 32
OUTPUTS = 2 * (3 * BINS + 1)


def flow(parameters):
    layers = []
    for index, (first, second) in enumerate(parameters):

        def conditioner(x, first=first, second=second):
            return (jnp.tanh(x @ first) @ second).reshape(*x.shape, -1)

        layers.append(
            distrax.MaskedCoupling(
                mask=jnp.arange(2) % 2 == index % 2,
                bijector=lambda p: distrax.RationalQuadraticSpline(p, range_min=-4.0, range_max=4.0),
                conditioner=conditioner,
            )
        )
    base = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    return distrax.Transformed(base, distrax.Block(distrax.Inverse(distrax.Chain(layers)), 0))


def run():
    keys = jax.random.split(jax.random.key(25), 2 * LAYERS + 1)
    angle = jnp.linspace(0, jnp.pi, 128)
    moons = [jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1), jnp.stack([1 - jnp.cos(angle), 0.5 - jnp.sin(angle)], 1)]
    points = jnp.concatenate(moons) + 0.1 * jax.random.normal(keys[-1], (256, 2))
    parameters = [
        (jax.random.normal(first, (2, WIDTH)), 0.1 * jax.random.normal(second, (WIDTH, OUTPUTS)))
        for first, second in zip(keys[:LAYERS], keys[LAYERS:-1], strict=True)
    ]
    optimizer = optax.adam(3e-3)

    def step(state, _):
        parameters, inner = state
        value, gradients = jax.value_and_grad(lambda p: -jnp.mean(flow(p).log_prob(points)))(parameters)
        updates, inner = optimizer.update(gradients, inner)
        return (optax.apply_updates(parameters, updates), inner), value

    train = jax.jit(lambda state: jax.lax.scan(step, state, length=40))
    (parameters, _), losses = train((parameters, optimizer.init(parameters)))
    samples = jax.jit(lambda key: flow(parameters).sample(seed=key, sample_shape=(64,)))(jax.random.key(26))
    return {"losses": losses, "samples": samples}
