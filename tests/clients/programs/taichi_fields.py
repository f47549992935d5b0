"""Fills fields and arrays with taichi: a client whose module opens libcuda.so for itself.

That module is loaded with RTLD_DEEPBIND, so it finds the C library's dlsym before any preload's. Even
its copies from NumPy are kernels, so the output tells of shapes and counts only.
"""

import argparse

import numpy as np
import taichi as ti


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="rounds of allocation (default 6)")
    rounds = parser.parse_args().rounds
    ti.init(arch=ti.cuda, log_level=ti.ERROR, device_memory_GB=0.25, offline_cache=False)

    table = ti.field(ti.i32, shape=(64, 64))

    @ti.kernel
    def multiply():
        for i, j in table:
            table[i, j] = i * j

    @ti.kernel
    def double(array: ti.types.ndarray()):
        for i in array:
            array[i] = 2 * array[i]

    multiply()
    for number in range(rounds):
        array = ti.ndarray(ti.f32, shape=(1 << (8 + 2 * number),))
        array.from_numpy(np.arange(array.shape[0], dtype=np.float32))
        double(array)
        ti.sync()
        print(f"round {number}: array of {array.to_numpy().shape[0]}, field {table.shape}", flush=True)


if __name__ == "__main__":
    main()
