// How a scene reaches the driver: as XLA does, by dlopen and dlsym, once before anything is measured. Who
// answers, the bare driver or a preload, is the environment's choice and unknown here.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace speed {

inline constexpr std::size_t kKiB = std::size_t{1} << 10;
inline constexpr std::size_t kMiB = std::size_t{1} << 20;

[[noreturn]] inline void give_up(const char* what, int code) {
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::_Exit(2);
}

inline void expect(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) give_up(what, static_cast<int>(result));
}
#define EXPECT(call) ::speed::expect((call), #call)

template <typename Function>
Function* driver_entry(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = driver == nullptr ? nullptr : dlsym(driver, name);
  if (found == nullptr) give_up(name, 0);
  return reinterpret_cast<Function*>(found);
}
#define DRIVER_ENTRY(name) ::speed::driver_entry<decltype(::name)>(#name)

// A started driver with a current context, one stream, and one block that stays: the weights of a program.
struct Gpu {
  decltype(::cuMemAlloc_v2)* allocate = DRIVER_ENTRY(cuMemAlloc_v2);
  decltype(::cuMemFree_v2)* free = DRIVER_ENTRY(cuMemFree_v2);
  decltype(::cuMemAllocAsync)* allocate_async = DRIVER_ENTRY(cuMemAllocAsync);
  decltype(::cuMemFreeAsync)* free_async = DRIVER_ENTRY(cuMemFreeAsync);
  decltype(::cuCtxSetCurrent)* set_current = DRIVER_ENTRY(cuCtxSetCurrent);
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  Gpu() {
    EXPECT(DRIVER_ENTRY(cuInit)(0));
    EXPECT(DRIVER_ENTRY(cuDevicePrimaryCtxRetain)(&context, 0));
    EXPECT(set_current(context));
    stream = new_stream();
    CUdeviceptr weights = 0;
    EXPECT(allocate(&weights, 32 * kMiB));
    EXPECT(allocate_async(&weights, 32 * kMiB, stream));
  }

  static CUstream new_stream() {
    CUstream made = nullptr;
    EXPECT(DRIVER_ENTRY(cuStreamCreate)(&made, CU_STREAM_NON_BLOCKING));
    return made;
  }

  void pair(std::size_t bytes) const {
    CUdeviceptr block = 0;
    EXPECT(allocate(&block, bytes));
    EXPECT(free(block));
  }
  void pair_async(std::size_t bytes, CUstream on) const {
    CUdeviceptr block = 0;
    EXPECT(allocate_async(&block, bytes, on));
    EXPECT(free_async(block, on));
  }
};

}  // namespace speed
