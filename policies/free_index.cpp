// Treaps of free pieces. A piece's priority is a hash of its address, so the shape of a tree depends on
// what is in it and not on the order it came in.
#include "policies/free_index.hpp"

#include <bit>
#include <utility>

namespace tidepool {
namespace {

constexpr std::size_t kPerDoubling = 8;

std::uint64_t priority(const Piece* piece) {
  std::uint64_t mixed = piece->key() * 0x9E3779B97F4A7C15u;
  mixed ^= mixed >> 29;
  return mixed * 0xBF58476D1CE4E5B9u;
}

struct Key {
  Bytes size;
  std::uint64_t address;
  bool before(const Piece* piece) const {
    return size != piece->size ? size < piece->size : address < piece->key();
  }
  bool after(const Piece* piece) const {
    return size != piece->size ? size > piece->size : address > piece->key();
  }
};

// Splits `root` into the pieces before `key` and the others.
void split(Piece* root, Key key, Piece** before, Piece** others) {
  while (root != nullptr) {
    if (key.after(root)) {
      *before = root;
      before = &root->idle.right;
      root = *before;
    } else {
      *others = root;
      others = &root->idle.left;
      root = *others;
    }
  }
  *before = nullptr;
  *others = nullptr;
}

// Joins two trees, all of `before` lying before all of `others`.
void join(Piece* before, Piece* others, Piece** at) {
  while (before != nullptr && others != nullptr) {
    if (priority(before) >= priority(others)) {
      *at = before;
      at = &before->idle.right;
      before = *at;
    } else {
      *at = others;
      at = &others->idle.left;
      others = *at;
    }
  }
  *at = before != nullptr ? before : others;
}

}  // namespace

std::size_t FreeIndex::bin_of(Bytes size) {
  const Bytes granules = size / kGranule;
  const auto doubling = static_cast<std::size_t>(std::bit_width(granules)) - 1;
  const Bytes eighth = doubling >= 3 ? granules >> (doubling - 3) : granules << (3 - doubling);
  return doubling * kPerDoubling + (eighth & (kPerDoubling - 1));
}

std::size_t FreeIndex::used_bin_from(std::size_t bin) const {
  if (bin >= kBins) return kBins;
  std::size_t word = bin / 64;
  std::uint64_t bits = used_[word] & ~std::uint64_t{0} << bin % 64;
  while (bits == 0) {
    if (++word == used_.size()) return kBins;
    bits = used_[word];
  }
  return word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
}

void FreeIndex::insert(Piece* piece) {
  const std::size_t bin = bin_of(piece->size);
  const Key key{piece->size, piece->key()};
  const std::uint64_t own = priority(piece);
  Piece** at = &bins_[bin];
  while (*at != nullptr && priority(*at) >= own)
    at = key.before(*at) ? &(*at)->idle.left : &(*at)->idle.right;
  Piece* below = *at;
  *at = piece;
  split(below, key, &piece->idle.left, &piece->idle.right);
  used_[bin / 64] |= std::uint64_t{1} << bin % 64;
  ++count_;
  total_ += piece->size;
  in_pages_ += pages_in(piece->range());
}

void FreeIndex::erase(Piece* piece) {
  const std::size_t bin = bin_of(piece->size);
  const Key key{piece->size, piece->key()};
  Piece** at = &bins_[bin];
  while (*at != piece) at = key.before(*at) ? &(*at)->idle.left : &(*at)->idle.right;
  join(piece->idle.left, piece->idle.right, at);
  if (bins_[bin] == nullptr) used_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
  --count_;
  total_ -= piece->size;
  in_pages_ -= pages_in(piece->range());
}

Piece* FreeIndex::at_least(Bytes size, Address from) const {
  const std::size_t home = bin_of(size);
  const Key key{size, from.value};
  Piece* best = nullptr;
  for (Piece* node = bins_[home]; node != nullptr;) {
    if (key.after(node)) {
      node = node->idle.right;
    } else {
      best = node;
      node = node->idle.left;
    }
  }
  if (best != nullptr) return best;
  const std::size_t bin = used_bin_from(home + 1);
  if (bin == kBins) return nullptr;
  best = bins_[bin];
  while (best->idle.left != nullptr) best = best->idle.left;
  return best;
}

Piece* FreeIndex::largest() const {
  for (std::size_t word = used_.size(); word-- > 0;) {
    if (used_[word] == 0) continue;
    Piece* last = bins_[word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(used_[word]))];
    while (last->idle.right != nullptr) last = last->idle.right;
    return last;
  }
  return nullptr;
}

std::optional<std::string> FreeIndex::audit() const {
  Bytes total = 0;
  Bytes in_pages = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    if ((bins_[bin] != nullptr) != ((used_[bin / 64] >> bin % 64 & 1) != 0))
      return "free index: a bin is mismarked";
    const Piece* before = nullptr;
    bool ordered = true;
    auto look = [&](const Piece* piece) {
      ordered = ordered && bin_of(piece->size) == bin && piece->state() == State::free &&
                (before == nullptr || Key{before->size, before->key()}.before(piece));
      before = piece;
      total += piece->size;
      in_pages += pages_in(piece->range());
    };
    visit_tree(bins_[bin], look);
    if (!ordered) return "free index: a piece is out of order, in a wrong bin or not free";
  }
  if (total != total_ || in_pages != in_pages_) return "free index: its sums are wrong";
  return std::nullopt;
}

}  // namespace tidepool
