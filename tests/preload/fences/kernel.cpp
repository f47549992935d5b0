// Memory of cuMemAlloc that a kernel still writes to when it is freed. The free may return early or wait;
// whoever is given the memory next must not find the kernel in it.
#include "tests/preload/fences/scenes.hpp"

namespace {

constexpr std::size_t kBytes = 16 * kMiB;

// The blocks that come after, and that nobody else may write to any more. Two: the first that is asked for
// may set a fence, which the second finds under way.
void take_and_keep(const Kernels& kernels) {
  const CUstream stream = new_stream();
  CUdeviceptr blocks[2] = {};
  for (CUdeviceptr& block : blocks) {
    OK(CU(cuMemAlloc_v2)(&block, kBytes));
    kernels.fill(stream, block, kBytes, 2);
  }
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuCtxSynchronize)());
  for (const CUdeviceptr block : blocks) must_hold(block, kBytes, 2);
}

}  // namespace

void freed_in_flight() {
  start_driver();
  const Kernels kernels;
  const CUstream stream = new_stream();
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAlloc_v2)(&block, kBytes));
    kernels.fill_slowly(stream, block, kBytes, 1);
    OK(CU(cuMemFree_v2)(block));
    take_and_keep(kernels);
  }
}

// The kernel runs in a context that is not the current one when the memory is freed.
void freed_in_flight_elsewhere() {
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  OK(CU(cuCtxCreate_v2)(&first, 0, 0));
  const Kernels of_first;
  const CUstream stream = new_stream();
  OK(CU(cuCtxCreate_v2)(&second, 0, 0));
  const Kernels of_second;
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr block = 0;
    OK(CU(cuCtxSetCurrent)(first));
    OK(CU(cuMemAlloc_v2)(&block, kBytes));
    of_first.fill_slowly(stream, block, kBytes, 1);
    OK(CU(cuCtxSetCurrent)(second));
    OK(CU(cuMemFree_v2)(block));
    take_and_keep(of_second);
    OK(CU(cuCtxSetCurrent)(first));
    OK(CU(cuCtxSynchronize)());
  }
}

// The kernel runs in a context that is not the block's own. Whether the driver's free waits for it nobody
// says, so without the shim this is the program's own risk.
void used_elsewhere() {
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  OK(CU(cuCtxCreate_v2)(&second, 0, 0));
  const Kernels of_second;
  const CUstream stream = new_stream();
  OK(CU(cuCtxCreate_v2)(&first, 0, 0));
  const Kernels of_first;
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAlloc_v2)(&block, kBytes));
    OK(CU(cuCtxSetCurrent)(second));
    of_second.fill_slowly(stream, block, kBytes, 1);
    OK(CU(cuCtxSetCurrent)(first));
    OK(CU(cuMemFree_v2)(block));
    take_and_keep(of_first);
    OK(CU(cuCtxSetCurrent)(second));
    OK(CU(cuCtxSynchronize)());
    OK(CU(cuCtxSetCurrent)(first));
  }
}

void context_ends_in_flight() {
  OK(CU(cuInit)(0));
  CUcontext lasting = nullptr, ending = nullptr;
  OK(CU(cuCtxCreate_v2)(&lasting, 0, 0));
  const Kernels of_lasting;
  for (int round = 0; round < 3; ++round) {
    OK(CU(cuCtxCreate_v2)(&ending, 0, 0));
    const Kernels of_ending;
    CUdeviceptr block = 0;
    OK(CU(cuMemAlloc_v2)(&block, kBytes));
    of_ending.fill_slowly(new_stream(), block, kBytes, 1);
    OK(CU(cuCtxDestroy_v2)(ending));
    OK(CU(cuCtxSetCurrent)(lasting));
    take_and_keep(of_lasting);
  }
}
