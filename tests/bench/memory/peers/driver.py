"""A trace through cuMemAllocAsync and cuMemFreeAsync on one stream: with the shim preloaded, tidepool."""

import ctypes

from playing import play

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, f"{name}: {code}"


device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", ctypes.byref(stream), 1)


def allocate(size):
    pointer = ctypes.c_uint64()
    call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(size), stream)
    return pointer


play(allocate, lambda pointer: call("cuMemFreeAsync", pointer, stream))
