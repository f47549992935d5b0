// Where a request that no cache serves finds memory; the order is take_slowly().
#include <algorithm>

#include "policies/on_demand.hpp"

namespace tidepool {
namespace {

// A piece may be long enough and yet have no place that is aligned: so many are looked at before one that
// is surely long enough is taken.
constexpr int kCandidates = 8;
// So many free pieces are walked through on every miss.
constexpr std::size_t kFewPieces = 256;

}  // namespace

// Reuse is exhausted, caches taken apart, before memory grows. A fence stalls the device, so memory grows
// first while little more is held than was ever asked for at once; after that a fence goes first where it
// would serve the request, or half of it by the page, and growth where not. A caller that cannot wait asks
// again with fence_possible = false and gets growth. When growth fails, all hope is in a fence.
Result<Piece*> OnDemand::take_slowly(const Search& search) {
  live_peak_ = std::max(live_peak_, live() + search.shape.size);
  if (Piece* piece = take(search)) return piece;
  if (search.own.cache.bytes() > 0) {
    drain_cache(search.own, kEver);
    if (Piece* piece = take(search)) return piece;
  }
  const bool walk = worth_a_walk(search.own);
  if (walk)
    if (Piece* piece = take_after_walk(search)) return piece;
  if (walk && search.fence_possible && still_allowed() < lacking(search) && fence_would_serve(search)) {
    search.own.changes = kEver;  // what the fence frees is worth it
    return Failure{Reason::needs_fence};
  }
  Result<Piece*> grown = grow(search);
  if (grown || walk || grown.failure().reason == Reason::driver) return grown;
  if (Piece* piece = take_after_walk(search)) return piece;
  return grow(search);
}

// Looking at every free piece costs more than what it finds, unless many have changed: with a million blocks
// of a million sizes each request would walk through all. Memory grows meanwhile.
bool OnDemand::worth_a_walk(const Stream& own) const {
  const std::size_t pieces = own.free[0].count() + own.free[1].count();
  return pieces <= kFewPieces || own.changes >= pieces / 4;
}

Piece* OnDemand::take_after_walk(const Search& search) {
  reclaim_fenced();
  join(search.own, search.shape.large());
  search.own.changes = 0;
  return take(search);
}

// Among the pieces of its own kind first; the better fit of what the stream freed and what is everybody's.
Piece* OnDemand::take(const Search& search) {
  for (const bool large : {search.shape.large(), !search.shape.large()}) {
    Piece* best = best_fit(everybody_.free[large], search.shape);
    if (&search.own != &everybody_)
      if (Piece* own = best_fit(search.own.free[large], search.shape);
          own != nullptr && (best == nullptr || own->size <= best->size))
        best = own;
    if (best != nullptr) return cut(best, search.shape);
  }
  return nullptr;
}

Piece* OnDemand::best_fit(const FreeIndex& index, Shape shape) const {
  const auto next = [&](const Piece* piece) { return index.at_least(piece->size, piece->address() + 1); };
  Piece* piece = index.at_least(shape.size);
  for (int tries = 0; piece != nullptr && tries < kCandidates; ++tries) {
    if (fits(piece->range(), shape)) return piece;
    piece = next(piece);
  }
  // Whatever is a page longer fits, however it lies.
  if (Piece* longer = piece == nullptr ? nullptr : index.at_least(shape.size + kPage)) return longer;
  while (piece != nullptr && !fits(piece->range(), shape)) piece = next(piece);
  return piece;
}

// Takes a block out of a free piece; what lies before and behind stays free.
Piece* OnDemand::cut(Piece* piece, Shape shape) {
  FreeIndex& index = home_of(piece).free[piece->large];
  index.erase(piece);
  if (const Bytes before = place_in(piece->range(), shape) - piece->address(); before > 0) {
    Piece* upper = arena_.split(piece, before);
    index.insert(piece);
    piece = upper;
  }
  if (piece->size > shape.size) index.insert(arena_.split(piece, shape.size));
  piece->become(State::taken);
  return piece;
}

bool OnDemand::usable_by(const Piece* piece, const Stream& own) const {
  return piece != nullptr && piece->state() == State::free &&
         (piece->stream == kEverybody || piece->stream == own.index);
}

// What is free for everybody and what is free for this stream may adjoin: together they are the stream's.
void OnDemand::join(Stream& own, bool large) {
  FreeIndex& index = own.free[large];
  if (&own == &everybody_ || index.empty()) return;
  Piece* pieces = nullptr;
  index.drain([&](Piece* piece) {
    piece->become(State::taken);
    piece->idle.left = pieces;
    pieces = piece;
  });
  while (pieces != nullptr) {
    Piece* piece = pieces;
    pieces = piece->idle.left;
    Epoch freed = piece->idle.freed;
    if (usable_by(piece->next, own)) {
      freed = std::max(freed, piece->next->idle.freed);
      index_remove(piece->next);
      arena_.merge_with_next(piece);
    }
    if (usable_by(piece->previous, own)) {
      piece = piece->previous;
      freed = std::max(freed, piece->idle.freed);
      index_remove(piece);
      arena_.merge_with_next(piece);
    }
    put(piece, own.index, freed);
  }
}

// Requires: reclaim_fenced(). What a stream or limbo still has then, waits for a fence.
bool OnDemand::anything_unfenced() const {
  Bytes waiting = in_limbo_;
  streams_.each([&](const Stream& stream) { waiting += stream.free_bytes() + stream.cache.bytes(); }, 1);
  return waiting > 0;
}

// Calls visit(piece) for all that is free or waits for a fence, but what everybody may use.
template <typename Visit>
void OnDemand::each_waiting(Visit visit) const {
  for (const Piece* piece = limbo_; piece != nullptr; piece = piece->idle.left) visit(*piece);
  streams_.each(
      [&](Stream& stream) {
        const std::lock_guard hold(stream.cache.lock);
        stream.cache.each(visit);
      },
      1);
}

// Would memory that waits for a fence be enough, in one piece or by the page?
bool OnDemand::fence_would_serve(const Search& search) const {
  if (!anything_unfenced()) return false;
  bool fit = false;
  each_waiting([&](const Piece& piece) { fit = fit || fits(piece.range(), search.shape); });
  streams_.each(
      [&](const Stream& stream) {
        for (const FreeIndex& index : stream.free) fit = fit || best_fit(index, search.shape) != nullptr;
      },
      1);
  const Bytes pages = free_pages();
  return fit || pages + still_allowed() >= lacking(search) || pages >= lacking(search) / 2;
}

// Whole pages of all that is not live.
Bytes OnDemand::free_pages() const {
  Bytes pages = 0;
  each_waiting([&](const Piece& piece) { pages += pages_in(piece.range()); });
  streams_.each(
      [&](const Stream& stream) { pages += stream.free[false].in_pages() + stream.free[true].in_pages(); });
  return pages;
}

// The free piece that fresh memory would make long enough, if there is one. One that is long enough already
// had no place for the block.
Piece* OnDemand::extendable(const Search& search) const {
  Piece* tail = arena_.tail(search.shape.large());
  if (!usable_by(tail, search.own)) return nullptr;
  const Bytes there = tail->end().value - round_up(tail->key(), search.shape.alignment);
  return there > 0 && there < search.shape.size ? tail : nullptr;
}

// What growth has to add so that the request fits.
Bytes OnDemand::lacking(const Search& search) const {
  const Piece* tail = extendable(search);
  const Bytes there = tail == nullptr ? 0 : tail->end().value - round_up(tail->key(), search.shape.alignment);
  return round_up(search.shape.size - there, kPage);
}

}  // namespace tidepool
