// Contexts and captures that end, processes that begin and end.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void told_late() {
  setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".1", 1);
  OK(CU(cuInit)(0));
  setenv("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", 1);
}

void context_death() {
  OK(CU(cuInit)(0));
  for (int round = 0; round < 3; ++round) {
    CUcontext context = nullptr;
    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    CUdeviceptr block = 0;
    // More than half of the device each time: the third round works only if each context took its own.
    OK(CU(cuMemAlloc_v2)(&block, 45 * kGiB));
    OK(CU(cuCtxDestroy_v2)(context));
  }
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 45 * kGiB));
  OK(CU(cuDevicePrimaryCtxReset_v2)(0));
  start_driver();
  OK(CU(cuMemAlloc_v2)(&block, 45 * kGiB));
}

// Pools of two devices: memory comes from the pool's device, and a shared pool stays the driver's.
void two_devices() {
  OK(CU(cuInit)(0));
  CUcontext contexts[2] = {};
  CUmemoryPool pools[2] = {};
  for (int device = 0; device < 2; ++device) {
    OK(CU(cuDevicePrimaryCtxRetain)(&contexts[device], device));
    OK(CU(cuDeviceGetDefaultMemPool)(&pools[device], device));
  }
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  OK(CU(cuMemPoolSetAccess)(pools[1], &access, 1));
  for (int device = 0; device < 2; ++device) {
    OK(CU(cuCtxSetCurrent)(contexts[device]));
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr block = 0;
    OK(CU(cuMemAllocFromPoolAsync)(&block, 3 * kMiB, pools[device], stream));
    int ordinal = 7;
    OK(CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
    HOLDS(ordinal == device);
    CUmemoryPool pool = nullptr;
    OK(CU(cuPointerGetAttribute)(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
    HOLDS(pool == pools[device]);
    OK(CU(cuMemFreeAsync)(block, stream));
    OK(CU(cuMemAlloc_v2)(&block, 3 * kMiB));
    OK(CU(cuMemFree_v2)(block));
    OK(CU(cuStreamDestroy_v2)(stream));
  }
}

// A pool is shared with another device, and ends, while a thread uses it and asks about its blocks.
void pools_change_under_use() {
  OK(CU(cuInit)(0));
  CUcontext context = nullptr;
  OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  OK(CU(cuCtxSetCurrent)(context));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  OK(CU(cuMemPoolCreate)(&pool, &properties));
  std::atomic<bool> used{false};
  std::atomic<bool> used_up{false};
  std::atomic<bool> ended{false};
  std::thread user([&] {
    OK(CU(cuCtxSetCurrent)(context));
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr kept = 0;
    OK(CU(cuMemAllocFromPoolAsync)(&kept, kMiB, pool, stream));
    for (int i = 0; i < 200; ++i) {
      CUdeviceptr block = 0;
      OK(CU(cuMemAllocFromPoolAsync)(&block, kMiB, pool, stream));
      OK(CU(cuMemFreeAsync)(block, stream));
      used = i > 20;
    }
    used_up = true;
    // The driver does not say what it answers of a pool that has ended.
    for (CUmemoryPool of_block = nullptr; !ended;)
      CU(cuPointerGetAttribute)(&of_block, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, kept);
    OK(CU(cuMemFreeAsync)(kept, stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuStreamDestroy_v2)(stream));
  });
  while (!used) std::this_thread::yield();
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (int i = 0; i < 20; ++i) OK(CU(cuMemPoolSetAccess)(pool, &access, 1));
  while (!used_up) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the questions to begin
  OK(CU(cuMemPoolDestroy)(pool));
  ended = true;
  user.join();
}

// In a host callback the driver refuses every call: a block must survive the attempt to free it.
void free_in_callback() {
  start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  static CUdeviceptr block = 0;
  static CUresult answer = CUDA_SUCCESS;
  OK(CU(cuMemAlloc_v2)(&block, 3 * kMiB));
  OK(CU(cuLaunchHostFunc)(
      stream, [](void*) { answer = CU(cuMemFree_v2)(block); }, nullptr));
  OK(CU(cuStreamSynchronize)(stream));
  std::printf("free in a callback: %d\n", static_cast<int>(answer));
  if (answer != CUDA_SUCCESS) OK(CU(cuMemFree_v2)(block));
}

// A capture that its context takes with it must not stop our waiting for ever.
void capture_dies_with_context() {
  OK(CU(cuInit)(0));
  CUcontext context = nullptr;
  OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(CU(cuCtxDestroy_v2)(context));
  start_driver();
  for (int round = 0; round < 100; ++round) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAlloc_v2)(&block, kGiB));
    OK(CU(cuMemFree_v2)(block));
  }
}

