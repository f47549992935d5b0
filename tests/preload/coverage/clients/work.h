// What every client library does once it has the driver's entries in hand, and what all of them share:
// a function that the program defines as well, to see which of the two a library is bound to.
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stddef.h>

struct entries {
  CUresult (*start)(unsigned);
  CUresult (*retain)(CUcontext*, CUdevice);
  CUresult (*make_current)(CUcontext);
  CUresult (*allocate)(CUdeviceptr*, size_t);
  CUresult (*release)(CUdeviceptr);
};

// 0, or the number of the step that failed.
static inline int work(const struct entries* driver) {
  CUcontext context = NULL;
  if (driver->start(0) != CUDA_SUCCESS) return 1;
  if (driver->retain(&context, 0) != CUDA_SUCCESS) return 2;
  if (driver->make_current(context) != CUDA_SUCCESS) return 3;
  for (int i = 0; i < 2; ++i) {
    CUdeviceptr block = 0;
    if (driver->allocate(&block, (size_t)3 << 20) != CUDA_SUCCESS || block == 0) return 4;
    if (driver->release(block) != CUDA_SUCCESS) return 5;
  }
  return 0;
}

#define CLIENT_EXPORT __attribute__((visibility("default")))

// 1 here, 2 in the program. A library loaded with RTLD_DEEPBIND, or in a namespace of its own, has its own.
CLIENT_EXPORT int defined_twice(void);
CLIENT_EXPORT int run_client(int* bound_to);
