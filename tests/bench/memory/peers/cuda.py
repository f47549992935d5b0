"""The few driver calls that programs of this folder make themselves, on a stream of their own."""

import ctypes

library = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(library, name)(*arguments)
    assert code == 0, f"{name}: {code}"


def start():
    """Makes the primary context of device 0 current in this thread."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


class Stream:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(self.handle), 1)

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(size), self.handle)
        return pointer.value

    def free(self, pointer):
        call("cuMemFreeAsync", ctypes.c_uint64(pointer), self.handle)

    def synchronize(self):
        call("cuStreamSynchronize", self.handle)
