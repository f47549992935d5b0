// A Backing without a device that holds the engine to the interface's rules: it fails the test when a
// page is put where one was before, or one is moved or released that is not there.
// It refuses what a test tells it to: by capacity, by limit, every move, or some calls from the n-th on.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <unordered_set>

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

  Status create(Address page) override {
    check_fresh(page);
    if (refused()) return Failure{Reason::driver, 999};
    if (held_ + kPage > limit) return Failure{Reason::limit};
    if (held_ + kPage > capacity) return Failure{Reason::out_of_memory, 2};
    map(page);
    held_ += kPage;
    ++create_count;
    return Done{};
  }

  Status move(Address page, Address to) override {
    check(pages_.count(page) != 0, "move: no page");
    check_fresh(to);
    if (refused() || refuse_moves) return Failure{Reason::driver, 999};
    pages_.erase(page);
    map(to);
    ++move_count;
    return Done{};
  }

  Status enable(Range range) override {
    for (Address page = range.begin; page < range.end(); page = page + kPage)
      check(pages_.count(page) != 0, "enable: a page without memory");
    if (refused()) return Failure{Reason::driver, 999};
    for (Address page = range.begin; page < range.end(); page = page + kPage) pages_.at(page) = true;
    return Done{};
  }

  Status release(Address page) override {
    check(pages_.count(page) != 0, "release: no page");
    if (refused()) return Failure{Reason::driver, 999};
    pages_.erase(page);
    held_ -= kPage;
    ++release_count;
    return Done{};
  }

  // Memory that the device may touch.
  bool usable(Range range) const {
    for (Address page{range.begin.value & ~(kPage - 1)}; page < range.end(); page = page + kPage)
      if (const auto found = pages_.find(page); found == pages_.end() || !found->second) return false;
    return true;
  }
  bool inside_one_region(Range range) const {
    auto region = regions_.upper_bound(range.begin);
    if (region == regions_.begin()) return false;
    --region;
    return range.end() <= region->first + region->second;
  }
  // Calls visit(page) for each page that has memory, in address order.
  template <typename Visit>
  void each_page(Visit visit) const {
    for (const auto& [page, accessible] : pages_) visit(page);
  }
  Bytes held() const { return held_; }
  int map_operations() const { return create_count + move_count + release_count; }

  Bytes capacity;
  Bytes limit = kUnlimited;
  Bytes largest_reservation = kUnlimited;
  std::int64_t refuse_call = -1;  // counts down: 0 refuses the next call; negative: never
  std::int64_t refusals = 1;      // then so many calls in a row
  bool refuse_moves = false;
  Bytes reserved = 0;  // addresses
  int create_count = 0;
  int move_count = 0;
  int release_count = 0;

 private:
  static void check(bool holds, const char* rule) {
    if (!holds) throw BrokenRule(rule);
  }
  void check_fresh(Address page) const {
    check(page.value % kPage == 0, "not a page");
    check(inside_one_region({page, kPage}), "a page is not reserved");
    check(used_.count(page.value) == 0, "an address was used before");
  }
  void map(Address page) {
    pages_[page] = false;
    used_.insert(page.value);
  }
  bool refused() {
    if (refuse_call < 0) return false;
    if (refuse_call > 0) return --refuse_call, false;
    if (--refusals <= 0) refuse_call = -1;
    return true;
  }

  Address next_{Bytes{0x7000} << 32};
  Bytes held_ = 0;
  std::map<Address, Bytes> regions_;
  std::map<Address, bool> pages_;           // accessible?
  std::unordered_set<std::uint64_t> used_;  // pages that had memory once
};

}  // namespace tidepool::testing
