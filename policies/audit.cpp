// OnDemand::audit: all places of memory together must tile the commits, and the counters match.
#include <algorithm>

#include "policies/on_demand.hpp"

namespace tidepool {

std::optional<std::string> OnDemand::audit() const {
  if (auto fault = arena_.audit()) return fault;
  std::vector<Range> pieces;
  const auto add = [&](const FreeRanges& ranges) {
    for (const auto& [begin, size] : ranges.ranges()) pieces.push_back({begin, size});
  };
  add(arena_.free());
  Bytes live = 0;
  std::size_t waiting = 0;
  for (const auto& [begin, entry] : entries_) {
    pieces.push_back({begin, entry.size});
    if (entry.live) live += entry.size;
    if (!entry.live) ++waiting;
  }
  if (live != live_) return "policy: live is not the sum of the live blocks";

  std::optional<std::string> fault;
  for (const auto& [key, cache] : streams_) {
    if (auto loose_fault = cache.loose.audit()) return loose_fault;
    add(cache.loose);
    cache.each([&](Entries::const_iterator entry) {
      --waiting;
      if (entry->second.live) fault = "policy: a live block waits in a cache";
      if (entry->second.freed > open_) fault = "policy: a cached block was freed in the future";
    });
  }
  if (fault) return fault;
  if (waiting != 0) return "policy: a free block is in no cache, or in two";

  Bytes in_limbo = 0;
  for (const auto& [epoch, ranges] : limbo_) {
    for (const Range& range : ranges) {
      pieces.push_back(range);
      in_limbo += range.size;
    }
  }
  if (in_limbo != in_limbo_) return "policy: limbo is miscounted";

  // No overlap, and joined up exactly what is committed: then the pieces tile the commits.
  std::sort(pieces.begin(), pieces.end(), [](Range a, Range b) { return a.begin < b.begin; });
  FreeRanges held;
  Address end;
  for (const Range& piece : pieces) {
    if (piece.size == 0 || piece.begin.value % kGranule != 0 || piece.size % kGranule != 0)
      return "policy: a piece is not made of granules";
    if (piece.begin < end) return "policy: two pieces overlap";
    end = piece.end();
    held.insert(piece);
  }
  FreeRanges committed;
  for (const auto& [begin, size] : arena_.commits()) committed.insert(Range{begin, size});
  if (held.ranges() != committed.ranges()) return "policy: the pieces do not tile the commits";
  return std::nullopt;
}

}  // namespace tidepool
