// Physical memory of cuMemCreate that the application has done with, kept for its next equal request: what
// creating and releasing cost is the driver's largest price for memory. Held by its handle alone, without an
// address, unlike what an arena keeps.
//
// Threading: any thread; one lock, never held over a driver call.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "shim/driver/cuda.hpp"
#include "shim/ledger/account.hpp"
#include "shim/ledger/mappings.hpp"

namespace tidepool {

class IdleHandles {
 public:
  using Handle = CUmemGenericAllocationHandle;
  using Clock = std::chrono::steady_clock;

  IdleHandles(Account& account, Bytes device_total);

  // Memory of one kind and size is as good as any other of them. Physical::kOnce for properties whose memory
  // others may have a claim on that we do not see.
  int kind_of(const CUmemAllocationProp& properties, unsigned long long flags);

  // What is idle here and equals the request in everything; the caller's from then on, and still charged.
  std::optional<Handle> take(const CUmemAllocationProp& properties, unsigned long long flags, Bytes size);

  // Takes over the driver's reference and the charge. What is more than a small part of the device, and what
  // has been idle for long, goes back to the driver, the oldest first.
  void keep(Handle handle, const Physical& physical, Clock::time_point now = Clock::now());

  bool holds(Handle handle) const;
  Bytes bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // To the driver. Bytes given back; 0 when nothing was idle. Requires, as keep does: no capture is open that
  // this thread's calls count to.
  Bytes give_back_oldest();
  Bytes give_back_all();

 private:
  struct Kind {
    CUmemAllocationProp properties;
    unsigned long long flags;
  };
  struct Idle {
    Handle handle;
    int kind;
    Bytes size;
    Clock::time_point since;
  };

  int find_kind(const CUmemAllocationProp& properties, unsigned long long flags) const;
  // If `surplus(oldest)`.
  template <typename Surplus>
  Bytes give_back_oldest(const Surplus& surplus);
  Bytes give_back(const Idle& idle);

  Account& account_;
  const Bytes most_;
  mutable std::mutex lock_;
  std::vector<Kind> kinds_;
  std::vector<Idle> idle_;  // the oldest first
  std::atomic<Bytes> bytes_{0};
};

}  // namespace tidepool
