// One device's memory: addresses, the pages of physical memory under them, and the pieces that tile what
// is mapped. It knows no owners, streams or fences: policies decide who may use a free piece, when to
// grow and when to hand back.
//
// Every page is a unit of its own: any free page can be moved or handed back, and a small block never pins
// more than it lies on. Larger units cost fewer calls, but pin memory that is free: with units of 16 to
// 64 MiB that no block may end in, the recorded programs took six times the fences. Large blocks and
// packed ones grow apart, that the small ones do not scatter over the pages of the large.
//
// Addresses are used once, upwards: after a unit has gone its addresses stay empty for good, because
// network cards and caches in other libraries may still translate them to the old pages.
//
// Units: bytes. Threads: none; the owner's lock covers it.
// Errors: Failure as the backing gave it; std::bad_alloc, and then the books are as before the call.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "policies/backing.hpp"
#include "policies/page_map.hpp"
#include "policies/piece.hpp"
#include "policies/shape.hpp"

namespace tidepool {

class Arena {
 private:
  struct Region;

 public:
  // `total`: the device's memory. `backing` must outlive the arena.
  Arena(Backing& backing, Bytes total) : backing_(backing), total_(total) {}

  // Host memory for the splits of one call. Errors: std::bad_alloc.
  void prepare() { store_.prepare(8); }
  // Cuts `piece` at `size`; the upper part is returned, in the same state. Requires: prepare().
  Piece* split(Piece* piece, Bytes size);
  // Makes one piece of `lower` and the one behind it.
  void merge_with_next(Piece* lower);

  // The piece at an address, null where nothing is mapped.
  Piece* find(Address address) const;

  // What is left of a free piece on either side, when pages inside it are taken away.
  struct Rest {
    Piece* before = nullptr;
    Piece* after = nullptr;
  };
  // Hands the last `size` bytes of whole pages inside a free piece back. Requires: it has them; it is in no
  // index. Errors: as far as the backing went, the pages are gone.
  Result<Rest> release(Piece* piece, Bytes size);

  // A run of fresh addresses that is being filled with memory, upwards. Whatever it got when it ends
  // becomes one piece.
  class Growth {
   public:
    Growth(Arena& arena, bool large) : arena_(arena), region_(arena.region(large)), large_(large) {}
    // Finds addresses. Requires: called once, first.
    Status begin(Bytes size);
    // New pages, until there are `size` bytes.
    Status create_until(Bytes size);
    // Takes up to `most` bytes of whole pages from the end of a free piece. Requires: it is in no index.
    // Nothing: the backing refused, and the piece is as it was.
    std::optional<Rest> move(Piece* piece, Bytes most);
    Bytes filled() const { return at_ - begin_; }
    // One piece in state `taken`, null if there was no memory. Failure: the memory was lost again.
    Result<Piece*> finish();

   private:
    Arena& arena_;
    Region& region_;
    const bool large_;
    Address begin_;
    Address at_;
  };

  Bytes available() { return backing_.available(); }

  // The piece that fresh addresses of that kind would adjoin. Null: there is none.
  Piece* tail(bool large) const { return regions_[large].last; }

  Bytes reserved() const { return reserved_; }
  Bytes reserved_peak() const { return reserved_peak_; }

  // Calls visit(piece) for every piece, in address order within a reservation. O(addresses used).
  template <typename Visit>
  void each(Visit visit) const {
    for (const auto& reservation : reservations_) reservation->each(visit);
  }
  std::optional<std::string> audit() const;  // O(n)

 private:
  struct Region {
    Address next;           // the first address never used
    Address end;            // of its newest reservation
    Piece* last = nullptr;  // ends at `next`
  };

  Region& region(bool large) { return regions_[large]; }
  Status reserve(Region& region, Bytes size);
  PageMap& map_of(Address address) const;
  Rest cut_out(Piece* piece, Range pages);
  void drop(Piece* piece);

  Backing& backing_;
  const Bytes total_;
  std::array<Region, 2> regions_;  // packed, large
  std::vector<std::unique_ptr<PageMap>> reservations_;
  PieceStore store_;
  Bytes reserved_ = 0;
  Bytes reserved_peak_ = 0;
  Bytes lost_ = 0;  // of reserved_: what the driver neither enabled nor took back
};

}  // namespace tidepool
