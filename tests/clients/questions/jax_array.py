"""Copies an array to the device and back with JAX: for allocators that keep no statistics to ask for."""

import jax
import numpy as np

values = np.arange(1 << 20, dtype=np.float32)
print("same", np.array_equal(np.asarray(jax.device_put(values, jax.devices("cuda")[0])), values))
