// The policy that holds about what the program uses: grows in steps, gives back when told to.
// (preallocated is the same with a first large step.)
//
// Every byte of the arena is in exactly one place: a live block, a stream's cache or its loose
// ranges, limbo, or the arena's free ranges. A free with a stream moves it to that stream's cache, one
// without to limbo, a closed fence from there to the arena.
//
// Units and threads: as Policy says. Cost: a pair on one stream that repeats a size is O(log blocks)
// and allocates no host memory; other calls are O(log n) amortised, until memory has to grow or a
// fence is asked for: O(n).
// Errors: Failure; std::bad_alloc when the host is out of memory, and then every invariant of audit()
// still holds and the caller may go on. (One exception: while Arena::trim meets a refusing driver.)
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "policies/arena.hpp"
#include "policies/policy.hpp"
#include "policies/stream_cache.hpp"

namespace tidepool {

class OnDemand : public Policy {
 public:
  OnDemand(const PolicyConfig& config, Backing& backing)
      : total_(config.total), arena_(backing, config.total) {}

  Result<Block> allocate(const Request& request) override;
  Result<Bytes> free(Address address, StreamKey stream) override;
  Result<Bytes> free_idle(Address address) override;
  Fence open_fence() override;
  void close_fence(Fence fence) override;
  void forget_stream(StreamKey stream) override;
  Bytes trim(Bytes keep) override;
  std::optional<Block> find(Address address) const override;
  Snapshot snapshot() const override;
  std::optional<std::string> audit() const override;

 protected:
  Arena& arena() { return arena_; }

 private:
  using Streams = std::unordered_map<std::uint64_t, StreamCache>;

  Block hand_out(Entries::iterator entry);
  Result<Range> take_slowly(Shape shape, StreamCache* own, bool fence_possible);
  std::optional<Range> take_joined(Shape shape, StreamCache* own);
  Result<Range> grow(Shape shape, StreamCache* own);
  void settle(Range range, Epoch freed);
  void settle(FreeRanges& ranges, Epoch freed);
  void take_apart(StreamCache& own);
  void take_apart_fenced();
  bool may_grow_first(Shape shape) const;
  bool fence_would_serve(Shape shape) const;
  FreeRanges fenced() const;
  Bytes unfenced() const;

  const Bytes total_;
  Arena arena_;
  Entries entries_;
  Streams streams_;
  std::map<Epoch, std::vector<Range>> limbo_;
  Epoch open_ = 1;    // what a free now is stamped with
  Epoch closed_ = 0;  // the device has finished with everything stamped so far
  Bytes live_ = 0;
  Bytes live_peak_ = 0;
  Bytes in_limbo_ = 0;
};

}  // namespace tidepool
