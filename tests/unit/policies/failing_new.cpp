// Replaces operator new for the whole test program: malloc, unless the test ordered a failure.
#include "tests/unit/policies/failing_new.hpp"

#include <cstdlib>

namespace tidepool::testing {
constinit thread_local int allocations_left = -1;
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  int& left = tidepool::testing::allocations_left;
  if (left == 0) return nullptr;
  if (left > 0) --left;
  return std::malloc(size);
}

void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
