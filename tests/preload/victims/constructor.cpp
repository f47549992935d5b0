// A library linked to the driver, whose constructor lets a thread call it and waits for that thread.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdlib>
#include <thread>

namespace {

[[gnu::constructor]] void at_load() {
  std::thread([] {
    void* entry = nullptr;
    if (cuInit(0) != CUDA_SUCCESS || cuGetProcAddress_v2("cuMemAlloc", &entry, 12000, 0, nullptr) != CUDA_SUCCESS)
      std::abort();
  }).join();
}

}  // namespace
