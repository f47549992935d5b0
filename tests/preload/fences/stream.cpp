// Stream-ordered memory that was freed behind a kernel: the same stream may have it at once, others not
// before the kernel is done.
#include <array>
#include <optional>
#include <thread>

#include "tests/preload/fences/scenes.hpp"

namespace {

constexpr std::size_t kBytes = 4 * kMiB;

void use_and_free(const Kernels& kernels, CUstream stream, std::size_t bytes) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, bytes, stream));
  kernels.fill_slowly(stream, block, bytes, 1);
  OK(CU(cuMemFreeAsync)(block, stream));
}

void take_and_keep(const Kernels& kernels, CUstream stream, std::size_t bytes) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, bytes, stream));
  kernels.fill(stream, block, bytes, 2);
  OK(CU(cuStreamSynchronize)(stream));
  OK(CU(cuCtxSynchronize)());
  must_hold(block, bytes, 2);
  OK(CU(cuMemFreeAsync)(block, stream));
}

}  // namespace

void taken_by_another_stream() {
  start_driver();
  const Kernels kernels;
  const CUstream first = new_stream(), second = new_stream();
  for (int round = 0; round < 3; ++round) {
    use_and_free(kernels, first, kBytes);
    take_and_keep(kernels, second, kBytes);
  }
}

// More than half of the device: the second stream gets memory only when the first is done with it.
void taken_when_short() {
  start_driver();
  const Kernels kernels;
  const CUstream first = new_stream(), second = new_stream();
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  const std::size_t bytes = total * 6 / 10 / kMiB * kMiB;
  for (int round = 0; round < 3; ++round) {
    use_and_free(kernels, first, bytes);
    take_and_keep(kernels, second, bytes);
  }
}

// cuStreamDestroy returns with work pending, and the next stream may have the handle's value.
void taken_by_the_next_stream() {
  start_driver();
  const Kernels kernels;
  for (int round = 0; round < 5; ++round) {
    const CUstream first = new_stream();
    use_and_free(kernels, first, kBytes);
    OK(CU(cuStreamDestroy_v2)(first));
    const CUstream second = new_stream();
    take_and_keep(kernels, second, kBytes);
    OK(CU(cuStreamDestroy_v2)(second));
  }
}

// CU_STREAM_PER_THREAD is one handle for as many streams as there are threads.
void taken_by_another_thread() {
  const CUcontext context = start_driver();
  const Kernels kernels;
  for (int round = 0; round < 3; ++round) {
    use_and_free(kernels, CU_STREAM_PER_THREAD, kBytes);
    std::thread([&] {
      OK(CU(cuCtxSetCurrent)(context));
      take_and_keep(kernels, CU_STREAM_PER_THREAD, kBytes);
    }).join();
  }
}

// NULL is one stream of each context.
void taken_by_another_context() {
  OK(CU(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  OK(CU(cuCtxCreate_v2)(&first, 0, 0));
  const Kernels of_first;
  OK(CU(cuCtxCreate_v2)(&second, 0, 0));
  const Kernels of_second;
  for (int round = 0; round < 3; ++round) {
    OK(CU(cuCtxSetCurrent)(first));
    use_and_free(of_first, nullptr, kBytes);
    OK(CU(cuCtxSetCurrent)(second));
    take_and_keep(of_second, nullptr, kBytes);
  }
}

// The stream itself may cut up what it freed; what it leaves of it is nobody else's yet. Sizes that come back
// are kept whole at first.
void taken_in_parts() {
  start_driver();
  const Kernels kernels;
  const CUstream first = new_stream(), second = new_stream();
  constexpr std::size_t kWhole = 8 * kBytes;
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr whole = 0, part = 0;
    OK(CU(cuMemAllocAsync)(&whole, kWhole, first));
    OK(CU(cuMemFreeAsync)(whole, first));
    use_and_free(kernels, first, kWhole);
    OK(CU(cuMemAllocAsync)(&part, kWhole / 4 * 3, first));
    take_and_keep(kernels, second, kWhole / 4);
    OK(CU(cuMemFreeAsync)(part, first));
  }
}

// As taken_when_short, of work in another context than the one that takes.
void taken_when_short_elsewhere() {
  OK(CU(cuInit)(0));
  struct Place {
    CUcontext context;
    std::optional<Kernels> kernels;
  };
  std::array<Place, 2> places{};
  for (Place& place : places) {
    OK(CU(cuCtxCreate_v2)(&place.context, 0, 0));
    place.kernels.emplace();
  }
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  const std::size_t bytes = total * 6 / 10 / kMiB * kMiB;
  for (int round = 0; round < 4; ++round) {
    const Place &user = places[round % 2], &taker = places[1 - round % 2];
    OK(CU(cuCtxSetCurrent)(user.context));
    use_and_free(*user.kernels, nullptr, bytes);
    OK(CU(cuCtxSetCurrent)(taker.context));
    take_and_keep(*taker.kernels, nullptr, bytes);
  }
}

// The program's own physical memory needs what is freed behind a kernel that runs.
void handed_back_in_flight() {
  start_driver();
  const Kernels kernels;
  const CUstream stream = new_stream();
  std::size_t free = 0, total = 0;
  OK(CU(cuMemGetInfo_v2)(&free, &total));
  const std::size_t bytes = total * 6 / 10 / kMiB * kMiB;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  for (int round = 0; round < 3; ++round) {
    use_and_free(kernels, stream, bytes);
    CUmemGenericAllocationHandle handle = 0;
    // The driver's own pool gives way only to a synchronisation (cuda.h, cuMemPoolTrimTo).
    if (CU(cuMemCreate)(&handle, bytes / (2 * kMiB) * (2 * kMiB), &properties, 0) != CUDA_SUCCESS) {
      OK(CU(cuCtxSynchronize)());
      OK(CU(cuMemCreate)(&handle, bytes / (2 * kMiB) * (2 * kMiB), &properties, 0));
    }
    OK(CU(cuMemRelease)(handle));
  }
}

void pool_trimmed_in_flight() {
  start_driver();
  const Kernels kernels;
  const CUstream stream = new_stream();
  CUmemoryPool pool = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
  for (int round = 0; round < 3; ++round) {
    use_and_free(kernels, stream, 64 * kMiB);
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    OK(CU(cuCtxSynchronize)());
  }
}
