"""A trace through JAX's BFC allocator: each block is an array of bytes whose content nobody makes.

jax.lax.empty compiles to XLA's AllocateBuffer, so that a call allocates exactly its result and touches
none of it. Each size is compiled before the trace begins; delete() gives the block back at once, because
nothing uses it.
"""

import sys
from functools import partial

import jax
from playing import play, sizes_of


@partial(jax.jit, static_argnums=0)
def empty(size):
    return jax.lax.empty((size,), "uint8")


make = {size: empty.lower(size).compile() for size in sizes_of(sys.argv[1])}


play(lambda size: make[size](), lambda block: block.delete(),
     in_use_peak=lambda: jax.devices()[0].memory_stats()["peak_bytes_in_use"])
