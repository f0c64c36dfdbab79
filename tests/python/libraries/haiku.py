"""Trains a small transformer with Haiku to predict the next symbol of a sequence."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

PACKAGES = ("dm-haiku",)
TOLERANCE = 1e-4

SYMBOLS, LENGTH, WIDTH = 16, 24, 32


def logits(tokens):
    length = tokens.shape[1]
    x = hk.Embed(SYMBOLS, WIDTH)(tokens) + hk.get_parameter("positions", (length, WIDTH), init=hk.initializers.TruncatedNormal(0.1))
    mask = jnp.tril(jnp.ones((1, 1, length, length)))
    for _ in range(2):
        attention = hk.MultiHeadAttention(4, WIDTH // 4, w_init=hk.initializers.VarianceScaling(1.0), model_size=WIDTH)
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.dropout(hk.next_rng_key(), 0.1, attention(y, y, y, mask))
        x = x + hk.nets.MLP([2 * WIDTH, WIDTH], activation=jax.nn.gelu)(hk.LayerNorm(-1, True, True)(x))
    return hk.Linear(SYMBOLS)(x)


def run():
    # Each symbol is the sum of the two before it, modulo their number.
    first = jax.random.randint(jax.random.key(11), (32, 2), 0, SYMBOLS)

    def following(pair, _):
        following = jnp.sum(pair, axis=1) % SYMBOLS
        return jnp.stack([pair[:, 1], following], axis=1), following

    tokens = jnp.concatenate([first, jax.lax.scan(following, first, length=LENGTH - 1)[1].T], axis=1)
    model = hk.transform(logits)
    parameters = model.init(jax.random.key(12), tokens[:, :-1])
    optimizer = optax.adam(3e-3)

    @jax.jit
    def step(parameters, state, key):
        def loss(parameters):
            predicted = model.apply(parameters, key, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(predicted, tokens[:, 1:]).mean()

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, value

    state, losses = optimizer.init(parameters), []
    for key in jax.random.split(jax.random.key(13), 25):
        parameters, state, value = step(parameters, state, key)
        losses.append(value)
    return {"losses": jnp.stack(losses), "logits": model.apply(parameters, jax.random.key(14), tokens[:, :-1])}
