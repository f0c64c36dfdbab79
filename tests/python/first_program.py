"""Adds one and one on the platform that the environment selects. Run by tests that only ask whether a plugin loads."""

import jax
import jax.numpy as jnp
import numpy as np

result = jnp.add(1, 1)
assert result == 2, result
np.testing.assert_array_equal(np.asarray(jnp.add(jnp.array([1.0, 2.0]), jnp.array([10.0, 20.0]))), [11.0, 22.0])
print(f"jnp.add(1, 1) = {result} on {jax.default_backend()}")
