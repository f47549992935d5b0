// A client library that looks up symbol by symbol, each with a version.
#define _GNU_SOURCE
#include <dlfcn.h>

#include "work.h"

static const char kVersion[] = "CUDA_1.0";

int defined_twice(void) { return 1; }

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 10;
  struct entries driver;
  *(void**)&driver.start = dlvsym(library, "cuInit", kVersion);
  *(void**)&driver.retain = dlvsym(library, "cuDevicePrimaryCtxRetain", kVersion);
  *(void**)&driver.make_current = dlvsym(library, "cuCtxSetCurrent", kVersion);
  *(void**)&driver.allocate = dlvsym(library, "cuMemAlloc_v2", kVersion);
  *(void**)&driver.release = dlvsym(library, "cuMemFree_v2", kVersion);
  return work(&driver);
}
