// The counters of all threads, those that have ended included.
#include "shim/base/tally.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace tidepool::tally {

constinit thread_local Counts* mine __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constinit std::mutex lock;
constinit Counts* all = nullptr;
constinit Counts* unused = nullptr;
constinit Counts shared;  // of threads without counters of their own
constinit std::atomic<std::size_t> next_slot{kOtherSlots};
constinit bool has_key = false;
constinit pthread_key_t key{};

// What a thread does after this, in other destructors, counts in `shared` until it takes counters again.
void leave(void* counts) {
  const std::lock_guard hold(lock);
  mine = nullptr;
  auto* left = static_cast<Counts*>(counts);
  left->next_unused = unused;
  unused = left;
}

Counts* take() {
  const std::lock_guard hold(lock);
  if (!has_key) {
    if (pthread_key_create(&key, leave) != 0) return nullptr;
    has_key = true;
  }
  Counts* counts = unused;
  if (counts != nullptr) {
    unused = counts->next_unused;
  } else {
    counts = new (std::nothrow) Counts;
    if (counts == nullptr) return nullptr;
    counts->next = all;
    all = counts;
  }
  if (pthread_setspecific(key, counts) == 0) return counts;
  counts->next_unused = unused;
  unused = counts;
  return nullptr;
}

}  // namespace

void add_first(std::size_t slot, std::uint64_t amount) noexcept {
  mine = take();
  if (mine != nullptr) return add(slot, amount);
  shared.values[slot].fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t sum(std::size_t slot) noexcept {
  const std::lock_guard hold(lock);
  std::uint64_t total = shared.values[slot].load(std::memory_order_relaxed);
  for (const Counts* counts = all; counts != nullptr; counts = counts->next)
    total += counts->values[slot].load(std::memory_order_relaxed);
  return total;
}

std::size_t reserve(std::size_t count) noexcept {
  const std::size_t first = next_slot.fetch_add(count, std::memory_order_relaxed);
  return std::min(first, kSlots - count);
}

}  // namespace tidepool::tally
