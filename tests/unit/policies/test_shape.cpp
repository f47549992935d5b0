// Shapes alone: how sizes are rounded, where a block lies in a free range, what fits, on both sides of
// every border.
#include <catch2/catch.hpp>

#include "policies/shape.hpp"

using namespace tidepool;

namespace {

constexpr Bytes kPageGranules = kPage / kGranule;
constexpr Range range(Bytes first_granule, Bytes size) {
  return {Address{kPage + first_granule * kGranule}, size};
}

}  // namespace

TEST_CASE("sizes are rounded to granules, and blocks of 16 MiB begin on a page") {
  for (const auto& [asked, given] : {std::pair{Bytes{1}, kGranule}, {kGranule, kGranule}, {513, 1024}})
    CHECK(shape_of(asked).size == given);
  CHECK_FALSE(shape_of(kLarge - 1).large());
  CHECK(shape_of(kLarge - 1).size == kLarge);
  CHECK(shape_of(kLarge).large());
  CHECK(shape_of(kLarge + 1).size == kLarge + kGranule);
}

TEST_CASE("a size whose rounding overflows becomes unlimited, never small") {
  for (const Bytes size : {kUnlimited, kUnlimited - 1, kUnlimited - (kGranule - 2)})
    CHECK(shape_of(size).size == kUnlimited);
  CHECK(shape_of(kUnlimited - (kGranule - 1)).size == kUnlimited - (kGranule - 1));
}

TEST_CASE("a block lies as low as its alignment lets it, and fits where it ends inside") {
  const Shape packed = shape_of(3 * kGranule);
  CHECK(place_in(range(1, kMiB), packed) == range(1, 0).begin);
  CHECK(fits(range(1, 3 * kGranule), packed));
  CHECK_FALSE(fits(range(1, 2 * kGranule), packed));

  const Shape large = shape_of(kLarge);
  CHECK(place_in(range(1, kLarge), large) == range(kPageGranules, 0).begin);
  CHECK(fits(range(0, kLarge), large));
  CHECK_FALSE(fits(range(1, kLarge), large));
  CHECK_FALSE(fits(range(1, kLarge + kPage - 2 * kGranule), large));
  CHECK(fits(range(1, kLarge + kPage - kGranule), large));
  CHECK_FALSE(fits(range(0, kLarge - kGranule), large));
}

TEST_CASE("the largest request is the largest that fits, to the granule") {
  for (const Bytes first : {Bytes{0}, Bytes{1}, Bytes{7}, kPageGranules - 1})
    for (const Bytes size : {kGranule, kMiB, kLarge - kGranule, kLarge, kLarge + kGranule,
                             kLarge + kPage - kGranule, kLarge + kPage, kLarge + kPage + kGranule}) {
      const Range free = range(first, size);
      const Bytes largest = largest_request(free);
      INFO(first << ", " << size);
      CHECK(fits(free, shape_of(largest)));
      for (Bytes more = largest + kGranule; more <= size; more += kGranule)
        REQUIRE_FALSE(fits(free, shape_of(more)));
    }
}
