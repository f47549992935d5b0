// Memory for a request that nothing free serves: new pages from the device while that keeps what is held
// close to what was asked for, then free pages from elsewhere in the arena, moved to fresh addresses.
#include <algorithm>
#include <new>

#include "policies/on_demand.hpp"

namespace tidepool {
namespace {

// What may be held beyond the most that was ever asked for at once. More of it saves map operations,
// less of it memory: at 2 % the recorded programs repeat their steps without any.
constexpr Bytes kSlackDivisor = 40;
constexpr Bytes kLeastSlack = 8 * kMiB;

// Below, asking the driver costs more than trying.
constexpr Bytes kWorthAsking = 256 * kMiB;

// Packed memory grows by a little more than is missing, so that many small blocks cost few calls.
Bytes step_for(Bytes reserved) { return std::clamp(round_up(reserved / 64, kPage), kPage, 16 * kMiB); }

}  // namespace

Bytes OnDemand::still_allowed() const {
  const Bytes most = std::max(floor_, live_peak_ + std::max(live_peak_ / kSlackDivisor, kLeastSlack));
  return most - std::min(most, arena_.reserved());
}

// Would growth by `least` bytes fail for certain? A request that the device cannot serve must not take all
// that it has before that shows: a neighbour may need it.
bool OnDemand::hopeless(Bytes least) {
  const Bytes pages = everybody_.free[false].in_pages() + everybody_.free[true].in_pages();
  return least >= kWorthAsking && least > pages && least - pages > arena_.available();
}

// More than the least only from the device, and only where it is allowed.
Result<Piece*> OnDemand::grow(const Search& search) {
  Arena::Growth growth(arena_, search.shape.large());
  const Bytes step = search.shape.large() ? 0 : step_for(arena_.reserved());
  if (const Status done = growth.begin(round_up(search.shape.size, kPage) + step); !done)
    return done.failure();
  const Bytes least = lacking(search);
  const Bytes before = arena_.reserved();
  if (hopeless(least)) return without_memory(search, Failure{Reason::out_of_memory});
  // Its pages must not be moved away from under the block that it will be part of.
  Piece* tail = detach_tail(search);

  std::optional<Failure> failure;
  try {
    Status created = growth.create_until(std::min(std::max(least, step), still_allowed()) & ~(kPage - 1));
    // What free pages cannot give comes first, so that none are moved in vain.
    const Bytes pages = everybody_.free[false].in_pages() + everybody_.free[true].in_pages();
    if (growth.filled() + pages < least) created = growth.create_until(least - pages);
    if (growth.filled() + pages >= least) move_until(growth, least);
    if (growth.filled() < least) created = growth.create_until(least);
    if (growth.filled() < least) failure = created.failure();
  } catch (const std::bad_alloc&) {
    failure = Failure{Reason::host_memory};
  }
  const Result<Piece*> grown = growth.finish();
  if (!grown) failure = grown.failure();
  Piece* piece = grown ? grown.value() : nullptr;
  if (!failure) return join_tail(piece, tail, search.shape);
  if (piece != nullptr) put(piece, kEverybody, 0);
  if (tail != nullptr) put(tail, tail->stream, tail->idle.freed);
  if (failure->reason == Reason::host_memory) throw std::bad_alloc();
  // What did not suffice is the device's again.
  release_free(arena_.reserved() - before);
  return without_memory(search, *failure);
}

// All hope is in a fence, where one is possible.
Failure OnDemand::without_memory(const Search& search, Failure failure) const {
  const bool fence = search.fence_possible && failure.reason != Reason::driver && anything_unfenced();
  return fence ? Failure{Reason::needs_fence} : failure;
}

Piece* OnDemand::detach_tail(const Search& search) {
  Piece* tail = extendable(search);
  if (tail == nullptr) return nullptr;
  index_remove(tail);
  tail->become(State::taken);
  return tail;
}

// The block from what was grown and, where that is too short, the free piece before it; the rest stays
// free as it was.
Piece* OnDemand::join_tail(Piece* grown, Piece* tail, Shape shape) {
  const bool both = grown == nullptr || grown->size < shape.size;
  Piece* piece = both ? tail : grown;
  const Index owner = both ? tail->stream.load() : kEverybody;
  const Epoch freed = both ? tail->idle.freed : 0;
  if (both && grown != nullptr) arena_.merge_with_next(tail);
  if (!both && tail != nullptr) put(tail, tail->stream, tail->idle.freed);
  if (const Address at{round_up(piece->key(), shape.alignment)}; at > piece->address()) {
    Piece* upper = arena_.split(piece, at - piece->address());
    put(piece, owner, freed);
    piece = upper;
  }
  if (piece->size > shape.size) put(arena_.split(piece, shape.size), owner, freed);
  return piece;
}

void OnDemand::move_until(Arena::Growth& growth, Bytes size) {
  while (growth.filled() < size) {
    Piece* piece = movable();
    if (piece == nullptr) return;
    index_remove(piece);
    const auto rest = growth.move(piece, size - growth.filled());
    if (!rest) {
      put(piece, kEverybody, 0);
      return;
    }
    put_rest(*rest);
    arena_.prepare();
  }
}

void OnDemand::put_rest(const Arena::Rest& rest) {
  if (rest.before != nullptr) put(rest.before, kEverybody, 0);
  if (rest.after != nullptr) put(rest.after, kEverybody, 0);
}

// The smallest free piece with a whole page, which serves nobody else best; of large ones first.
Piece* OnDemand::movable() const {
  for (const bool large : {true, false}) {
    const FreeIndex& index = everybody_.free[large];
    if (index.in_pages() == 0) continue;
    for (Piece* piece = index.at_least(kPage); piece != nullptr;
         piece = index.at_least(piece->size, piece->address() + 1))
      if (pages_in(piece->range()) > 0) return piece;
  }
  return nullptr;
}

// Hands everybody's free pages back until `enough` bytes have gone, or there are no more. Returns the bytes
// handed back.
Bytes OnDemand::release_free(Bytes enough) {
  const Bytes before = arena_.reserved();
  while (before - arena_.reserved() < enough) {
    Piece* piece = movable();
    if (piece == nullptr) break;
    arena_.prepare();
    index_remove(piece);
    const Bytes wanted = round_up(enough - (before - arena_.reserved()), kPage);
    const auto rest = arena_.release(piece, std::min(wanted, pages_in(piece->range())));
    if (!rest) {
      put(piece, kEverybody, 0);
      break;  // a driver that refuses one refuses them all
    }
    put_rest(rest.value());
  }
  return before - arena_.reserved();
}

void OnDemand::take_share(Bytes size) {
  const std::lock_guard hold(lock_);
  arena_.prepare();
  const Bytes missing = (size - std::min(size, arena_.reserved())) & ~(kPage - 1);
  Arena::Growth growth(arena_, true);
  if (missing > 0 && growth.begin(missing)) {
    // What the device does not have of it is no error.
    static_cast<void>(growth.create_until(missing));
    const auto grown = growth.finish();
    if (grown && grown.value() != nullptr) put(grown.value(), kEverybody, 0);
  }
  floor_ = arena_.reserved();
}

}  // namespace tidepool
