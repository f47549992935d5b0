// A library that defines the driver's entries itself, as stubs that open libcuda at their first call: the
// way of TensorFlow, whose other libraries call these by the linker.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>

namespace {

template <typename Function>
Function* driver_entry(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

#define STUB(name, parameters, arguments)                                             \
  extern "C" __attribute__((visibility("default"))) CUresult name parameters {        \
    static auto* const entry = driver_entry<CUresult parameters>(#name);              \
    return entry == nullptr ? CUDA_ERROR_SHARED_OBJECT_INIT_FAILED : entry arguments; \
  }

STUB(cuInit, (unsigned flags), (flags))
STUB(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
STUB(cuCtxSetCurrent, (CUcontext context), (context))
STUB(cuMemAlloc_v2, (CUdeviceptr * block, size_t bytes), (block, bytes))
STUB(cuMemFree_v2, (CUdeviceptr block), (block))
