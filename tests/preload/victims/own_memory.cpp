// Programs that map memory of their own, again and again. Each scenario ends a piece of memory in its own
// way, asks for an equal one, and sees that nobody else's bytes come with it; how often the driver was asked
// for memory, the test reads in its log.
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

using Handle = CUmemGenericAllocationHandle;
constexpr std::size_t kSize = 4 * kMiB;
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

CUmemAllocationProp properties(CUmemAllocationHandleType types = CU_MEM_HANDLE_TYPE_NONE, int device = 0) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  wanted.requestedHandleTypes = types;
  return wanted;
}

Handle create(std::size_t size = kSize, const CUmemAllocationProp& wanted = properties()) {
  Handle handle = 0;
  OK(CU(cuMemCreate)(&handle, size, &wanted, 0));
  return handle;
}

CUdeviceptr reserve(std::size_t size) {
  CUdeviceptr at = 0;
  OK(CU(cuMemAddressReserve)(&at, size, 0, 0, 0));
  return at;
}

void map(CUdeviceptr at, Handle handle, std::size_t size = kSize, int device = 0) {
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {device}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(CU(cuMemMap)(at, size, 0, handle, 0));
  OK(CU(cuMemSetAccess)(at, size, &access, 1));
}

void unmap(CUdeviceptr at, std::size_t size = kSize) { OK(CU(cuMemUnmap)(at, size)); }
void release(Handle handle) { OK(CU(cuMemRelease)(handle)); }

void write(CUdeviceptr at, unsigned value) {
  OK(CU(cuMemcpyHtoD_v2)(at, &value, sizeof value));
  OK(CU(cuCtxSynchronize)());
}
unsigned read(CUdeviceptr at) {
  unsigned value = 0;
  OK(CU(cuMemcpyDtoH_v2)(&value, at, sizeof value));
  return value;
}

// A life like any other, of an equal piece.
void live_once(CUdeviceptr at, unsigned value) {
  const Handle handle = create();
  map(at, handle);
  write(at, value);
  HOLDS(read(at) == value);
  unmap(at);
  release(handle);
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  return free;
}

}  // namespace

// Released before its last mapping goes, and after; the address is free, and shut, in between.
void own_memory_cycled() {
  start_driver();
  const std::size_t before = free_memory();
  const CUdeviceptr at = reserve(2 * kSize);
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  for (unsigned round = 0; round < 10; ++round) {
    const CUdeviceptr place = at + round % 3 / 2 * kSize;
    const Handle handle = create();
    OK(CU(cuMemMap)(place, kSize, 0, handle, 0));
    unsigned long long flags = 7;
    OK(CU(cuMemGetAccess)(&flags, &here, place));
    HOLDS(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
    unmap(place);
    map(place, handle);
    CUmemAllocationProp answer{};
    OK(CU(cuMemGetAllocationPropertiesFromHandle)(&answer, handle));
    HOLDS(answer.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE && answer.location.id == 0);
    write(place, round);
    HOLDS(read(place) == round);
    if (round % 2 == 0) release(handle);
    unmap(place);
    if (round % 2 != 0) release(handle);
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemGetAccess)(&flags, &here, place));
    HOLDS(free_memory() == before);
  }
  OK(CU(cuMemAddressFree)(at, 2 * kSize));
}

void own_memory_never_mapped() {
  start_driver();
  release(create());
  release(create());
}

// The file holds the memory for whoever imports it.
void own_memory_exported() {
  start_driver();
  const CUdeviceptr at = reserve(2 * kSize);
  const Handle first = create(kSize, properties(kFile));
  map(at, first);
  write(at, 1);
  int file = -1;
  OK(CU(cuMemExportToShareableHandle)(&file, first, kFile, 0));
  unmap(at);
  release(first);
  const Handle second = create(kSize, properties(kFile));
  map(at, second);
  write(at, 2);
  Handle imported = 0;
  OK(CU(cuMemImportFromShareableHandle)(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
                                        kFile));
  close(file);
  map(at + kSize, imported);
  HOLDS(read(at + kSize) == 1);
  unmap(at + kSize);
  release(imported);
  unmap(at);
  release(second);
  release(create(kSize, properties(kFile)));
}

void own_memory_retained() {
  start_driver();
  const CUdeviceptr at = reserve(kSize);
  for (const bool released_before : {false, true}) {
    const Handle first = create();
    map(at, first);
    write(at, 1);
    if (released_before) release(first);
    Handle again = 0;
    OK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(at + kMiB)));
    unmap(at);
    if (!released_before) release(first);
    live_once(at, 2);
    map(at, again);
    HOLDS(read(at) == 1);
    unmap(at);
    release(again);
  }
  HOLDS(free_memory() == 80 * kGiB);
}

// The simulator has no multicast and no dma-buf; that it was tried is what counts.
void own_memory_bound() {
  start_driver();
  const CUdeviceptr at = reserve(kSize);
  for (int way = 0; way < 3; ++way) {
    const Handle handle = create();
    map(at, handle);
    int file = -1;
    if (way == 0) FAILS(CUDA_ERROR_NOT_SUPPORTED, CU(cuMulticastBindMem)(1, 0, handle, 0, kSize, 0));
    if (way == 1) FAILS(CUDA_ERROR_NOT_SUPPORTED, CU(cuMulticastBindAddr)(1, 0, at, kSize, 0));
    if (way == 2)
      FAILS(CUDA_ERROR_NOT_SUPPORTED,
            CU(cuMemGetHandleForAddressRange)(&file, at + 2 * kMiB, kMiB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                              0));
    unmap(at);
    release(handle);
  }
}

