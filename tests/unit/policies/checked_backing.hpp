// A Backing without a device that holds the engine to the interface's rules: it fails the test when a
// commit reuses an address, overlaps another, or a release is not exactly one commit.
// It refuses what a test tells it to: by capacity, or the n-th call.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>

#include "policies/backing.hpp"

namespace tidepool::testing {

// A rule of the interface was broken: an error in the engine, never in the device.
struct BrokenRule : std::logic_error {
  using std::logic_error::logic_error;
};

class CheckedBacking final : public Backing {
 public:
  explicit CheckedBacking(Bytes most = 64 * kGiB) : capacity(most) {}

  Result<Range> reserve(Bytes size) override {
    check(size != 0 && size % kPage == 0, "reserve: not made of pages");
    if (refused() || size > largest_reservation) return Failure{Reason::driver, 2};
    const Range region{next_, size};
    regions_[region.begin] = size;
    reserved += size;
    next_ = region.end();  // adjoining on purpose: blocks must not span two reservations anyway
    return region;
  }

  Status commit(Range range) override {
    check(range.size != 0 && range.size % kPage == 0 && range.begin.value % kPage == 0,
          "commit: not made of pages");
    check(inside_one_region(range), "commit: not reserved, or spans two reservations");
    check(range.begin >= unused_, "commit: an address was used before");
    if (refused()) return Failure{Reason::driver, 999};
    if (held_ + range.size > limit) return Failure{Reason::limit};
    if (held_ + range.size > capacity) return Failure{Reason::out_of_memory, 2};
    commits_[range.begin] = range.size;
    unused_ = range.end();
    held_ += range.size;
    ++commit_count;
    return Done{};
  }

  Status release(Range range) override {
    const auto found = commits_.find(range.begin);
    check(found != commits_.end() && found->second == range.size, "release: not exactly one commit");
    if (refused()) return Failure{Reason::driver, 999};
    commits_.erase(found);
    held_ -= range.size;
    ++release_count;
    return Done{};
  }

  bool committed(Range range) const {
    Address at = range.begin;
    while (at < range.end()) {
      auto commit = commits_.upper_bound(at);
      if (commit == commits_.begin()) return false;
      --commit;
      if (at >= commit->first + commit->second) return false;
      at = commit->first + commit->second;
    }
    return true;
  }
  bool inside_one_region(Range range) const {
    auto region = regions_.upper_bound(range.begin);
    if (region == regions_.begin()) return false;
    --region;
    return range.end() <= region->first + region->second;
  }
  Bytes held() const { return held_; }
  std::size_t pieces() const { return commits_.size(); }

  Bytes capacity;
  Bytes limit = kUnlimited;
  Bytes largest_reservation = kUnlimited;
  std::int64_t refuse_call = -1;  // counts down: 0 refuses the next call once; negative: never
  Bytes reserved = 0;             // addresses
  int commit_count = 0;
  int release_count = 0;

 private:
  static void check(bool holds, const char* rule) {
    if (!holds) throw BrokenRule(rule);
  }
  bool refused() { return refuse_call >= 0 && refuse_call-- == 0; }

  Address next_{Bytes{0x7000} << 32};
  Address unused_;
  Bytes held_ = 0;
  std::map<Address, Bytes> regions_;
  std::map<Address, Bytes> commits_;
};

}  // namespace tidepool::testing
