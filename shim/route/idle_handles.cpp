// Physical memory of the application's that waits for its next use.
//
// No fence of ours: the application has unmapped the memory, by the driver and at once, so no address leads
// to it, and a mapping begins "with no accessibility" (cuMemUnmap). Work that the device had not finished
// then could not reach it through a new mapping of the same handle either, which cuda.h lets every program
// make; it is the unmap that synchronises (cuda.h says so of cuMemUnmap and cuMemSetAccess, and not of
// cuMemRelease).
//
// Nor is it cleared: cuda.h promises nothing about what memory of cuMemCreate holds, and all that it can hold
// is this process's own.
#include "shim/route/idle_handles.hpp"

#include <algorithm>
#include <cstring>

#include "shim/route/device.hpp"

namespace tidepool {
namespace {

constexpr Bytes kMost = Bytes{1} << 30;
constexpr Bytes kPartOfDevice = 16;
constexpr auto kLongest = std::chrono::seconds(10);
// A program that asks for more kinds has no use for equal ones.
constexpr std::size_t kMostKinds = 16;

bool equal(const CUmemAllocationProp& one, const CUmemAllocationProp& other) {
  return one.type == other.type && one.requestedHandleTypes == other.requestedHandleTypes &&
         one.location.type == other.location.type && one.location.id == other.location.id &&
         one.win32HandleMetaData == other.win32HandleMetaData &&
         one.allocFlags.compressionType == other.allocFlags.compressionType &&
         one.allocFlags.gpuDirectRDMACapable == other.allocFlags.gpuDirectRDMACapable &&
         one.allocFlags.usage == other.allocFlags.usage &&
         std::memcmp(one.allocFlags.reserved, other.allocFlags.reserved, sizeof(one.allocFlags.reserved)) ==
             0;
}

// Tile pools are mapped into arrays, and what is registered with other hardware stays so after its unmap.
bool only_mappings_lead_to(const CUmemAllocationProp& properties) {
  return (properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0 &&
         (properties.allocFlags.gpuDirectRDMACapable == 0 || !rdma_module_loaded());
}

}  // namespace

IdleHandles::IdleHandles(Account& account, Bytes device_total)
    : account_(account), most_(std::min(kMost, device_total / kPartOfDevice)) {}

int IdleHandles::find_kind(const CUmemAllocationProp& properties, unsigned long long flags) const {
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& kind) {
    return kind.flags == flags && equal(kind.properties, properties);
  });
  return known == kinds_.end() ? Physical::kOnce : static_cast<int>(known - kinds_.begin());
}

int IdleHandles::kind_of(const CUmemAllocationProp& properties, unsigned long long flags) {
  if (!only_mappings_lead_to(properties)) return Physical::kOnce;
  const std::lock_guard hold(lock_);
  if (const int known = find_kind(properties, flags); known != Physical::kOnce) return known;
  if (kinds_.size() == kMostKinds) return Physical::kOnce;
  kinds_.push_back({properties, flags});
  return static_cast<int>(kinds_.size()) - 1;
}

std::optional<IdleHandles::Handle> IdleHandles::take(const CUmemAllocationProp& properties,
                                                     unsigned long long flags, Bytes size) {
  if (bytes() == 0) return std::nullopt;
  const std::lock_guard hold(lock_);
  const int kind = find_kind(properties, flags);
  // The last to come is the likeliest to be asked for, and leaves the others to grow old.
  const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                  [&](const Idle& idle) { return idle.kind == kind && idle.size == size; });
  if (found == idle_.rend()) return std::nullopt;
  const Handle handle = found->handle;
  bytes_.fetch_sub(size, std::memory_order_relaxed);
  idle_.erase(std::next(found).base());
  return handle;
}

void IdleHandles::keep(Handle handle, const Physical& physical, Clock::time_point now) {
  const Idle idle{handle, physical.kind, physical.size, now};
  // It would not stay, and drive all others out.
  if (idle.size > most_ && give_back(idle) > 0) return;
  {
    const std::lock_guard hold(lock_);
    idle_.push_back(idle);
    bytes_.fetch_add(idle.size, std::memory_order_relaxed);
  }
  const auto surplus = [&](const Idle& oldest) { return bytes() > most_ || now - oldest.since > kLongest; };
  while (give_back_oldest(surplus) > 0) {
  }
}

bool IdleHandles::holds(Handle handle) const {
  const std::lock_guard hold(lock_);
  return std::any_of(idle_.begin(), idle_.end(), [&](const Idle& idle) { return idle.handle == handle; });
}

// Off the list before the call: once the driver has returned, another thread may be given the handle's value.
// A driver that refuses (in a host callback, say) is asked again with the next.
template <typename Surplus>
Bytes IdleHandles::give_back_oldest(const Surplus& surplus) {
  std::unique_lock hold(lock_);
  if (idle_.empty() || !surplus(idle_.front())) return 0;
  const Idle oldest = idle_.front();
  idle_.erase(idle_.begin());
  bytes_.fetch_sub(oldest.size, std::memory_order_relaxed);
  hold.unlock();
  if (give_back(oldest) > 0) return oldest.size;
  hold.lock();
  idle_.insert(idle_.begin(), oldest);
  bytes_.fetch_add(oldest.size, std::memory_order_relaxed);
  return 0;
}

Bytes IdleHandles::give_back(const Idle& idle) {
  if (driver.cuMemRelease(idle.handle) != CUDA_SUCCESS) return 0;
  account_.let_go(idle.size);
  return idle.size;
}

Bytes IdleHandles::give_back_oldest() {
  return bytes() == 0 ? 0 : give_back_oldest([](const Idle&) { return true; });
}

Bytes IdleHandles::give_back_all() {
  Bytes given_back = 0;
  while (const Bytes size = give_back_oldest()) given_back += size;
  return given_back;
}

}  // namespace tidepool
