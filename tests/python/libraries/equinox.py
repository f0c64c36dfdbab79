"""Trains a recurrent network of gated units to tell the direction of rotation of spirals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

PACKAGES = ("equinox",)
TOLERANCE = 1e-4


class Classifier(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.MLP

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, 16, key=first)
        self.out = eqx.nn.MLP(16, "scalar", 16, 1, key=second)

    def __call__(self, points):
        state, _ = jax.lax.scan(lambda state, point: (self.cell(point, state), None), jnp.zeros(16), points)
        return self.out(state)


def spirals(key, count):
    phase = jax.random.uniform(key, (count,), maxval=2 * jnp.pi)
    sign = jnp.where(jnp.arange(count) % 2, 1.0, -1.0)
    time = jnp.linspace(0, 4 * jnp.pi, 16)
    angle = phase[:, None] + sign[:, None] * time
    radius = time / (1 + time)
    return jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1), (sign + 1) / 2


def run():
    points, labels = spirals(jax.random.key(2), 64)
    model = Classifier(jax.random.key(3))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        def loss(model):
            return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(points), labels).mean()

        value, gradients = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradients, state)
        return eqx.apply_updates(model, updates), state, value

    losses = []
    for _ in range(40):
        model, state, value = step(model, state)
        losses.append(value)
    return {"losses": jnp.stack(losses), "logits": jax.vmap(model)(points)}
