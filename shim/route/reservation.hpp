// XLA's request to a pool that it will never use. With cuda_async its first call asks the pool for all
// that the pool may keep (75 % of the device) and frees it at once, so that the driver's pool is warm
// (openxla/xla, gpu_cudamallocasync_allocator.cc, SetStreamAndPreallocateMemory). Backing it would take
// in an instant what `ondemand` is there to leave to others, so it is answered with addresses alone.
//
// It is recognised only where the shim itself chose cuda_async for JAX, and only as the first request,
// of exactly the pool's release threshold. Should a call that we see follow, other than its free, it gets
// its memory; XLA makes none in between.
//
// Threading: any thread; held across driver calls that do not wait for the device. Only calls of the
// thread that opened it count as following it: others are busy with other things.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "policies/backing.hpp"

namespace tidepool {

class Reservation {
 public:
  explicit Reservation(Backing& backing) : backing_(backing) {}

  // Requires: none was opened before. The addresses, or nothing.
  std::optional<Address> open(Bytes size);
  // The program frees `address`. Unused: nothing is left to do, the addresses stay empty for good.
  // Backed: the caller waits for the device, then calls release().
  enum class Closed { not_this, unused, backed };
  Closed close(Address address);
  void release();
  // False: it is not there. No lock.
  bool may_be_at(Address address) const { return begin_.load(std::memory_order_acquire) == address.value; }
  // The opening thread calls something else: memory goes under the addresses, for good.
  // Failure: the device had none.
  Status back();
  // What was asked and never got memory, bytes.
  Bytes unbacked() const { return unbacked_.load(std::memory_order_relaxed); }
  bool must_be_backed() const {
    return state_.load(std::memory_order_acquire) == State::pending && opener_ == std::this_thread::get_id();
  }

 private:
  void release_first(Bytes size);

  enum class State { none, pending, backed, refused };

  Backing& backing_;
  std::mutex lock_;
  Range range_;
  std::atomic<std::uint64_t> begin_{0};
  std::thread::id opener_;
  std::atomic<State> state_{State::none};
  std::atomic<Bytes> unbacked_{0};
};

}  // namespace tidepool
