// A client library as XLA is one: opens the driver and looks up symbol by symbol. The driver's file name
// is that of taichi if the program says so.
#include <dlfcn.h>
#include <stdlib.h>

#include "work.h"

int defined_twice(void) { return 1; }

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  const char* name = getenv("CLIENT_DRIVER");
  void* library = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 10;
  struct entries driver;
  *(void**)&driver.start = dlsym(library, "cuInit");
  *(void**)&driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
  *(void**)&driver.make_current = dlsym(library, "cuCtxSetCurrent");
  *(void**)&driver.allocate = dlsym(library, "cuMemAlloc_v2");
  *(void**)&driver.release = dlsym(library, "cuMemFree_v2");
  return work(&driver);
}
