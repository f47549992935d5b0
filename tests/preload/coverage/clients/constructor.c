// A client library linked to the driver that calls it before dlopen has returned.
#include "work.h"

static int failed_at_load = -1;

__attribute__((constructor)) static void at_load(void) {
  const struct entries driver = {cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent, cuMemAlloc_v2,
                                 cuMemFree_v2};
  failed_at_load = work(&driver);
}

int defined_twice(void) { return 1; }

int run_client(int* bound_to) {
  *bound_to = defined_twice();
  CUdeviceptr block = 0;
  if (failed_at_load != 0) return failed_at_load;
  return cuMemAlloc_v2(&block, 512) == CUDA_SUCCESS && cuMemFree_v2(block) == CUDA_SUCCESS ? 0 : 6;
}
