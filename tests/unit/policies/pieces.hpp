// Pieces without an arena, for tests of the structures that hold them.
#pragma once

#include <deque>

#include "policies/piece.hpp"

namespace tidepool::testing {

inline constexpr Address kFirst{Bytes{0x7000} << 32};

class Pieces {
 public:
  // `at` granules behind kFirst, `granules` long.
  Piece* make(Bytes at, Bytes granules, State state = State::free) {
    Piece& piece = all_.emplace_back();
    piece.place(kFirst + at * kGranule, state);
    piece.size = granules * kGranule;
    piece.idle = {nullptr, nullptr, 0};
    return &piece;
  }

 private:
  std::deque<Piece> all_;
};

}  // namespace tidepool::testing
