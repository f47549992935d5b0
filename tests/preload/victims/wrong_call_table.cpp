// One wrong call after another, each with what the driver answered: the table must be the same with and
// without the shim. A call that succeeds on a driver and should not be made is as wrong as one that fails.
#include <atomic>
#include <thread>

#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

namespace {

constexpr CUdeviceptr kUntouched = 77;

// The driver's answer to a call that gives memory; 10000 more where it wrote the pointer in spite of it.
template <typename Call>
int answer_to(Call call) {
  CUdeviceptr out = kUntouched;
  const CUresult result = call(&out);
  return static_cast<int>(result) + (result != CUDA_SUCCESS && out != kUntouched ? 10000 : 0);
}

void say(const char* what, int answer) { std::printf("%4d %s\n", answer, what); }
#define ANSWER(...) say(#__VA_ARGS__, static_cast<int>(__VA_ARGS__))

CUstream new_stream() {
  CUstream stream = nullptr;
  OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUdeviceptr ordered(CUstream stream, std::size_t bytes = 4 * kMiB) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocAsync)(&block, bytes, stream));
  return block;
}

CUdeviceptr synchronous(std::size_t bytes = 4 * kMiB) {
  CUdeviceptr block = 0;
  OK(CU(cuMemAlloc_v2)(&block, bytes));
  return block;
}

CUmemoryPool new_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  OK(CU(cuMemPoolCreate)(&pool, &properties));
  return pool;
}

int allocate(std::size_t bytes) {
  return answer_to([&](CUdeviceptr* out) { return CU(cuMemAlloc_v2)(out, bytes); });
}
int allocate(std::size_t bytes, CUstream stream) {
  return answer_to([&](CUdeviceptr* out) { return CU(cuMemAllocAsync)(out, bytes, stream); });
}
int allocate(std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return answer_to([&](CUdeviceptr* out) { return CU(cuMemAllocFromPoolAsync)(out, bytes, pool, stream); });
}

void bad_pointers(CUstream stream) {
  const CUdeviceptr block = synchronous(), small = synchronous(512), later = ordered(stream);
  static int on_host = 0;
  const auto host = reinterpret_cast<CUdeviceptr>(&on_host);
  void* pinned = nullptr;
  OK(CU(cuMemAllocHost_v2)(&pinned, kMiB));
  const auto pinned_address = reinterpret_cast<CUdeviceptr>(pinned);
  ANSWER(CU(cuMemFree_v2)(0));
  ANSWER(CU(cuMemFreeAsync)(0, stream));
  ANSWER(CU(cuMemFree_v2)(1));
  ANSWER(CU(cuMemFree_v2)(~CUdeviceptr{0}));
  ANSWER(CU(cuMemFreeAsync)(1, stream));
  ANSWER(CU(cuMemFree_v2)(host));
  ANSWER(CU(cuMemFreeAsync)(host, stream));
  ANSWER(CU(cuMemFree_v2)(pinned_address));
  ANSWER(CU(cuMemFreeAsync)(pinned_address, stream));
  ANSWER(CU(cuMemFree_v2)(block + 512));
  ANSWER(CU(cuMemFree_v2)(block + 1));
  ANSWER(CU(cuMemFree_v2)(small + 256));
  ANSWER(CU(cuMemFreeAsync)(block + 512, stream));
  ANSWER(CU(cuMemFreeAsync)(later + 512, stream));
  ANSWER(CU(cuMemFree_v2)(later + 512));
  ANSWER(CU(cuMemFree_v2)(block));
  ANSWER(CU(cuMemFree_v2)(block));
  ANSWER(CU(cuMemFreeAsync)(block, stream));
  ANSWER(CU(cuMemFree_v2)(small));
  ANSWER(CU(cuMemFree_v2)(small));
  ANSWER(CU(cuMemFreeAsync)(later, stream));
  ANSWER(CU(cuMemFreeAsync)(later, stream));
  ANSWER(CU(cuStreamSynchronize)(stream));
  ANSWER(CU(cuMemFree_v2)(later));
  ANSWER(CU(cuMemFreeHost)(pinned));
}

void bad_sizes(CUstream stream) {
  ANSWER(allocate(0));
  ANSWER(allocate(0, stream));
  ANSWER(allocate(~std::size_t{0}));
  ANSWER(allocate(~std::size_t{0}, stream));
  ANSWER(allocate(std::size_t{1} << 63));
  ANSWER(allocate(1000 * kGiB, stream));
  ANSWER(CU(cuMemAlloc_v2)(nullptr, 512));
  ANSWER(CU(cuMemAllocAsync)(nullptr, 512, stream));
  ANSWER(CU(cuMemAlloc_v2)(nullptr, 0));
}

