"""Fits a classifier with five optimizers and a schedule, and minimizes a function with L-BFGS and its line search."""

import jax
import jax.numpy as jnp
import optax

PACKAGES = ("optax",)
TOLERANCE = 1e-4

OPTIMIZERS = {
    "adamw": lambda rate: optax.adamw(rate, weight_decay=1e-3),
    "nesterov": lambda rate: optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate, momentum=0.9, nesterov=True)),
    "rmsprop": optax.rmsprop,
    "adafactor": optax.adafactor,
    "novograd": optax.novograd,
}


def fit(optimizer, loss, parameters, steps):
    def step(state, _):
        parameters, inner = state
        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, inner = optimizer.update(gradients, inner, parameters)
        return (optax.apply_updates(parameters, updates), inner), value

    return jax.jit(lambda state: jax.lax.scan(step, state, length=steps))((parameters, optimizer.init(parameters)))[1]


def minimum_of_rosenbrock():
    def rosenbrock(x):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    optimizer = optax.lbfgs()

    def step(_, state):
        x, inner = state
        value, gradient = optax.value_and_grad_from_state(rosenbrock)(x, state=inner)
        updates, inner = optimizer.update(gradient, inner, x, value=value, grad=gradient, value_fn=rosenbrock)
        return optax.apply_updates(x, updates), inner

    x = jnp.full(4, -1.0)
    return jax.jit(lambda state: jax.lax.fori_loop(0, 80, step, state))((x, optimizer.init(x)))[0]


def run():
    keys = jax.random.split(jax.random.key(1), 3)
    x = jax.random.normal(keys[0], (256, 20))
    y = jnp.argmax(x @ jax.random.normal(keys[1], (20, 5)), axis=1)
    parameters = {"w": 0.1 * jax.random.normal(keys[2], (20, 5)), "b": jnp.zeros(5)}

    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(x @ p["w"] + p["b"], y).mean()

    schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 10, 100)
    losses = {name: fit(make(schedule), loss, parameters, 100) for name, make in OPTIMIZERS.items()}
    return {**losses, "lbfgs": minimum_of_rosenbrock()}
