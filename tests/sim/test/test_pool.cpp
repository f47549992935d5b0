// The stream-ordered family: reuse, release threshold, attributes, destruction.
#include "driver.hpp"

namespace {

CUmemoryPool default_pool() {
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuDeviceGetDefaultMemPool)(&pool, 0) == CUDA_SUCCESS);
  return pool;
}

cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  REQUIRE(CU(cuMemPoolGetAttribute)(pool, which, &value) == CUDA_SUCCESS);
  return value;
}

CUmemoryPool own_pool() {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &props) == CUDA_SUCCESS);
  return pool;
}

}  // namespace

TEST_CASE("a freed block stays in its pool until a synchronisation, by the release threshold") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUmemoryPool pool = default_pool();
  CUdeviceptr block = 0, again = 0;
  REQUIRE(CU(cuMemAllocAsync)(&block, 5 * mib, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemFreeAsync)(block, nullptr) == CUDA_SUCCESS);
  CHECK(free_bytes() < before);
  REQUIRE(CU(cuMemAllocAsync)(&again, 5 * mib, nullptr) == CUDA_SUCCESS);
  CHECK(again == block);
  REQUIRE(CU(cuMemFreeAsync)(again, nullptr) == CUDA_SUCCESS);
  cuuint64_t keep = 1 * gib;
  REQUIRE(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(free_bytes() < before);
  keep = 0;
  REQUIRE(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamSynchronize)(nullptr) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a pool counts what is used and reserved, and its highs can only be reset") {
  OwnContext context;
  CUmemoryPool pool = own_pool();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&block, 1000, pool, nullptr) == CUDA_SUCCESS);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 2 * mib);
  REQUIRE(CU(cuMemFreeAsync)(block, nullptr) == CUDA_SUCCESS);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024);
  cuuint64_t value = 5;
  CHECK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value) == CUDA_ERROR_INVALID_VALUE);
  value = 0;
  CHECK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value) == CUDA_SUCCESS);
  CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 0);
  CHECK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
}

TEST_CASE("a destroyed pool's memory is freed with its last block") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUmemoryPool pool = own_pool();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&block, 1 * mib, pool, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  CHECK(free_bytes() < before);
  CHECK(CU(cuMemAllocFromPoolAsync)(&block, 1 * mib, pool, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemFreeAsync)(block, nullptr) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("the default pool cannot be destroyed, and takes over when the current one is") {
  OwnContext context;
  CUmemoryPool pool = own_pool(), current = nullptr;
  CHECK(CU(cuMemPoolDestroy)(default_pool()) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuDeviceSetMemPool)(0, pool) == CUDA_SUCCESS);
  REQUIRE(CU(cuDeviceGetMemPool)(&current, 0) == CUDA_SUCCESS);
  CHECK(current == pool);
  REQUIRE(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  REQUIRE(CU(cuDeviceGetMemPool)(&current, 0) == CUDA_SUCCESS);
  CHECK(current == default_pool());
}

TEST_CASE("what a pool keeps unused does not make another allocation fail") {
  OwnContext context;
  cuuint64_t keep = ~0ull;
  REQUIRE(CU(cuMemPoolSetAttribute)(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) ==
          CUDA_SUCCESS);
  const std::size_t all = free_bytes();
  CUdeviceptr pooled = 0, block = 0;
  REQUIRE(CU(cuMemAllocAsync)(&pooled, all / 2, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc_v2)(&block, all) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(CU(cuMemFreeAsync)(pooled, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc_v2)(&block, all) == CUDA_SUCCESS);
  keep = 0;
  REQUIRE(CU(cuMemPoolSetAttribute)(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) ==
          CUDA_SUCCESS);
}

TEST_CASE("a stream-ordered block may be freed by cuMemFree") {
  OwnContext context;
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAllocAsync)(&block, 1 * mib, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeAsync)(block, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}
