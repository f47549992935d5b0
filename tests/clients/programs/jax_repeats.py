"""Repeats one donated training step of a small GPT: the loop whose addresses could be the same in each step.

Beside jax_gpt.py, whose batches change their shapes: one shape, and each new batch is there before the old
one is gone, as with any loader. XLA's command buffers (CUDA graphs) must be told of every address that
moved, so that their updates count the moves; at this width that is most of what a step asks of the driver.

Its output is the same whoever serves the memory: each batch is copied back before a kernel has read it.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import jax_gpt
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="training steps (default 20)")
    chosen = parser.parse_args()
    device = jax.devices("cuda")[0]
    rng = np.random.default_rng(1)
    parameters = jax.device_put(jax_gpt.initial_parameters(2, 64, rng), device)
    zeros = jax.jit(functools.partial(jax.tree.map, jnp.zeros_like))
    state = (parameters, zeros(parameters), zeros(parameters))
    del parameters  # or its buffers could not be donated
    step = jax.jit(jax_gpt.adam_step, donate_argnums=0)
    same = 0
    for _ in range(chosen.steps):
        batch = jax_gpt.counting_batch(4, 64, rng)
        tokens = jax.device_put(batch, device)
        same += np.array_equal(np.asarray(tokens), batch)
        state, loss = step(state, tokens)
        del loss  # or the next would have to lie elsewhere
    jax.block_until_ready(state)
    print(f"{chosen.steps} steps, {same} batches came back as they were sent")


if __name__ == "__main__":
    main()
