// A client library that the linker binds to the driver: built twice, with a PLT and without.
#include "work.h"

int defined_twice(void) { return 1; }

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  const struct entries driver = {cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent, cuMemAlloc_v2,
                                 cuMemFree_v2};
  const int failed = work(&driver);
  if (failed != 0) return failed;
  // A direct call goes through the PLT where there is one, an address taken does not.
  CUdeviceptr block = 0;
  return cuMemAlloc_v2(&block, 512) == CUDA_SUCCESS && cuMemFree_v2(block) == CUDA_SUCCESS ? 0 : 6;
}
