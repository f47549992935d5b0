// The free pieces that one owner may use, by size: best fit, the lowest address among equals.
//
// Sizes fall into eight bins a doubling, each a treap ordered by size and address, so that a look-up
// costs a bit scan and a few steps however many pieces there are. The order depends on sizes and
// addresses alone: a program that repeats itself meets the same pieces again.
//
// Units: bytes. Threads: none; the owner's lock covers it. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "policies/piece.hpp"

namespace tidepool {

class FreeIndex {
 public:
  void insert(Piece* piece);
  void erase(Piece* piece);

  // The first piece, by size and then address, that is not before (size, from). Null: none.
  Piece* at_least(Bytes size, Address from = {}) const;
  Piece* largest() const;

  // Takes every piece out and gives it to `take`, which may insert pieces here again.
  template <typename Take>
  void drain(Take take) {
    FreeIndex all;
    std::swap(all, *this);
    for (std::size_t bin = 0; bin < kBins; ++bin)
      while (Piece* piece = all.bins_[bin]) {
        all.erase(piece);
        take(piece);
      }
  }
  template <typename Visit>
  void each(Visit visit) const {
    for (Piece* root : bins_) visit_tree(root, visit);
  }

  Bytes total() const { return total_; }
  // Bytes in whole pages: what could be unmapped.
  Bytes in_pages() const { return in_pages_; }
  bool empty() const { return total_ == 0; }
  std::size_t count() const { return count_; }

  std::optional<std::string> audit() const;  // O(n)

 private:
  static constexpr std::size_t kBins = 320;  // up to 2^48 bytes
  static std::size_t bin_of(Bytes size);
  std::size_t used_bin_from(std::size_t bin) const;

  template <typename Visit>
  static void visit_tree(Piece* root, Visit& visit) {
    if (root == nullptr) return;
    visit_tree(root->idle.left, visit);
    visit(root);
    visit_tree(root->idle.right, visit);
  }

  std::array<Piece*, kBins> bins_{};
  std::array<std::uint64_t, kBins / 64> used_{};
  Bytes total_ = 0;
  Bytes in_pages_ = 0;
  std::size_t count_ = 0;
};

// Bytes of whole pages inside a range.
constexpr Bytes pages_in(Range range) {
  const Bytes first = round_up(range.begin.value, kPage);
  const Bytes last = range.end().value & ~(kPage - 1);
  return last > first ? last - first : 0;
}

}  // namespace tidepool
