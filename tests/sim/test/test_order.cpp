// When queued work happens: in the order of its stream, behind what it waits for, not before its time.
#include <algorithm>
#include <chrono>
#include <thread>

#include "timed.hpp"

TEST_CASE("work is queued, not done, when its call returns, and done when its stream was waited for") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  kernels.spin(stream);
  kernels.fill(stream, block, 7);
  REQUIRE(CU(cuMemsetD32Async)(block + 4, 8, 1, stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  CHECK(peek(block) == 0);
  CHECK(peek(block + 4) == 0);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_SUCCESS);
  CHECK(peek(block) == 7);
  CHECK(peek(block + 4) == 8);
}

TEST_CASE("a stream's work is in order, another stream's is not held up") {
  OwnContext context;
  const Kernels kernels;
  const CUstream busy = new_stream(), other = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  kernels.fill(busy, block, 1);
  kernels.spin(busy);
  kernels.fill(busy, block, 2);
  kernels.fill(other, block + 4, 3);
  REQUIRE(CU(cuStreamSynchronize)(other) == CUDA_SUCCESS);
  CHECK(peek(block + 4) == 3);
  CHECK(peek(block) == 1);
  CHECK(CU(cuStreamQuery)(busy) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuStreamSynchronize)(busy) == CUDA_SUCCESS);
  CHECK(peek(block) == 2);
}

TEST_CASE("an event is done when what was before it in its stream is, and not what came after") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  CHECK(CU(cuEventQuery)(new_event()) == CUDA_SUCCESS);  // never recorded
  kernels.spin(stream, 1'000'000'000);
  const CUevent first = recorded(stream, 0);
  kernels.spin(stream, 2'000'000'000);
  const CUevent second = recorded(stream, 0);
  float elapsed = 0;
  CHECK(CU(cuEventQuery)(first) == CUDA_ERROR_NOT_READY);
  CHECK(CU(cuEventElapsedTime)(&elapsed, first, second) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuEventSynchronize)(first) == CUDA_SUCCESS);
  CHECK(CU(cuEventQuery)(second) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuEventSynchronize)(second) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventElapsedTime)(&elapsed, first, second) == CUDA_SUCCESS);
  CHECK(elapsed == Approx(2000).epsilon(0.01));
}

