// A Backing without a device that only counts: what is held, and how often a mapping changed. Unlike
// tests/unit/policies/checked_backing.hpp it keeps no books of its own, whose time and host memory would
// be taken for the engine's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/backing.hpp"

namespace tidepool::bench {

class CountingBacking final : public Backing {
 public:
  explicit CountingBacking(Bytes capacity) : capacity_(capacity) {}

  Result<Range> reserve(Bytes size) override {
    const Range region{next_, size};
    next_ = region.end();
    return region;
  }

  Status create(Address) override {
    if (held_ + kPage > capacity_) return Failure{Reason::out_of_memory, 2};
    held_ += kPage;
    held_peak_ = std::max(held_peak_, held_);
    ++operations_;
    return Done{};
  }

  Status move(Address, Address) override {
    operations_ += 2;  // mapped here, unmapped there
    return Done{};
  }

  Status enable(Range) override { return Done{}; }

  Status release(Address) override {
    held_ -= kPage;
    ++operations_;
    return Done{};
  }

  Bytes held() const { return held_; }
  Bytes held_peak() const { return held_peak_; }
  // Calls that put memory under addresses or take it away: each costs a driver tens of microseconds.
  std::uint64_t operations() const { return operations_; }

 private:
  const Bytes capacity_;
  Address next_{Bytes{0x7000} << 32};
  Bytes held_ = 0;
  Bytes held_peak_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace tidepool::bench
