// Growth upwards through reserved addresses, pieces split and joined, pages moved and handed back.
#include "policies/arena.hpp"

#include <algorithm>

#include "policies/free_index.hpp"

namespace tidepool {
namespace {

// Addresses cost nothing; running out of fresh ones costs another reservation.
constexpr Bytes kAddressesPerByte = 16;
constexpr Bytes kMostAddresses = Bytes{1} << 45;  // a device sees 47 bits of them

// The whole pages inside a range; empty if there are none.
Range whole_pages(Range range) {
  const Address first{round_up(range.begin.value, kPage)};
  return {first, pages_in(range)};
}

}  // namespace

PageMap& Arena::map_of(Address address) const {
  for (auto at = reservations_.rbegin();; ++at)
    if ((*at)->contains(address)) return **at;
}

Piece* Arena::split(Piece* piece, Bytes size) {
  Piece* upper = store_.take();
  const Address at = piece->address() + size;
  upper->place(at, piece->state());
  upper->size = piece->size - size;
  upper->large = piece->large;
  upper->stream.store(piece->stream, std::memory_order_relaxed);
  upper->idle = {nullptr, nullptr, piece->idle.freed};
  upper->previous = piece;
  upper->next = piece->next;
  if (upper->next != nullptr) upper->next->previous = upper;
  piece->next = upper;
  piece->size = size;
  map_of(at).add(upper);
  Region& home = region(piece->large);
  if (home.last == piece) home.last = upper;
  return upper;
}

void Arena::merge_with_next(Piece* lower) {
  Piece* upper = lower->next;
  map_of(upper->address()).remove(upper);
  lower->size += upper->size;
  lower->next = upper->next;
  if (lower->next != nullptr) lower->next->previous = lower;
  Region& home = region(lower->large);
  if (home.last == upper) home.last = lower;
  store_.give(upper);
}

// The piece's memory has gone.
void Arena::drop(Piece* piece) {
  map_of(piece->address()).remove(piece);
  if (piece->previous != nullptr) piece->previous->next = nullptr;
  if (piece->next != nullptr) piece->next->previous = nullptr;
  Region& home = region(piece->large);
  if (home.last == piece) home.last = nullptr;
  store_.give(piece);
}

Piece* Arena::find(Address address) const {
  for (const auto& reservation : reservations_)
    if (reservation->contains(address)) return reservation->find(address);
  return nullptr;
}

Arena::Rest Arena::cut_out(Piece* piece, Range pages) {
  Rest rest;
  if (pages.end() < piece->end()) rest.after = split(piece, pages.end() - piece->address());
  if (pages.begin > piece->address()) {
    rest.before = piece;
    piece = split(piece, pages.begin - piece->address());
  }
  drop(piece);
  return rest;
}

Result<Arena::Rest> Arena::release(Piece* piece, Bytes size) {
  const Address end = whole_pages(piece->range()).end();
  Bytes gone = 0;
  Status done = Done{};
  while (gone < size && (done = backing_.release({end.value - gone - kPage}))) gone += kPage;
  reserved_ -= gone;
  if (gone == 0) return done.failure();
  return cut_out(piece, {{end.value - gone}, gone});
}

Status Arena::reserve(Region& region, Bytes size) {
  // The last page of a reservation stays unused, so that no piece ever spans two of them.
  const Bytes least = size + kPage;
  const Bytes generous =
      total_ > kMostAddresses / kAddressesPerByte ? kMostAddresses : total_ * kAddressesPerByte;
  for (Bytes wanted = std::max(round_up(generous, kPage), least);;
       wanted = std::max(round_up(wanted / 2, kPage), least)) {
    const auto reserved = backing_.reserve(wanted);
    if (reserved) {
      // Without host memory for the books the addresses are lost; there are plenty.
      reservations_.push_back(std::make_unique<PageMap>(reserved.value()));
      region.next = reserved.value().begin;
      region.end = region.next + (wanted - kPage);
      region.last = nullptr;
      return Done{};
    }
    if (wanted == least) return reserved.failure();
  }
}

Status Arena::Growth::begin(Bytes size) {
  if (size > region_.end - region_.next) {
    if (const Status done = arena_.reserve(region_, size); !done) return done;
  }
  begin_ = at_ = region_.next;
  return Done{};
}

Status Arena::Growth::create_until(Bytes size) {
  while (filled() < size) {
    if (const Status done = arena_.backing_.create(at_); !done) return done;
    at_ = at_ + kPage;
    arena_.reserved_ += kPage;
    arena_.reserved_peak_ = std::max(arena_.reserved_peak_, arena_.reserved_);
  }
  return Done{};
}

std::optional<Arena::Rest> Arena::Growth::move(Piece* piece, Bytes most) {
  const Range pages = whole_pages(piece->range());
  Bytes moved = 0;
  while (moved < std::min(most, pages.size) &&
         arena_.backing_.move({pages.end().value - moved - kPage}, at_)) {
    at_ = at_ + kPage;
    moved += kPage;
  }
  if (moved == 0) return std::nullopt;
  return arena_.cut_out(piece, {{pages.end().value - moved}, moved});
}

Result<Piece*> Arena::Growth::finish() {
  if (at_ == begin_) return nullptr;
  if (const Status done = arena_.backing_.enable({begin_, filled()}); !done) {
    // A driver that neither enables nor unmaps keeps the memory: it is counted, and nobody's.
    for (Address page = begin_; page < at_; page = page + kPage)
      if (arena_.backing_.release(page))
        arena_.reserved_ -= kPage;
      else
        arena_.lost_ += kPage;
    region_.next = at_;  // these addresses had memory once
    region_.last = nullptr;
    return done.failure();
  }
  Piece* piece = arena_.store_.take();
  piece->place(begin_, State::taken);
  piece->size = filled();
  piece->large = large_;
  piece->stream.store(0, std::memory_order_relaxed);
  piece->idle = {nullptr, nullptr, 0};
  piece->previous = region_.last;
  if (region_.last != nullptr) region_.last->next = piece;
  arena_.map_of(begin_).add(piece);
  region_.last = piece;
  region_.next = at_;
  return piece;
}

std::optional<std::string> Arena::audit() const {
  Bytes mapped = 0;
  std::optional<std::string> fault;
  each([&](const Piece& piece) {
    if (piece.size == 0 || piece.key() % kGranule != 0 || piece.size % kGranule != 0)
      fault = "arena: a piece is not made of granules";
    if (piece.previous != nullptr &&
        (piece.previous->next != &piece || piece.previous->end() != piece.address()))
      fault = "arena: a piece does not adjoin the one before it";
    if (piece.next != nullptr && piece.next->previous != &piece)
      fault = "arena: a piece does not adjoin the one behind it";
    if (find(piece.address() + (piece.size - 1)) != &piece)
      fault = "arena: a piece is not found by its last byte";
    mapped += piece.size;
  });
  if (fault) return fault;
  if (mapped + lost_ != reserved_) return "arena: the pieces do not tile what is reserved";
  if (reserved_ > reserved_peak_) return "arena: reserved exceeds its peak";
  return std::nullopt;
}

}  // namespace tidepool
