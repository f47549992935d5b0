"""JAX asks for an array that fits only where another one was, whose kernels are still queued."""
import jax
import jax.numpy as jnp

MIB = 1 << 18  # words
for step in range(3):
    first = jnp.zeros((400 * MIB + step,), jnp.float32)
    second = jnp.zeros((200 * MIB + step,), jnp.float32)
    del first
    third = jnp.zeros((500 * MIB + step,), jnp.float32)
    del second
last = third.block_until_ready()
print('done')
