// Lets the n-th host allocation of a test fail, so that promises about std::bad_alloc can be kept to.
#pragma once

#include <new>
#include <utility>

namespace tidepool::testing {

// Counts down on each operator new of this thread: 0 fails it; negative never. failing_new.cpp.
// constinit: no initialiser to call before each access (GCC 12 lets UBSan call that a null pointer).
extern constinit thread_local int allocations_left;

// Lets allocations pass for its lifetime, without counting them.
class WithMemory {
 public:
  WithMemory() : left_(std::exchange(allocations_left, -1)) {}
  ~WithMemory() { allocations_left = left_; }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;

 private:
  int left_;
};

// Runs `act` while its n-th allocation (from 0), and every later one, fails.
template <typename Act>
bool throws_without_memory(int n, Act act) {
  allocations_left = n;
  try {
    act();
    allocations_left = -1;
    return false;
  } catch (const std::bad_alloc&) {
    allocations_left = -1;
    return true;
  }
}

}  // namespace tidepool::testing
