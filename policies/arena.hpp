// One device's memory: addresses, the physical memory committed under them, and which of it is free
// for everybody. Policies decide when to grow and trim; what only one stream may use is not here.
//
// Addresses are used once, upwards: after a commit is released its addresses stay empty for good,
// because network cards and caches in other libraries may still translate them to the old pages.
//
// Units: bytes. Cost: O(log n) unless noted. Threads: none; the owner's lock covers it.
// Errors: Failure as the backing gave it; std::bad_alloc, and then the books are as before the call.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "policies/backing.hpp"
#include "policies/free_ranges.hpp"

namespace tidepool {

class Arena {
 public:
  // `total`: the device's memory. `backing` must outlive the arena.
  Arena(Backing& backing, Bytes total) : backing_(backing), total_(total) {}

  std::optional<Range> take(Shape shape) { return free_.take(shape); }
  // Requires: the device has finished with `range`.
  void put(Range range) { free_.insert(range); }
  // Takes whatever of `range` is free. Requires: it does not lie strictly inside one free range.
  void remove_overlap(Range range) { free_.remove_overlap(range); }

  // What grow() would have to commit so that `shape` fits, given that the last `tail` bytes before
  // end() are free for the asker. Requires: shape.size is no more than half of all addresses.
  Bytes missing(Shape shape, Bytes tail) const;
  // Commits missing() or, where the backing has it, a larger step.
  Status grow(Shape shape, Bytes tail);
  // Commits one piece of `size` bytes, a multiple of kPage.
  Status commit(Bytes size);

  // Releases whole free commits, highest first, until at most `keep` bytes stay reserved or the
  // backing refuses. Returns the bytes released. O(commits).
  Bytes trim(Bytes keep);
  // What trim(0) would release if `free` were the free ranges. O(commits).
  Bytes releasable(const FreeRanges& free) const;

  const FreeRanges& free() const { return free_; }
  Address end() const { return next_; }  // of the newest commit
  Bytes reserved() const { return reserved_; }
  Bytes reserved_peak() const { return reserved_peak_; }
  const std::map<Address, Bytes>& commits() const { return commits_; }

  std::optional<std::string> audit() const;  // O(n)

 private:
  Status reserve(Bytes size);
  bool in_region(Bytes size) const { return size <= region_end_ - next_; }

  Backing& backing_;
  const Bytes total_;
  Address next_;        // the first address never used
  Address region_end_;  // of the newest reservation
  std::map<Address, Bytes> commits_;
  FreeRanges free_;
  Bytes reserved_ = 0;
  Bytes reserved_peak_ = 0;
};

}  // namespace tidepool
