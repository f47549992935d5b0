// The stream-ordered family: pools, and allocation and free in the order of a stream.
#include <cstring>

#include "capture.hpp"
#include "detector.hpp"
#include "entries.hpp"
#include "graph.hpp"
#include "pool.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

std::map<int, CUmemoryPool>& current_pools() {
  static auto* const pools = new std::map<int, CUmemoryPool>;
  return *pools;
}

CUresult current_pool(CUmemoryPool* handle, int device) {
  const auto at = current_pools().find(device);
  if (at == current_pools().end() || !find_pool(at->second)) return default_pool(handle, device);
  *handle = at->second;
  return CUDA_SUCCESS;
}

bool device_location(const CUmemLocation* location) {
  return location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && valid_device(location->id);
}

CUresult allocate(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool handle, CUstream on) {
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(on, &stream));
  if (!handle) SIM_TRY(current_pool(&handle, stream->context->device));
  Pool* pool = find_pool(handle);
  if (!pool || pool->imported_from) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_work(stream));
  Marks after;
  const std::uint64_t base = pool->allocate(bytes, stream->capture ? nullptr : stream->lane.get(), &after);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  state().add_block({.kind = Block::Kind::stream_ordered,
                     .base = base,
                     .size = bytes,
                     .device = pool->device,
                     .pool = pool});
  if (stream->capture) own_by_graph(stream->capture->graph, base);
  *pointer = base;
  return submit(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, Works(1), after);
}

// The program knows the block no more, the device has it until the stream comes to the free.
void free_in_order(Blocks::iterator at, const Stream& stream) {
  const Block block = at->second;
  state().blocks.erase(at);
  const std::uint64_t number = state().next_id++;
  add_dying(block.base, block.size, number);
  Work work;
  work.name = "a free";
  const bool pooled = block.kind == Block::Kind::stream_ordered;
  work.effect = [block, pooled, number, before = timeline().sequence()](Context&) {
    remove_dying(number);
    check_release("cuMemFreeAsync", block.base, block.size, devices_with_access(block), before);
    if (!pooled) {
      free_memory(block);
    } else {
      --block.pool->waiting;
      end_pool_if_over(block.pool);
    }
  };
  if (pooled) ++block.pool->waiting;
  const std::shared_ptr<Mark> mark = timeline().mark(stream.lane, std::move(work));
  if (pooled) block.pool->release(block.base, block.size, mark);
}

CUresult set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
  int flag = 0;
  cuuint64_t number = 0;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: std::memcpy(&flag, value, sizeof flag); break;
    default: std::memcpy(&number, value, sizeof number); break;
  }
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: pool.reuse_follow = flag; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: pool.reuse_opportunistic = flag; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: pool.reuse_internal = flag; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool.threshold = number; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      if (number) return CUDA_ERROR_INVALID_VALUE;  // cuda.h: it can only be reset
      pool.reserved_high = pool.reserved;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (number) return CUDA_ERROR_INVALID_VALUE;
      pool.used_high = pool.used;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult get_attribute(const Pool& pool, CUmemPool_attribute attribute, void* value) {
  const auto write = [value](auto number) {
    std::memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return write(pool.reuse_follow);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return write(pool.reuse_opportunistic);
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return write(pool.reuse_internal);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return write(pool.threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return write(pool.reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return write(pool.reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return write(pool.used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return write(pool.used_high);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult use_pool(CUdevice device, CUmemoryPool handle) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Pool* pool = find_pool(handle);
  if (!pool || pool->device != device || pool->imported_from) return CUDA_ERROR_INVALID_VALUE;
  current_pools()[device] = handle;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult SIM_ENTRY(cuMemAllocAsync)(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return allocate(dptr, bytesize, nullptr, hStream);
}

CUresult SIM_ENTRY(cuMemAllocFromPoolAsync)(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                            CUstream hStream) {
  return pool ? allocate(dptr, bytesize, pool, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuMemFreeAsync)(CUdeviceptr dptr, CUstream hStream) {
  if (!dptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  auto at = state().blocks.find(dptr);
  if (at == state().blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  const bool plain = at->second.kind == Block::Kind::device && rules().free_async_any;
  if (at->second.kind != Block::Kind::stream_ordered && !plain && !from_pool(at->second))
    return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_work(stream));
  if (!stream->capture) {
    free_in_order(at, *stream);
    return CUDA_SUCCESS;
  }
  // cuda.h: a captured free takes an allocation of the graph only.
  if (!owned_by_graph(stream->capture->graph, dptr)) return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, Works(1));
}

CUresult SIM_ENTRY(cuMemPoolCreate)(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (!pool || !poolProps) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!valid_device(poolProps->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  auto created = std::make_unique<Pool>(poolProps->location.id);
  created->props = *poolProps;
  *pool = add_pool(std::move(created));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolDestroy)(CUmemoryPool pool) {
  const Lock lock;
  Pool* found = find_pool(pool);
  if (!found || found->is_default) return CUDA_ERROR_INVALID_VALUE;
  std::erase_if(current_pools(), [pool](const auto& entry) { return entry.second == pool; });
  destroy_pool(found);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolTrimTo)(CUmemoryPool pool, size_t minBytesToKeep) {
  const Lock lock;
  Pool* found = find_pool(pool);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  found->trim(minBytesToKeep);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolSetAttribute)(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Pool* found = find_pool(pool);
  return found ? set_attribute(*found, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuMemPoolGetAttribute)(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Pool* found = find_pool(pool);
  return found ? get_attribute(*found, attr, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuMemPoolSetAccess)(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  const Lock lock;
  Pool* found = find_pool(pool);
  if (!found || (count && !map)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (!device_location(&map[i].location)) return CUDA_ERROR_INVALID_DEVICE;
    // cuda.h: the pool's own device cannot lose its access.
    if (map[i].location.id == found->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t i = 0; i < count; ++i) found->access[map[i].location.id] = map[i].flags;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemPoolGetAccess)(CUmemAccess_flags* flags, CUmemoryPool memPool,
                                       CUmemLocation* location) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Pool* found = find_pool(memPool);
  if (!found || !device_location(location)) return CUDA_ERROR_INVALID_VALUE;
  const auto at = found->access.find(location->id);
  *flags = location->id == found->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : at == found->access.end()   ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                         : at->second;
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuDeviceGetDefaultMemPool)(CUmemoryPool* pool_out, CUdevice dev) {
  if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return valid_device(dev) ? default_pool(pool_out, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult SIM_ENTRY(cuDeviceGetMemPool)(CUmemoryPool* pool, CUdevice dev) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  return valid_device(dev) ? current_pool(pool, dev) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult SIM_ENTRY(cuDeviceSetMemPool)(CUdevice dev, CUmemoryPool pool) {
  const Lock lock;
  return use_pool(dev, pool);
}

CUresult SIM_ENTRY(cuMemGetDefaultMemPool)(CUmemoryPool* pool_out, CUmemLocation* location,
                                           CUmemAllocationType type) {
  if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!device_location(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return default_pool(pool_out, location->id);
}

CUresult SIM_ENTRY(cuMemGetMemPool)(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  if (!device_location(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return current_pool(pool, location->id);
}

CUresult SIM_ENTRY(cuMemSetMemPool)(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  const Lock lock;
  if (!device_location(location) || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return use_pool(location->id, pool);
}

}  // namespace sim
