// Threads and streams that allocate, fill and free at random, by both families. Each block is written by
// its own stream's kernels alone and must hold the last value when it is read.
#include <random>
#include <thread>
#include <vector>

#include "tests/preload/fences/scenes.hpp"

namespace {

struct Held {
  CUdeviceptr block = 0;
  std::size_t bytes = 0;
  std::uint32_t value = 0;
  bool ordered = false;  // of cuMemAllocAsync
};

class Worker {
 public:
  Worker(CUcontext context, const Kernels& kernels, unsigned seed) : kernels_(kernels), random_(seed) {
    OK(CU(cuCtxSetCurrent)(context));
    stream_ = new_stream();
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (held_.size() < 12 && (held_.empty() || pick(2) == 0))
        take(static_cast<std::uint32_t>(step + 1));
      else
        give(pick(static_cast<unsigned>(held_.size())));
      if (pick(40) == 0) renew_stream();
    }
    while (!held_.empty()) give(0);
  }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  void take(std::uint32_t value) {
    Held held{.bytes = std::size_t{4096} << pick(9), .value = value, .ordered = pick(3) != 0};
    if (held.ordered)
      OK(CU(cuMemAllocAsync)(&held.block, held.bytes, stream_));
    else
      OK(CU(cuMemAlloc_v2)(&held.block, held.bytes));
    kernels_.fill_slowly(stream_, held.block, held.bytes, value);
    held_.push_back(held);
  }

  void give(unsigned index) {
    const Held held = held_[index];
    held_.erase(held_.begin() + index);
    if (pick(4) == 0) {
      OK(CU(cuStreamSynchronize)(stream_));
      must_hold(held.block, held.bytes, held.value);
    }
    kernels_.fill_slowly(stream_, held.block, held.bytes, 0xdead);
    if (held.ordered && pick(4) != 0) {
      OK(CU(cuMemFreeAsync)(held.block, stream_));
      return;
    }
    // cuda.h, cuMemFree: no implicit synchronisation for memory of cuMemAllocAsync.
    if (held.ordered) OK(CU(cuStreamSynchronize)(stream_));
    OK(CU(cuMemFree_v2)(held.block));
  }

  // What the old stream still writes to was allocated on it, and is used on the new one behind an event.
  void renew_stream() {
    const CUstream old = stream_;
    CUevent event = nullptr;
    stream_ = new_stream();
    OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuEventRecord)(event, old));
    OK(CU(cuStreamWaitEvent)(stream_, event, 0));
    OK(CU(cuEventDestroy_v2)(event));
    OK(CU(cuStreamDestroy_v2)(old));
  }

  const Kernels& kernels_;
  std::mt19937 random_;
  CUstream stream_ = nullptr;
  std::vector<Held> held_;
};

}  // namespace

void storm() {
  const CUcontext context = start_driver();
  const Kernels kernels;
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed)
    threads.emplace_back([&, seed] { Worker(context, kernels, seed).run(250); });
  for (std::thread& thread : threads) thread.join();
}
