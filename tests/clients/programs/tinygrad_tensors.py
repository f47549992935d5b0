"""Moves tensors between host and device with tinygrad: a client that reaches the driver by ctypes.

Tensors of many sizes come and go; tinygrad keeps freed buffers of its own by size, so this also shows
a cache above ours. Nothing is computed on the device, since a simulated GPU computes nothing; so the
output is the same on a real GPU, on the simulator, and whoever serves the memory.
"""

import argparse

import numpy as np
from tinygrad import Device, Tensor


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="rounds of allocation (default 20)")
    parser.add_argument("--megabytes", type=int, default=16, help="largest tensor (default 16)")
    return parser.parse_args()


def main():
    chosen = arguments()
    device = Device["CUDA"]
    rng = np.random.default_rng(3)
    largest = chosen.megabytes * (1 << 20) // 4
    kept = []
    moved = 0
    for number in range(chosen.rounds):
        for size in map(int, np.maximum(largest >> rng.integers(0, 16, 4), 1)):
            values = rng.integers(0, 1 << 30, size, dtype=np.int32)
            kept.append((Tensor(values, device="CUDA").realize(), values))
            moved += values.nbytes
        if len(kept) > 16:
            del kept[:8:2]
        device.synchronize()
        equal = all(np.array_equal(tensor.numpy(), values) for tensor, values in kept)
        print(f"round {number}: {len(kept)} tensors kept, back from the device equal: {equal}", flush=True)
    print(f"moved {moved:,} bytes to the device")


if __name__ == "__main__":
    main()
