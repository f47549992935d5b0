// Pools as the application sees them: made, chosen, shared, asked about and trimmed.
#include <algorithm>

#include "shim/route/router.hpp"

namespace tidepool {

// Memory of a pool that other processes, the host or a cap may have a claim on stays the driver's.
CUresult Router::pool_created(const CUmemoryPool* pool, const CUmemPoolProps* properties, const Pass& pass) {
  const CUresult result = pass_on(pass);
  if (result != CUDA_SUCCESS) return result;
  const bool plain = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE && properties->maxSize == 0 &&
                     properties->usage == 0;
  pools_.created(*pool, plain ? properties->location.id : -1, plain);
  lanes_.forget();
  return result;
}

CUresult Router::pool_destroyed(CUmemoryPool pool, const Pass& pass) {
  lanes_.forget();
  const CUresult result = pass();
  if (result == CUDA_SUCCESS) pools_.destroyed(pool);
  lanes_.forget();
  return result;
}

// Another device may now touch the pool's memory. The arena's pages are its own device's alone, so from
// here on the driver serves this pool.
CUresult Router::pool_shared(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count,
                             const Pass& pass) {
  const CUresult result = pass();
  if (result != CUDA_SUCCESS || count == 0 || access == nullptr || !find_devices() || devices_.size() == 1)
    return result;
  pools_.leave_to_driver(pool, -1);
  lanes_.forget();
  return result;
}

// cuDeviceSetMemPool, cuMemSetMemPool: what cuMemAllocAsync means has changed.
CUresult Router::pool_chosen(const Pass& pass) {
  const CUresult result = pass_on(pass);
  lanes_.forget();
  return result;
}

// The pool's books, if an arena stands for it.
Pool* Router::books_of(CUmemoryPool pool) {
  for (const auto& device : devices())
    if (device->has_policy())
      if (Pool* known = pools_.find(pool, device->ordinal); known != nullptr && known->served) return known;
  return nullptr;
}

// The driver's pool is empty where the arena serves it, so what it counts is added to. The arena is one for
// all pools of a device: what it holds beyond the blocks of others is the default pool's.
CUresult Router::pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value,
                                const Pass& pass) {
  const CUresult result = pass();
  Pool* books = result == CUDA_SUCCESS ? books_of(pool) : nullptr;
  if (books == nullptr) return result;
  Device& device = device_at(books->device);
  const Snapshot held = device.snapshot();
  const bool own = !books->by_default;
  auto& count = *static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: count += own ? books->used.now() : held.grouped; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: count += own ? books->used.peak() : held.grouped_peak; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      count += own ? books->used.now() : held.reserved - (held.live - std::min(held.live, held.grouped));
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      count += own ? books->used.peak() : device.arena_held().peak();
      break;
    default: break;
  }
  return result;
}

// A high mark can be set to 0 only, which makes it the current value (cuMemPoolSetAttribute).
CUresult Router::set_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, const Pass& pass) {
  const CUresult result = pass();
  Pool* books = result == CUDA_SUCCESS ? books_of(pool) : nullptr;
  if (books == nullptr) return result;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    if (books->by_default)
      device_at(books->device).policy().reset_grouped_peak();
    else
      books->used.reset_peak();
  }
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) device_at(books->device).arena_held().reset_peak();
  return result;
}

CUresult Router::trim_pool(CUmemoryPool pool, std::size_t keep, const Pass& pass) {
  const CUresult result = pass();
  if (result == CUDA_SUCCESS) give_back_idle_handles();
  const Pool* books = result == CUDA_SUCCESS ? books_of(pool) : nullptr;
  if (books == nullptr) return result;
  Device& device = device_at(books->device);
  if (fence(device).waited == Waited::done) device.policy().trim(keep);
  return result;
}

}  // namespace tidepool
