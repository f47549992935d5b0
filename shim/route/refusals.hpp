// How often a device has refused what, so that a framework's loop that asks again and again is slowed down:
// XLA was measured to write 28.7 million lines in 100 s that way.
//
// The first refusal of a size is at once, and so is the second: batch-size finders and PyTorch's release of
// its cache need that; from the third on a call waits a little before it fails, longer each time. XLA asks
// for a whole series of sizes, each nine tenths of the one before, and for the series again until ten seconds
// are over; where it does so without a pause of its own, the series waits as long as that loop would go on.
//
// Threading: any thread; one lock, for a few instructions.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>

#include "policies/units.hpp"

namespace tidepool {

class Refusals {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  struct Patience {
    Milliseconds wait;  // for memory to come free, before the call fails
    Bytes enough;       // so much is worth failing at once for: the loop goes on to a size that fits
  };
  // Notes one refusal.
  Patience note(Bytes size, Clock::time_point now = Clock::now());
  // The device served something of that size: what was refused of it before is forgotten.
  void forget(Bytes size);

 private:
  // A pause that ends it all: no loop of a framework waits longer between two tries.
  static constexpr std::chrono::seconds kPause{15};
  // XLA's and TensorFlow's AllocatorRetry goes on for ten seconds, which it counts from its first refusal on.
  static constexpr Milliseconds kLoop{10'100};
  static constexpr Milliseconds kFirstWait{50}, kLongestWait{1000};
  static constexpr std::chrono::seconds kQuick{1};
  static constexpr unsigned kFreeRestarts = 3;   // within that time
  static constexpr unsigned kFree = 2;           // refusals of a size that are at once
  static constexpr std::size_t kSeries = 5;      // different sizes that make a series: XLA's goes on by 0.9
  static constexpr std::size_t kMostSizes = 64;  // 0.9 ^ 64 is a thousandth

  struct Size {
    Bytes size;
    unsigned times;
  };
  Milliseconds note_restart(Clock::time_point now);

  std::mutex lock_;
  std::array<Size, kMostSizes> sizes_{};
  std::size_t count_ = 0;
  unsigned waits_ = 0;
  Bytes last_size_ = 0;
  Clock::time_point last_{};
  unsigned restarts_ = 0;
  Clock::time_point restarts_since_{};
};

}  // namespace tidepool
