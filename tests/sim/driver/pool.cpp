// Memory pools; see pool.hpp.
#include "pool.hpp"

#include <algorithm>

#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

constexpr std::uint64_t unit = 512;  // guess: pool blocks are 512 bytes apart

struct Pools {
  Table<Pool, CUmemoryPool> created;
  std::vector<std::unique_ptr<Pool>> defaults;
};

Pools& pools() {
  static Pools* const instance = new Pools;
  return *instance;
}

template <typename Visitor>
void for_each_pool(Visitor visit) {
  for (const auto& pool : pools().defaults) visit(*pool);
  pools().created.for_each(visit);
}

}  // namespace

bool Pool::grow(std::uint64_t bytes) {
  Device& memory = *state().devices[static_cast<std::size_t>(device)];
  const std::uint64_t step = static_cast<std::uint64_t>(rules().pool_step_mib) << 20;
  for (const std::uint64_t size : {round_up(std::max(bytes, step), page), round_up(bytes, page)}) {
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

bool Pool::usable(const Freed& freed, const Lane* stream) const {
  if (freed.mark->done && reuse_opportunistic) return true;
  if (!stream) return false;
  if (freed.mark->lane.get() == stream) return true;
  return reuse_follow && timeline().ordered(freed.mark->lane->id, freed.mark->ticket, *stream);
}

// The last that fits exactly, else the smallest that fits.
std::uint64_t Pool::take_freed(std::uint64_t size, const Lane* stream) {
  const Freed* best = nullptr;
  for (auto freed = freed_.rbegin(); freed != freed_.rend(); ++freed) {
    if (freed->size < size || (best && freed->size >= best->size) || !usable(*freed, stream)) continue;
    best = &*freed;
    if (freed->size == size) break;
  }
  if (!best) return 0;
  const std::uint64_t base = best->base;
  cut(base, size);
  return base;
}

// Over the borders of what was freed, and of what is free for all.
std::uint64_t Pool::take_joined(std::uint64_t size, const Lane* stream) {
  if (freed_.empty()) return 0;
  Ranges joined = free_;
  for (const Freed& freed : freed_)
    if (usable(freed, stream)) joined.give(freed.base, freed.size);
  const std::uint64_t base = joined.take(size, unit);
  if (base) cut(base, size);
  return base;
}

// Takes all of a range out of what is free, whoever's it is.
void Pool::cut(std::uint64_t base, std::uint64_t size) {
  const std::uint64_t end = base + size;
  std::vector<Freed> kept;
  for (Freed& freed : freed_) {
    const std::uint64_t freed_end = freed.base + freed.size;
    if (freed_end <= base || end <= freed.base) {
      kept.push_back(std::move(freed));
      continue;
    }
    if (freed.base < base) kept.push_back({freed.base, base - freed.base, freed.mark});
    if (freed_end > end) kept.push_back({end, freed_end - end, freed.mark});
  }
  freed_ = std::move(kept);
  for (std::uint64_t at = base; at < end;) {
    auto [start, length] = free_.around(at);
    if (length) {
      const std::uint64_t stop = std::min(end, start + length);
      free_.take_at(at, stop - at);
      at = stop;
    } else {
      const auto next = free_.by_base().upper_bound(at);
      at = next == free_.by_base().end() ? end : next->first;
    }
  }
}

std::uint64_t Pool::allocate(std::uint64_t bytes, const Lane* stream, Marks* after) {
  const std::uint64_t size = round_up(bytes, unit);
  if (size < bytes) return 0;
  std::uint64_t base = freed_.empty() ? 0 : take_freed(size, stream);
  if (!base) base = free_.take(size, unit);
  if (!base) base = take_joined(size, stream);
  if (!base && (grow(size) || (reclaim_pools(device) && grow(size)))) base = free_.take(size, unit);
  if (!base && stream && reuse_internal && !freed_.empty()) {
    // No more from the device: memory that other streams have yet to free, and the waits that makes.
    const Marks waits = [this] {
      Marks all;
      for (const Freed& freed : freed_)
        if (!freed.mark->done) all.push_back(freed.mark);
      return all;
    }();
    Ranges joined = free_;
    for (const Freed& freed : freed_) joined.give(freed.base, freed.size);
    base = joined.take(size, unit);
    if (base) {
      cut(base, size);
      after->insert(after->end(), waits.begin(), waits.end());
    }
  }
  if (!base) return 0;
  used += size;
  used_high = std::max(used_high, used);
  ++live;
  return base;
}

void Pool::release(std::uint64_t base, std::uint64_t bytes, std::shared_ptr<Mark> mark) {
  const std::uint64_t size = round_up(bytes, unit);
  if (mark)
    freed_.push_back({base, size, std::move(mark)});
  else
    free_.give(base, size);
  used -= size;
  --live;
}

void Pool::settle(const std::function<bool(const Mark&)>& seen) {
  std::erase_if(freed_, [&](const Freed& freed) {
    if (!freed.mark->done || !seen(*freed.mark)) return false;
    free_.give(freed.base, freed.size);
    return true;
  });
}

void Pool::trim(std::uint64_t keep) {
  if (reserved <= keep) return;
  if (reuse_opportunistic || destroyed) settle([](const Mark&) { return true; });
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

void settle_pools(const Mark& seen) {
  for_each_pool([&seen](Pool& pool) {
    pool.settle([&seen](const Mark& freed) {
      return freed.lane == seen.lane ? freed.ticket <= seen.ticket
                                     : freed.ticket <= seen.known.of(freed.lane->id);
    });
  });
}

void settle_pools(const Context& seen) {
  for_each_pool([&seen](Pool& pool) {
    pool.settle([&seen](const Mark& freed) { return freed.lane->context == &seen; });
  });
}

void trim_pools(int device) {
  for_each_pool([device](Pool& pool) {
    if (pool.device == device) pool.trim(pool.destroyed ? 0 : pool.threshold);
  });
}

bool reclaim_pools(int device) {
  const std::uint64_t before = state().devices[static_cast<std::size_t>(device)]->free();
  for_each_pool([device](Pool& pool) {
    if (pool.device == device) pool.trim(0);
  });
  return state().devices[static_cast<std::size_t>(device)]->free() > before;
}

void end_pool_if_over(Pool* pool) {
  if (!pool->destroyed) return;
  pool->trim(0);
  if (pool->empty()) pools().created.remove(reinterpret_cast<CUmemoryPool>(pool));
}

CUmemoryPool add_pool(std::unique_ptr<Pool> pool) { return pools().created.add(std::move(pool)); }

void destroy_pool(Pool* pool) {
  pool->destroyed = true;
  end_pool_if_over(pool);
}

}  // namespace sim