TEST_CASE("an event that is recorded again forgets what it stood for") {
  OwnContext context;
  const Kernels kernels;
  const CUstream busy = new_stream(), idle = new_stream();
  kernels.spin(busy);
  const CUevent event = recorded(busy);
  REQUIRE(CU(cuEventRecord)(event, idle) == CUDA_SUCCESS);
  CHECK(CU(cuEventSynchronize)(event) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(busy) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("a stream that waits for an event does nothing before it, and a copy of its state stays") {
  OwnContext context;
  const Kernels kernels;
  const CUstream busy = new_stream(), waiting = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  kernels.spin(busy);
  kernels.fill(busy, block, 1);
  const CUevent event = recorded(busy);
  REQUIRE(CU(cuStreamWaitEvent)(waiting, event, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventDestroy_v2)(event) == CUDA_SUCCESS);  // the wait is in the stream already
  REQUIRE(kernels.launch("sim_copy", waiting, {block + 4, block, 1}) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(waiting) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuStreamSynchronize)(waiting) == CUDA_SUCCESS);
  CHECK(peek(block + 4) == 1);
}

TEST_CASE("the legacy stream and the blocking streams of its context wait for each other") {
  OwnContext context;
  const Kernels kernels;
  const CUstream blocking = new_stream(CU_STREAM_DEFAULT), second = new_stream(CU_STREAM_DEFAULT),
                 free = new_stream(CU_STREAM_NON_BLOCKING);
  SECTION("the legacy stream for them") {
    kernels.spin(blocking);
    kernels.spin(nullptr, 1);
    CHECK(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
  }
  SECTION("they for the legacy stream, those of the thread too") {
    kernels.spin(nullptr);
    kernels.spin(blocking, 1);
    kernels.spin(CU_STREAM_PER_THREAD, 1);
    CHECK(CU(cuStreamQuery)(blocking) == CUDA_ERROR_NOT_READY);
    CHECK(CU(cuStreamQuery)(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
  }
  SECTION("and so for each other, if it came between") {
    kernels.spin(blocking);
    kernels.spin(nullptr, 1);
    kernels.spin(second, 1);
    CHECK(CU(cuStreamQuery)(second) == CUDA_ERROR_NOT_READY);
  }
  kernels.spin(free, 1);
  CHECK(CU(cuStreamSynchronize)(free) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("the legacy streams of two contexts do not know each other") {
  OwnContext one;
  const Kernels kernels;
  kernels.spin(nullptr);
  OwnContext two;
  const Kernels others;
  others.spin(nullptr, 1);
  CHECK(CU(cuStreamSynchronize)(nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSetCurrent)(one.handle) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("a synchronised context has nothing left to do on any stream, destroyed ones included") {
  OwnContext context;
  const Kernels kernels;
  const CUdeviceptr block = block_of(4 * kib);
  const CUstream gone = new_stream(), kept = new_stream();
  kernels.spin(gone);
  kernels.fill(gone, block, 1);
  kernels.spin(kept);
  kernels.fill(kept, block + 4, 2);
  REQUIRE(CU(cuStreamDestroy_v2)(gone) == CUDA_SUCCESS);  // returns with work pending
  CHECK(peek(block) == 0);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(peek(block) == 1);
  CHECK(peek(block + 4) == 2);
}

TEST_CASE("a context event is behind all streams of its context, of no other, and of no later work") {
  OwnContext other;
  const Kernels foreign;
  const CUstream elsewhere = new_stream();
  foreign.spin(elsewhere);
  OwnContext context;
  const Kernels kernels;
  const CUstream one = new_stream(), two = new_stream();
  kernels.spin(one, 1'000'000'000);
  kernels.spin(two, 2'000'000'000);
  const CUevent event = new_event();
  REQUIRE(CU(cuCtxRecordEvent)(context.handle, event) == CUDA_SUCCESS);
  kernels.spin(one);
  CHECK(CU(cuEventQuery)(event) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuStreamSynchronize)(two) == CUDA_SUCCESS);
  CHECK(CU(cuEventSynchronize)(event) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(two) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(one) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuCtxSetCurrent)(other.handle) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(elsewhere) == CUDA_ERROR_NOT_READY);
  CHECK(CU(cuCtxRecordEvent)(other.handle, event) == CUDA_ERROR_INVALID_HANDLE);  // of another context
}

TEST_CASE("a context that waits for an event holds up all its streams, those made later too") {
  OwnContext context;
  const Kernels kernels;
  const CUstream busy = new_stream();
  kernels.spin(busy);
  const CUevent event = recorded(busy);
  OwnContext waiting;
  const Kernels others;
  const CUstream before = new_stream();
  REQUIRE(CU(cuCtxWaitEvent)(waiting.handle, event) == CUDA_SUCCESS);
  const CUstream after = new_stream();
  for (const CUstream stream : {before, after}) {
    others.spin(stream, 1);
    CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  }
  REQUIRE(CU(cuStreamSynchronize)(after) == CUDA_SUCCESS);
  CHECK(CU(cuEventQuery)(event) == CUDA_SUCCESS);
}

TEST_CASE("context events are refused during a capture in the context, and end it") {
  OwnContext context;
  const CUstream stream = new_stream();
  const CUevent event = new_event();
  const bool wait = GENERATE(false, true);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK((wait ? CU(cuCtxWaitEvent)(context.handle, event) : CU(cuCtxRecordEvent)(context.handle, event)) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("a launched graph is work of its stream, in the order of its nodes") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  REQUIRE(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  kernels.fill(stream, block, 5);
  kernels.spin(stream);
  REQUIRE(kernels.launch("sim_add", stream, {block + 4, block, block, 1}) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  REQUIRE(CU(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(executable, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphExecDestroy)(executable) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  CHECK(peek(block + 4) == 0);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(peek(block + 4) == 10);
}

TEST_CASE("a kernel node added by hand computes, with the parameters of its launch") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  CUdeviceptr block = block_of(4 * kib);
  std::uint64_t value = 9, count = 1;
  void* parameters[] = {&block, &value, &count};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = kernels.function("sim_fill");
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = parameters;
  REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
  value = 0;  // read when the node was added
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(executable, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(peek(block) == 9);
}

TEST_CASE("time passes for a program that calls nobody, and for one that only asks") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  kernels.spin(stream, 1'000'000);
  REQUIRE(CU(cuStreamWriteValue32_v2)(stream, block, 1, 0) == CUDA_SUCCESS);
  SECTION("by looking at memory") {
    for (int i = 0; i < 2000 && !peek(block); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  SECTION("by asking") {
    int questions = 0;
    while (CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY && questions < 10000) ++questions;
  }
  CHECK(peek(block) == 1);
}
