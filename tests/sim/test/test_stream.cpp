// Streams, events, callbacks, captures and graphs, as far as memory rules need them.
#include <thread>

#include "driver.hpp"

namespace {

CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  REQUIRE(CU(cuStreamCreate)(&stream, flags) == CUDA_SUCCESS);
  return stream;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status{};
  REQUIRE(CU(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS);
  return status;
}

}  // namespace

TEST_CASE("a destroyed stream's handle is no stream any more") {
  OwnContext context;
  CUstream stream = make_stream();
  CHECK(CU(cuStreamQuery)(stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuStreamDestroy_v2)(stream) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("ids of streams are never used twice") {
  OwnContext context;
  unsigned long long first = 0, second = 0;
  CUstream stream = make_stream();
  REQUIRE(CU(cuStreamGetId)(stream, &first) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS);
  stream = make_stream();
  REQUIRE(CU(cuStreamGetId)(stream, &second) == CUDA_SUCCESS);
  CHECK(first != second);
  unsigned long long legacy = 0, per_thread = 0;
  REQUIRE(CU(cuStreamGetId)(nullptr, &legacy) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamGetId_ptsz)(nullptr, &per_thread) == CUDA_SUCCESS);
  CHECK(legacy != per_thread);
  REQUIRE(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &second) == CUDA_SUCCESS);
  CHECK(second == per_thread);
}

TEST_CASE("a host function is called back and may not call the driver") {
  OwnContext context;
  CUresult inside = CUDA_SUCCESS;
  REQUIRE(CU(cuLaunchHostFunc)(
              nullptr,
              [](void* data) {
                CUdeviceptr block = 0;
                *static_cast<CUresult*>(data) = CU(cuMemAlloc_v2)(&block, 1);
              },
              &inside) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(inside == CUDA_ERROR_NOT_PERMITTED);
  int called = 0;
  REQUIRE(CU(cuStreamAddCallback)(
              nullptr, [](CUstream, CUresult, void* data) { ++*static_cast<int*>(data); }, &called, 0) ==
          CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(called == 1);
}

TEST_CASE("an event is of its context only, and timed by its two ends") {
  OwnContext context;
  CUevent from = nullptr, to = nullptr;
  REQUIRE(CU(cuEventCreate)(&from, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventCreate)(&to, 0) == CUDA_SUCCESS);
  float elapsed = -1;
  CHECK(CU(cuEventElapsedTime)(&elapsed, from, to) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(CU(cuEventRecord)(from, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventRecord)(to, nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuEventQuery)(to) == CUDA_SUCCESS);
  CHECK(CU(cuEventElapsedTime)(&elapsed, from, to) == CUDA_SUCCESS);
  CHECK(elapsed >= 0);
  OwnContext other;
  CHECK(CU(cuEventRecord)(from, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("captured work runs when its graph is launched, not before") {
  OwnContext context;
  CUstream stream = make_stream();
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 4) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemsetD32_v2)(block, 1, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE(CU(cuMemsetD32Async)(block, 2, 1, stream) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(CU(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  unsigned seen = 0;
  REQUIRE(CU(cuMemcpyDtoH_v2)(&seen, block, 4) == CUDA_SUCCESS);
  CHECK(seen == 1);
  CUgraphExec executable = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(executable, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpyDtoH_v2)(&seen, block, 4) == CUDA_SUCCESS);
  CHECK(seen == 2);
  CHECK(CU(cuGraphExecDestroy)(executable) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

TEST_CASE("a synchronisation during a capture fails and ends the capture") {
  OwnContext context;
  CUstream stream = make_stream();
  const bool whole_context = GENERATE(false, true);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK((whole_context ? CU(cuCtxSynchronize)() : CU(cuStreamSynchronize)(stream)) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
}

TEST_CASE("unsafe calls end a global capture of any thread, unless the caller is relaxed") {
  OwnContext context;
  CUstream stream = make_stream();
  CUgraph graph = nullptr;
  CUdeviceptr block = 0;
  CUresult seen = CUDA_SUCCESS;
  const auto elsewhere = [&](CUstreamCaptureMode mode) {
    std::thread([&] {
      CU(cuCtxSetCurrent)(context.handle);
      CU(cuThreadExchangeStreamCaptureMode)(&mode);
      seen = CU(cuMemAlloc_v2)(&block, 4);
    }).join();
  };
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  elsewhere(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(seen == CUDA_SUCCESS);
  elsewhere(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(seen == CUDA_SUCCESS);
  elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(seen == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("work on the legacy stream is refused while a blocking stream captures") {
  OwnContext context;
  CUstream stream = make_stream(CU_STREAM_DEFAULT);
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAlloc_v2)(&block, 4) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD32Async)(block, 2, 1, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(CU(cuStreamBeginCapture_v2)(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_CASE("a stream joins a capture by waiting for its event") {
  OwnContext context;
  CUstream origin = make_stream(), other = make_stream();
  CUevent event = nullptr;
  REQUIRE(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture_v2)(origin, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventRecord)(event, origin) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
  CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(CU(cuStreamEndCapture)(origin, &graph) == CUDA_SUCCESS);
  CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
}

TEST_CASE("a captured allocation belongs to the graph and its executables") {
  OwnContext context;
  CUstream stream = make_stream();
  CUdeviceptr foreign = 0, block = 0;
  REQUIRE(CU(cuMemAllocAsync)(&foreign, 1 * mib, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocAsync)(&block, 1 * mib, stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeAsync)(foreign, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFreeAsync)(block, stream) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  REQUIRE(CU(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetAddressRange_v2)(nullptr, nullptr, block) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  CHECK(CU(cuMemGetAddressRange_v2)(nullptr, nullptr, block) == CUDA_ERROR_NOT_FOUND);
  CHECK(CU(cuMemFreeAsync)(foreign, stream) == CUDA_SUCCESS);
}
