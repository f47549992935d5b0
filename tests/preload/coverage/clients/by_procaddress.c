// A client library as libcudart is one: asks the driver itself for every entry.
#include <dlfcn.h>

#include "work.h"

int defined_twice(void) { return 1; }

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 10;
  CUresult (*look_up)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  *(void**)&look_up = dlsym(library, "cuGetProcAddress_v2");
  struct entries driver;
  if (look_up("cuInit", (void**)&driver.start, 12000, 0, NULL) != CUDA_SUCCESS ||
      look_up("cuDevicePrimaryCtxRetain", (void**)&driver.retain, 12000, 0, NULL) != CUDA_SUCCESS ||
      look_up("cuCtxSetCurrent", (void**)&driver.make_current, 12000, 0, NULL) != CUDA_SUCCESS ||
      look_up("cuMemAlloc", (void**)&driver.allocate, 12000, 0, NULL) != CUDA_SUCCESS ||
      look_up("cuMemFree", (void**)&driver.release, 12000, 0, NULL) != CUDA_SUCCESS)
    return 11;
  return work(&driver);
}
