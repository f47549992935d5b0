// Prints what the first dlopen with RTLD_DEEPBIND costs here, in nanoseconds, of a library that has nothing
// to do with CUDA and of a kind that is loaded so (by Julia, by modules of servers).
#include <dlfcn.h>

#include <chrono>
#include <cstdio>

int main() {
  const auto begin = std::chrono::steady_clock::now();
  if (dlopen(DEEPBOUND_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) == nullptr) return 1;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("%f\n", took.count());
  return 0;
}
