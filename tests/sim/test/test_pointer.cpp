// Questions about pointers, and copies and fills by their rules.
#include <numeric>

#include "driver.hpp"

namespace {

template <typename T>
T ask(CUdeviceptr pointer, CUpointer_attribute attribute) {
  T answer{};
  REQUIRE(CU(cuPointerGetAttribute)(&answer, attribute, pointer) == CUDA_SUCCESS);
  return answer;
}

}  // namespace

TEST_CASE("attributes of each kind of memory are the truth about it") {
  OwnContext context;
  CUdeviceptr block = 0, pooled = 0, managed = 0;
  void* host = nullptr;
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuDeviceGetDefaultMemPool)(&pool, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAlloc_v2)(&block, 1000) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocAsync)(&pooled, 1000, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocManaged)(&managed, 1000, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemHostAlloc)(&host, 1000, 0) == CUDA_SUCCESS);
  CHECK(ask<unsigned>(block + 5, CU_POINTER_ATTRIBUTE_MEMORY_TYPE) == CU_MEMORYTYPE_DEVICE);
  CHECK(ask<unsigned>(reinterpret_cast<CUdeviceptr>(host), CU_POINTER_ATTRIBUTE_MEMORY_TYPE) ==
        CU_MEMORYTYPE_HOST);
  CHECK(ask<CUcontext>(block, CU_POINTER_ATTRIBUTE_CONTEXT) == context.handle);
  CHECK(ask<CUdeviceptr>(block + 5, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) == block);
  CHECK(ask<std::size_t>(block + 5, CU_POINTER_ATTRIBUTE_RANGE_SIZE) == 1000);
  CHECK(ask<CUmemoryPool>(block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) == nullptr);
  CHECK(ask<CUmemoryPool>(pooled, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) == pool);
  CHECK(ask<unsigned>(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED) == 1);
  CHECK(ask<unsigned>(block, CU_POINTER_ATTRIBUTE_IS_MANAGED) == 0);
  CHECK(ask<unsigned long long>(block, CU_POINTER_ATTRIBUTE_BUFFER_ID) !=
        ask<unsigned long long>(pooled, CU_POINTER_ATTRIBUTE_BUFFER_ID));
  void* seen = nullptr;
  CHECK(CU(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_HOST_POINTER, block) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemFreeAsync)(pooled, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(CU(cuPointerGetAttribute)(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, block) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an unknown pointer is an error for the single question and nothing for the plural") {
  OwnContext context;
  int local = 0;
  unsigned type = 9;
  CUcontext owner = context.handle;
  const auto pointer = reinterpret_cast<CUdeviceptr>(&local);
  CHECK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(type == 9);
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
  void* answers[] = {&type, &owner};
  CHECK(CU(cuPointerGetAttributes)(2, asked, answers, pointer) == CUDA_SUCCESS);
  CHECK(type == 0);
  CHECK(owner == nullptr);
}

TEST_CASE("what is copied to the device comes back equal, by every way") {
  OwnContext context;
  std::vector<int> out(100000), back(100000);
  std::iota(out.begin(), out.end(), 1);
  const std::size_t bytes = out.size() * sizeof(int);
  CUdeviceptr first = 0, second = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&first, bytes) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocAsync)(&second, bytes, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpyHtoD_v2)(first, out.data(), bytes) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpyDtoDAsync_v2)(second, first, bytes, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpy_ptds)(reinterpret_cast<CUdeviceptr>(back.data()), second, bytes) == CUDA_SUCCESS);
  CHECK(back == out);
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = first;
  plane.srcPitch = 400;
  plane.srcXInBytes = 8;
  plane.dstMemoryType = CU_MEMORYTYPE_HOST;
  plane.dstHost = back.data();
  plane.dstPitch = 12;
  plane.WidthInBytes = 12;
  plane.Height = 2;
  REQUIRE(CU(cuMemcpy2D_v2)(&plane) == CUDA_SUCCESS);
  CHECK(std::vector<int>(back.begin(), back.begin() + 6) == std::vector<int>{3, 4, 5, 103, 104, 105});
}

TEST_CASE("a copy or fill that leaves its block is refused") {
  OwnContext context;
  CUdeviceptr block = 0;
  char host[2000] = {};
  REQUIRE(CU(cuMemAlloc_v2)(&block, 1000) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyHtoD_v2)(block, host, 1001) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyHtoD_v2)(block + 999, host, 1) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyDtoH_v2)(host, 4096, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD8_v2)(block, 0, 1001) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD32_v2)(block + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD16_v2)(block + 2, 0, 499) == CUDA_SUCCESS);
}

TEST_CASE("a launch names a living function and a possible shape") {
  OwnContext context;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(CU(cuModuleLoadData)(&module, "image") == CUDA_SUCCESS);
  REQUIRE(CU(cuModuleGetFunction)(&function, module, "kernel") == CUDA_SUCCESS);
  CHECK(function != nullptr);
  CHECK(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuLaunchKernel)(function, 0, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLaunchKernel)(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuModuleUnload)(module) == CUDA_SUCCESS);
  CHECK(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
}
