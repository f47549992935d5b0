// The arena alone: addresses are used once, growth commits no more than is missing, trim gives back
// whole commits, and every refusal of the backing leaves the books right.
#include <catch2/catch.hpp>

#include "policies/arena.hpp"
#include "tests/unit/policies/checked_backing.hpp"

using namespace tidepool;
using tidepool::testing::CheckedBacking;

namespace {

// What a policy does, without streams and fences.
std::optional<Range> get(Arena& arena, Bytes size) {
  const Shape shape = shape_of(size);
  if (const auto range = arena.take(shape)) return range;
  const auto tail = arena.free().ending_at(arena.end());
  if (!arena.grow(shape, tail ? tail->size : 0)) return std::nullopt;
  return arena.take(shape);
}

}  // namespace

TEST_CASE("addresses are reserved at least sixteen times over") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  REQUIRE(get(arena, 1));
  CHECK(backing.reserved >= 16 * kGiB);
}

TEST_CASE("a released address is never committed again, through many reservations") {
  CheckedBacking backing;  // throws when one is
  backing.largest_reservation = 64 * kMiB;
  Arena arena(backing, kGiB);
  for (int round = 0; round < 50; ++round) {
    const auto block = get(arena, 20 * kMiB);
    REQUIRE(block);
    arena.put(*block);
    CHECK(arena.trim(0) >= 20 * kMiB);
    CHECK(arena.reserved() == 0);
    REQUIRE_FALSE(arena.audit());
  }
  CHECK(backing.held() == 0);
}

TEST_CASE("no block spans two reservations, even where they adjoin") {
  CheckedBacking backing;  // throws when a commit does
  backing.largest_reservation = 32 * kMiB;
  Arena arena(backing, kGiB);
  for (int block = 0; block < 20; ++block) {
    const auto range = get(arena, 14 * kMiB);
    REQUIRE(range);
    CHECK(backing.inside_one_region(*range));
  }
  CHECK_FALSE(arena.audit());
}

TEST_CASE("a request larger than the first reservation gets one of its own") {
  CheckedBacking backing;
  Arena arena(backing, 4 * kMiB);
  CHECK(get(arena, 300 * kMiB));
  CHECK_FALSE(arena.audit());
}

TEST_CASE("growth commits only what the free tail lacks, and a block spans commits") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  REQUIRE(get(arena, kMiB));  // a commit of 2 MiB, half of it free
  const auto block = get(arena, 2 * kMiB);
  REQUIRE(block);
  CHECK(backing.held() == 4 * kMiB);
  CHECK(arena.commits().size() == 2);
  CHECK(backing.usable(*block));
}

TEST_CASE("a growth step follows what is held, from 2 to 64 MiB") {
  CheckedBacking backing;
  Arena arena(backing, 8 * kGiB);
  REQUIRE(get(arena, 80 * kMiB));
  REQUIRE(get(arena, kMiB));
  CHECK(arena.reserved() == 90 * kMiB);
  REQUIRE(get(arena, 2 * kGiB));
  const Bytes before = arena.reserved();
  while (arena.reserved() == before) REQUIRE(get(arena, kMiB));
  CHECK(arena.reserved() == before + 64 * kMiB);
}

TEST_CASE("where a step does not fit, what is missing still does") {
  CheckedBacking backing(82 * kMiB);
  Arena arena(backing, 8 * kGiB);
  REQUIRE(get(arena, 80 * kMiB));
  CHECK(get(arena, kMiB));
  CHECK(arena.reserved() == 82 * kMiB);
}

TEST_CASE("trim releases the highest whole free commits and keeps what it is told to") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  std::vector<Range> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*get(arena, 16 * kMiB));
  for (int i : {0, 2, 3}) arena.put(blocks[static_cast<std::size_t>(i)]);
  CHECK(arena.releasable(arena.free()) == 48 * kMiB);
  CHECK(arena.trim(48 * kMiB) == 16 * kMiB);
  CHECK_FALSE(backing.usable(blocks[3]));
  CHECK(backing.usable(blocks[2]));
  CHECK(arena.trim(0) == 32 * kMiB);
  CHECK(backing.held() == 16 * kMiB);
  CHECK_FALSE(arena.audit());
}

TEST_CASE("a commit that is only partly free stays") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  REQUIRE(get(arena, kGranule));
  CHECK(arena.trim(0) == 0);
  CHECK(backing.held() == kPage);
}

TEST_CASE("a refused release leaves the commit free and usable") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  const Range block = *get(arena, 16 * kMiB);
  arena.put(block);
  backing.refuse_call = 0;
  CHECK(arena.trim(0) == 0);
  CHECK_FALSE(arena.audit());
  CHECK(arena.take(shape_of(16 * kMiB)) == block);
}

TEST_CASE("a refused commit leaves nothing behind and its addresses unused") {
  CheckedBacking backing;
  Arena arena(backing, kGiB);
  REQUIRE(get(arena, kMiB));
  backing.capacity = kPage;
  CHECK_FALSE(get(arena, 4 * kMiB));
  CHECK_FALSE(arena.audit());
  CHECK(arena.reserved() == kPage);
  backing.capacity = kGiB;
  CHECK(get(arena, 4 * kMiB));
}

TEST_CASE("where the backing refuses to reserve, the request fails with its reason") {
  CheckedBacking backing;
  backing.largest_reservation = 0;
  Arena arena(backing, kGiB);
  const Status status = arena.grow(shape_of(kMiB), 0);
  REQUIRE_FALSE(status);
  CHECK(status.failure().code == 2);
  CHECK_FALSE(arena.audit());
}
