// StreamCache alone: what it keeps, which block of a size goes first, and how it is drained by epoch.
#include <catch2/catch.hpp>
#include <set>

#include "policies/stream_cache.hpp"
#include "tests/unit/policies/failing_new.hpp"
#include "tests/unit/policies/pieces.hpp"

using namespace tidepool;
using tidepool::testing::Pieces;

namespace {

struct Cache {
  Pieces pieces;
  StreamCache cache;

  void ask_for(Bytes granules, int times) {
    while (times-- > 0) CHECK(cache.pop(granules * kGranule) == nullptr);
  }
  Piece* put(Bytes at, Bytes granules, Epoch freed = 1) {
    Piece* piece = pieces.make(at, granules, State::taken);
    return cache.push(piece, freed, 1) ? piece : nullptr;
  }
  std::set<const Piece*> drain(Epoch last) {
    std::set<const Piece*> out;
    cache.drain(last, [&](Piece* piece) {
      CHECK(piece->state() == State::taken);
      out.insert(piece);
    });
    return out;
  }
};

}  // namespace

TEST_CASE_METHOD(Cache, "a block is kept only when its size was asked for twice") {
  CHECK_FALSE(put(0, 4));
  ask_for(4, 1);
  CHECK_FALSE(put(0, 4));
  ask_for(4, 1);
  const Piece* kept = put(0, 4);
  REQUIRE(kept);
  CHECK(kept->state() == State::cached);
  CHECK_FALSE(put(100, 5));  // of another size
  CHECK(cache.bytes() == 4 * kGranule);
}

TEST_CASE_METHOD(Cache, "the lowest address goes first, whatever the order of the frees") {
  ask_for(4, 2);
  for (const Bytes at : {30, 10, 50, 20, 40}) REQUIRE(put(at, 4));
  for (const Bytes at : {10, 20, 30, 40, 50})
    CHECK(cache.pop(4 * kGranule)->address() == testing::kFirst + at * kGranule);
  CHECK(cache.pop(4 * kGranule) == nullptr);
  CHECK(cache.bytes() == 0);
}

TEST_CASE_METHOD(Cache, "only a block of exactly the size is handed out") {
  ask_for(4, 2);
  ask_for(5, 2);
  const Piece* four = put(0, 4);
  const Piece* five = put(10, 5);
  CHECK(cache.pop(3 * kGranule) == nullptr);
  CHECK(cache.pop(5 * kGranule) == five);
  CHECK(cache.pop(5 * kGranule) == nullptr);
  CHECK(cache.pop(4 * kGranule) == four);
}

TEST_CASE_METHOD(Cache, "a drain takes what was freed up to its epoch and leaves the rest in order") {
  ask_for(4, 2);
  ask_for(6, 2);
  const Piece* old = put(30, 4, 1);
  const Piece* old_too = put(10, 6, 2);
  const Piece* young = put(50, 4, 3);
  const Piece* lower = put(40, 4, 4);
  CHECK(cache.earliest() == 1);
  CHECK(drain(0).empty());
  CHECK(drain(2) == std::set<const Piece*>{old, old_too});
  CHECK(cache.bytes() == 8 * kGranule);
  CHECK(cache.earliest() == 3);
  CHECK(cache.pop(4 * kGranule) == lower);
  CHECK(drain(kEver) == std::set<const Piece*>{young});
  CHECK(cache.bytes() == 0);
  CHECK(cache.earliest() == kEver);
}

TEST_CASE_METHOD(Cache, "a size keeps its shelf through a drain") {
  ask_for(4, 2);
  put(0, 4);
  drain(kEver);
  CHECK(put(0, 4));
}

TEST_CASE_METHOD(Cache, "a size asked for often outlives many that come once, and gives way in the end") {
  ask_for(4, 64);
  for (Bytes other = 1000; other < 2000; ++other) ask_for(other, 1);
  CHECK(put(0, 4));
  drain(kEver);
  for (Bytes other = 2000; other < 40'000; ++other) ask_for(other, 1);
  CHECK_FALSE(put(0, 4));
}

TEST_CASE_METHOD(Cache, "a shelf that holds blocks is never given to another size") {
  ask_for(4, 2);
  const Piece* kept = put(0, 4);
  for (Bytes other = 1000; other < 40'000; ++other) ask_for(other, 1);
  CHECK(cache.pop(4 * kGranule) == kept);
}

TEST_CASE_METHOD(Cache, "every block is visited once") {
  std::set<const Piece*> all;
  for (Bytes size = 1; size <= 20; ++size) {
    ask_for(size, 2);
    for (Bytes i = 0; i < size; ++i) all.insert(put(size * 1000 + i * 30, size));
  }
  std::set<const Piece*> seen;
  cache.each([&](const Piece& piece) { CHECK(seen.insert(&piece).second); });
  CHECK(seen == all);
}

TEST_CASE_METHOD(Cache, "where host memory is lacking nothing is kept and nothing is thrown") {
  CHECK_FALSE(testing::throws_without_memory(0, [&] { cache.pop(4 * kGranule); }));
  ask_for(4, 2);
  Piece* piece = pieces.make(0, 4, State::taken);
  bool kept = true;
  CHECK_FALSE(testing::throws_without_memory(0, [&] { kept = cache.push(piece, 1, 1); }));
  CHECK_FALSE(kept);
  CHECK(piece->state() == State::taken);
  CHECK(cache.bytes() == 0);
  CHECK(cache.push(piece, 1, 1));
}

TEST_CASE_METHOD(Cache, "a cache serves one stream at a time and says which") {
  CHECK(cache.key() == 0);
  cache.serve(7);
  CHECK(cache.key() == 7);
  cache.serve(0);
  CHECK(cache.key() == 0);
}
