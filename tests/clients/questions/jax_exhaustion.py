"""Asks JAX for arrays of 4 GiB until it refuses, and prints how many it gave and by which error it ended."""

import jax
import jax.numpy as jnp

kept = []
try:
    for _ in range(30):
        kept.append(jax.block_until_ready(jnp.zeros((1 << 30,), jnp.float32)))
except jax.errors.JaxRuntimeError as error:
    print(f"{len(kept)} arrays, then {str(error).split(':')[0]}")
