"""JAX and TensorFlow in one process, taking turns on one device.

Each takes its pool when it starts, and the second finds what the first left: the old quarrel of people
who load their data with one and train with the other. Here TensorFlow prepares batches on the device,
JAX trains on them, and both are told to leave room, as their users have to.
"""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.4")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


@jax.jit
def step(weights, batch):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(lambda w: jnp.mean((batch @ w) ** 2))(weights))


def main():
    rng = np.random.default_rng(7)
    weights = jax.device_put(rng.normal(size=(256, 64)).astype(np.float32), jax.devices("cuda")[0])
    print(f"JAX on {weights.devices().pop().platform}, TensorFlow sees "
          f"{len(tf.config.list_physical_devices('GPU'))} GPU")
    for number in range(6):
        values = rng.normal(size=(64 + 32 * (number % 2), 256)).astype(np.float32)
        with tf.device("/GPU:0"):
            loaded = tf.constant(values)
            padded = tf.concat([loaded, loaded], 0)
        same = np.array_equal(loaded.numpy(), values)
        weights = step(weights, jax.device_put(values))
        print(f"batch {number}: {padded.shape} in TensorFlow, weights {weights.shape} in JAX, copied: {same}",
              flush=True)
    jax.block_until_ready(weights)


if __name__ == "__main__":
    main()
