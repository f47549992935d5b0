// Captures that begin and end, one after another, beside threads that allocate, free, trim and run out of
// memory: none may be ended by a call that the threads did not make. CAPTURES says how many.
#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "tests/preload/fences/scenes.hpp"

namespace {

class Neighbours {
 public:
  explicit Neighbours(CUcontext context) {
    threads_.emplace_back([=, this] { repeat(context, &Neighbours::pair_ordered, 1); });
    threads_.emplace_back([=, this] { repeat(context, &Neighbours::pair, 2); });
    threads_.emplace_back([=, this] { repeat(context, &Neighbours::fill_up, 3); });
    threads_.emplace_back([=, this] { repeat(context, &Neighbours::trim, 4); });
  }
  ~Neighbours() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  bool ran_out() const { return ran_out_; }

  // All take what there is, so that each of them may find nothing left.
  bool worked(CUresult result) {
    if (result == CUDA_SUCCESS) return true;
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, result);
    ran_out_ = true;
    return false;
  }

 private:
  using Random = std::minstd_rand;

  // To a capture of another mode than relaxed a thread's own allocations would count.
  void repeat(CUcontext context, void (Neighbours::*act)(CUstream, Random&), unsigned seed) {
    OK(CU(cuCtxSetCurrent)(context));
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
    const CUstream stream = new_stream();
    for (Random random(seed); !done_;) (this->*act)(stream, random);
  }

  void pair_ordered(CUstream stream, Random& random) {
    CUdeviceptr block = 0;
    if (worked(CU(cuMemAllocAsync)(&block, 4096u << random() % 12, stream)))
      OK(CU(cuMemFreeAsync)(block, random() % 4 == 0 ? nullptr : stream));
  }

  void pair(CUstream, Random& random) {
    CUdeviceptr block = 0;
    if (worked(CU(cuMemAlloc_v2)(&block, 4096u << random() % 12))) OK(CU(cuMemFree_v2)(block));
  }

  void fill_up(CUstream stream, Random& random) {
    std::vector<CUdeviceptr> blocks;
    for (CUdeviceptr block = 0; worked(CU(cuMemAllocAsync)(&block, (1 + random() % 64) * kMiB, stream));)
      blocks.push_back(block);
    for (const CUdeviceptr block : blocks) OK(CU(cuMemFreeAsync)(block, stream));
  }

  void trim(CUstream, Random& random) {
    CUmemoryPool pool = nullptr;
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    OK(CU(cuMemPoolTrimTo)(pool, random() % 64 * kMiB));
    std::this_thread::yield();
  }

  std::atomic<bool> done_{false}, ran_out_{false};
  std::vector<std::thread> threads_;
};

void capture_once(const Kernels& kernels, CUstream stream, CUdeviceptr block, int round,
                  Neighbours& neighbours) {
  const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                       CU_STREAM_CAPTURE_MODE_RELAXED};
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  OK(CU(cuStreamBeginCapture_v2)(stream, modes[round % 3]));
  kernels.fill(stream, block, 4096, static_cast<std::uint32_t>(round));
  CUdeviceptr inner = 0;
  // The neighbours may have all the memory; the capture goes on.
  if (round % 4 == 0 && neighbours.worked(CU(cuMemAllocAsync)(&inner, kMiB, stream)))
    OK(CU(cuMemFreeAsync)(inner, stream));
  OK(CU(cuStreamEndCapture)(stream, &graph));
  HOLDS(graph != nullptr);
  OK(CU(cuGraphInstantiateWithFlags)(&ready, graph, 0));
  OK(CU(cuGraphLaunch)(ready, stream));
  OK(CU(cuGraphExecDestroy)(ready));
  OK(CU(cuGraphDestroy)(graph));
}

}  // namespace

void captured_beside_all() {
  const CUcontext context = start_driver();
  const Kernels kernels;
  const CUstream stream = new_stream();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 4096));
  const char* asked = std::getenv("CAPTURES");
  const int captures = asked == nullptr ? 1000 : std::atoi(asked);
  Neighbours neighbours(context);
  for (int round = 0; round < captures || !neighbours.ran_out(); ++round)
    capture_once(kernels, stream, block, round, neighbours);
  OK(CU(cuStreamSynchronize)(stream));
}
