// Shareable handles: physical memory and pools exported as file descriptors, and pointers into
// imported pools.
//
// A descriptor says itself what it is: its file is named for it, and the name survives being sent to
// another process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "entries.hpp"
#include "physical.hpp"
#include "pool.hpp"
#include "sharing.hpp"

namespace sim {
namespace {

// What the name of the descriptor's file says after "/memfd:"; false for any other file.
template <typename... Fields>
bool read_name(int file, const char* format, Fields*... fields) {
  char link[64], name[128];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link, name, sizeof name - 1);
  if (length < 0) return false;
  name[length] = 0;
  return std::sscanf(name, format, fields...) == static_cast<int>(sizeof...(fields));
}

int descriptor(void* handle) { return static_cast<int>(reinterpret_cast<std::intptr_t>(handle)); }

// The ordinal of the partition here, or -1 where this process does not see it.
int ordinal_of(int partition) {
  for (const auto& device : state().devices)
    if (device->partition() == partition) return device->ordinal();
  return -1;
}

}  // namespace

CUresult SIM_ENTRY(cuMemExportToShareableHandle)(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                                 CUmemAllocationHandleType handleType,
                                                 unsigned long long flags) {
  if (!shareableHandle || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Physical* physical = find_referenced(handle);
  if (!physical) return CUDA_ERROR_INVALID_VALUE;
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  // Only what was made for it (cuda.h, CUmemAllocationProp::requestedHandleTypes).
  if (physical->own_file < 0) return CUDA_ERROR_INVALID_VALUE;
  const int file = ::fcntl(physical->own_file, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(shareableHandle, &file, sizeof file);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemImportFromShareableHandle)(CUmemGenericAllocationHandle* handle, void* osHandle,
                                                   CUmemAllocationHandleType shHandleType) {
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock;
  int partition = -1;
  std::uint64_t size = 0;
  if (!read_name(descriptor(osHandle), "/memfd:sim-memory-%d-%lu", &partition, &size))
    return CUDA_ERROR_INVALID_VALUE;
  const int device = ordinal_of(partition);
  if (device < 0) return CUDA_ERROR_NOT_SUPPORTED;
  auto physical = std::make_unique<Physical>();
  physical->device = device;
  physical->own_file = ::fcntl(descriptor(osHandle), F_DUPFD_CLOEXEC, 0);
  if (physical->own_file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  physical->size = size;
  physical->imported = true;
  physical->props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                     .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                     .location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                     .win32HandleMetaData = nullptr,
                     .allocFlags = {}};
  *handle = physical_memory().add(std::move(physical));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolExportToShareableHandle)(void* handle_out, CUmemoryPool pool,
                                                     CUmemAllocationHandleType handleType,
                                                     unsigned long long flags) {
  if (!handle_out || flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Pool* found = find_pool(pool);
  if (!found || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      !(found->props.handleTypes & handleType))
    return CUDA_ERROR_INVALID_VALUE;
  char name[64];
  std::snprintf(name, sizeof name, "sim-pool-%d-%d",
                state().devices[static_cast<std::size_t>(found->device)]->partition(), getpid());
  const int file = ::memfd_create(name, MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(handle_out, &file, sizeof file);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolImportFromShareableHandle)(CUmemoryPool* pool_out, void* handle,
                                                       CUmemAllocationHandleType handleType,
                                                       unsigned long long flags) {
  if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  int partition = -1, owner = 0;
  if (!read_name(descriptor(handle), "/memfd:sim-pool-%d-%d", &partition, &owner))
    return CUDA_ERROR_INVALID_VALUE;
  const int device = ordinal_of(partition);
  if (device < 0) return CUDA_ERROR_INVALID_VALUE;
  auto pool = std::make_unique<Pool>(device);
  pool->imported_from = owner;
  pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  *pool_out = add_pool(std::move(pool));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolExportPointer)(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  if (!shareData_out) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const auto at = state().blocks.find(ptr);
  if (at == state().blocks.end() || at->second.kind != Block::Kind::stream_ordered ||
      !(at->second.pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at->second);
  *shareData_out = {};
  std::memcpy(shareData_out->reserved, &place, sizeof place);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolImportPointer)(CUdeviceptr* ptr_out, CUmemoryPool pool,
                                           CUmemPoolPtrExportData* shareData) {
  if (!ptr_out || !shareData) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Pool* found = find_pool(pool);
  Place place{};
  std::memcpy(&place, shareData->reserved, sizeof place);
  if (!found || found->imported_from != place.pid) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t base = 0;
  if (map_place(place, &base) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  state().add_block({.kind = Block::Kind::imported,
                     .base = base,
                     .size = place.size,
                     .device = found->device,
                     .pool = found});
  *ptr_out = base;
  return CUDA_SUCCESS;
}

}  // namespace sim
