"""Calls the driver through cuda-python, entry by entry: each way of allocating, once in a while.

A program of this kind chooses its entries itself: blocks of cuMemAlloc, of cuMemAllocAsync on a stream
and of a pool of its own, mapped pages, host memory. What is written to the device is read back.
"""

import argparse
import random

from cuda.bindings import driver as cu

PAGE = 2 << 20


def ask(answer):
    """The values of an answer, or the end of the program with the driver's name for what went wrong."""
    if answer[0] != cu.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"the driver answered {answer[0].name}")
    return answer[1] if len(answer) == 2 else answer[1:]


def fits(pointer, size, fill):
    """Whether bytes copied to a block come back."""
    data = bytes([fill]) * size
    ask(cu.cuMemcpyHtoD(pointer, data, size))
    back = bytearray(size)
    ask(cu.cuMemcpyDtoH(back, pointer, size))
    return bytes(back) == data


def mapped(device, size):
    """Pages of the program's own: created, mapped, opened to the device, used, given back."""
    properties = cu.CUmemAllocationProp()
    properties.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(device)
    handle = ask(cu.cuMemCreate(size, properties, 0))
    address = ask(cu.cuMemAddressReserve(size, 0, 0, 0))
    ask(cu.cuMemMap(address, size, 0, handle, 0))
    access = cu.CUmemAccessDesc()
    access.location = properties.location
    access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ask(cu.cuMemSetAccess(address, size, [access], 1))
    same = fits(address, size, 7)
    ask(cu.cuMemUnmap(address, size))
    ask(cu.cuMemRelease(handle))
    ask(cu.cuMemAddressFree(address, size))
    return same


def own_pool(device):
    properties = cu.CUmemPoolProps()
    properties.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = int(device)
    return ask(cu.cuMemPoolCreate(properties))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=16, help="rounds of allocation (default 16)")
    rounds = parser.parse_args().rounds

    ask(cu.cuInit(0))
    device = ask(cu.cuDeviceGet(0))
    ask(cu.cuCtxSetCurrent(ask(cu.cuDevicePrimaryCtxRetain(device))))
    stream = ask(cu.cuStreamCreate(0))
    pool = own_pool(device)
    rng = random.Random(6)
    kept = []
    for number in range(rounds):
        size = rng.randrange(1, 1 << rng.randrange(8, 26))
        ways = [
            ask(cu.cuMemAlloc(size)),
            ask(cu.cuMemAllocAsync(size, stream)),
            ask(cu.cuMemAllocFromPoolAsync(size, pool, stream)),
        ]
        ask(cu.cuStreamSynchronize(stream))
        same = all(fits(pointer, size, number) for pointer in ways)
        kept.append(ways)
        if len(kept) > 4:
            synchronous, *ordered = kept.pop(rng.randrange(4))
            ask(cu.cuMemFree(synchronous))
            for pointer in ordered:
                ask(cu.cuMemFreeAsync(pointer, stream))
        print(f"round {number}: {size} bytes three ways, back from the device equal: {same}", flush=True)
    print(f"mapped pages, back from the device equal: {mapped(device, PAGE)}")
    for synchronous, *ordered in kept:
        ask(cu.cuMemFree(synchronous))
        for pointer in ordered:
            ask(cu.cuMemFreeAsync(pointer, stream))
    ask(cu.cuStreamSynchronize(stream))
    ask(cu.cuMemPoolDestroy(pool))
    ask(cu.cuStreamDestroy(stream))
    ask(cu.cuDevicePrimaryCtxRelease(device))
    print("all given back")


if __name__ == "__main__":
    main()
