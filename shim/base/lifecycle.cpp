// Where this process stands between start, fork and exit.
#include "shim/base/lifecycle.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace tidepool::lifecycle {
namespace {

constinit std::atomic<bool> is_detached{false};
constinit std::atomic<bool> is_started{false};

}  // namespace

void driver_started() {
  if (is_started.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { is_detached.store(true, std::memory_order_relaxed); });
}

bool detached() { return is_detached.load(std::memory_order_relaxed); }

}  // namespace tidepool::lifecycle
