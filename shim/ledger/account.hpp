// What this process holds on one device: the sum that a limit is checked against, and the numbers of
// the report. Counted at each call, never sampled.
//
// Threading: any thread, no lock.
#pragma once

#include <atomic>

#include "policies/units.hpp"

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
  void give_back(Bytes amount) { charged_.fetch_sub(amount, std::memory_order_relaxed); }

  // What the application was given: out of an arena, or by the driver itself, whose memory is then held.
  void served(Bytes size) {
    served_bytes.fetch_add(size, std::memory_order_relaxed);
    given(size);
  }
  void passed(Bytes size) {
    passed_bytes.fetch_add(size, std::memory_order_relaxed);
    reserved.add(size);
    given(size);
  }

  // After the driver said yes: physical memory of this process grew or shrank.
  Gauge reserved;
  // What the application asked for and has not freed.
  Gauge live;
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> frees{0};
  // Sums over all allocations, freed or not.
  std::atomic<Bytes> served_bytes{0};
  std::atomic<Bytes> passed_bytes{0};

 private:
  void given(Bytes size) {
    live.add(size);
    allocations.fetch_add(1, std::memory_order_relaxed);
  }

  std::atomic<Bytes> limit_{kUnlimited};
  std::atomic<Bytes> charged_{0};
};

}  // namespace tidepool
