// The interface upward: who decides where a block lies and when memory is taken and handed back.
//
// A policy never waits for the device. Where memory becomes free only after the device has finished,
// allocate() says needs_fence; the caller then opens a fence, waits (holding no lock: a host callback may
// need one), closes the fence and asks again.
//
// Threading: any thread. A policy has one lock of its own, held over calls of the backing, and none on
// the way of a call that repeats itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "policies/backing.hpp"
#include "policies/snapshot.hpp"

namespace tidepool {

// What a caller wants to know again of its block.
struct Label {
  Bytes requested = 0;
  std::uint64_t owner = 0;   // means nothing here
  std::uint64_t number = 0;  // of no other block this policy ever gave
  std::uint32_t tag = 0;     // means nothing here either
};

// Where the engine keeps what it knows of a stream. Never dangles; if the stream was forgotten meanwhile, the
// engine notices.
struct StreamPlace {};

struct Request {
  Bytes size = 0;
  StreamKey stream = kNoStream;  // kNoStream: any stream may use the block at once (cuMemAlloc)
  bool fence_possible = true;    // false during a capture: never answer needs_fence
  std::uint64_t owner = 0;       // see Label
  std::uint32_t tag = 0;
  bool grouped = false;          // counts in Snapshot::grouped as well
  StreamPlace* place = nullptr;  // what place_of(stream) said, where the caller remembers
};

struct Block {
  Address address;
  Bytes size = 0;  // what the arena gave, at least the request
  Label label;
};

// All blocks freed before a fence was opened.
struct Fence {
  std::uint64_t epoch = 0;
};

struct PolicyConfig {
  Bytes total = 0;    // the device's memory; sizes the reserved addresses
  Bytes initial = 0;  // preallocated: taken at the first request of 1 MiB or more
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Requires nothing of the device: the block is safe to use on request.stream (or any, if none) now.
  virtual Result<Block> allocate(const Request& request) = 0;

  // The block may still be in use by work submitted earlier. With a stream: later work on that stream
  // may have it at once. Without: nobody before a fence that is opened after this call has closed.
  // Returns the block. Of several frees of one address one succeeds.
  virtual Result<Block> free(Address address, StreamKey stream, StreamPlace* place) = 0;
  Result<Block> free(Address address, StreamKey stream) { return free(address, stream, nullptr); }

  // As free(), of a block that the device is known to have finished with: anybody may have it at once.
  virtual Result<Block> free_idle(Address address) = 0;

  virtual Fence open_fence() = 0;
  // The device has finished everything submitted before open_fence() returned `fence`.
  virtual void close_fence(Fence fence) = 0;

  // A stream dies; its handle may be given to another. What it had cached waits for a fence.
  virtual void forget_stream(StreamKey stream) = 0;

  // Hands back whole free pages that no fence holds, until at most `keep` bytes stay reserved.
  // Returns the bytes handed back.
  virtual Bytes trim(Bytes keep) = 0;

  // Is `address` inside a live block? Then that block.
  virtual std::optional<Block> find(Address address) const = 0;

  // Spares the look-up of a stream in later calls. Null where there is nothing to remember.
  virtual StreamPlace* place_of(StreamKey stream) = 0;

  // Memory that the caller's program has from elsewhere: counted in Snapshot::requested and its peak.
  virtual void count_outside(std::int64_t bytes) = 0;
  virtual void reset_grouped_peak() = 0;

  // Calls visit(block) for every live block; it must call nothing here. O(blocks).
  virtual void each_live(const std::function<void(const Block&)>& visit) const = 0;

  virtual Snapshot snapshot() = 0;

  // Nothing if every invariant holds, else one sentence. O(blocks).
  virtual std::optional<std::string> audit() const = 0;
};

}  // namespace tidepool
