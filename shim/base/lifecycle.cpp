// Where this process stands between start, fork and exit.
#include "shim/base/lifecycle.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace tidepool::lifecycle {

constinit std::atomic<bool> is_detached{false};

namespace {

constinit std::atomic<bool> is_started{false};
constinit std::atomic<const AroundFork*> around_fork{nullptr};

void before_fork() {
  const AroundFork* around = around_fork.load(std::memory_order_acquire);
  if (around != nullptr && !detached()) around->before(around->object);
}

void in_parent() {
  const AroundFork* around = around_fork.load(std::memory_order_acquire);
  if (around != nullptr && !detached()) around->in_parent(around->object);
}

}  // namespace

void set_around_fork(const AroundFork* around) { around_fork.store(around, std::memory_order_release); }

void driver_started() {
  if (is_started.exchange(true)) return;
  // After the driver's own, so that ours comes before it: what is under way may need the driver.
  pthread_atfork(before_fork, in_parent, [] { is_detached.store(true, std::memory_order_relaxed); });
}

}  // namespace tidepool::lifecycle
