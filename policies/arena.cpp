// Growth upwards through reserved addresses, release of whole commits.
#include "policies/arena.hpp"

#include <algorithm>
#include <iterator>

namespace tidepool {
namespace {

// Addresses cost nothing; running out of fresh ones costs another reservation.
constexpr Bytes kAddressesPerByte = 16;
constexpr Bytes kMostAddresses = Bytes{1} << 46;  // a device sees 47 bits of them

// An eighth of what is held keeps the number of driver calls logarithmic and the overshoot small.
Bytes step_for(Bytes reserved) { return round_up(std::clamp(reserved / 8, kPage, 64 * kMiB), kPage); }

}  // namespace

Bytes Arena::missing(Shape shape, Bytes tail) const {
  const Bytes begin = round_up(next_.value - tail, shape.alignment);
  const Bytes lacking = round_up(begin + shape.size - next_.value, kPage);
  return in_region(lacking) ? lacking : round_up(shape.size, kPage);
}

Status Arena::grow(Shape shape, Bytes tail) {
  const Bytes least = missing(shape, tail);
  if (const Bytes step = step_for(reserved_); step > least && in_region(step)) {
    if (const Status done = commit(step)) return done;
  }
  return commit(least);
}

Status Arena::commit(Bytes size) {
  if (!in_region(size)) {
    if (const Status done = reserve(size); !done) return done;
  }
  const Range range{next_, size};
  // Host memory first: a driver that has committed must not meet books that cannot be written.
  const auto entry = commits_.emplace(range.begin, range.size).first;
  try {
    free_.insert(range);
  } catch (...) {
    commits_.erase(entry);
    throw;
  }
  if (const Status done = backing_.commit(range); !done) {
    free_.remove(range);
    commits_.erase(entry);
    return done;
  }
  next_ = range.end();
  reserved_ += size;
  reserved_peak_ = std::max(reserved_peak_, reserved_);
  return Done{};
}

Status Arena::reserve(Bytes size) {
  // The last page of a reservation stays unused, so that no block ever spans two of them.
  const Bytes least = size + kPage;
  const Bytes generous =
      total_ > kMostAddresses / kAddressesPerByte ? kMostAddresses : total_ * kAddressesPerByte;
  for (Bytes wanted = std::max(round_up(generous, kPage), least);;
       wanted = std::max(round_up(wanted / 2, kPage), least)) {
    const auto region = backing_.reserve(wanted);
    if (region) {
      next_ = region.value().begin;
      region_end_ = next_ + (region.value().size - kPage);
      return Done{};
    }
    if (wanted == least) return region.failure();
  }
}

Bytes Arena::trim(Bytes keep) {
  const Bytes before = reserved_;
  for (auto at = commits_.end(); at != commits_.begin() && reserved_ > keep;) {
    --at;
    const Range range{at->first, at->second};
    if (!free_.covers(range)) continue;
    free_.remove(range);
    if (!backing_.release(range)) {
      free_.insert(range);
      break;  // a driver that refuses one refuses them all
    }
    reserved_ -= range.size;
    at = commits_.erase(at);
  }
  return before - reserved_;
}

Bytes Arena::releasable(const FreeRanges& free) const {
  Bytes sum = 0;
  for (const auto& [begin, size] : commits_) {
    if (free.covers({begin, size})) sum += size;
  }
  return sum;
}

std::optional<std::string> Arena::audit() const {
  if (auto fault = free_.audit()) return fault;
  FreeRanges committed;
  Bytes sum = 0;
  for (const auto& [begin, size] : commits_) {
    if (begin.value % kPage != 0 || size % kPage != 0) return "arena: a commit is not made of pages";
    if (const auto before = committed.ending_at(begin); !before && committed.covers({begin, 1}))
      return "arena: two commits overlap";
    committed.insert(Range{begin, size});
    sum += size;
  }
  for (const auto& [begin, size] : free_.ranges()) {
    if (!committed.covers({begin, size})) return "arena: a free range lies outside the commits";
  }
  if (sum != reserved_) return "arena: reserved is not the sum of the commits";
  if (reserved_ > reserved_peak_) return "arena: reserved exceeds its peak";
  return std::nullopt;
}

}  // namespace tidepool
