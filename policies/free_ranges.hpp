// A set of disjoint free address ranges: joins neighbours, serves best fits.
// It knows nothing of commits (arena), streams or fences: whoever owns a set says what "free" means.
//
// Units: bytes. Cost: O(log n) a call unless noted. Threads: none; the owner's lock covers it.
// Errors: std::bad_alloc only, and then the set is as it was before the call.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "policies/shape.hpp"
#include "policies/units.hpp"

namespace tidepool {

class FreeRanges {
 public:
  // Requires: not empty, overlaps no range of the set.
  void insert(Range range);
  // Every range of `other` too. O(other).
  void insert(const FreeRanges& other);

  // Cuts the smallest range that fits, the lowest in address among equals.
  std::optional<Range> take(Shape shape);

  // Cuts out `range`. Requires: covers(range).
  void remove(Range range);
  // Cuts out whatever lies inside `range`. Throws only if `range` lies strictly inside one range.
  void remove_overlap(Range range);

  bool covers(Range range) const;
  // The range that ends at `end`, if one does.
  std::optional<Range> ending_at(Address end) const;
  std::optional<Range> first() const;

  Bytes total() const { return total_; }
  bool empty() const { return by_address_.empty(); }
  const std::map<Address, Bytes>& ranges() const { return by_address_; }

  // Nothing if the two orders agree and neighbours are joined, else one sentence. O(n log n).
  std::optional<std::string> audit() const;

 private:
  using ByAddress = std::map<Address, Bytes>;

  ByAddress::const_iterator containing(Address address) const;
  void add(Range range);
  void erase(ByAddress::const_iterator at);
  void replace(ByAddress::const_iterator at, Range with);  // never allocates

  ByAddress by_address_;
  std::set<std::pair<Bytes, Address>> by_size_;
  Bytes total_ = 0;
};

}  // namespace tidepool
