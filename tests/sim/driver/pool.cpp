// Memory pools; see pool.hpp.
#include "pool.hpp"

#include <algorithm>

#include "state.hpp"

namespace sim {
namespace {

constexpr std::uint64_t unit = 512;           // guess: pool blocks are 512 bytes apart
constexpr std::uint64_t chunk = 32ull << 20;  // guess: pools grow by 32 MiB

struct Pools {
  Table<Pool, CUmemoryPool> created;
  std::vector<std::unique_ptr<Pool>> defaults;
};

Pools& pools() {
  static Pools* const instance = new Pools;
  return *instance;
}

}  // namespace

bool Pool::grow(std::uint64_t bytes) {
  Device& memory = *state().devices[static_cast<std::size_t>(device)];
  for (const std::uint64_t size : {round_up(std::max(bytes, chunk), page), round_up(bytes, page)}) {
    if (props.maxSize && reserved + size > props.maxSize) continue;
    const std::uint64_t base = memory.allocate(size);
    if (!base) continue;
    chunks_.emplace(base, size);
    free_.give(base, size);
    reserved += size;
    reserved_high = std::max(reserved_high, reserved);
    return true;
  }
  return false;
}

std::uint64_t Pool::allocate(std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes, unit);
  if (size < bytes) return 0;
  std::uint64_t base = free_.take(size, unit);
  if (!base) {
    if (!grow(size) && !(reclaim_pools(device) && grow(size))) return 0;
    base = free_.take(size, unit);
  }
  used += size;
  used_high = std::max(used_high, used);
  ++live;
  return base;
}

void Pool::release(std::uint64_t base, std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes, unit);
  free_.give(base, size);
  used -= size;
  --live;
}

void Pool::trim(std::uint64_t keep) {
  for (auto at = chunks_.begin(); at != chunks_.end() && reserved > keep;) {
    const auto [base, size] = *at;
    if (reserved - size >= keep && free_.take_at(base, size)) {
      state().devices[static_cast<std::size_t>(device)]->release(base, size);
      reserved -= size;
      at = chunks_.erase(at);
    } else {
      ++at;
    }
  }
}

CUresult default_pool(CUmemoryPool* handle, int device) {
  auto& defaults = pools().defaults;
  while (defaults.size() <= static_cast<std::size_t>(device)) {
    defaults.push_back(std::make_unique<Pool>(static_cast<int>(defaults.size())));
    defaults.back()->is_default = true;
    defaults.back()->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    defaults.back()->props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {defaults.back()->device}};
  }
  *handle = reinterpret_cast<CUmemoryPool>(defaults[static_cast<std::size_t>(device)].get());
  return CUDA_SUCCESS;
}

Pool* find_pool(CUmemoryPool handle) {
  for (const auto& pool : pools().defaults)
    if (reinterpret_cast<CUmemoryPool>(pool.get()) == handle) return pool.get();
  Pool* pool = pools().created.find(handle);
  return pool && !pool->destroyed ? pool : nullptr;
}

void trim_pools(int device) {
  for (const auto& pool : pools().defaults)
    if (pool->device == device) pool->trim(pool->threshold);
  pools().created.for_each([device](Pool& pool) {
    if (pool.device == device) pool.trim(pool.destroyed ? 0 : pool.threshold);
  });
}

bool reclaim_pools(int device) {
  const std::uint64_t before = state().devices[static_cast<std::size_t>(device)]->free();
  for (const auto& pool : pools().defaults)
    if (pool->device == device) pool->trim(0);
  pools().created.for_each([device](Pool& pool) {
    if (pool.device == device) pool.trim(0);
  });
  return state().devices[static_cast<std::size_t>(device)]->free() > before;
}

void release_to_pool(Pool* pool, std::uint64_t base, std::uint64_t size) {
  pool->release(base, size);
  if (pool->destroyed && !pool->live) {
    pool->trim(0);
    pools().created.remove(reinterpret_cast<CUmemoryPool>(pool));
  }
}

CUmemoryPool add_pool(std::unique_ptr<Pool> pool) { return pools().created.add(std::move(pool)); }

void destroy_pool(Pool* pool) {
  pool->destroyed = true;
  pool->trim(0);
  if (!pool->live) pools().created.remove(reinterpret_cast<CUmemoryPool>(pool));
}

}  // namespace sim
