"""Adds numbers on the platform that the environment selects. Run by tests that only ask whether a plugin loads."""

import jax
import jax.numpy as jnp
import numpy as np

result = jnp.add(1.0, 1.0)
assert float(result) == 2.0, result
np.testing.assert_array_equal(np.asarray(jnp.add(np.float32([1, 2]), np.float32([10, 20]))), [11.0, 22.0])
print(f"jnp.add(1.0, 1.0) = {result} on {jax.default_backend()}")
