// Books of memory pools.
#include "shim/route/pools.hpp"

namespace tidepool {

Pool& Pools::add(CUmemoryPool handle, int device, bool served) {
  // Those that are gone and empty make room.
  for (const auto& pool : all_)
    if (pool->handle == nullptr && pool->used.now() == 0) {
      pool->used.reset_peak();
      pool->handle = handle;
      pool->device = device;
      pool->served = served;
      pool->by_default = false;
      return *(pools_[handle] = pool.get());
    }
  all_.push_back(std::make_unique<Pool>());
  Pool& pool = *all_.back();
  pool.handle = handle;
  pool.device = device;
  pool.served = served;
  return *(pools_[handle] = &pool);
}

Pool* Pools::find(CUmemoryPool handle, int device) {
  // cuMemAllocAsync means the device's current pool, which the application may have changed.
  if (handle == nullptr && driver.cuDeviceGetMemPool(&handle, device) != CUDA_SUCCESS) return nullptr;
  const std::lock_guard hold(lock_);
  if (const auto known = pools_.find(handle); known != pools_.end())
    return known->second->device == device ? known->second : nullptr;
  CUmemoryPool by_default = nullptr;
  if (driver.cuDeviceGetDefaultMemPool(&by_default, device) != CUDA_SUCCESS || handle != by_default)
    return nullptr;
  Pool& pool = add(handle, device, true);
  pool.by_default = true;
  return &pool;
}

void Pools::created(CUmemoryPool handle, int device, bool served) {
  const std::lock_guard hold(lock_);
  add(handle, device, served);
}

void Pools::destroyed(CUmemoryPool handle) {
  const std::lock_guard hold(lock_);
  const auto known = pools_.find(handle);
  if (known == pools_.end()) return;
  known->second->handle = nullptr;
  pools_.erase(known);
}

void Pools::leave_to_driver(CUmemoryPool handle, int device) {
  const std::lock_guard hold(lock_);
  const auto known = pools_.find(handle);
  (known != pools_.end() ? *known->second : add(handle, device, false)).served = false;
}

}  // namespace tidepool
