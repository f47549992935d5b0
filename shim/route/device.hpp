// One device as this process sees it: what it is, what is held on it, and the arena that serves it.
//
// Threading: any thread. The identity is constant; account has no lock; the policy and the fence of events
// have their own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policies/policy.hpp"
#include "shim/base/settings.hpp"
#include "shim/driver/vmm_backing.hpp"
#include "shim/ledger/account.hpp"
#include "shim/report/report.hpp"
#include "shim/route/event_fence.hpp"
#include "shim/route/gate.hpp"
#include "shim/route/idle_handles.hpp"
#include "shim/route/idleness.hpp"
#include "shim/route/keeper.hpp"
#include "shim/route/native_blocks.hpp"
#include "shim/route/refusals.hpp"
#include "shim/route/reservation.hpp"
#include "shim/route/share.hpp"
#include "shim/trace/format.hpp"

namespace tidepool {

// Kernel modules that register device memory with other hardware: they can tell mapped pages from a
// block of cuMemAlloc (openucx/ucx#9895), and keep pages pinned that we would unmap (cuda.h 12575).
bool rdma_module_loaded();

// Checks the process's limit before the device is asked, and counts what the device gave.
class AccountedBacking final : public Backing {
 public:
  AccountedBacking(Backing& physical, Account& account, IdleHandles& idle_handles, CaptureGate& gate,
                   Keeper& keeper, int device)
      : physical_(physical),
        account_(account),
        idle_handles_(idle_handles),
        gate_(gate),
        keeper_(keeper),
        device_(device) {}
  Result<Range> reserve(Bytes size) override;
  Bytes available() override;
  Status create(Address page) override;
  Status move(Address page, Address to) override;
  Status enable(Range range) override;
  Status release(Address page) override;

  // A part that is never given back for idleness. Before the first page.
  void keep_share(Bytes share) { share_ = share; }

  Gauge held;

  // Is the address in a reserved range? Any thread, no lock.
  bool owns(Address address) const;

 private:
  // An arena reserves 16 times the device at once and never uses an address twice. A program that empties
  // it all the time ends here; from then on the driver serves it.
  static constexpr std::size_t kMostRanges = 64;

  Status create_once(Address page);
  void trace_page(trace::Action action, Address page) const;

  Backing& physical_;
  Account& account_;
  IdleHandles& idle_handles_;
  CaptureGate& gate_;
  Keeper& keeper_;
  const int device_;
  Bytes share_ = 0;
  std::mutex reserve_lock_;
  std::array<Range, kMostRanges> ranges_;
  std::atomic<std::size_t> range_count_{0};
};

class Device {
 public:
  Device(int ordinal, const Settings& settings, CaptureGate& gate, Ledger& ledger, Keeper& keeper);

  const int ordinal;
  std::string uuid;  // as nvidia-smi writes it: GPU-xxxxxxxx-xxxx-...
  std::string name;
  Bytes total = 0;
  Account account;
  IdleHandles idle_handles;
  NativeBlocks native_blocks;
  EventFence events;         // of what the arena holds
  EventFence native_events;  // of native_blocks
  Reservation reservation;
  PoolShare pool_share;
  Idleness idleness;  // the keeper's
  Refusals refusals;
  std::atomic<bool> warned_of_arena{false};

  // Builds the arena at the first call. False: this device has none (the mode, or no virtual memory
  // calls), everything is passed on.
  bool has_arena();
  // Has it one already?
  bool has_policy() const { return has_policy_.load(std::memory_order_acquire); }

  // Requires: has_policy().
  Policy& policy() { return *policy_; }

  // What the arena took when it was built.
  Bytes preallocated() const { return preallocated_; }

  // The driver itself gave the application memory, or took it back.
  void passed(Bytes size);
  void passed_back(Bytes size);
  void passed_lazily(Bytes size);
  void passed_lazily_back(Bytes size);
  // Can the device fault pages of managed memory in while it computes?
  bool backs_lazily() const;
  // The same of memory that stays with the process in between.
  void passed_again(Bytes size);
  void kept(Bytes size);

  // What the application asked for and has not freed, of the arena and of the driver.
  struct Requested {
    Bytes now;
    Bytes peak;
  };
  Requested requested();

  // What the arena holds, bytes; its high mark is the one that the application may set back.
  Gauge& arena_held() { return backing_.held; }

  // What the process holds and the application does not.
  Bytes cached();

  // Numbers of the arena; all 0 without one.
  Snapshot snapshot();

  // Is the address in memory that the arena may own? No lock: host pointers ask this too.
  bool maybe_ours(Address address) const { return backing_.owns(address); }

  // Keeps the first 32; later ones are only counted.
  void record_out_of_memory(report::OutOfMemory event);
  std::vector<report::OutOfMemory> out_of_memory_events() const;

 private:
  void build_arena();
  void count_outside(std::int64_t size);

  const Settings& settings_;
  std::mutex build_lock_;
  std::atomic<bool> built_{false};
  Bytes preallocated_ = 0;
  VmmBacking physical_;
  AccountedBacking backing_;
  std::unique_ptr<Policy> policy_;
  std::atomic<bool> has_policy_{false};
  mutable std::mutex events_lock_;
  std::vector<report::OutOfMemory> events_;
};

}  // namespace tidepool
