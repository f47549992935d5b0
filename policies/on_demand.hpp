// The policy that holds about what the program uses: grows in steps, gives back when told to.
// (preallocated is the same with a first large step.)
//
// Every byte of the arena is in exactly one place: a live block, a stream's cache, limbo (freed without a
// stream, before its fence), or a free index. There is one index for each stream that freed memory, which
// it may use at once and others after a fence, and one for everybody, owner 0.
//
// Units and threads: as Policy says. Cost: a pair on one stream that repeats a size takes the stream's
// lock twice and touches nothing else; other calls take the engine's lock and O(log n) steps; growth and
// fences that are asked for, more.
// Errors: Failure; std::bad_alloc when the host is out of memory, and then every invariant of audit()
// still holds and the caller may go on.
#pragma once

#include <mutex>

#include "policies/arena.hpp"
#include "policies/concurrent_table.hpp"
#include "policies/free_index.hpp"
#include "policies/meter.hpp"
#include "policies/policy.hpp"
#include "policies/shape.hpp"
#include "policies/stream_cache.hpp"
#include "policies/stream_store.hpp"

namespace tidepool {

class OnDemand : public Policy {
 public:
  OnDemand(const PolicyConfig& config, Backing& backing);

  Result<Block> allocate(const Request& request) override;
  using Policy::free;
  Result<Block> free(Address address, StreamKey stream, StreamPlace* place) override;
  Result<Block> free_idle(Address address) override;
  Fence open_fence() override;
  void close_fence(Fence fence) override;
  void forget_stream(StreamKey stream) override;
  Bytes trim(Bytes keep) override;
  std::optional<Block> find(Address address) const override;
  StreamPlace* place_of(StreamKey stream) override;
  void count_outside(std::int64_t bytes) override;
  void reset_grouped_peak() override;
  void each_live(const std::function<void(const Block&)>& visit) const override;
  Snapshot snapshot() override;
  std::optional<std::string> audit() const override;

 protected:
  // Takes memory up to `size` bytes in all, as far as the backing has it, and does not grow less readily
  // than that from then on.
  void take_share(Bytes size);

 private:
  using Index = std::uint32_t;
  static constexpr Index kEverybody = 0;

  struct alignas(64) Stream : StreamPlace {
    StreamCache cache;
    std::array<Meter::Lane, 2> requested;  // of all blocks, of those in the group; under the cache's lock
    std::uint64_t last_number = 0;         // under the cache's lock
    Index index = 0;
    std::size_t changes = 0;        // of `free`, since it was walked through
    Epoch earliest = kEver;         // nothing in `free` was freed before
    std::array<FreeIndex, 2> free;  // packed, large
    std::uint64_t key() const { return cache.key(); }
    Bytes free_bytes() const { return free[0].total() + free[1].total(); }
  };

  // One request on its way through the slower places.
  struct Search {
    Shape shape;
    Stream& own;
    bool fence_possible;
  };

  Stream& stream_of(StreamKey key);
  Result<Block> allocate_anywhere(const Request& request, Shape shape);
  Stream& home_of(const Piece* piece) { return streams_[piece->stream.load(std::memory_order_acquire)]; }
  Block hand_out(Piece* piece, const Request& request, Stream& own, bool& settle_due);
  Result<Block> allocate_slowly(const Request& request, Shape shape, Stream& own);
  Result<Block> free_by(Address address, Stream* by, StreamKey stream, bool idle);
  void put_away(Piece* piece, Stream* keeper, Stream* by, StreamKey stream, bool idle);
  template <typename Read>
  void with_live(Piece* piece, Address address, Read read) const;
  void settle_meters();

  // search.cpp: where a request that no cache serves finds memory
  Result<Piece*> take_slowly(const Search& search);
  Piece* take(const Search& search);
  Piece* best_fit(const FreeIndex& index, Shape shape) const;
  Piece* cut(Piece* piece, Shape shape);
  void join(Stream& own, bool large);
  bool worth_a_walk(const Stream& own) const;
  Piece* take_after_walk(const Search& search);
  bool usable_by(const Piece* piece, const Stream& own) const;
  bool anything_unfenced() const;
  bool fence_would_serve(const Search& search) const;
  template <typename Visit>
  void each_waiting(Visit visit) const;
  Bytes free_pages() const;
  Piece* extendable(const Search& search) const;
  Bytes lacking(const Search& search) const;

  // growth.cpp: memory from the device, or from elsewhere in the arena
  Result<Piece*> grow(const Search& search);
  bool hopeless(Bytes least);
  Failure without_memory(const Search& search, Failure failure) const;
  Piece* detach_tail(const Search& search);
  Piece* join_tail(Piece* grown, Piece* tail, Shape shape);
  Bytes still_allowed() const;
  void move_until(Arena::Growth& growth, Bytes size);
  Piece* movable() const;
  void put_rest(const Arena::Rest& rest);
  Bytes release_free(Bytes enough);

  // on_demand.cpp: pieces on their way to a place
  void put(Piece* piece, Index owner, Epoch freed);
  void put_in_limbo(Piece* piece, Epoch freed);
  void settle(Piece* piece, Epoch freed);
  void drain_cache(Stream& stream, Epoch last);
  void reclaim_fenced();
  void reclaim_fenced(Stream& stream);
  void index_remove(Piece* piece) { home_of(piece).free[piece->large].erase(piece); }
  Bytes live() const;

  const Bytes total_;
  // Before the lock of a cache, where both are needed.
  mutable std::mutex lock_;  // of everything below, but what says otherwise
  Arena arena_;
  ConcurrentTable<Piece> blocks_;  // live and cached; read without the lock
  ConcurrentTable<Stream> known_;  // read without the lock
  StreamStore<Stream> streams_;    // by Index; read without the lock
  Stream& everybody_;              // the first
  std::vector<Index> unused_;      // streams that were forgotten
  Piece* limbo_ = nullptr;         // by epoch, earliest first
  Piece* limbo_end_ = nullptr;
  Bytes in_limbo_ = 0;
  std::atomic<Epoch> open_{1};  // what a free now is stamped with; read without the lock
  Epoch closed_ = 0;            // the device has finished with everything stamped so far
  Bytes live_peak_ = 0;         // as seen when memory was looked for
  std::array<Meter, 2> requested_;
  Meter::Lane outside_;  // requested elsewhere
  Bytes floor_ = 0;      // preallocated: growth up to here needs no reason
};

}  // namespace tidepool
