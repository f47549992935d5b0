// Stands in for a library of NVIDIA's that takes device memory for its handle.
#include "tests/preload/victims/driver.hpp"

extern "C" __attribute__((visibility("default"))) CUresult library_create(std::size_t bytes) {
  CUdeviceptr pointer = 0;
  return CU(cuMemAlloc_v2)(&pointer, bytes);
}
