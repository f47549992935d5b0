// Contexts: stacks of threads, primary contexts, and what dies with them.
#include <thread>

#include "driver.hpp"

TEST_CASE("without a context, calls that need one say so") {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUdeviceptr block = 0;
  std::size_t free = 0, total = 0;
  CUstream stream = nullptr;
  CHECK(CU(cuMemAlloc_v2)(&block, 1) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuMemGetInfo_v2)(&free, &total) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuStreamCreate)(&stream, 0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuMemAllocAsync)(&block, 1, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("each thread has a stack of its own") {
  OwnContext first;
  OwnContext second;
  CUcontext current = nullptr;
  REQUIRE(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == second.handle);
  std::thread([&] {
    CUcontext there = first.handle;
    CU(cuCtxGetCurrent)(&there);
    current = there;
  }).join();
  CHECK(current == nullptr);
  REQUIRE(CU(cuCtxPopCurrent_v2)(&current) == CUDA_SUCCESS);
  CHECK(current == second.handle);
  REQUIRE(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == first.handle);
  REQUIRE(CU(cuCtxPushCurrent_v2)(second.handle) == CUDA_SUCCESS);
}

TEST_CASE("a destroyed context frees its memory, but not what belongs to no context") {
  OwnContext watcher;
  const std::size_t before = free_bytes();
  CUcontext doomed = nullptr;
  CUdeviceptr block = 0, pooled = 0;
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = on_device(0);
  REQUIRE(CU(cuCtxCreate_v2)(&doomed, 0, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAlloc_v2)(&block, 10 * mib) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocAsync)(&pooled, 32 * mib, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemCreate)(&handle, 4 * mib, &prop, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxDestroy_v2)(doomed) == CUDA_SUCCESS);
  CUcontext current = nullptr;
  REQUIRE(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == watcher.handle);
  CHECK(free_bytes() == before - 36 * mib);
  CHECK(CU(cuMemFree_v2)(block) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree_v2)(pooled) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a thread that still has a destroyed context is told that it is destroyed") {
  OwnContext doomed;
  CUresult seen = CUDA_SUCCESS;
  std::thread([&] {
    CU(cuCtxSetCurrent)(doomed.handle);
    std::thread([&] { CU(cuCtxDestroy_v2)(doomed.handle); }).join();
    CUdeviceptr block = 0;
    seen = CU(cuMemAlloc_v2)(&block, 1);
  }).join();
  doomed.handle = nullptr;
  CHECK(seen == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("a primary context lives while it is retained, and its handle comes back") {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 0;
  int active = 1;
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&first, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&second, 1) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxGetState)(1, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  REQUIRE(CU(cuCtxPushCurrent_v2)(first) == CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 8 * mib) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuMemAlloc_v2)(&block, 8 * mib) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&second, 1) == CUDA_SUCCESS);
  CHECK(second == first);
  REQUIRE(CU(cuCtxPushCurrent_v2)(second) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_SUCCESS);
}

TEST_CASE("a reset frees the primary context's memory and leaves it retained") {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUcontext primary = nullptr, again = nullptr;
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&primary, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxPushCurrent_v2)(primary) == CUDA_SUCCESS);
  const std::size_t before = free_bytes();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 8 * mib) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxReset_v2)(1) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&again, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxPushCurrent_v2)(again) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease_v2)(1) == CUDA_ERROR_INVALID_CONTEXT);
}
