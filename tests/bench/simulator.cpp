// What the simulated driver itself costs, where it is the ground on which others are measured: a pair of
// cuMemAlloc and cuMemFree of 64 KiB on an idle device, and one operation through a stream. Prints a line
// each and fails above the limits, which leave room for a busy machine.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

void* libcuda;

template <typename Entry>
Entry entry(const char* name) {
  return reinterpret_cast<Entry>(dlsym(libcuda, name));
}
#define CU(name) entry<decltype(&::name)>(#name)

// Best of several rounds: what else runs here can only add.
template <typename Body>
double best_ns(int count, const Body& body) {
  double best = 1e12;
  for (int round = 0; round < 300; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / count);
  }
  return best;
}

bool report(const char* what, double ns, double most) {
  std::printf("%s: %.0f ns (at most %.0f)\n", what, ns, most);
  return ns <= most;
}

}  // namespace

int main(int, char** arguments) {
  libcuda = dlopen(arguments[1], RTLD_NOW);
  CUcontext context = nullptr;
  if (!libcuda || CU(cuInit)(0) || CU(cuCtxCreate_v2)(&context, 0, 0)) return 2;
  const auto allocate = CU(cuMemAlloc_v2);
  const auto release = CU(cuMemFree_v2);
  const auto fill = CU(cuMemsetD8Async);
  const auto synchronize = CU(cuStreamSynchronize);
  CUdeviceptr block = 0, kept[64];
  const auto pair = [&] {
    allocate(&block, 64 << 10);
    release(block);
  };
  bool good = report("cuMemAlloc and cuMemFree of 64 KiB, idle device", best_ns(1000, pair), 200);
  for (CUdeviceptr& one : kept) allocate(&one, 64 << 10);
  good &= report("the same, beside 64 other blocks", best_ns(1000, pair), 400);
  const auto operation = [&] { fill(kept[0], 1, 4, nullptr); };
  good &= report("an operation queued and done", best_ns(1000, operation), 2000);
  synchronize(nullptr);
  return good ? 0 : 1;
}
