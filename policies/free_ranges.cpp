// Two orders over the same ranges, by address and by size. Nodes are re-keyed rather than made anew,
// so that only a new separate range allocates host memory and every call is all or nothing.
#include "policies/free_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace tidepool {

void FreeRanges::insert(Range range) {
  const auto next = by_address_.lower_bound(range.begin);
  const auto previous = next == by_address_.begin() ? by_address_.end() : std::prev(next);
  const bool joins_previous =
      previous != by_address_.end() && previous->first + previous->second == range.begin;
  const bool joins_next = next != by_address_.end() && next->first == range.end();
  if (joins_previous) {
    range = {previous->first, previous->second + range.size};
    if (joins_next) {
      range.size += next->second;
      erase(next);
    }
    replace(previous, range);
  } else if (joins_next) {
    replace(next, {range.begin, range.size + next->second});
  } else {
    add(range);
  }
}

void FreeRanges::insert(const FreeRanges& other) {
  for (const auto& [begin, size] : other.by_address_) insert(Range{begin, size});
}

std::optional<Range> FreeRanges::take(Shape shape) {
  for (auto at = by_size_.lower_bound({shape.size, Address{}}); at != by_size_.end(); ++at) {
    const Range found{at->second, at->first};
    const Address begin{round_up(found.begin.value, shape.alignment)};
    if (begin.value + shape.size > found.end().value) continue;
    const Range taken{begin, shape.size};
    remove(taken);
    return taken;
  }
  return std::nullopt;
}

void FreeRanges::remove(Range range) {
  const auto at = containing(range.begin);
  const Range whole{at->first, at->second};
  const Range head{whole.begin, range.begin - whole.begin};
  const Range tail{range.end(), whole.end() - range.end()};
  if (head.size != 0 && tail.size != 0) add(tail);
  if (head.size != 0) {
    replace(at, head);
  } else if (tail.size != 0) {
    replace(at, tail);
  } else {
    erase(at);
  }
}

void FreeRanges::remove_overlap(Range range) {
  auto at = containing(range.begin);
  if (at == by_address_.end()) at = by_address_.lower_bound(range.begin);
  while (at != by_address_.end() && at->first < range.end()) {
    const Address begin = std::max(at->first, range.begin);
    const Address end = std::min(at->first + at->second, range.end());
    const auto next = std::next(at);
    remove({begin, end - begin});
    at = next;
  }
}

bool FreeRanges::covers(Range range) const {
  const auto at = containing(range.begin);
  return at != by_address_.end() && range.end() <= at->first + at->second;
}

std::optional<Range> FreeRanges::ending_at(Address end) const {
  const auto next = by_address_.lower_bound(end);
  if (next == by_address_.begin()) return std::nullopt;
  const auto last = std::prev(next);
  if (last->first + last->second != end) return std::nullopt;
  return Range{last->first, last->second};
}

std::optional<Range> FreeRanges::first() const {
  if (empty()) return std::nullopt;
  return Range{by_address_.begin()->first, by_address_.begin()->second};
}

std::optional<std::string> FreeRanges::audit() const {
  if (by_address_.size() != by_size_.size()) return "free ranges: the two orders differ in length";
  Bytes total = 0;
  std::optional<Address> end;
  for (const auto& [begin, size] : by_address_) {
    if (size == 0) return "free ranges: an empty range";
    if (end && begin <= *end) return "free ranges: two ranges overlap or were not joined";
    if (!by_size_.contains({size, begin})) return "free ranges: a range is missing from the order by size";
    end = begin + size;
    total += size;
  }
  if (total != total_) return "free ranges: the total is wrong";
  return std::nullopt;
}

FreeRanges::ByAddress::const_iterator FreeRanges::containing(Address address) const {
  auto at = by_address_.upper_bound(address);
  if (at == by_address_.begin()) return by_address_.end();
  --at;
  return address < at->first + at->second ? at : by_address_.end();
}

void FreeRanges::add(Range range) {
  const auto at = by_address_.emplace(range.begin, range.size).first;
  try {
    by_size_.emplace(range.size, range.begin);
  } catch (...) {
    by_address_.erase(at);
    throw;
  }
  total_ += range.size;
}

void FreeRanges::erase(ByAddress::const_iterator at) {
  by_size_.erase({at->second, at->first});
  total_ -= at->second;
  by_address_.erase(at);
}

void FreeRanges::replace(ByAddress::const_iterator at, Range with) {
  auto size_node = by_size_.extract({at->second, at->first});
  size_node.value() = {with.size, with.begin};
  by_size_.insert(std::move(size_node));
  total_ = total_ - at->second + with.size;
  const auto hint = std::next(at);
  auto address_node = by_address_.extract(at);
  address_node.key() = with.begin;
  address_node.mapped() = with.size;
  by_address_.insert(hint, std::move(address_node));
}

}  // namespace tidepool
