// What a thread found out about the streams it uses: the device, the key that the engine knows the stream by,
// the pool. Four streams a thread are remembered until a stream, a context or a pool changes somewhere.
// Finding out takes the driver half a dozen questions, and a pair of allocations has 60 ns.
//
// Threading: any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "shim/route/device.hpp"
#include "shim/route/pools.hpp"

namespace tidepool {

struct StreamName {
  CUstream stream = nullptr;
  bool per_thread = false;  // the entry's null stream is the thread's own

  // Made by the application; it lives on a device of its own and can die.
  bool is_handle() const {
    return stream != nullptr && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
  }
  bool is_threads_own() const { return stream == CU_STREAM_PER_THREAD || (stream == nullptr && per_thread); }
  friend bool operator==(const StreamName&, const StreamName&) = default;
};

struct Lane {
  std::uint64_t generation = 0;
  StreamName name;
  CUcontext context = nullptr;  // of a default stream: the one it stands for
  Device* device = nullptr;
  StreamKey key;
  StreamPlace* place = nullptr;  // in the device's arena, once it has one
  // The pool that was asked for last, and what it stands for; null: not served.
  CUmemoryPool asked_pool = nullptr;
  bool pool_known = false;
  Pool* pool = nullptr;

  bool serves(CUmemoryPool asked) const { return pool != nullptr && asked_pool == asked; }
};

class Lanes {
 public:
  // This thread's lane of that stream, if it is still right; else null.
  Lane* find(const StreamName& name) {
    Lane& lane = place_of(name);
    return lane.generation == generation_.load(std::memory_order_acquire) && lane.name == name ? &lane
                                                                                               : nullptr;
  }
  // The same, or an empty one in its place.
  Lane& find_or_begin(const StreamName& name) {
    if (Lane* known = find(name)) return *known;
    Lane& lane = place_of(name);
    lane = Lane{};
    lane.generation = generation_.load(std::memory_order_acquire);
    lane.name = name;
    return lane;
  }

  // A stream, a context or a pool is about to change, or has changed: call before and after.
  void forget() { generation_.fetch_add(1, std::memory_order_acq_rel); }

 private:
  static Lane& place_of(const StreamName& name) {
    const auto handle = reinterpret_cast<std::uintptr_t>(name.stream);
    return mine[(handle >> 4 ^ handle >> 9) % mine.size()];
  }

  static constinit thread_local std::array<Lane, 4> mine __attribute__((tls_model("initial-exec")));
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace tidepool
