// Programs that free memory of cuMemAlloc and ask for equal memory again. Each scenario does something to a
// block that a block which comes back must not show; how often the driver was asked, the test reads in its
// log.
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

constexpr std::size_t kSize = 4 * kMiB;

CUdeviceptr take(std::size_t size = kSize) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, size));
  return block;
}
void give(CUdeviceptr block) { OK(CU(cuMemFree_v2)(block)); }

void write(CUdeviceptr at, unsigned value) { OK(CU(cuMemcpyHtoD_v2)(at, &value, sizeof value)); }
unsigned read(CUdeviceptr at) {
  unsigned value = 0;
  OK(CU(cuMemcpyDtoH_v2)(&value, at, sizeof value));
  return value;
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  return free;
}

// An address of nobody.
void must_be_foreign(CUdeviceptr block) {
  for (const CUdeviceptr inside : {block, block + kMiB}) {
    CUdeviceptr base = 7;
    std::size_t size = 7;
    FAILS(CUDA_ERROR_NOT_FOUND, CU(cuMemGetAddressRange_v2)(&base, &size, inside));
    HOLDS(base == 7 && size == 7);
    unsigned type = 7;
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
    HOLDS(type == 7);
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* values[] = {&type};
    OK(CU(cuPointerGetAttributes)(1, &name, values, inside));
    HOLDS(type == 0);
    const unsigned on = 1;
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, inside));
  }
  CUipcMemHandle handle{};
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuIpcGetMemHandle)(&handle, block));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree_v2)(block));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeAsync)(block, nullptr));
}

}  // namespace

void native_cycled() {
  start_driver();
  const std::size_t before = free_memory();
  for (unsigned round = 0; round < 10; ++round) {
    const CUdeviceptr block = take();
    write(block, round);
    HOLDS(read(block) == round);
    HOLDS(free_memory() < before);
    give(block);
    must_be_foreign(block);
    HOLDS(free_memory() == before);
  }
}

void native_small() {
  start_driver();
  std::vector<CUdeviceptr> blocks;
  for (int round = 0; round < 2; ++round) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{512}, std::size_t{4096}})
      blocks.push_back(take(size));
    for (const CUdeviceptr block : blocks) give(block);
    blocks.clear();
  }
}

// Pitched blocks come back with their pitch, and only as what they were asked for as.
void native_pitched() {
  start_driver();
  struct Form {
    std::size_t width, height;
    unsigned element;
  };
  const Form forms[] = {{1000, 64, 4}, {1000, 64, 4}, {1000, 64, 16}, {64, 1000, 4}, {64'000, 1, 4}};
  for (const Form& form : forms) {
    CUdeviceptr block = 0;
    std::size_t pitch = 0;
    OK(CU(cuMemAllocPitch_v2)(&block, &pitch, form.width, form.height, form.element));
    HOLDS(pitch >= form.width && pitch % 512 == 0);
    std::size_t size = 0;
    OK(CU(cuMemGetAddressRange_v2)(nullptr, &size, block));
    HOLDS(size == pitch * form.height);
    give(block);
  }
  give(take(64'000));
  CUdeviceptr block = 77;
  std::size_t pitch = 77;
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocPitch_v2)(&block, &pitch, 1000, 64, 3));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocPitch_v2)(&block, nullptr, 1000, 64, 4));
  HOLDS(block == 77 && pitch == 77);
}

