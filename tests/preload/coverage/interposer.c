// Another preload that wraps the driver by its exports, as most do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "clients/work.h"

CLIENT_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  CUresult (*next)(CUdeviceptr*, size_t);
  *(void**)&next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
  return next != NULL ? next(out, bytes) : CUDA_ERROR_NOT_FOUND;
}
