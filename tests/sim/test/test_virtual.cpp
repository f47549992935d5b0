// Virtual memory: the rules that cuda.h states, and who keeps physical memory alive.
#include <csignal>

#include "driver.hpp"

namespace {

constexpr std::size_t page = 2 * mib;

CUmemAccessDesc readwrite(int device) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, {device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

CUmemGenericAllocationHandle create(std::size_t size) {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = on_device(0);
  REQUIRE(CU(cuMemCreate)(&handle, size, &prop, 0) == CUDA_SUCCESS);
  return handle;
}

CUdeviceptr reserve(std::size_t size) {
  CUdeviceptr base = 0;
  REQUIRE(CU(cuMemAddressReserve)(&base, size, 0, 0, 0) == CUDA_SUCCESS);
  return base;
}

}  // namespace

TEST_CASE("physical memory is made in multiples of the granularity, out of the budget") {
  OwnContext context;
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0;
  std::size_t granularity = 0;
  REQUIRE(CU(cuMemGetAllocationGranularity)(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
          CUDA_SUCCESS);
  CHECK(granularity == page);
  CHECK(CU(cuMemCreate)(&handle, page + 4096, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, 0, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, free_bytes() + page, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  const CUmemAllocationProp elsewhere = on_device(9);
  CHECK(CU(cuMemCreate)(&handle, page, &elsewhere, 0) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("physical memory lives until it is released and unmapped, in either order") {
  OwnContext context;
  const std::size_t before = free_bytes();
  const bool release_first = GENERATE(true, false);
  const auto handle = create(page);
  const auto base = reserve(page);
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  if (release_first)
    REQUIRE(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  else
    REQUIRE(CU(cuMemUnmap)(base, page) == CUDA_SUCCESS);
  CHECK(free_bytes() == before - page);
  if (release_first)
    REQUIRE(CU(cuMemUnmap)(base, page) == CUDA_SUCCESS);
  else
    REQUIRE(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(CU(cuMemRelease)(handle) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(base, page) == CUDA_SUCCESS);
}

TEST_CASE("two mappings of one allocation show the same bytes") {
  OwnContext context;
  const auto handle = create(page);
  const auto base = reserve(2 * page);
  const auto access = readwrite(0);
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(base + page, page, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemSetAccess)(base, 2 * page, &access, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemsetD32_v2)(base, 0xabcd, 10) == CUDA_SUCCESS);
  unsigned seen = 0;
  REQUIRE(CU(cuMemcpyDtoH_v2)(&seen, base + page, 4) == CUDA_SUCCESS);
  CHECK(seen == 0xabcd);
  CHECK(CU(cuMemUnmap)(base, 2 * page) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(base, 2 * page) == CUDA_SUCCESS);
}

TEST_CASE("a mapping must have offset 0, lie in a reservation and over nothing mapped") {
  OwnContext context;
  const auto handle = create(2 * page);
  const auto base = reserve(2 * page);
  CHECK(CU(cuMemMap)(base, page, page, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base, 4 * page, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base + 2 * page, page, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base + 4096, page, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(base, 2 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base, page) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(base, page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(base, 2 * page) == CUDA_SUCCESS);
}

TEST_CASE("a part of a mapping can be neither unmapped nor given access") {
  OwnContext context;
  const auto handle = create(2 * page);
  const auto base = reserve(4 * page);
  const auto access = readwrite(0);
  REQUIRE(CU(cuMemMap)(base, 2 * page, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemUnmap)(base, page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base + page, page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base, 3 * page) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemSetAccess)(base, 4 * page, &access, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base, 2 * page) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(base, 4 * page) == CUDA_SUCCESS);
}

TEST_CASE("mapped memory cannot be used before access is set, nor after it is unmapped") {
  OwnContext context;
  const auto handle = create(page);
  const auto base = reserve(page);
  const auto access = readwrite(0);
  int word = 3;
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyHtoD_v2)(base, &word, 4) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemSetAccess)(base, page, &access, 1) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyHtoD_v2)(base, &word, 4) == CUDA_SUCCESS);
  unsigned long long flags = 0;
  CHECK(CU(cuMemGetAccess)(&flags, &access.location, base) == CUDA_SUCCESS);
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  REQUIRE(CU(cuMemUnmap)(base, page) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyHtoD_v2)(base, &word, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemAddressFree)(base, page) == CUDA_SUCCESS);
}

TEST_CASE("a retained handle is a reference of its own") {
  OwnContext context;
  const std::size_t before = free_bytes();
  const auto handle = create(page);
  const auto base = reserve(page);
  CUmemGenericAllocationHandle again = 0;
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(base + 100)) == CUDA_SUCCESS);
  CHECK(again == handle);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemUnmap)(base, page) == CUDA_SUCCESS);
  CHECK(free_bytes() == before - page);
  CHECK(CU(cuMemRelease)(again) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(CU(cuMemAddressFree)(base, page) == CUDA_SUCCESS);
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, page) == CUDA_SUCCESS);
  CHECK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(block)) == CUDA_ERROR_INVALID_VALUE);
}
