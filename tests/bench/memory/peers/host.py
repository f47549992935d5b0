"""What the shim takes of the host's memory, and keeps of the device's, in a few simple situations.

Usage: host.py idle|blocks|soak|quiet     prints one number, of bytes

Memory of the host is what is anonymous in this process: no file's pages, and none of the simulated
device's, which nobody touches. Everything that Python needs is there before the first look.
"""

import gc
import sys
import threading
import time
from array import array

import cuda
from playing import Held

MIB = 1 << 20
SIZES = [512 << (i % 7) for i in range(7)]


def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("Anonymous:"))


def idle():
    """A process that allocated once."""
    stream = cuda.Stream()
    stream.free(stream.allocate(MIB))
    stream.synchronize()
    return anonymous()


def blocks(count=200_000):
    """Per live block, of which there are many."""
    stream = cuda.Stream()
    pointers = array("Q", range(count))
    for size in SIZES:
        stream.free(stream.allocate(size))
    before = anonymous()
    for i in range(count):
        pointers[i] = stream.allocate(SIZES[i % len(SIZES)])
    return (anonymous() - before) / count


def soak(threads=32, warm=5, seconds=15):
    """What 32 threads add in 15 s that all do the same for ever, each on a stream of its own."""
    end = time.monotonic() + warm + seconds

    def work():
        cuda.start()
        stream = cuda.Stream()
        pointers = array("Q", [0] * 8)
        turn = 0
        while time.monotonic() < end:
            if pointers[turn % 8]:
                stream.free(pointers[turn % 8])
            pointers[turn % 8] = stream.allocate(SIZES[turn % len(SIZES)])
            turn += 1

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    time.sleep(warm)
    before = anonymous()
    time.sleep(seconds - 1)
    after = anonymous()
    for worker in workers:
        worker.join()
    return after - before


def quiet(seconds=30):
    """Of the device, 30 s after the program freed 4 GiB and did nothing more."""
    stream, held = cuda.Stream(), Held()
    pointers = [stream.allocate(4 * MIB) for _ in range(1024)]
    for pointer in pointers:
        stream.free(pointer)
    stream.synchronize()
    time.sleep(seconds)
    return held()


gc.disable()
cuda.start()
print({"idle": idle, "blocks": blocks, "soak": soak, "quiet": quiet}[sys.argv[1]]())
