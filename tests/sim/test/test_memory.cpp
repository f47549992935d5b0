// The cuMemAlloc family: budget, ranges, wrong pointers.
#include "driver.hpp"

TEST_CASE("an allocation takes whole pages of the budget and gives them back") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 3 * mib) == CUDA_SUCCESS);
  CHECK(block % (2 * mib) == 0);
  CHECK(free_bytes() == before - 4 * mib);
  REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("small allocations share a page, which is given back with the last of them") {
  OwnContext context;
  const std::size_t before = free_bytes();
  std::vector<CUdeviceptr> blocks(4000);
  for (auto& block : blocks) REQUIRE(CU(cuMemAlloc_v2)(&block, 500) == CUDA_SUCCESS);
  CHECK(free_bytes() == before - 2 * mib);
  for (const auto block : blocks) REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("out of memory is by budget and leaves the out-parameter alone") {
  OwnContext context;
  CUdeviceptr most = 0, more = 77;
  REQUIRE(CU(cuMemAlloc_v2)(&most, free_bytes()) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc_v2)(&more, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(more == 77);
  REQUIRE(CU(cuMemFree_v2)(most) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc_v2)(&more, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("memory of one device is not taken from another") {
  OwnContext first(0);
  const std::size_t before = free_bytes();
  CUdeviceptr block = 0;
  {
    OwnContext second(1);
    REQUIRE(CU(cuMemAlloc_v2)(&block, 100 * mib) == CUDA_SUCCESS);
    REQUIRE(CU(cuCtxSetCurrent)(first.handle) == CUDA_SUCCESS);
    CHECK(free_bytes() == before);
    REQUIRE(CU(cuCtxSetCurrent)(second.handle) == CUDA_SUCCESS);
  }
}

TEST_CASE("freeing what is no block's beginning is an invalid value") {
  OwnContext context;
  CUdeviceptr block = 0;
  void* host = nullptr;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 4 * kib) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemHostAlloc)(&host, 4 * kib, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemFree_v2)(block + 512) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree_v2)(12345) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree_v2)(reinterpret_cast<CUdeviceptr>(host)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(CU(cuMemFree_v2)(block) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("nothing of size zero can be allocated") {
  OwnContext context;
  CUdeviceptr block = 0;
  std::size_t pitch = 0;
  void* host = nullptr;
  CHECK(CU(cuMemAlloc_v2)(&block, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAlloc_v2)(nullptr, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocPitch_v2)(&block, &pitch, 0, 4, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocManaged)(&block, 0, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAllocAsync)(&block, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemHostAlloc)(&host, 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the address range of an inner pointer is the block as it was asked for") {
  OwnContext context;
  CUdeviceptr block = 0, base = 0;
  std::size_t size = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 1000) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemGetAddressRange_v2)(&base, &size, block + 999) == CUDA_SUCCESS);
  CHECK(base == block);
  CHECK(size == 1000);
  REQUIRE(CU(cuMemGetAddressRange_v2)(nullptr, &size, block) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetAddressRange_v2)(&base, &size, 4096) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("rows of pitched memory are as far apart as the pitch says") {
  OwnContext context;
  CUdeviceptr block = 0;
  std::size_t pitch = 0, size = 0;
  REQUIRE(CU(cuMemAllocPitch_v2)(&block, &pitch, 700, 10, 4) == CUDA_SUCCESS);
  CHECK(pitch >= 700);
  REQUIRE(CU(cuMemGetAddressRange_v2)(nullptr, &size, block) == CUDA_SUCCESS);
  CHECK(size == pitch * 10);
  CHECK(CU(cuMemAllocPitch_v2)(&block, &pitch, 700, 10, 3) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("managed and host memory can be touched by the host and take no device memory") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr managed = 0;
  void* host = nullptr;
  REQUIRE(CU(cuMemAllocManaged)(&managed, 2 * gib, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocHost_v2)(&host, 1 * mib) == CUDA_SUCCESS);
  CHECK(reinterpret_cast<std::uint64_t>(host) % 256 == 0);
  *reinterpret_cast<int*>(managed) = 5;
  *static_cast<int*>(host) = 6;
  CHECK(free_bytes() == before);
  CHECK(CU(cuMemFree_v2)(managed) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeHost)(host) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeHost)(host) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("host memory is registered once, and only what is registered is unregistered") {
  OwnContext context;
  std::vector<char> memory(8192);
  CUdeviceptr seen = 0;
  REQUIRE(CU(cuMemHostRegister_v2)(memory.data(), 8192, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemHostRegister_v2)(memory.data() + 100, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(CU(cuMemHostGetDevicePointer_v2)(&seen, memory.data(), 0) == CUDA_SUCCESS);
  CHECK(seen == reinterpret_cast<CUdeviceptr>(memory.data()));
  CHECK(CU(cuMemHostUnregister)(memory.data()) == CUDA_SUCCESS);
  CHECK(CU(cuMemHostUnregister)(memory.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
