// FreeRanges alone: joining, best fit, alignment, and that running out of host memory changes nothing.
#include <catch2/catch.hpp>

#include "policies/free_ranges.hpp"
#include "tests/unit/policies/failing_new.hpp"

using namespace tidepool;

namespace {

constexpr Address at(Bytes granules) { return Address{kPage + granules * kGranule}; }
constexpr Range range(Bytes first, Bytes granules) { return {at(first), granules * kGranule}; }
constexpr Shape granules(Bytes count) { return {count * kGranule, kGranule}; }

FreeRanges made_of(std::initializer_list<Range> parts) {
  FreeRanges ranges;
  for (const Range& part : parts) ranges.insert(part);
  return ranges;
}

}  // namespace

TEST_CASE("neighbours are joined from below, from above and from both sides") {
  FreeRanges ranges = made_of({range(0, 2), range(8, 2)});
  ranges.insert(range(2, 2));
  ranges.insert(range(6, 2));
  CHECK(ranges.ranges().size() == 2);
  ranges.insert(range(4, 2));
  CHECK(ranges.ranges().size() == 1);
  CHECK(ranges.covers(range(0, 10)));
  CHECK(ranges.total() == 10 * kGranule);
  CHECK_FALSE(ranges.audit());
}

TEST_CASE("the smallest range that fits is cut, the lowest among equals") {
  FreeRanges ranges = made_of({range(0, 9), range(20, 4), range(40, 4)});
  CHECK(ranges.take(granules(3)) == range(20, 3));
  CHECK(ranges.take(granules(4)) == range(40, 4));
  CHECK(ranges.take(granules(4)) == range(0, 4));
  CHECK_FALSE(ranges.take(granules(6)));
  CHECK_FALSE(ranges.audit());
}

TEST_CASE("an aligned block leaves the padding before it free") {
  FreeRanges ranges = made_of({range(1, 100'000)});
  const auto taken = ranges.take({kWholePages, kPage});
  REQUIRE(taken);
  CHECK(taken->begin.value % kPage == 0);
  CHECK(ranges.covers({at(1), taken->begin - at(1)}));
  CHECK(ranges.total() == 100'000 * kGranule - kWholePages);
  CHECK_FALSE(ranges.audit());
}

TEST_CASE("a range long enough but badly placed is passed over for one that fits") {
  const Bytes exact = kWholePages / kGranule;
  FreeRanges ranges = made_of({range(1, exact), range(4 * exact, exact)});
  CHECK(ranges.take({kWholePages, kPage}) == range(4 * exact, exact));
  CHECK_FALSE(ranges.take({kWholePages, kPage}));
}

TEST_CASE("removing an overlap spans ranges and leaves their outer parts") {
  FreeRanges ranges = made_of({range(0, 4), range(6, 2), range(10, 4)});
  ranges.remove_overlap(range(2, 10));
  CHECK(ranges.ranges() == made_of({range(0, 2), range(12, 2)}).ranges());
  ranges.remove_overlap(range(4, 2));
  CHECK(ranges.total() == 4 * kGranule);
  CHECK_FALSE(ranges.audit());
}

TEST_CASE("the range at an end is found only where it ends") {
  const FreeRanges ranges = made_of({range(0, 4), range(6, 2)});
  CHECK(ranges.ending_at(at(4)) == range(0, 4));
  CHECK(ranges.ending_at(at(8)) == range(6, 2));
  CHECK_FALSE(ranges.ending_at(at(7)));
  CHECK_FALSE(ranges.ending_at(at(0)));
}

TEST_CASE("a range above 16 MiB serves whole pages only where it has them") {
  CHECK(largest_request(range(0, 3)) == 3 * kGranule);
  CHECK(largest_request({at(0), kWholePages}) == kWholePages);
  CHECK(largest_request({at(1), kWholePages}) == kWholePages - kGranule);
  CHECK(largest_request({at(1), kWholePages + kPage}) == kWholePages);
}

TEST_CASE("without host memory a call changes nothing") {
  for (int n = 0; n < 2; ++n) {
    FreeRanges ranges = made_of({range(0, 10)});
    const auto before = ranges.ranges();
    CHECK(testing::throws_without_memory(n, [&] { ranges.insert(range(20, 2)); }));
    CHECK(testing::throws_without_memory(n, [&] { ranges.remove(range(4, 2)); }));
    CHECK(ranges.ranges() == before);
    CHECK_FALSE(ranges.audit());
  }
}

TEST_CASE("cutting at an edge and joining need no host memory") {
  FreeRanges ranges = made_of({range(0, 10)});
  CHECK_FALSE(testing::throws_without_memory(0, [&] {
    ranges.remove(range(0, 2));
    ranges.remove(range(8, 2));
    ranges.insert(range(0, 2));
    ranges.insert(range(8, 2));
  }));
  CHECK(ranges.covers(range(0, 10)));
}