void bad_streams(CUstream stream) {
  const auto invented = reinterpret_cast<CUstream>(0x1234);
  const CUstream dead = new_stream();
  const CUdeviceptr block = ordered(dead);
  OK(CU(cuStreamSynchronize)(dead));
  ANSWER(CU(cuStreamDestroy_v2)(dead));
  ANSWER(CU(cuStreamDestroy_v2)(dead));
  ANSWER(allocate(kMiB, dead));
  ANSWER(allocate(0, dead));
  ANSWER(CU(cuMemFreeAsync)(block, dead));
  ANSWER(CU(cuMemFreeAsync)(1, dead));
  ANSWER(allocate(kMiB, invented));
  ANSWER(CU(cuMemFreeAsync)(block, invented));
  ANSWER(CU(cuStreamDestroy_v2)(invented));
  ANSWER(CU(cuStreamDestroy_v2)(nullptr));
  ANSWER(CU(cuMemFreeAsync)(block, stream));
}

void bad_pools(CUstream stream) {
  const CUmemoryPool pool = new_pool();
  CUdeviceptr block = 0;
  OK(CU(cuMemAllocFromPoolAsync)(&block, kMiB, pool, stream));
  CUmemoryPool common = nullptr;
  OK(CU(cuDeviceGetDefaultMemPool)(&common, 0));
  cuuint64_t value = 5;
  ANSWER(CU(cuMemPoolDestroy)(common));
  ANSWER(CU(cuMemPoolDestroy)(nullptr));
  ANSWER(CU(cuMemPoolTrimTo)(nullptr, 0));
  ANSWER(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  ANSWER(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  ANSWER(allocate(kMiB, nullptr, stream));
  ANSWER(allocate(0, pool, stream));
  ANSWER(allocate(kMiB, pool, reinterpret_cast<CUstream>(0x1234)));
  ANSWER(CU(cuMemPoolDestroy)(pool));
  ANSWER(CU(cuMemPoolDestroy)(pool));
  ANSWER(allocate(kMiB, pool, stream));
  ANSWER(CU(cuMemPoolTrimTo)(pool, 0));
  ANSWER(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  ANSWER(CU(cuDeviceSetMemPool)(0, pool));
  ANSWER(CU(cuMemFreeAsync)(block, stream));
  ANSWER(CU(cuMemFreeAsync)(block, stream));
  ANSWER(CU(cuStreamSynchronize)(stream));
}

// A host function may not call the driver.
void calls_in_callback(CUstream stream) {
  static CUdeviceptr block = 0, later = 0;
  static CUstream own = nullptr;
  block = synchronous();
  later = ordered(stream);
  own = stream;
  OK(CU(cuLaunchHostFunc)(
      stream,
      [](void*) {
        ANSWER(allocate(kMiB));
        ANSWER(allocate(kMiB, own));
        ANSWER(allocate(0));
        ANSWER(allocate(1000 * kGiB));
        ANSWER(CU(cuMemFree_v2)(block));
        ANSWER(CU(cuMemFree_v2)(0));
        ANSWER(CU(cuMemFree_v2)(1));
        ANSWER(CU(cuMemFree_v2)(block + 512));
        ANSWER(CU(cuMemFreeAsync)(later, own));
        ANSWER(CU(cuMemFreeAsync)(later + 512, own));
        ANSWER(CU(cuMemFreeAsync)(block, own));
        std::size_t free = 0, total = 0;
        ANSWER(CU(cuMemGetInfo_v2)(&free, &total));
        CUdeviceptr base = 0;
        ANSWER(CU(cuMemGetAddressRange_v2)(&base, &total, block));
        CUmemoryPool pool = nullptr;
        ANSWER(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
        ANSWER(CU(cuStreamDestroy_v2)(own));
      },
      nullptr));
  OK(CU(cuStreamSynchronize)(stream));
  ANSWER(CU(cuMemFree_v2)(block));
  ANSWER(CU(cuMemFreeAsync)(later, stream));
}

// What is unsafe in a capture ends it, if it is this thread's own and the mode says so.
void calls_in_capture(CUstream stream, CUstreamCaptureMode mode) {
  const CUdeviceptr block = synchronous(), later = ordered(stream);
  const auto capture = [&](const char* what, auto call) {
    CUgraph graph = nullptr;
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuStreamBeginCapture_v2)(stream, mode));
    say(what, static_cast<int>(call()));
    say("  and the capture ended", static_cast<int>(CU(cuStreamEndCapture)(stream, &graph)));
    if (graph != nullptr) OK(CU(cuGraphDestroy)(graph));
  };
  std::printf("in a capture of mode %d\n", static_cast<int>(mode));
  capture("cuMemAlloc", [] {
    CUdeviceptr out = kUntouched;
    const CUresult result = CU(cuMemAlloc_v2)(&out, kMiB);
    HOLDS((result == CUDA_SUCCESS) == (out != kUntouched));
    return result;
  });
  capture("cuMemAlloc of nothing", [] { return allocate(0); });
  capture("cuMemAlloc of too much", [] { return allocate(1000 * kGiB); });
  capture("cuMemFree", [&] { return CU(cuMemFree_v2)(block); });
  capture("cuMemFree of 0", [] { return CU(cuMemFree_v2)(0); });
  capture("cuMemFree of no block", [] { return CU(cuMemFree_v2)(1); });
  capture("cuMemFree of the inside of a block", [&] { return CU(cuMemFree_v2)(later + 512); });
  capture("cuMemFreeAsync of no block", [&] { return CU(cuMemFreeAsync)(1, stream); });
  capture("cuMemFreeAsync of a block of no graph", [&] { return CU(cuMemFreeAsync)(later, stream); });
  capture("cuMemFreeAsync elsewhere", [&] { return CU(cuMemFreeAsync)(later, new_stream()); });
  capture("cuMemPoolTrimTo", [] {
    CUmemoryPool pool = nullptr;
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    return CU(cuMemPoolTrimTo)(pool, 0);
  });
}

void calls_without_context(CUcontext primary) {
  CUcontext context = nullptr;
  const CUdeviceptr kept = synchronous();
  OK(CU(cuCtxCreate_v2)(&context, 0, 0));
  const CUstream stream = new_stream();
  const CUdeviceptr block = synchronous(), later = ordered(stream);
  std::atomic<int> turn{0};
  // Has the context current when it is destroyed.
  std::thread other([&] {
    OK(CU(cuCtxSetCurrent)(context));
    turn = 1;
    turn.notify_all();
    turn.wait(1);
    ANSWER(allocate(kMiB));
    ANSWER(allocate(kMiB, static_cast<CUstream>(nullptr)));
    ANSWER(allocate(0));
    ANSWER(CU(cuMemFree_v2)(block));
    ANSWER(CU(cuMemFree_v2)(0));
    ANSWER(CU(cuMemFree_v2)(kept));
    ANSWER(CU(cuMemFreeAsync)(later, nullptr));
    std::size_t free = 0, total = 0;
    ANSWER(CU(cuMemGetInfo_v2)(&free, &total));
    ANSWER(CU(cuCtxSynchronize)());
  });
  turn.wait(0);
  ANSWER(CU(cuCtxDestroy_v2)(context));
  turn = 2;
  turn.notify_all();
  other.join();
  // Current nowhere from here on.
  ANSWER(CU(cuCtxSetCurrent)(nullptr));
  ANSWER(allocate(kMiB));
  ANSWER(allocate(kMiB, static_cast<CUstream>(nullptr)));
  ANSWER(allocate(kMiB, stream));
  ANSWER(allocate(0));
  ANSWER(CU(cuMemFree_v2)(0));
  ANSWER(CU(cuMemFree_v2)(1));
  ANSWER(CU(cuMemFree_v2)(kept));
  ANSWER(CU(cuMemFreeAsync)(kept, nullptr));
  ANSWER(CU(cuMemFreeAsync)(later, nullptr));
  std::size_t free = 0, total = 0;
  ANSWER(CU(cuMemGetInfo_v2)(&free, &total));
  ANSWER(CU(cuCtxDestroy_v2)(context));
  ANSWER(CU(cuCtxDestroy_v2)(nullptr));
  ANSWER(CU(cuCtxSetCurrent)(primary));
  ANSWER(CU(cuMemFree_v2)(block));
  ANSWER(CU(cuMemFreeAsync)(later, stream));
  ANSWER(CU(cuMemFree_v2)(later));
  ANSWER(CU(cuMemFree_v2)(kept));
}

}  // namespace

void wrong_call_table() {
  const CUcontext primary = start_driver();
  const CUstream stream = new_stream();
  bad_sizes(stream);
  bad_pointers(stream);
  bad_streams(stream);
  bad_pools(stream);
  calls_in_callback(stream);
  for (const CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED})
    calls_in_capture(stream, mode);
  calls_without_context(primary);
}
