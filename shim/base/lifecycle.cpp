// Where this process stands between start, fork and exit.
#include "shim/base/lifecycle.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace tidepool::lifecycle {

constinit std::atomic<bool> is_detached{false};

namespace {

constinit std::atomic<bool> is_started{false};

}  // namespace

void driver_started() {
  if (is_started.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { is_detached.store(true, std::memory_order_relaxed); });
}

}  // namespace tidepool::lifecycle
