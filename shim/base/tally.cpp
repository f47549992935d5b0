// The counters of all threads, those that have ended included.
#include "shim/base/tally.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>

namespace tidepool::tally {

constinit thread_local Counts* mine __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

constexpr pthread_key_t kNoKey = ~pthread_key_t{0};

constinit std::atomic<Counts*> all{nullptr};  // only ever grows
constinit Counts shared;                      // of threads without counters of their own
constinit std::atomic<std::size_t> next_slot{kOtherSlots};
constinit std::atomic<pthread_key_t> key{kNoKey};

void give_up(Counts* counts) { counts->taken.store(false, std::memory_order_release); }

// The thread may still call in other destructors; then it takes counters again.
void leave(void* counts) {
  mine = nullptr;
  give_up(static_cast<Counts*>(counts));
}

// Not pthread_once: a child that was forked in the middle of one may wait for ever (musl).
pthread_key_t leaving_key() {
  pthread_key_t known = key.load(std::memory_order_acquire);
  pthread_key_t made{};
  if (known != kNoKey || pthread_key_create(&made, leave) != 0) return known;
  if (key.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
  pthread_key_delete(made);
  return known;
}

Counts* take_unused() {
  for (Counts* counts = all.load(std::memory_order_acquire); counts != nullptr; counts = counts->next)
    if (!counts->taken.load(std::memory_order_relaxed) &&
        !counts->taken.exchange(true, std::memory_order_acquire))
      return counts;
  return nullptr;
}

Counts* make() {
  auto* counts = new (std::nothrow) Counts;
  if (counts == nullptr) return nullptr;
  counts->next = all.load(std::memory_order_acquire);
  while (!all.compare_exchange_weak(counts->next, counts, std::memory_order_acq_rel)) {
  }
  return counts;
}

Counts* take() {
  const pthread_key_t leaving = leaving_key();
  if (leaving == kNoKey) return nullptr;
  Counts* counts = take_unused();
  if (counts == nullptr) counts = make();
  if (counts == nullptr || pthread_setspecific(leaving, counts) == 0) return counts;
  give_up(counts);
  return nullptr;
}

}  // namespace

void add_first(std::size_t slot, std::uint64_t amount) noexcept {
  mine = take();
  if (mine != nullptr) return add(slot, amount);
  shared.values[slot].fetch_add(amount, std::memory_order_relaxed);
}

std::uint64_t sum(std::size_t slot) noexcept {
  std::uint64_t total = shared.values[slot].load(std::memory_order_relaxed);
  for (const Counts* counts = all.load(std::memory_order_acquire); counts != nullptr; counts = counts->next)
    total += counts->values[slot].load(std::memory_order_relaxed);
  return total;
}

std::size_t reserve(std::size_t count) noexcept {
  const std::size_t first = next_slot.fetch_add(count, std::memory_order_relaxed);
  return std::min(first, kSlots - count);
}

}  // namespace tidepool::tally
