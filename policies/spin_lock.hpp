// A lock for a few instructions: one atomic exchange to take, a plain store to give back. Under
// contention it yields, so a holder that lost its core gets it back.
#pragma once

#include <atomic>
#include <thread>

namespace tidepool {

class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) {
      for (int round = 0; held_.load(std::memory_order_relaxed); ++round)
        if (round > kRounds) std::this_thread::yield();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  static constexpr int kRounds = 64;
  std::atomic<bool> held_{false};
};

}  // namespace tidepool
