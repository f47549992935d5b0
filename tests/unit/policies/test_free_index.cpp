// FreeIndex alone: whatever comes and goes, the best fit is the smallest piece that is long enough, the
// lowest address among equals, as a sorted set of all pieces says.
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "policies/free_index.hpp"
#include "tests/unit/policies/pieces.hpp"

using namespace tidepool;
using tidepool::testing::kFirst;
using tidepool::testing::Pieces;

namespace {

struct BySize {
  bool operator()(const Piece* a, const Piece* b) const {
    return std::pair(a->size, a->key()) < std::pair(b->size, b->key());
  }
};

class Modelled {
 public:
  void insert(Piece* piece) {
    index.insert(piece);
    model.insert(piece);
  }
  void erase(Piece* piece) {
    index.erase(piece);
    model.erase(piece);
  }
  Piece* expected(Bytes size, Address from = {}) const {
    for (Piece* piece : model)
      if (std::pair(piece->size, piece->key()) >= std::pair(size, from.value)) return piece;
    return nullptr;
  }
  void check() const {
    const auto fault = index.audit();
    INFO(fault.value_or(""));
    REQUIRE_FALSE(fault);
    std::vector<Piece*> seen;
    index.each([&](Piece* piece) { seen.push_back(piece); });
    REQUIRE(seen == std::vector<Piece*>(model.begin(), model.end()));
    Bytes total = 0, in_pages = 0;
    for (const Piece* piece : model) total += piece->size, in_pages += pages_in(piece->range());
    REQUIRE(index.total() == total);
    REQUIRE(index.in_pages() == in_pages);
    REQUIRE(index.empty() == model.empty());
    REQUIRE(index.largest() == (model.empty() ? nullptr : *model.rbegin()));
  }

  FreeIndex index;
  std::set<Piece*, BySize> model;
};

}  // namespace

TEST_CASE("random pieces come and go, and every look-up is the sorted set's") {
  std::mt19937_64 random(1);
  const auto below = [&](Bytes end) { return random() % end; };
  // Few sizes make many equals; sizes of every doubling fill every bin.
  const auto any_size = [&]() -> Bytes {
    if (below(3) == 0) return 1 + below(6);
    return 1 + below(Bytes{1} << (1 + below(24)));
  };
  Pieces pieces;
  Modelled modelled;
  std::vector<Piece*> inside;
  for (int step = 0; step < 6000; ++step) {
    // Grows at first, then shrinks to nothing.
    if (inside.empty() || below(100) < (step < 3000 ? 65u : 35u)) {
      inside.push_back(pieces.make(static_cast<Bytes>(step) << 26, any_size()));
      modelled.insert(inside.back());
    } else {
      std::swap(inside[below(inside.size())], inside.back());
      modelled.erase(inside.back());
      inside.pop_back();
    }
    const Bytes size = any_size() * kGranule;
    REQUIRE(modelled.index.at_least(size) == modelled.expected(size));
    if (!inside.empty()) {  // the next one behind a piece
      const Piece* piece = inside[below(inside.size())];
      const Address behind = piece->address() + 1;
      REQUIRE(modelled.index.at_least(piece->size, behind) == modelled.expected(piece->size, behind));
    }
    if (step % 100 == 0) modelled.check();
  }
  while (!inside.empty()) {
    modelled.erase(inside.back());
    inside.pop_back();
  }
  modelled.check();
}

TEST_CASE("the lowest of equals is the best fit, whatever order they came in") {
  Pieces pieces;
  FreeIndex index;
  std::vector<Piece*> equals;
  for (Bytes i = 0; i < 50; ++i) equals.push_back(pieces.make(i * 37 % 50 * 100, 8));
  for (Piece* piece : equals) index.insert(piece);
  for (Bytes i = 0; i < 50; ++i) {
    Piece* best = index.at_least(8 * kGranule);
    REQUIRE(best->address() == kFirst + i * 100 * kGranule);
    index.erase(best);
  }
  CHECK(index.at_least(kGranule) == nullptr);
}

TEST_CASE("a best fit crosses from the bin of its size into the next that has pieces") {
  Pieces pieces;
  FreeIndex index;
  index.insert(pieces.make(0, 1000));
  Piece* far = pieces.make(Bytes{1} << 24, Bytes{1} << 30);
  index.insert(far);
  CHECK(index.at_least(1001 * kGranule) == far);
  CHECK(index.at_least((Bytes{1} << 20) * kGranule) == far);
  CHECK(index.at_least((Bytes{1} << 31) * kGranule) == nullptr);
  CHECK(index.at_least(Bytes{1} << 47) == nullptr);  // in the last bins
}

TEST_CASE("drain hands out every piece once, and what is put back meanwhile stays") {
  Pieces pieces;
  FreeIndex index;
  std::set<Piece*> left;
  for (Bytes i = 0; i < 100; ++i) {
    Piece* piece = pieces.make(i * 1000, 1 + i * 7 % 13);
    left.insert(piece);
    index.insert(piece);
  }
  std::set<Piece*> back;
  index.drain([&](Piece* piece) {
    CHECK(left.erase(piece) == 1);
    if (piece->size < 5 * kGranule) index.insert(*back.insert(piece).first);
  });
  CHECK(left.empty());
  std::set<Piece*> inside;
  index.each([&](Piece* piece) { inside.insert(piece); });
  CHECK(inside == back);
  CHECK_FALSE(index.audit());
}

TEST_CASE("audit of a free index sees a piece that changed while it was inside") {
  Pieces pieces;
  FreeIndex index;
  Piece* piece = pieces.make(0, 8);
  index.insert(piece);
  index.insert(pieces.make(100, 8));
  piece->become(State::live);
  CHECK(index.audit());
  piece->become(State::free);
  REQUIRE_FALSE(index.audit());
  piece->size += kGranule;
  CHECK(index.audit());
}
