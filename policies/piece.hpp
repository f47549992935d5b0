// One contiguous piece of an arena: live, cached by a stream, waiting for a fence, or free. Pieces tile
// everything that is mapped; each knows its neighbours, so that freed memory joins in constant time.
//
// A piece that somebody outside the engine's lock may see is live or cached, and belongs to a stream, whose
// lock covers its way from one to the other. Its word holds address and state together, so that whoever
// found it by its address sees at once whether it is still the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "policies/policy.hpp"
#include "policies/units.hpp"

namespace tidepool {

using Epoch = std::uint64_t;  // counts opened fences; a fence of epoch e covers every free up to e

enum class State : std::uint64_t {
  spare,   // no piece: waits in the store to become one
  free,    // in a free index
  live,    // the caller's
  cached,  // in a stream's cache
  limbo,   // waits for a fence
  taken,   // between two of the above, held by one thread
};

struct alignas(64) Piece {
  std::uint64_t key() const { return word.load(std::memory_order_acquire) & ~kStateMask; }
  Address address() const { return {key()}; }
  State state() const { return static_cast<State>(word.load(std::memory_order_acquire) & kStateMask); }
  Address end() const { return address() + size; }
  Range range() const { return {address(), size}; }

  void become(State state) {
    word.store(key() | static_cast<std::uint64_t>(state), std::memory_order_release);
  }
  void place(Address at, State state) {
    word.store(at.value | static_cast<std::uint64_t>(state), std::memory_order_release);
  }
  bool is_live_at(Address at) const {
    return word.load(std::memory_order_acquire) == (at.value | static_cast<std::uint64_t>(State::live));
  }

  static constexpr std::uint64_t kStateMask = kGranule - 1;

  std::atomic<std::uint64_t> word{0};
  Bytes size = 0;
  Piece* previous = nullptr;  // neighbours in address order; null where nothing is mapped
  Piece* next = nullptr;
  union {
    struct {
      std::uint64_t owner;  // as Label
      std::uint64_t number;
      std::uint32_t slack;  // size less what was requested
      std::uint32_t tag;
    } label{};  // live
    struct {
      Piece* left;  // free: children in the index. limbo, spare: `left` is the next of the list
      Piece* right;
      Epoch freed;  // what a fence has to cover; 0 where nothing is waited for
    } idle;
  };
  // Free: whose index it is in. Live: the stream it was allocated on; cached: it was freed on.
  std::atomic<std::uint32_t> stream{0};
  bool large = false;    // lies among the large blocks
  bool grouped = false;  // live: counts in the group's sum too
};
// One cache line: pieces that different threads have do not share one.
static_assert(sizeof(Piece) == 64);

// Descriptors, never given back to the host while the engine lives: a thread that looks one up without
// the lock may still read it.
class PieceStore {
 public:
  // Makes sure of `count` spare descriptors. Errors: std::bad_alloc.
  void prepare(std::size_t count) {
    while (spare_count_ < count) add_chunk();
  }
  // Requires: prepare() was called for it.
  Piece* take() {
    Piece* piece = spare_;
    spare_ = piece->idle.left;
    --spare_count_;
    piece->previous = piece->next = nullptr;
    return piece;
  }
  void give(Piece* piece) {
    piece->place({}, State::spare);
    piece->idle = {spare_, nullptr, 0};
    spare_ = piece;
    ++spare_count_;
  }

 private:
  void add_chunk() {
    chunks_.push_back(nullptr);
    try {
      chunks_.back() = std::make_unique<Piece[]>(kChunk);
    } catch (...) {
      chunks_.pop_back();
      throw;
    }
    for (std::size_t i = kChunk; i-- > 0;) give(&chunks_.back()[i]);
  }

  static constexpr std::size_t kChunk = 512;
  std::vector<std::unique_ptr<Piece[]>> chunks_;
  Piece* spare_ = nullptr;
  std::size_t spare_count_ = 0;
};

}  // namespace tidepool
