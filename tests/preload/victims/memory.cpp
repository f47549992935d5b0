// What memory calls answer.
#include <cstdio>
#include <thread>
#include <vector>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

void alloc_free() {
  start_driver();
  std::vector<CUdeviceptr> blocks;
  for (std::size_t size : {std::size_t{1}, std::size_t{511}, 3 * kMiB, 64 * kMiB + 1, std::size_t{4096}}) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAlloc_v2)(&block, size));
    HOLDS(block % 256 == 0);
    std::vector<unsigned char> out(size, static_cast<unsigned char>(size % 251 + 1));
    std::vector<unsigned char> in(size);
    OK(CU(cuMemcpyHtoD_v2)(block, out.data(), size));
    OK(CU(cuMemcpyDtoH_v2)(in.data(), block, size));
    HOLDS(in == out);
    blocks.push_back(block);
  }
  for (CUdeviceptr block : blocks) OK(CU(cuMemFree_v2)(block));
  OK(CU(cuMemFree_v2)(0));
}

// As a framework that takes most of the device to carve it up itself.
void giant() {
  start_driver();
  CUdeviceptr small = 0, all = 0;
  OK(CU(cuMemAlloc_v2)(&small, 3 * kMiB));
  OK(CU(cuMemAlloc_v2)(&all, 60 * kGiB));
  std::vector<unsigned char> out(kMiB, 7), in(kMiB);
  OK(CU(cuMemcpyHtoD_v2)(all + 50 * kGiB, out.data(), kMiB));
  OK(CU(cuMemcpyDtoH_v2)(in.data(), all + 50 * kGiB, kMiB));
  HOLDS(in == out);
  CUdeviceptr more = 77;
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&more, 1000 * kGiB));
  HOLDS(more == 77);
  OK(CU(cuMemFree_v2)(all));
  OK(CU(cuMemFree_v2)(small));
}

void wrong_calls() {
  CUdeviceptr block = 77;
  FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuMemAlloc_v2)(&block, 512));
  OK(CU(cuInit)(0));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, CU(cuMemAlloc_v2)(&block, 512));
  start_driver();
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc_v2)(&block, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc_v2)(nullptr, 512));
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&block, ~std::size_t{0}));
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&block, 1000 * kGiB));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocAsync)(&block, 0, nullptr));
  HOLDS(block == 77);
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(0x1234));
  OK(CU(cuMemAlloc_v2)(&block, 4 * kMiB));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(block + 512));
  OK(CU(cuMemFree_v2)(block));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(block));
}

void stream_order() {
  start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr one = 0;
  OK(CU(cuMemAllocAsync)(&one, 2 * kMiB, stream));
  OK(CU(cuMemsetD8Async)(one, 1, 2 * kMiB, stream));
  // The driver allows any pairing of the two families.
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuMemFree_v2)(one));
  OK(CU(cuMemAlloc_v2)(&one, 2 * kMiB));
  OK(CU(cuMemFreeAsync)(one, stream));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  cuuint64_t keep = ~cuuint64_t{0};
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  CUdeviceptr two = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&two, 3 * kMiB, pool, stream));
  cuuint64_t used = 0;
  OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  HOLDS(used >= 3 * kMiB);
  OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  HOLDS(keep == ~cuuint64_t{0});
  OK(CU(cuMemFreeAsync)(two, stream));
  OK(CU(cuStreamDestroy_v2)(stream));
}

namespace {

CUdeviceptr take_whole_pool(CUstream* stream) {
  start_driver();
  OK(CU(cuStreamCreate)(stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  cuuint64_t threshold = 60 * kGiB;
  OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CUdeviceptr all = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&all, threshold, pool, *stream));
  return all;
}

void use_a_little(CUstream stream) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, 3 * kMiB, stream));
  OK(CU(cuMemsetD8Async)(block, 7, 3 * kMiB, stream));
  OK(CU(cuMemFreeAsync)(block, stream));
}

}  // namespace

// As XLA's cuda_async allocator begins: the whole pool, and back at once.
void pool_warm_up() {
  CUstream stream = nullptr;
  OK(CU(cuMemFreeAsync)(take_whole_pool(&stream), stream));
  use_a_little(stream);
}

// As JAX does once it runs: more and more of the pool, until it is refused.
void pool_exhausted() {
  CUstream stream = nullptr;
  OK(CU(cuMemFreeAsync)(take_whole_pool(&stream), stream));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr block = 0;
  CUresult result = CUDA_SUCCESS;
  while ((result = CU(cuMemAllocFromPoolAsync)(&block, 10 * kGiB, pool, stream)) == CUDA_SUCCESS)
    blocks.push_back(block);
  std::printf("%zu blocks of 10 GiB, then error %d\n", blocks.size(), result);
  // Others of the process are not bound, and what JAX gives back it may have again.
  CUdeviceptr other = 0;
  OK(CU(cuMemAlloc_v2)(&other, 10 * kGiB));
  OK(CU(cuMemFreeAsync)(blocks.back(), stream));
  OK(CU(cuMemAllocFromPoolAsync)(&block, 10 * kGiB, pool, stream));
}

// The same request by a program that means it.
void pool_used() {
  CUstream stream = nullptr;
  const CUdeviceptr all = take_whole_pool(&stream);
  use_a_little(stream);
  OK(CU(cuMemsetD8Async)(all + 30 * kGiB, 7, 3 * kMiB, stream));
  unsigned char in = 0;
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuMemcpyDtoH_v2)(&in, all + 30 * kGiB + 5, 1));
  HOLDS(in == 7);
  OK(CU(cuMemFreeAsync)(all, stream));
}

