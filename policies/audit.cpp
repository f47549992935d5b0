// OnDemand::audit: every piece is where its state says, once, and the counters match.
#include <algorithm>
#include <unordered_set>

#include "policies/on_demand.hpp"

namespace tidepool {

std::optional<std::string> OnDemand::audit() const {
  const std::lock_guard hold(lock_);
  if (auto fault = arena_.audit()) return fault;

  std::unordered_set<const Piece*> waiting;  // free, cached or in limbo: each is found once below
  std::size_t seen_by_table = 0;
  std::optional<std::string> fault;
  arena_.each([&](const Piece& piece) {
    const State state = piece.state();
    if (state == State::spare || state == State::taken) fault = "policy: a piece is nowhere";
    if (state != State::live) waiting.insert(&piece);
    const bool known = state == State::live || state == State::cached;
    seen_by_table += known;
    if (known != (blocks_.find(piece.key()) == &piece)) fault = "policy: the table of blocks is wrong";
    const Piece* next = piece.next;
    if (state == State::free && next != nullptr && next->state() == State::free &&
        next->stream == piece.stream && next->idle.freed == piece.idle.freed)
      fault = "policy: two free neighbours are not joined";
  });
  if (fault) return fault;
  if (seen_by_table != blocks_.size()) return "policy: the table holds more than the blocks";

  const auto found = [&](const Piece& piece, State state) {
    if (piece.state() != state || waiting.erase(&piece) == 0)
      fault = "policy: a piece is in no place, or in two";
  };
  for (std::uint32_t number = 0; number < streams_.size(); ++number) {
    Stream& stream = streams_[number];
    for (const bool large : {false, true}) {
      if (auto broken = stream.free[large].audit()) return broken;
      stream.free[large].each([&](const Piece* piece) {
        found(*piece, State::free);
        if (piece->stream != stream.index || piece->large != large)
          fault = "policy: a piece is in a wrong index";
        if (piece->idle.freed < stream.earliest) fault = "policy: a stream forgot when it freed";
      });
    }
    StreamCache& cache = stream.cache;
    const std::lock_guard hold_cache(cache.lock);
    Bytes bytes = 0;
    cache.each([&](const Piece& piece) {
      found(piece, State::cached);
      bytes += piece.size;
      if (piece.idle.freed < cache.earliest()) fault = "policy: a cache forgot when it freed";
    });
    if (bytes != cache.bytes()) fault = "policy: a cache is miscounted";
  }
  Bytes in_limbo = 0;
  Epoch before = 0;
  for (const Piece* piece = limbo_; piece != nullptr; piece = piece->idle.left) {
    found(*piece, State::limbo);
    in_limbo += piece->size;
    if (piece->idle.freed < before) fault = "policy: limbo is out of order";
    before = piece->idle.freed;
  }
  if (in_limbo != in_limbo_) fault = "policy: limbo is miscounted";
  if (!fault && !waiting.empty()) fault = "policy: a free piece is lost";
  return fault;
}

}  // namespace tidepool