void own_memory_mapped_twice() {
  start_driver();
  const CUdeviceptr at = reserve(3 * kSize);
  const Handle handle = create();
  map(at, handle);
  map(at + kSize, handle);
  write(at, 1);
  release(handle);
  unmap(at);
  live_once(at + 2 * kSize, 2);
  HOLDS(read(at + kSize) == 1);
  unmap(at + kSize);
  const Handle one_of_two = create(), other = create();
  release(one_of_two);
  release(other);
}

void own_memory_mapped_in_part() {
  start_driver();
  const CUdeviceptr at = reserve(kSize);
  for (int round = 0; round < 2; ++round) {
    const Handle handle = create();
    map(at, handle, 2 * kMiB);
    unmap(at, 2 * kMiB);
    release(handle);
  }
}

// What was idle is asked for by requests that are not its equals.
void own_memory_of_other_kinds() {
  start_driver();
  const CUdeviceptr at = reserve(2 * kSize);
  live_once(at, 1);
  const Handle file = create(kSize, properties(kFile));
  int descriptor = -1;
  OK(CU(cuMemExportToShareableHandle)(&descriptor, file, kFile, 0));
  close(descriptor);
  const Handle larger = create(2 * kSize);
  map(at, larger, 2 * kSize);
  write(at + 2 * kSize - 4, 5);
  unmap(at, 2 * kSize);
  const Handle elsewhere = create(kSize, properties(CU_MEM_HANDLE_TYPE_NONE, 1));
  CUmemAllocationProp answer{};
  OK(CU(cuMemGetAllocationPropertiesFromHandle)(&answer, elsewhere));
  HOLDS(answer.location.id == 1);
  Handle untouched = 77;
  const CUmemAllocationProp wanted = properties();
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&untouched, kSize, &wanted, 1));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&untouched, kSize + 1, &wanted, 0));
  HOLDS(untouched == 77);
  release(file);
  release(larger);
  release(elsewhere);
  live_once(at, 2);
}

// A handle that was released is none, whoever keeps it.
void own_memory_released_twice() {
  start_driver();
  const CUdeviceptr at = reserve(2 * kSize);
  const Handle handle = create();
  map(at, handle);
  release(handle);
  for (const bool still_mapped : {true, false}) {
    if (!still_mapped) unmap(at);
    CUmemAllocationProp answer{};
    int file = -1;
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemRelease)(handle));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(at + kSize, kSize, 0, handle, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemGetAllocationPropertiesFromHandle)(&answer, handle));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemExportToShareableHandle)(&file, handle, kFile, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemRelease)(handle + 1000));
  }
  live_once(at, 3);
}

// A device of 256 MiB, or a limit of as much: 16 MiB of it idle, then all of it wanted otherwise.
void own_memory_gives_way() {
  start_driver();
  const CUdeviceptr at = reserve(4 * kSize);
  const auto leave_idle = [&] {
    std::vector<Handle> handles;
    for (unsigned i = 0; i < 4; ++i) handles.push_back(create());
    for (unsigned i = 0; i < 4; ++i) map(at + i * kSize, handles[i]);
    for (unsigned i = 0; i < 4; ++i) unmap(at + i * kSize);
    for (const Handle handle : handles) release(handle);
  };
  leave_idle();
  const Handle all = create(256 * kMiB);
  release(all);
  leave_idle();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 256 * kMiB));
  OK(CU(cuMemFree_v2)(block));
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  OK(CU(cuMemPoolTrimTo)(pool, 0));
  leave_idle();
  OK(CU(cuMemPoolTrimTo)(pool, 0));
}

// More than a process may keep, in pieces and in one.
void own_memory_in_bulk() {
  start_driver();
  constexpr std::size_t size = 600 * kMiB;
  const CUdeviceptr at = reserve(4 * size);
  for (int round = 0; round < 2; ++round) {
    std::vector<Handle> handles;
    for (unsigned i = 0; i < 4; ++i) {
      handles.push_back(create(size));
      map(at + i * size, handles.back(), size);
    }
    for (unsigned i = 0; i < 4; ++i) {
      unmap(at + i * size, size);
      release(handles[i]);
    }
    const Handle large = create(4 * size);
    map(at, large, 4 * size);
    unmap(at, 4 * size);
    release(large);
  }
}

void own_memory_in_threads() {
  CUcontext context = start_driver();
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number)
    threads.emplace_back([context, number] {
      OK(CU(cuCtxSetCurrent)(context));
      const CUdeviceptr at = reserve(3 * kSize);
      for (unsigned round = 0; round < 300; ++round) {
        std::vector<Handle> handles;
        for (unsigned i = 0; i < 3; ++i) {
          handles.push_back(create());
          map(at + i * kSize, handles.back());
          write(at + i * kSize, number * 10'000 + round * 3 + i);
        }
        for (unsigned i = 0; i < 3; ++i) HOLDS(read(at + i * kSize) == number * 10'000 + round * 3 + i);
        for (unsigned i = 0; i < 3; ++i) {
          if (round % 2 == 0) release(handles[i]);
          unmap(at + i * kSize);
          if (round % 2 != 0) release(handles[i]);
        }
        // Another thread finds the cache as it is being emptied.
        CUdeviceptr block = 0;
        if (round % 50 == number) FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc_v2)(&block, 1000 * kGiB));
      }
      OK(CU(cuMemAddressFree)(at, 3 * kSize));
    });
  for (std::thread& thread : threads) thread.join();
}

// A reset may take all with it.
void own_memory_reset() {
  start_driver();
  live_once(reserve(kSize), 1);
  OK(CU(cuDevicePrimaryCtxReset_v2)(0));
  start_driver();
  live_once(reserve(kSize), 2);
}
