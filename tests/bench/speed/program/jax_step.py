"""A small GPT's training step, jitted: reads how many steps to take, answers microseconds a step, line by line.

Unlike the client program it takes its model from, it is made to be timed: a width that leaves the host busy,
one shape, and no reading of results but at the end of a round. `--donate` gives the old state away. Two
times are told, the clock's and what the process was given of the cores: that one a busy machine changes less.
"""
import functools
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[3] / 'clients' / 'programs'))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_gpt  # noqa: E402
import numpy as np  # noqa: E402


def main():
    device = jax.devices('cuda')[0]
    rng = np.random.default_rng(1)
    parameters = jax.device_put(jax_gpt.initial_parameters(2, 64, rng), device)
    zeros = jax.jit(functools.partial(jax.tree.map, jnp.zeros_like))
    state = (parameters, zeros(parameters), zeros(parameters))
    del parameters  # or its buffers could not be donated
    step = jax.jit(jax_gpt.adam_step, donate_argnums=0 if '--donate' in sys.argv else ())
    batch = jax_gpt.counting_batch(4, 64, rng)
    for line in sys.stdin:
        begin = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            # As loops over a loader do: the new batch is there before the old one is gone.
            tokens = jax.device_put(batch, device)
            state, loss = step(state, tokens)
        jax.block_until_ready((state, loss))
        end = time.perf_counter(), time.process_time()
        print(*((after - before) / int(line) * 1e6 for before, after in zip(begin, end)), flush=True)


if __name__ == '__main__':
    main()
