// Blocks of the driver's own cuMemAlloc that the application has freed, kept for its next equal request.
//
// To everybody else such a block is what a plain cuMemAlloc gives: it can be exported, registered, made to
// wait for copies, reached by peers. So it is given out again only whole, as what it was asked for as, in its
// own context, and never once somebody else may have a claim on it (kOnce). An arena's blocks are cut out of
// mapped pages instead; IdleHandles keeps memory that has no address.
//
// What is kept together with what the application has never exceeds the most that it ever had at once, but
// for a small remainder (surplus): a program's sizes that never come back would otherwise fill the device
// (a PyTorch training loop of drawn lengths: 14 times its own peak), and those that do come back find their
// blocks below that mark.
//
// Threading: any thread; one lock, never held over a driver call.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/policy.hpp"
#include "shim/driver/cuda.hpp"
#include "shim/ledger/account.hpp"
#include "shim/ledger/ledger.hpp"

namespace tidepool {

class NativeBlocks {
 public:
  // Of a few milliseconds' grain, and a fifth of the price.
  struct Clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
    static time_point now();
  };

  // Equal in all three: one block is as good as another.
  struct Kind {
    std::uint64_t context = 0;
    int form = Record::kPlain;
    Bytes size = 0;
    friend bool operator==(const Kind&, const Kind&) = default;
  };

  NativeBlocks(Account& account, Ledger& ledger) : account_(account), ledger_(ledger) {}

  // A block of that kind that the device has finished with; the caller's from then on, and still charged.
  // `pending`: there is one, but a fence has to close first, and enough wait for it to be worth its price.
  struct Found {
    std::optional<Address> address;
    bool pending = false;
  };
  Found take(const Kind& kind);

  // Takes over a block, which the ledger says is kept, and its charge. `finished`: by the device; else a
  // fence that is opened after this call frees it.
  void keep(Address address, const Kind& kind, bool finished, Clock::time_point now = Clock::now());

  Fence open_fence() { return {epoch_.fetch_add(1) + 1}; }
  void close_fence(Fence fence);

  Bytes bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // Could one of them be around it? No lock: pointers of the host ask this too.
  bool may_hold(Address inside) const {
    return bytes() > 0 && lowest_.load(std::memory_order_relaxed) <= inside.value &&
           inside.value < highest_.load(std::memory_order_relaxed);
  }

  // Is there more than may be kept, with `more` that the application is about to get? Blocks that nobody has
  // asked for in a while are more than that too.
  bool has_surplus(Bytes more = 0, Clock::time_point now = Clock::now()) const;

  // To the driver, the oldest first; the driver may wait for the device. Bytes given back, 0: nothing was
  // idle, or the driver refused. Requires: no capture is open that this thread's calls count to.
  Bytes give_back_oldest();
  Bytes give_back_all();
  Bytes give_back_all(std::uint64_t context);

  // The context has ended, and its blocks with it; or the block by a way that nobody saw.
  void forget(std::uint64_t context);
  void forget(Address address);

  // Pitched blocks: of the same width, height and element are of one form, and have one pitch.
  struct Pitched {
    Bytes width = 0;
    Bytes height = 0;
    unsigned element = 0;
    Bytes pitch = 0;
  };
  // Record::kOnce where the form is not known.
  int form_of(const Pitched& asked) const;
  int learn_form(const Pitched& given);
  Bytes pitch_of(int form) const;

 private:
  struct Idle;
  struct Shelf;
  struct Links {
    Idle* before = nullptr;
    Idle* after = nullptr;
  };
  struct Idle {
    Address address;
    Kind kind;
    Shelf* shelf = nullptr;
    std::uint64_t epoch = 0;  // of its free; 0: the device has finished
    Clock::time_point since;
    Links by_kind;
    Links by_age;
  };
  template <Links Idle::*links>
  struct Chain {
    Idle* first = nullptr;
    Idle* last = nullptr;
    void append(Idle* idle);
    void prepend(Idle* idle);
    void remove(Idle* idle);
  };
  struct Shelf {
    Chain<&Idle::by_kind> ready;
    Chain<&Idle::by_kind> pending;  // in the order of their frees
  };
  struct Hash {
    std::size_t operator()(const Kind& kind) const {
      return kind.size * 0x9e3779b97f4a7c15 ^ kind.context >> 4 ^ static_cast<std::size_t>(kind.form) << 40;
    }
  };
  using Shelves = std::unordered_map<Kind, Shelf, Hash>;

  // All require the lock.
  Idle* new_idle();
  void put(Idle* idle, bool as_oldest);
  void take_out(Idle* idle);
  void retire(Idle* idle);
  void settle(Shelf& shelf);
  void count_pending(const Idle& idle, bool more);

  template <typename Wanted>
  Bytes give_back_first(const Wanted& wanted);
  template <typename Wanted>
  void drop(const Wanted& wanted);

  Account& account_;
  Ledger& ledger_;
  mutable std::mutex lock_;
  std::deque<Idle> storage_;
  std::vector<Idle*> spare_;
  Shelves shelves_;
  Chain<&Idle::by_age> ages_;  // the oldest first
  std::vector<Pitched> forms_;
  std::size_t count_ = 0;
  std::size_t pending_count_ = 0;
  Bytes pending_bytes_ = 0;
  std::uint64_t closed_ = 1;  // all that was freed in an earlier epoch is finished
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<Bytes> bytes_{0};
  std::atomic<std::uint64_t> lowest_{kUnlimited};
  std::atomic<std::uint64_t> highest_{0};
};

}  // namespace tidepool
