// Where this process stands between start, fork and exit.
//
// A child of fork() inherits an initialised driver that it cannot use (the driver answers
// CUDA_ERROR_NOT_INITIALIZED) and locks that nobody will release: it detaches, every call is passed on
// untouched. A child forked before the first cuInit is a process like any other.
#pragma once

#include <atomic>

namespace tidepool::lifecycle {

extern constinit std::atomic<bool> is_detached;

// What must not be under way in another thread while the process is copied. One for the process.
struct AroundFork {
  void (*before)(void* object);
  void (*in_parent)(void* object);
  void* object;
};
void set_around_fork(const AroundFork* around);

// The driver was initialised: from now on a forked child is detached. Idempotent.
void driver_started();

// True in a forked child of a process in which driver_started() had been called.
inline bool detached() { return is_detached.load(std::memory_order_relaxed); }

}  // namespace tidepool::lifecycle
