// What this process holds on one device: the sum that a limit is checked against, and the numbers of
// the report. Counted at each call, never sampled.
//
// Threading: any thread, no lock.
#pragma once

#include <algorithm>
#include <atomic>

#include "policies/units.hpp"
#include "shim/base/tally.hpp"

namespace tidepool {

// A value with its highest mark.
class Gauge {
 public:
  void add(Bytes amount) {
    const Bytes now = value_.fetch_add(amount, std::memory_order_relaxed) + amount;
    Bytes peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void subtract(Bytes amount) { value_.fetch_sub(amount, std::memory_order_relaxed); }
  Bytes now() const { return value_.load(std::memory_order_relaxed); }
  Bytes peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(now(), std::memory_order_relaxed); }

 private:
  std::atomic<Bytes> value_{0};
  std::atomic<Bytes> peak_{0};
};

class Account {
 public:
  void set_limit(Bytes limit) { limit_.store(limit, std::memory_order_relaxed); }
  Bytes limit() const { return limit_.load(std::memory_order_relaxed); }

  // Reserve-then-allocate: takes `amount` of the limit, or nothing and false. A caller whose
  // allocation fails afterwards gives it back.
  bool take(Bytes amount) {
    Bytes held = charged_.load(std::memory_order_relaxed);
    do {
      if (amount > limit() || held > limit() - amount) return false;
    } while (!charged_.compare_exchange_weak(held, held + amount, std::memory_order_relaxed));
    return true;
  }
  // Of the limit.
  Bytes left() const {
    const Bytes held = charged_.load(std::memory_order_relaxed);
    return limit() - std::min(limit(), held);
  }
  void give_back(Bytes amount) { charged_.fetch_sub(amount, std::memory_order_relaxed); }

  // What the application was given: out of an arena, or by the driver itself, whose memory is then held.
  void served(Bytes size) {
    tally::add(slots_ + kServed, size);
    tally::add(slots_ + kAllocations);
  }
  void passed(Bytes size) {
    reserved.add(size);
    passed_again(size);
  }
  // The same of memory that the process has held since the application's last use of it.
  void passed_again(Bytes size) {
    tally::add(slots_ + kPassed, size);
    tally::add(slots_ + kAllocations);
    live.add(size);
  }
  // Managed memory that nobody has touched holds nothing; what it may come to hold is of the limit.
  void passed_lazily(Bytes size) {
    tally::add(slots_ + kPassed, size);
    tally::add(slots_ + kAllocations);
    lazy.add(size);
    live.add(size);
  }
  void passed_lazily_back(Bytes size) {
    taken_back();
    live.subtract(size);
    lazy.subtract(size);
    give_back(size);
  }
  // The application freed what it was given.
  void taken_back() { tally::add(slots_ + kFrees); }
  void passed_back(Bytes size) {
    kept(size);
    let_go(size);
  }
  // The same in two steps: the process keeps the memory for the application's next use, or the driver has it
  // again.
  void kept(Bytes size) {
    taken_back();
    live.subtract(size);
  }
  void let_go(Bytes size) {
    reserved.subtract(size);
    give_back(size);
  }

  // After the driver said yes: physical memory of this process grew or shrank.
  Gauge reserved;
  // What the application has of the driver itself, and has not freed; of that, managed memory.
  Gauge live;
  Gauge lazy;
  // Sums over all allocations, freed or not.
  std::uint64_t allocations() const { return tally::sum(slots_ + kAllocations); }
  std::uint64_t frees() const { return tally::sum(slots_ + kFrees); }
  Bytes served_bytes() const { return tally::sum(slots_ + kServed); }
  Bytes passed_bytes() const { return tally::sum(slots_ + kPassed); }

 private:
  enum : std::size_t { kAllocations, kFrees, kServed, kPassed, kSlots };

  const std::size_t slots_ = tally::reserve(kSlots);
  std::atomic<Bytes> limit_{kUnlimited};
  std::atomic<Bytes> charged_{0};
};

}  // namespace tidepool