// A library whose constructor starts a thread that calls the driver, and waits for it: the loader's lock
// is held all the while.
void constructor_thread() { HOLDS(dlopen(CONSTRUCTOR_LIBRARY, RTLD_NOW) != nullptr); }

// A thread that is cancelled inside the driver ends; the process does not.
void mini_cancel() {
  OK(CU(cuInit)(0));
  pthread_t thread{};
  HOLDS(pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
              void* memory = nullptr;
              CU(cuMemAllocHost_v2)(&memory, kMiB);
              return nullptr;
            },
            nullptr) == 0);
  usleep(100'000);
  HOLDS(pthread_cancel(thread) == 0);
  void* result = nullptr;
  HOLDS(pthread_join(thread, &result) == 0);
  HOLDS(result == PTHREAD_CANCELED);
}

// A synchronise of ours during a capture would invalidate it.
void capture_beside_frees() {
  CUcontext context = start_driver();
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    OK(CU(cuCtxSetCurrent)(context));
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    OK(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
    while (!stop) {
      CUdeviceptr block = 0;
      OK(CU(cuMemAllocAsync)(&block, 5 * kMiB, nullptr));
      OK(CU(cuMemFreeAsync)(block, nullptr));
    }
  });
  for (int round = 0; round < 200; ++round) {
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUgraph graph = nullptr;
    OK(CU(cuStreamEndCapture)(stream, &graph));
    HOLDS(graph != nullptr);
    OK(CU(cuGraphDestroy)(graph));
  }
  stop = true;
  other.join();
}

void fork_before_start() {
  driver_handle();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    start_driver();
    alloc_free();
    exit(0);
  }
  HOLDS(exit_code_of(child) == 0);
}

void fork_after_start() {
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, kMiB));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr other = 9;
    // The driver does not work in a forked child, and says so itself.
    FAILS(CUDA_ERROR_NOT_INITIALIZED, CU(cuMemAlloc_v2)(&other, kMiB));
    HOLDS(other == 9);
    exit(0);
  }
  HOLDS(exit_code_of(child) == 0);
  OK(CU(cuMemFree_v2)(block));
}

void live_at_exit() {
  start_driver();
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 3 * kMiB));
  OK(CU(cuMemAllocAsync)(&block, 3 * kMiB, nullptr));
}

void killed() {
  start_driver();
  for (std::size_t i = 0; i < 1000; ++i) {
    CUdeviceptr block = 0;
    OK(CU(cuMemAllocAsync)(&block, kMiB, nullptr));
    if (i % 2 == 0) OK(CU(cuMemFreeAsync)(block, nullptr));
  }
  kill(getpid(), SIGKILL);
}

void calls_from_last_destructor() {
  static CUdeviceptr block = 0;
  // Registered before cuInit, so it runs after the driver has been torn down.
  struct Last {
    ~Last() {
      const CUresult result = CU(cuMemFree_v2)(block);
      std::printf("last free: %s\n", result == CUDA_ERROR_DEINITIALIZED ? "deinitialized" : "something else");
    }
  };
  static Last last;
  driver_handle();
  start_driver();
  OK(CU(cuMemAlloc_v2)(&block, 3 * kMiB));
}

// Worker processes of frameworks probe for a device and stop there.
void probe_only() {
  OK(CU(cuInit)(0));
  int count = 0;
  OK(CU(cuDeviceGetCount)(&count));
  std::printf("devices: %d\n", count);
}
