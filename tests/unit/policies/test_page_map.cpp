// PageMap alone: whatever pieces come, are split, joined and go, every address leads to the piece that
// holds it and the pieces are visited in order, as a sorted map of them says.
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "policies/page_map.hpp"
#include "tests/unit/policies/pieces.hpp"

using namespace tidepool;
using tidepool::testing::kFirst;
using tidepool::testing::Pieces;

namespace {

constexpr Bytes kPageGranules = kPage / kGranule;
constexpr Bytes kPages = 200;  // more than three words of marks

class Modelled {
 public:
  void add(Bytes at, Bytes granules) {
    Piece* piece = pieces_.make(at, granules);
    link(piece);
    map.add(piece);
  }
  void remove(Piece* piece) {
    map.remove(piece);
    model.erase(piece->address());
    if (piece->previous != nullptr) piece->previous->next = nullptr;
    if (piece->next != nullptr) piece->next->previous = nullptr;
  }
  void split(Piece* piece, Bytes size) {
    Piece* upper =
        pieces_.make((piece->address() + size - kFirst) / kGranule, (piece->size - size) / kGranule);
    piece->size = size;
    if (piece->next != nullptr) piece->next->previous = nullptr, piece->next = nullptr;
    link(upper);
    map.add(upper);
  }
  void merge_with_next(Piece* lower) {
    Piece* upper = lower->next;
    map.remove(upper);
    model.erase(upper->address());
    lower->size += upper->size;
    lower->next = upper->next;
    if (lower->next != nullptr) lower->next->previous = lower;
  }
  Piece* expected(Address at) const {
    const auto above = model.upper_bound(at);
    if (above == model.begin()) return nullptr;
    Piece* piece = std::prev(above)->second;
    return at < piece->end() ? piece : nullptr;
  }
  void check_order() const {
    std::vector<const Piece*> seen, sorted;
    map.each([&](const Piece& piece) { seen.push_back(&piece); });
    for (const auto& [at, piece] : model) sorted.push_back(piece);
    REQUIRE(seen == sorted);
  }

  PageMap map{{kFirst, kPages* kPage}};
  std::map<Address, Piece*> model;

 private:
  void link(Piece* piece) {
    const auto [at, added] = model.emplace(piece->address(), piece);
    REQUIRE(added);
    piece->previous = piece->next = nullptr;
    if (at != model.begin() && std::prev(at)->second->end() == piece->address()) {
      piece->previous = std::prev(at)->second;
      piece->previous->next = piece;
    }
    if (const auto above = std::next(at); above != model.end() && piece->end() == above->first) {
      piece->next = above->second;
      piece->next->previous = piece;
    }
  }

  Pieces pieces_;
};

bool pages_only(const Piece& piece) { return (piece.key() | piece.size) % kPage == 0; }

}  // namespace

TEST_CASE("an address is found in the piece that holds it, from its first byte to its last") {
  Modelled modelled;
  modelled.add(kPageGranules, 3 * kPageGranules);
  modelled.add(4 * kPageGranules, 1);
  const Piece* first = modelled.expected(kFirst + kPage);
  CHECK(modelled.map.find(kFirst) == nullptr);
  CHECK(modelled.map.find(kFirst + (kPage - 1)) == nullptr);
  CHECK(modelled.map.find(kFirst + kPage) == first);
  CHECK(modelled.map.find(kFirst + (4 * kPage - 1)) == first);
  CHECK(modelled.map.find(kFirst + 4 * kPage) == first->next);
  CHECK(modelled.map.find(kFirst + (4 * kPage + kGranule)) == nullptr);
  CHECK(modelled.map.find(kFirst + (kPages * kPage - 1)) == nullptr);
}

TEST_CASE("it contains its reservation, first byte and last, and no other") {
  const PageMap map({kFirst, 4 * kPage});
  CHECK(map.contains(kFirst));
  CHECK(map.contains(kFirst + (4 * kPage - 1)));
  CHECK_FALSE(map.contains(kFirst + 4 * kPage));
  CHECK_FALSE(map.contains({kFirst.value - 1}));
}

TEST_CASE("random pieces come, are split and joined and go, and every address leads where the map says") {
  std::mt19937_64 random(1);
  const auto below = [&](Bytes end) { return random() % end; };
  Modelled modelled;
  const auto any_piece = [&]() -> Piece* {
    if (modelled.model.empty()) return nullptr;
    const auto at = modelled.model.lower_bound(kFirst + below(kPages * kPage));
    return at == modelled.model.end() ? modelled.model.begin()->second : at->second;
  };
  for (int step = 0; step < 20'000; ++step) {
    Piece* piece = any_piece();
    switch (below(4)) {
      case 0: {  // pages, where none are
        const Bytes page = below(kPages);
        const Bytes size = std::min(1 + below(4), kPages - page);
        bool empty = true;
        for (Bytes i = 0; i < size; ++i) {
          const Address at = kFirst + (page + i) * kPage;
          const auto above = modelled.model.lower_bound(at);
          empty = empty && modelled.expected(at) == nullptr &&
                  (above == modelled.model.end() || above->first >= at + kPage);
        }
        if (empty) modelled.add(page * kPageGranules, size * kPageGranules);
        break;
      }
      case 1:
        if (piece != nullptr && piece->size > kGranule)
          modelled.split(piece, piece->size > kPage && below(2) == 0
                                    ? kPage
                                    : (1 + below(piece->size / kGranule - 1)) * kGranule);
        break;
      case 2:
        if (piece != nullptr && piece->next != nullptr) modelled.merge_with_next(piece);
        break;
      default:
        // What goes is made of pages, as memory is.
        if (piece != nullptr && below(3) == 0 && pages_only(*piece)) modelled.remove(piece);
    }
    for (int look = 0; look < 5; ++look) {
      const Address at = kFirst + below(kPages * kPage);
      REQUIRE(modelled.map.find(at) == modelled.expected(at));
    }
    if (step % 200 == 0) modelled.check_order();
  }
  REQUIRE(modelled.model.size() > 20);
}