// Whoever has a block's handle, its tokens or its registration keeps them after its free.
void native_claimed() {
  start_driver();
  for (int way = 0; way < 6; ++way) {
    const CUdeviceptr block = take();
    unsigned flag = 1;
    CUipcMemHandle handle{};
    int file = -1;
    unsigned long long tokens[2] = {};
    if (way == 0) OK(CU(cuIpcGetMemHandle)(&handle, block));
    if (way == 1) OK(CU(cuPointerSetAttribute)(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block + kMiB));
    // The simulator has none of these; that it was tried is what counts.
    if (way == 2)
      CU(cuMemGetHandleForAddressRange)(&file, block + kMiB, kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (way == 3) CU(cuMulticastBindAddr)(1, 0, block, 2 * kMiB, 0);
    if (way == 4) CU(cuPointerGetAttribute)(tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, block);
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
    void* values[] = {tokens};
    if (way == 5) CU(cuPointerGetAttributes)(1, &name, values, block + 5);
    give(block);
  }
  const CUdeviceptr block = take();
  unsigned flag = 7;
  OK(CU(cuPointerGetAttribute)(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  HOLDS(flag == 0);
  give(block);
}

// Of each context its own, which ends with it.
void native_of_contexts() {
  const CUcontext primary = start_driver();
  give(take());
  CUcontext other = nullptr;
  OK(CU(cuCtxCreate_v2)(&other, 0, 0));
  const CUdeviceptr block = take();
  CUcontext owner = nullptr;
  OK(CU(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block));
  HOLDS(owner == other);
  OK(CU(cuCtxSetCurrent)(primary));
  give(block);
  OK(CU(cuCtxDestroy_v2)(other));
  give(take());
  HOLDS(free_memory() == 80 * kGiB);
  OK(CU(cuDevicePrimaryCtxReset_v2)(0));
  start_driver();
  give(take());
  HOLDS(free_memory() == 80 * kGiB);
}

// 1 GiB of device, or a limit of as much: all of it idle, then wanted otherwise, by every way.
void native_gives_way() {
  start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  const auto leave_idle = [] {
    std::vector<CUdeviceptr> blocks;
    for (int i = 0; i < 9; ++i) blocks.push_back(take(100 * kMiB));
    for (const CUdeviceptr block : blocks) give(block);
  };
  leave_idle();
  give(take(900 * kMiB));
  leave_idle();
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemGenericAllocationHandle handle = 0;
  OK(CU(cuMemCreate)(&handle, 900 * kMiB, &wanted, 0));
  OK(CU(cuMemRelease)(handle));
  leave_idle();
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, 900 * kMiB, stream));
  OK(CU(cuMemFreeAsync)(block, stream));
  OK(CU(cuStreamSynchronize)(stream));
  leave_idle();
}

// Sizes that never come back.
void native_of_drawn_sizes() {
  start_driver();
  for (std::size_t step = 0; step < 40; ++step) {
    std::vector<CUdeviceptr> blocks;
    for (std::size_t i = 0; i < 4; ++i) blocks.push_back(take((step * 4 + i + 1) % 61 * 2 * kMiB + kMiB));
    for (const CUdeviceptr block : blocks) give(block);
  }
}

// A free during another's capture neither waits nor breaks it, and what it freed comes back afterwards.
void native_beside_capture() {
  start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  constexpr std::size_t size = 16 * kMiB;  // so that one is worth a fence
  const CUdeviceptr block = take(size);
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  give(block);
  give(take(size));
  CUgraph graph = nullptr;
  OK(CU(cuStreamEndCapture)(stream, &graph));
  OK(CU(cuGraphDestroy)(graph));
  for (int round = 0; round < 10; ++round) give(take(size));
}

void native_in_threads() {
  const CUcontext context = start_driver();
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number)
    threads.emplace_back([context, number] {
      OK(CU(cuCtxSetCurrent)(context));
      for (unsigned round = 0; round < 300; ++round) {
        std::vector<CUdeviceptr> blocks;
        for (unsigned i = 0; i < 3; ++i) {
          blocks.push_back(take(kSize + i % 2 * kMiB));
          write(blocks[i], number * 10'000 + round * 3 + i);
        }
        for (unsigned i = 0; i < 3; ++i) HOLDS(read(blocks[i]) == number * 10'000 + round * 3 + i);
        for (const CUdeviceptr block : blocks) give(block);
        // Another thread finds the cache as it is being emptied.
        CUdeviceptr all = 0;
        if (round % 50 == number) FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&all, 1000 * kGiB));
      }
    });
  for (std::thread& thread : threads) thread.join();
}