void address_answers() {
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 3 * kMiB));
  CUdeviceptr base = 0;
  std::size_t size = 0;
  OK(CU(cuMemGetAddressRange_v2)(&base, &size, block + kMiB));
  HOLDS(base == block && size == 3 * kMiB);
  OK(CU(cuPointerGetAttribute)(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 5));
  HOLDS(base == block);
  unsigned type = 0;
  OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  HOLDS(type == CU_MEMORYTYPE_DEVICE);
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  int ordinal = 7;
  void* values[] = {&size, &ordinal};
  OK(CU(cuPointerGetAttributes)(2, names, values, block));
  HOLDS(size == 3 * kMiB && ordinal == 0);
  OK(CU(cuMemFree_v2)(block));
  // A freed block is a foreign pointer.
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
  ordinal = 7;
  OK(CU(cuPointerGetAttributes)(2, names, values, block));
  CUdeviceptr foreign[2] = {};
  void* foreign_values[] = {&foreign[0], &foreign[1]};
  OK(CU(cuPointerGetAttributes)(2, names, foreign_values, 1));
  HOLDS(size == foreign[0] && ordinal == static_cast<int>(foreign[1]));
  int on_stack = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                            reinterpret_cast<CUdeviceptr>(&on_stack)));
}

void out_of_memory() {
  start_driver();
  CUdeviceptr kept = 0;
  OK(CU(cuMemAlloc_v2)(&kept, 50 * kGiB));
  CUdeviceptr more = 0;
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&more, 50 * kGiB));
  HOLDS(more == 0);
  OK(CU(cuMemAlloc_v2)(&more, 10 * kGiB));
  OK(CU(cuMemFree_v2)(more));
  OK(CU(cuMemFree_v2)(kept));
  OK(CU(cuMemAlloc_v2)(&kept, 70 * kGiB));
  OK(CU(cuMemFree_v2)(kept));
}

// What a library asks of the driver must not fail because freed memory is cached.
void memory_handed_to_the_driver() {
  start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, 60 * kGiB, stream));
  OK(CU(cuMemFreeAsync)(block, stream));
  OK(CU(cuStreamSynchronize)(stream));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(CU(cuMemCreate)(&handle, 60 * kGiB, &properties, 0));
  OK(CU(cuMemRelease)(handle));
}

// A limit counts what is cached, so the cache gives way to what the program itself creates.
void limit_filled_by_cache() {
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, 200 * kMiB, nullptr));
  OK(CU(cuMemFreeAsync)(block, nullptr));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(CU(cuMemCreate)(&handle, 600 * kMiB, &properties, 0));
  OK(CU(cuMemRelease)(handle));
}

void own_virtual_memory() {
  start_driver();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  const std::size_t size = 4 * kMiB;
  CUdeviceptr at = 0;
  OK(CU(cuMemAddressReserve)(&at, 2 * size, 0, 0, 0));
  CUmemGenericAllocationHandle handle = 0;
  OK(CU(cuMemCreate)(&handle, size, &properties, 0));
  // One handle mapped twice is one piece of memory.
  OK(CU(cuMemMap)(at, size, 0, handle, 0));
  OK(CU(cuMemMap)(at + size, size, 0, handle, 0));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(CU(cuMemSetAccess)(at, 2 * size, &access, 1));
  const unsigned out = 42;
  unsigned in = 0;
  OK(CU(cuMemcpyHtoD_v2)(at + 8, &out, sizeof out));
  OK(CU(cuMemcpyDtoH_v2)(&in, at + size + 8, sizeof in));
  HOLDS(in == out);
  OK(CU(cuMemRelease)(handle));
  OK(CU(cuMemUnmap)(at, size));
  OK(CU(cuMemUnmap)(at + size, size));
  OK(CU(cuMemAddressFree)(at, 2 * size));
}

// A program that empties its pool after every step uses addresses up; it may get slower, never fail.
void emptied_each_step() {
  start_driver();
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  for (int step = 0; step < 2000; ++step) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAllocAsync)(&block, 200 * kMiB, nullptr));
    OK(CU(cuMemFreeAsync)(block, nullptr));
    OK(CU(cuStreamSynchronize)(nullptr));
    OK(CU(cuMemPoolTrimTo)(pool, 0));
  }
}

void several_threads() {
  CUcontext context = start_driver();
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([context, number] {
      OK(CU(cuCtxSetCurrent)(context));
      CUstream stream = nullptr;
      OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
      for (int round = 0; round < 200; ++round) {
        const auto size = static_cast<std::size_t>(round % 7 + 1) * 300'000;
        CUdeviceptr block = 0;
        const bool ordered = (round + number) % 2 == 0;
        if (ordered)
          OK(CU(cuMemAllocAsync)(&block, size, stream));
        else
          OK(CU(cuMemAlloc_v2)(&block, size));
        if (round % 3 == 0) {
          OK(CU(cuStreamSynchronize)(stream));
          OK(CU(cuMemFree_v2)(block));
        } else {
          OK(CU(cuMemFreeAsync)(block, stream));
        }
      }
      OK(CU(cuStreamDestroy_v2)(stream));
    });
  for (std::thread& thread : threads) thread.join();
}

// Programs use cuMemFree as a barrier: work submitted before it is done when it returns.
void barrier() {
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 8 * kMiB));
  OK(CU(cuMemsetD8Async)(block, 1, 8 * kMiB, nullptr));
  OK(CU(cuMemFree_v2)(block));
  CUdeviceptr again = 0;
  OK(CU(cuMemAlloc_v2)(&again, 8 * kMiB));
  OK(CU(cuMemFree_v2)(again));
}
