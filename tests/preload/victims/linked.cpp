// Linked to libcuda: finds it by the linker, never opens or looks anything up. Its constructor already
// calls the driver, before any constructor of a preload that comes later has run.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdio>

namespace {

const CUresult at_start = cuInit(0);

bool allocate_and_free() {
  CUcontext context = nullptr;
  CUdeviceptr block = 0;
  return cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS &&
         cuMemAlloc_v2(&block, 3 << 20) == CUDA_SUCCESS && block != 0 && cuMemFree_v2(block) == CUDA_SUCCESS;
}

}  // namespace

int main() {
  const bool works = at_start == CUDA_SUCCESS && allocate_and_free();
  std::puts(works ? "done" : "failed");
  return works ? 0 : 1;
}
