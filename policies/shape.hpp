// How a requested size becomes a block: its rounded size and its alignment. Nothing else rounds.
#pragma once

#include "policies/units.hpp"

namespace tidepool {

// From here on a block is made of whole pages of its own, so that it can be moved and handed back by
// the page. Below, packing on granules wastes less.
inline constexpr Bytes kWholePages = 16 * kMiB;

struct Shape {
  Bytes size = 0;
  Bytes alignment = kGranule;
};

// `requested` in bytes; the size is kUnlimited when rounding overflows.
constexpr Shape shape_of(Bytes requested) {
  const Bytes unit = requested >= kWholePages ? kPage : kGranule;
  return {round_up(requested, unit), unit};
}

// The largest request that a free range can serve.
constexpr Bytes largest_request(Range free) {
  const Bytes packed = free.size < kWholePages ? free.size : kWholePages - kGranule;
  const Bytes first_page = round_up(free.begin.value, kPage);
  const Bytes end = free.end().value;
  const Bytes pages = end > first_page ? (end - first_page) & ~(kPage - 1) : 0;
  return pages >= kWholePages ? pages : packed;
}

}  // namespace tidepool
