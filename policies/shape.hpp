// How a requested size becomes a block: its rounded size and its alignment. Nothing else rounds.
#pragma once

#include "policies/units.hpp"

namespace tidepool {

// From here on a block begins on a page and lies apart from small ones, so that nearly all of it can be
// moved and handed back by the page. The rest of its last page serves small blocks where nothing else
// does: rounding it away would waste 2 % of some programs' peak.
inline constexpr Bytes kLarge = 16 * kMiB;

struct Shape {
  Bytes size = 0;
  Bytes alignment = kGranule;
  bool large() const { return alignment == kPage; }
};

// `requested` in bytes; the size is kUnlimited when rounding overflows.
constexpr Shape shape_of(Bytes requested) {
  return {round_up(requested, kGranule), requested >= kLarge ? kPage : kGranule};
}

// Where a block of this shape lies in a free range, as low as it can. It fits if it ends inside.
constexpr Address place_in(Range free, Shape shape) { return {round_up(free.begin.value, shape.alignment)}; }
constexpr bool fits(Range free, Shape shape) {
  const Bytes lost = place_in(free, shape) - free.begin;
  return free.size >= shape.size && free.size - shape.size >= lost;
}

// The largest request that surely fits.
constexpr Bytes largest_request(Range free) {
  const Bytes packed = free.size < kLarge ? free.size : kLarge - kGranule;
  const Bytes lost = round_up(free.begin.value, kPage) - free.begin.value;
  return free.size >= kLarge + lost ? free.size - lost : packed;
}

}  // namespace tidepool
