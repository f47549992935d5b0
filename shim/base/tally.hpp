// Counters that every call of a program adds to. Each thread has its own, so that adding is an increment
// and no more: an atomic one costs 6 ns, and a pair of allocations would need twenty.
//
// Slots are numbers that upper layers share out: fixed ones for the hooks and the driver's entries, others
// by reserve().
//
// Threading: any thread, no lock: a forked child counts too, whatever other threads did when it was made. A
// sum taken while others add may lack their last increments. Errors: none; where host memory is lacking the
// thread counts with atomic increments.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tidepool::tally {

inline constexpr std::size_t kSlots = 1024;
inline constexpr std::size_t kHookSlots = 0;      // 2 for each hook
inline constexpr std::size_t kDriverSlots = 640;  // 1 for each entry that the shim calls
inline constexpr std::size_t kOtherSlots = 768;

struct Counts {
  std::array<std::atomic<std::uint64_t>, kSlots> values{};
  Counts* next = nullptr;         // of all that there are
  std::atomic<bool> taken{true};  // else its thread has ended, and the next one counts on in it
};

// This thread's counters; null until its first call. initial-exec: another model may call malloc here.
extern constinit thread_local Counts* mine __attribute__((tls_model("initial-exec")));

void add_first(std::size_t slot, std::uint64_t amount) noexcept;

inline void add(std::size_t slot, std::uint64_t amount = 1) noexcept {
  Counts* counts = mine;
  if (counts == nullptr) [[unlikely]]
    return add_first(slot, amount);
  auto& value = counts->values[slot];
  value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

std::uint64_t sum(std::size_t slot) noexcept;

// `count` slots in a row that nobody else has; all that ask after the last get the same.
std::size_t reserve(std::size_t count) noexcept;

}  // namespace tidepool::tally
