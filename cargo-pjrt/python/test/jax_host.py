"""The programs of `cargo pjrt test` in JAX, and the same on JAX's CPU device."""

import os
import pathlib

import programs


def connect(request):
    """Registers the plugin as its wheel does, and returns JAX's version and the programs."""
    platform = request["platform"]
    os.environ["JAX_PLATFORMS"] = f"{platform},cpu"
    import jax

    # The locations in messages would be those of this file.
    jax.config.update("jax_traceback_in_locations_limit", 0)
    from pjrt_plugin_support.jax_plugin import JaxPlugin

    JaxPlugin(platform, pathlib.Path(request["library"]), options=request["options"]).initialize()
    device = jax.devices(platform)[0]
    return jax.__version__, Programs(jax, device).all()


class Programs:
    """The programs on a device."""

    def __init__(self, jax, device):
        import numpy as np

        self.jax, self.np, self.device = jax, np, device
        self.cpu = jax.devices("cpu")[0]
        self.x, self.y = self.array(4, 8), self.array(4, 8, scale=0.5)

    def all(self):
        jax, jnp, np = self.jax, self.jax.numpy, self.np
        activations = lambda x: (jnp.tanh(x), jax.nn.sigmoid(x), jax.nn.gelu(x), jax.nn.silu(x))
        reductions = lambda x: (x.sum(0), x.max(1), x.mean(), x.prod(), (x > 0).any(), x.argmax(-1))
        loop = lambda x: jax.lax.fori_loop(0, 5, lambda i, s: s + i, x)
        uniform = lambda key: jax.random.uniform(key, (4, 8))
        return {
            "add": lambda: self.agree(jnp.add, self.x, self.y),
            "elementwise": lambda: self.agree(lambda x, y: 2.5 * x + y, self.x, self.y),
            "activations": lambda: self.agree(activations, self.x),
            "dot": lambda: self.agree(lambda x, y: x @ y, self.x, self.array(8, 4)),
            "reduction": lambda: self.agree(reductions, self.x),
            "donation": self.donation,
            "control_flow": lambda: self.agree(loop, self.x),
            "random": lambda: self.agree(uniform, np.array([0, 7], np.uint32)),
            "gradient": lambda: self.agree(jax.grad(self.loss), self.parameters(), self.x, self.array(4, 4)),
            "training": lambda: list(zip(self.training(self.device), self.training(self.cpu))),
        }

    def array(self, *dims, scale=0.25):
        return self.np.array(programs.values(self.np.prod(dims), scale), self.np.float32).reshape(dims)

    def numbers(self, results):
        """The results as lists of numbers."""
        return [self.np.asarray(leaf).astype(float).ravel().tolist() for leaf in self.jax.tree.leaves(results)]

    def agree(self, function, *arguments):
        """A function on the device and on the CPU."""

        def run(device):
            return self.numbers(self.jax.jit(function)(*self.jax.device_put(arguments, device)))

        return list(zip(run(self.device), run(self.cpu)))

    def donation(self):
        """The sum of two arrays, of which one is donated, and the other one, which keeps its elements."""
        x, y = self.jax.device_put((self.x, self.y), self.device)
        total = self.jax.jit(self.jax.numpy.add, donate_argnums=0)(x, y)
        pairs = list(zip(self.numbers((total, y)), self.numbers((self.x + self.y, self.y))))
        if not x.is_deleted():
            programs.notes.append("the plugin does not use donated memory: the argument still exists after the execution")
        return pairs

    def parameters(self):
        """The weights and biases of a perceptron."""
        return [(self.array(8, 16), self.array(16)), (self.array(16, 4), self.array(4))]

    def loss(self, parameters, x, y):
        jnp = self.jax.numpy
        (first, first_bias), (second, second_bias) = parameters
        hidden = jnp.maximum(x @ first + first_bias, 0.0)
        return jnp.mean((hidden @ second + second_bias - y) ** 2)

    def training(self, device):
        """The losses of some steps of gradient descent with donated parameters, and the parameters after these."""
        jax = self.jax

        def step(parameters, x, y):
            loss, gradients = jax.value_and_grad(self.loss)(parameters, x, y)
            return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients), loss

        step = jax.jit(step, donate_argnums=0)
        parameters, x, y = jax.device_put((self.parameters(), self.x, self.array(4, 4)), device)
        losses = []
        for _ in range(5):
            parameters, loss = step(parameters, x, y)
            losses.append(loss)
        return self.numbers((losses, parameters))


programs.run(connect)
