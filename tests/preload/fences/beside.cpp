// Threads beside each other: one frees while another waits for the device or captures.
#include <atomic>
#include <thread>

#include "tests/preload/fences/scenes.hpp"

// A wait covers what was freed before it began. What is freed meanwhile, behind a kernel of its own, is
// not free when the wait is over.
void freed_while_waiting() {
  const CUcontext context = start_driver();
  const Kernels kernels;
  const CUstream blocked = new_stream(), busy = new_stream(), last = new_stream();
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  const std::size_t bytes = total * 6 / 10 / kMiB * kMiB;
  CUdeviceptr small = 0, large = 0;
  OK(CU(cuMemAlloc_v2)(&small, 512));
  OK(CU(cuMemAllocAsync)(&large, bytes, busy));
  std::atomic<bool> go_on{false};
  OK(CU(cuLaunchHostFunc)(
      blocked, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &go_on));
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    OK(CU(cuCtxSetCurrent)(context));
    waiting = true;
    OK(CU(cuMemFree_v2)(small));
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kernels.fill_for_long(busy, large, bytes, 1);
  OK(CU(cuMemFreeAsync)(large, busy));
  go_on = true;
  go_on.notify_all();
  waiter.join();
  OK(CU(cuMemAllocAsync)(&large, bytes, last));
  kernels.fill(last, large, bytes, 2);
  OK(CU(cuCtxSynchronize)());
  must_hold(large, bytes, 2);
}

// Whoever waits for the device while a capture is open ends the capture.
void captured_beside_frees() {
  const CUcontext context = start_driver();
  const CUstream stream = new_stream();
  for (int round = 0; round < 30; ++round) {
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    std::thread([&] {
      OK(CU(cuCtxSetCurrent)(context));
      CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
      OK(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
      CUdeviceptr block = 0;
      OK(CU(cuMemAlloc_v2)(&block, kMiB));
      OK(CU(cuMemFree_v2)(block));
    }).join();
    CUgraph graph = nullptr;
    OK(CU(cuStreamEndCapture)(stream, &graph));
    HOLDS(graph != nullptr);
    OK(CU(cuGraphDestroy)(graph));
  }
}
