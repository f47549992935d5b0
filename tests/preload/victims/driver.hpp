// How the victims reach the driver: as XLA does, by dlopen and dlsym of one symbol after another.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

inline void* driver_handle() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("no driver\n");
    std::exit(3);
  }
  return handle;
}

template <typename Function>
Function* driver_symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(driver_handle(), name));
}

// CU(cuInit)(0): looked up at every call, so that every call passes the look-up as well.
#define CU(name) (driver_symbol<decltype(::name)>(#name))

// Ends the victim when a call does not answer as it must.
inline void expect(CUresult result, CUresult wanted, const char* what) {
  if (result == wanted) return;
  std::printf("%s: answered %d, not %d\n", what, static_cast<int>(result), static_cast<int>(wanted));
  std::fflush(stdout);
  std::_Exit(4);
}
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("does not hold: %s\n", what);
  std::fflush(stdout);
  std::_Exit(4);
}
#define OK(call) expect((call), CUDA_SUCCESS, #call)
#define FAILS(wanted, call) expect((call), wanted, #call)
#define HOLDS(condition) expect((condition), #condition)

inline CUcontext start_driver() {
  OK(CU(cuInit)(0));
  CUcontext context = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  OK(CU(cuCtxSetCurrent)(context));
  return context;
}

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;
