"""Moves arrays between host and device with numba-cuda: a client that allocates with cuMemAlloc.

Arrays of many sizes come and go in an order that leaves holes, some copied on a stream, some from
device to device. Kernels are left out, since a simulated GPU computes nothing; so every line of output
tells of copies only and is the same on a real GPU, on the simulator, and whoever serves the memory.
"""

import argparse

import numpy as np
from numba import cuda


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds of allocation (default 20)")
    parser.add_argument("--megabytes", type=int, default=16, help="largest array (default 16)")
    return parser.parse_args()


def main():
    chosen = arguments()
    rng = np.random.default_rng(2)
    stream = cuda.stream()
    largest = chosen.megabytes * (1 << 20) // 4
    kept = []
    moved = 0
    for number in range(chosen.rounds):
        sizes = np.maximum(largest >> rng.integers(0, 16, 6), 1)
        for size in map(int, sizes):
            values = rng.integers(0, 1 << 30, size, dtype=np.int32)
            on_device = cuda.to_device(values, stream=stream if size % 3 else 0)
            kept.append((on_device, values))
            moved += values.nbytes
        # Every second of the older ones is dropped, which frees its memory: holes of all sizes.
        if len(kept) > 24:
            del kept[:12:2]
        copy = cuda.device_array_like(kept[-1][0])
        copy.copy_to_device(kept[-1][0])
        stream.synchronize()
        equal = all(np.array_equal(array.copy_to_host(), values) for array, values in kept)
        equal = equal and np.array_equal(copy.copy_to_host(), kept[-1][1])
        print(f"round {number}: {len(kept)} arrays kept, back from the device equal: {equal}", flush=True)
    print(f"moved {moved:,} bytes to the device")


if __name__ == "__main__":
    main()
