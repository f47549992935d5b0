// Whom a pool gives memory to that was freed in the order of a stream (cuda.h, CU_MEMPOOL_ATTR_REUSE_*),
// and when it gives it back to the device.
#include "timed.hpp"

namespace {

// A pool with only the reuse that is named.
CUmemoryPool pool_with(bool follow, bool opportunistic, bool internal, std::size_t most = 0) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  props.maxSize = most;
  CUmemoryPool pool = nullptr;
  REQUIRE(CU(cuMemPoolCreate)(&pool, &props) == CUDA_SUCCESS);
  const auto set = [pool](CUmemPool_attribute attribute, int value) {
    REQUIRE(CU(cuMemPoolSetAttribute)(pool, attribute, &value) == CUDA_SUCCESS);
  };
  set(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, follow);
  set(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, opportunistic);
  set(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, internal);
  cuuint64_t keep = ~0ull;
  REQUIRE(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
  return pool;
}

CUdeviceptr take(CUmemoryPool pool, CUstream stream, std::size_t bytes = 20 * mib) {
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAllocFromPoolAsync)(&block, bytes, pool, stream) == CUDA_SUCCESS);
  return block;
}

// What the pool gave out and took back on a stream that is busy before the free.
CUdeviceptr freed_behind_work(const Kernels& kernels, CUmemoryPool pool, CUstream stream) {
  const CUdeviceptr block = take(pool, stream);
  kernels.spin(stream);
  REQUIRE(CU(cuMemFreeAsync)(block, stream) == CUDA_SUCCESS);
  return block;
}

}  // namespace

TEST_CASE("freed memory is there at once for the same stream, the last freed first") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(false, false, false);
  const CUstream stream = new_stream();
  const CUdeviceptr one = take(pool, stream, 1 * mib), two = take(pool, stream, 1 * mib);
  kernels.spin(stream);
  REQUIRE(CU(cuMemFreeAsync)(one, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemFreeAsync)(two, stream) == CUDA_SUCCESS);
  CHECK(take(pool, stream, 1 * mib) == two);
  CHECK(take(pool, stream, 1 * mib) == one);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("pieces that one stream freed side by side are one piece for it") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(false, false, false, 32 * mib);
  const CUstream stream = new_stream();
  const CUdeviceptr one = take(pool, stream, 10 * mib), two = take(pool, stream, 10 * mib);
  kernels.spin(stream);
  REQUIRE(CU(cuMemFreeAsync)(one, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemFreeAsync)(two, stream) == CUDA_SUCCESS);
  take(pool, stream, 20 * mib);
}

TEST_CASE("another stream gets it by an event, where dependencies are followed") {
  OwnContext context;
  const Kernels kernels;
  const bool follow = GENERATE(true, false);
  const CUmemoryPool pool = pool_with(follow, false, false);
  const CUstream stream = new_stream(), other = new_stream();
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  CHECK(take(pool, other) != block);
  REQUIRE(CU(cuStreamWaitEvent)(other, recorded(stream), 0) == CUDA_SUCCESS);
  CHECK((take(pool, other) == block) == follow);
}

TEST_CASE("an event from before the free is no dependency on it") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(true, false, false);
  const CUstream stream = new_stream(), other = new_stream();
  kernels.spin(stream);
  const CUevent event = recorded(stream);
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  REQUIRE(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
  CHECK(take(pool, other) != block);
}

TEST_CASE("dependencies reach over a third stream, and the legacy stream makes them too") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(true, false, false);
  const CUstream stream = new_stream(CU_STREAM_DEFAULT), between = new_stream(), last = new_stream();
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  SECTION("by events") {
    REQUIRE(CU(cuStreamWaitEvent)(between, recorded(stream), 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuStreamWaitEvent)(last, recorded(between), 0) == CUDA_SUCCESS);
    CHECK(take(pool, last) == block);
  }
  SECTION("by the legacy stream") { CHECK(take(pool, nullptr) == block); }
}

TEST_CASE("another stream gets what has been freed already, where that is allowed") {
  OwnContext context;
  const Kernels kernels;
  const bool opportunistic = GENERATE(true, false);
  const CUmemoryPool pool = pool_with(false, opportunistic, false);
  const CUstream stream = new_stream(), other = new_stream();
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  CHECK(take(pool, other, 21 * mib) != block);
  kernels.spin(other, 2 * long_time);
  REQUIRE(CU(cuStreamSynchronize)(other) ==
          CUDA_SUCCESS);  // time passes, the host learns nothing of the free
  CHECK((take(pool, other) == block) == opportunistic);
}

TEST_CASE("what the host has seen freed is for all streams") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(false, false, false);
  const CUstream stream = new_stream(), other = new_stream();
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  SECTION("by the stream") { REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS); }
  SECTION("by an event") { REQUIRE(CU(cuEventSynchronize)(recorded(stream)) == CUDA_SUCCESS); }
  SECTION("by the context") { REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS); }
  CHECK(take(pool, other) == block);
}

TEST_CASE("where the pool cannot grow it makes the stream wait for another's free, if it may") {
  OwnContext context;
  const Kernels kernels;
  const bool internal = GENERATE(true, false);
  const CUmemoryPool pool = pool_with(false, false, internal, 32 * mib);
  const CUstream stream = new_stream(), other = new_stream();
  const CUdeviceptr block = freed_behind_work(kernels, pool, stream);
  CUdeviceptr got = 0;
  const CUresult result = CU(cuMemAllocFromPoolAsync)(&got, 20 * mib, pool, other);
  CHECK(result == (internal ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY));
  if (!internal) return;
  CHECK(got == block);
  kernels.fill(other, got, 1);
  CHECK(CU(cuStreamQuery)(other) == CUDA_ERROR_NOT_READY);
  REQUIRE(CU(cuStreamSynchronize)(other) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(stream) == CUDA_SUCCESS);
}

TEST_CASE("memory whose free is not done yet cannot be trimmed") {
  OwnContext context;
  const Kernels kernels;
  const std::size_t before = free_bytes();
  const CUmemoryPool pool = pool_with(true, true, true);
  const CUstream stream = new_stream();
  freed_behind_work(kernels, pool, stream);
  REQUIRE(CU(cuMemPoolTrimTo)(pool, 0) == CUDA_SUCCESS);
  CHECK(free_bytes() < before);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemPoolTrimTo)(pool, 0) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a destroyed pool ends when the last free is done") {
  OwnContext context;
  const Kernels kernels;
  const std::size_t before = free_bytes();
  const CUmemoryPool pool = pool_with(true, true, true);
  const CUstream stream = new_stream();
  freed_behind_work(kernels, pool, stream);
  REQUIRE(CU(cuMemPoolDestroy)(pool) == CUDA_SUCCESS);
  CHECK(free_bytes() < before);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a kernel may use stream-ordered memory until its stream comes to the free") {
  OwnContext context;
  const Kernels kernels;
  const CUmemoryPool pool = pool_with(true, true, true);
  const CUstream stream = new_stream();
  const CUdeviceptr block = take(pool, stream);
  kernels.spin(stream);
  kernels.fill(stream, block, 1);
  REQUIRE(CU(cuMemFreeAsync)(block, stream) == CUDA_SUCCESS);
  SECTION("not longer") {
    kernels.fill(stream, block, 2);
    CHECK(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("so long") { CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS); }
}
