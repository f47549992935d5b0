// The arena alone: pieces that tile what is mapped, growth and its refusals, pages moved and handed back,
// and addresses that are used once. The backing throws where a page is put on addresses used before.
#include <catch2/catch.hpp>

#include "policies/arena.hpp"
#include "tests/unit/policies/checked_backing.hpp"
#include "tests/unit/policies/sheltered_backing.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

constexpr bool kPackedKind = false;
constexpr bool kLargeKind = true;

struct Fixture {
  CheckedBacking backing;
  Arena arena{backing, kGiB};

  Piece* grow(Bytes size, bool large = kLargeKind) {
    arena.prepare();
    Arena::Growth growth(arena, large);
    REQUIRE(growth.begin(size));
    static_cast<void>(growth.create_until(size));
    const auto piece = growth.finish();
    REQUIRE(piece);
    return piece.value();
  }
  Piece* split(Piece* piece, Bytes size) {
    arena.prepare();
    return arena.split(piece, size);
  }
  Result<Arena::Rest> release(Piece* piece, Bytes size) {
    arena.prepare();
    return arena.release(piece, size);
  }
  ~Fixture() {
    const auto fault = arena.audit();
    INFO(fault.value_or(""));
    CHECK_FALSE(fault);
    CHECK(arena.reserved() == backing.held());
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "addresses are reserved at least sixteen times over") {
  grow(kPage);
  CHECK(backing.reserved >= 16 * kGiB);
}

TEST_CASE_METHOD(Fixture, "growth is one piece of enabled pages, behind the last one of its kind") {
  Piece* first = grow(4 * kMiB);
  CHECK(first->size == 4 * kMiB);
  CHECK(first->state() == State::taken);
  CHECK(backing.usable(first->range()));
  CHECK(arena.tail(kLargeKind) == first);
  Piece* second = grow(6 * kMiB);
  CHECK(second->address() == first->end());
  CHECK(second->previous == first);
  CHECK(first->next == second);
  CHECK(arena.tail(kLargeKind) == second);
  CHECK(arena.reserved() == 10 * kMiB);
}

TEST_CASE_METHOD(Fixture, "large pieces and packed ones grow apart and never adjoin") {
  Piece* large = grow(4 * kMiB, kLargeKind);
  CHECK(arena.tail(kPackedKind) == nullptr);
  Piece* packed = grow(4 * kMiB, kPackedKind);
  Piece* more = grow(4 * kMiB, kLargeKind);
  CHECK(more->previous == large);
  CHECK(packed->previous == nullptr);
  CHECK(packed->next == nullptr);
  CHECK(arena.tail(kPackedKind) == packed);
}

TEST_CASE_METHOD(Fixture, "a piece split is two in its place, and joined again the same one") {
  Piece* lower = grow(4 * kMiB);
  lower->become(State::free);
  Piece* last = grow(2 * kMiB);
  Piece* upper = split(lower, 3 * kGranule);
  CHECK(upper->address() == lower->address() + 3 * kGranule);
  CHECK(upper->state() == State::free);
  CHECK(lower->size == 3 * kGranule);
  CHECK(upper->end() == last->address());
  CHECK(last->previous == upper);
  CHECK(arena.find(upper->address()) == upper);
  CHECK(arena.find({upper->address().value - 1}) == lower);
  REQUIRE_FALSE(arena.audit());
  arena.merge_with_next(lower);
  CHECK(lower->size == 4 * kMiB);
  CHECK(lower->next == last);
  CHECK(arena.find({last->key() - 1}) == lower);
}

TEST_CASE_METHOD(Fixture, "the tail follows splits and joins") {
  Piece* lower = grow(4 * kMiB);
  Piece* upper = split(lower, kMiB);
  CHECK(arena.tail(kLargeKind) == upper);
  arena.merge_with_next(lower);
  CHECK(arena.tail(kLargeKind) == lower);
}

TEST_CASE_METHOD(Fixture, "nothing is found where nothing is mapped") {
  CHECK(arena.find({}) == nullptr);
  const Piece* piece = grow(4 * kMiB);
  CHECK(arena.find(piece->end()) == nullptr);
  CHECK(arena.find({piece->key() - 1}) == nullptr);
  CHECK(arena.find({kUnlimited}) == nullptr);
}

TEST_CASE_METHOD(Fixture, "the highest whole pages of a piece are handed back, what is left of it stays") {
  Piece* below = grow(8 * kMiB);
  Piece* piece = split(below, kMiB);
  Piece* above = split(piece, 6 * kMiB);  // pages 2-4 and 4-6 MiB lie inside, with 1 MiB on either side
  const auto rest = release(piece, kPage);
  REQUIRE(rest);
  REQUIRE(rest.value().before);
  CHECK(rest.value().before->range() == Range{below->end(), 3 * kMiB});
  REQUIRE(rest.value().after);
  CHECK(rest.value().after->range() == Range{Address{above->key() - kMiB}, kMiB});
  CHECK(rest.value().before->next == nullptr);
  CHECK(rest.value().after->previous == nullptr);
  CHECK(arena.find(below->address() + 4 * kMiB) == nullptr);
  CHECK(backing.held() == 6 * kMiB);
  CHECK(arena.reserved_peak() == 8 * kMiB);
}

TEST_CASE_METHOD(Fixture, "a piece of pages goes whole, and growth behind the gap starts anew") {
  Piece* first = grow(4 * kMiB);
  const Address gone = grow(4 * kMiB)->address();
  const auto rest = release(arena.tail(kLargeKind), 4 * kMiB);
  REQUIRE(rest);
  CHECK(rest.value().before == nullptr);
  CHECK(rest.value().after == nullptr);
  CHECK(arena.tail(kLargeKind) == nullptr);
  Piece* next = grow(kPage);
  CHECK(next->address() == gone + 4 * kMiB);
  CHECK(next->previous == nullptr);
  CHECK(first->next == nullptr);
}

TEST_CASE_METHOD(Fixture, "as far as the backing lets them, pages are handed back") {
  Piece* piece = grow(8 * kMiB);
  backing.refuse_call = 2;
  const auto rest = release(piece, 8 * kMiB);
  REQUIRE(rest);
  CHECK(rest.value().before == piece);
  CHECK(piece->size == 4 * kMiB);
  CHECK(backing.held() == 4 * kMiB);
}

TEST_CASE_METHOD(Fixture, "where the backing releases nothing the piece is as it was") {
  Piece* piece = grow(8 * kMiB);
  backing.refuse_call = 0;
  const auto rest = release(piece, 8 * kMiB);
  REQUIRE_FALSE(rest);
  CHECK(rest.failure().code == 999);
  CHECK(piece->size == 8 * kMiB);
  CHECK(backing.usable(piece->range()));
}

TEST_CASE_METHOD(Fixture, "pages are moved from the end of a free piece, and none are made or lost") {
  Piece* below = grow(12 * kMiB);
  Piece* piece = split(below, kMiB);
  Piece* above = split(piece, 10 * kMiB);
  arena.prepare();
  Arena::Growth growth(arena, kLargeKind);
  REQUIRE(growth.begin(8 * kMiB));
  const auto rest = growth.move(piece, 4 * kMiB);
  REQUIRE(rest);
  CHECK(growth.filled() == 4 * kMiB);
  CHECK(rest->before->range() == Range{below->end(), 5 * kMiB});
  CHECK(rest->after->end() == above->address());
  CHECK(rest->after->size == kMiB);
  const auto grown = growth.finish();
  REQUIRE(grown);
  CHECK(grown.value()->address() == above->end());
  CHECK(grown.value()->previous == above);
  CHECK(backing.usable(grown.value()->range()));
  CHECK(backing.create_count == 6);
  CHECK(backing.held() == 12 * kMiB);
}

TEST_CASE_METHOD(Fixture,
                 "as far as the backing lets them, pages are moved; none, and the piece stays whole") {
  Piece* piece = grow(8 * kMiB);
  grow(kPage);
  arena.prepare();
  Arena::Growth growth(arena, kLargeKind);
  REQUIRE(growth.begin(8 * kMiB));
  backing.refuse_call = 0;
  CHECK_FALSE(growth.move(piece, 8 * kMiB));
  CHECK(piece->size == 8 * kMiB);
  backing.refuse_call = 3;
  const auto rest = growth.move(piece, 8 * kMiB);
  REQUIRE(rest);
  CHECK(rest->before->size == kPage);
  CHECK(rest->after == nullptr);
  CHECK(growth.filled() == 3 * kPage);
  CHECK(growth.finish());
}

TEST_CASE_METHOD(Fixture, "addresses are never used twice, through many reservations") {
  backing.largest_reservation = 64 * kMiB;
  for (int round = 0; round < 50; ++round) {
    for (const bool large : {kPackedKind, kLargeKind}) {
      Piece* from = grow(12 * kMiB, large);
      arena.prepare();
      Arena::Growth growth(arena, large);
      REQUIRE(growth.begin(8 * kMiB));
      REQUIRE(growth.move(from, 8 * kMiB));
      const auto moved = growth.finish();
      REQUIRE(moved);
      REQUIRE(release(moved.value(), 8 * kMiB));
      REQUIRE(release(from, 4 * kMiB));
    }
    REQUIRE(arena.reserved() == 0);
    REQUIRE_FALSE(arena.audit());
  }
  CHECK(backing.reserved > 20 * 64 * kMiB);
}

TEST_CASE_METHOD(Fixture, "no piece spans two reservations, even where they adjoin") {
  backing.largest_reservation = 16 * kMiB;
  for (int i = 0; i < 20; ++i) {
    const Piece* piece = grow(10 * kMiB);
    CHECK(backing.inside_one_region(piece->range()));
    CHECK(piece->previous == nullptr);
  }
}

TEST_CASE_METHOD(Fixture, "where a generous reservation is refused a smaller one serves") {
  backing.largest_reservation = 100 * kMiB;
  CHECK(grow(60 * kMiB)->size == 60 * kMiB);
  CHECK(backing.reserved <= 100 * kMiB);
  CHECK(backing.reserved >= 62 * kMiB);
}

TEST_CASE_METHOD(Fixture, "where every reservation is refused growth fails with the reason") {
  backing.largest_reservation = 0;
  Arena::Growth growth(arena, kLargeKind);
  const Status status = growth.begin(kPage);
  REQUIRE_FALSE(status);
  CHECK(status.failure().code == 2);
}

TEST_CASE_METHOD(Fixture, "what growth had when the device ended is a piece, and it goes on behind that") {
  backing.capacity = 6 * kMiB;
  Piece* piece = grow(10 * kMiB);
  CHECK(piece->size == 6 * kMiB);
  backing.capacity = kGiB;
  CHECK(grow(4 * kMiB)->previous == piece);
}

TEST_CASE_METHOD(Fixture, "growth without memory is no piece, and its addresses stay unused") {
  backing.capacity = 0;
  CHECK(grow(4 * kMiB) == nullptr);
  backing.capacity = kGiB;
  CHECK(grow(4 * kMiB)->size == 4 * kMiB);
}

TEST_CASE_METHOD(Fixture, "memory that cannot be enabled is handed back, its addresses are not used again") {
  Piece* before = grow(kPage);
  arena.prepare();
  Arena::Growth growth(arena, kLargeKind);
  REQUIRE(growth.begin(4 * kMiB));
  REQUIRE(growth.create_until(4 * kMiB));
  backing.refuse_call = 0;
  CHECK_FALSE(growth.finish());
  CHECK(backing.held() == kPage);
  REQUIRE_FALSE(arena.audit());
  CHECK(grow(kPage)->address() == before->end() + 4 * kMiB);
}

TEST_CASE_METHOD(Fixture, "memory that can be neither enabled nor handed back stays counted") {
  arena.prepare();
  Arena::Growth growth(arena, kLargeKind);
  REQUIRE(growth.begin(8 * kMiB));
  REQUIRE(growth.create_until(8 * kMiB));
  backing.refuse_call = 0;
  backing.refusals = 3;  // enable, and two of four pages
  CHECK_FALSE(growth.finish());
  CHECK(arena.reserved() == 4 * kMiB);
  CHECK(grow(4 * kMiB)->size == 4 * kMiB);
}

TEST_CASE("without host memory for its books growth changes nothing") {
  bool failed = true;
  for (int n = 0; failed; ++n) {
    testing::ShelteredBacking backing;
    Arena arena(backing, kGiB);
    const auto begin = [&] {
      arena.prepare();
      return static_cast<bool>(Arena::Growth(arena, kLargeKind).begin(kPage));
    };
    failed = testing::throws_without_memory(n, [&] { static_cast<void>(begin()); });
    CHECK((failed || n > 1));  // descriptors, and the map of a reservation at least
    REQUIRE_FALSE(arena.audit());
    REQUIRE(begin());
  }
}

TEST_CASE_METHOD(Fixture, "audit of an arena sees a piece that does not tile") {
  Piece* piece = grow(4 * kMiB);
  Piece* upper = split(piece, kMiB);
  upper->size -= kGranule;
  CHECK(arena.audit());
  upper->size += kGranule;
  piece->next = nullptr;
  CHECK(arena.audit());
  piece->next = upper;
  upper->size += 1;
  CHECK(arena.audit());
  upper->size -= 1;
}
