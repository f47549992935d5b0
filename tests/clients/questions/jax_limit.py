"""Prints what JAX says of the memory it may use, after a first array.

Unlike the client programs this tells of amounts of memory: its output is compared between runs on one
machine, with and without tidepool, and never with another machine's.
"""

import jax
import numpy as np

array = jax.device_put(np.ones(1 << 20, np.float32), jax.devices("cuda")[0])
statistics = array.devices().pop().memory_stats()
print(f"limit {statistics['bytes_limit']}")
