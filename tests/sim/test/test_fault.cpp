// Kernels that touch what is not theirs, and what is left of their context.
#include "timed.hpp"

namespace {

constexpr std::size_t page = 2 * mib;

// Memory mapped into the first half of a reservation.
CUdeviceptr mapping(bool with_access) {
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  REQUIRE(CU(cuMemCreate)(&handle, page, &prop, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAddressReserve)(&base, 2 * page, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  const CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (with_access) REQUIRE(CU(cuMemSetAccess)(base, page, &access, 1) == CUDA_SUCCESS);
  return base;
}

}  // namespace

TEST_CASE("a kernel's illegal access breaks its context for good, and no other one") {
  OwnContext bystander;
  const Kernels others;
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream(), second = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  CUdeviceptr address = 0;
  SECTION("nothing there") { address = 4096; }
  SECTION("no access") { address = mapping(false); }
  SECTION("beyond its end") { address = mapping(true) + page - 4; }
  SECTION("freed") {
    address = block_of(2 * mib);
    REQUIRE(CU(cuMemFree_v2)(address) == CUDA_SUCCESS);
  }
  SECTION("of a device without peer access") {
    OwnContext far(1);
    address = block_of(2 * mib);
    REQUIRE(CU(cuCtxPopCurrent_v2)(nullptr) == CUDA_SUCCESS);
    far.handle = nullptr;
  }
  kernels.spin(second);
  kernels.fill(second, block, 1);
  const CUevent event = new_event();
  kernels.fill(stream, address, 1, 2);
  REQUIRE(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
  constexpr CUresult illegal = CUDA_ERROR_ILLEGAL_ADDRESS;
  CHECK(CU(cuStreamSynchronize)(stream) == illegal);
  CHECK(CU(cuStreamSynchronize)(stream) == illegal);
  CHECK(CU(cuStreamQuery)(second) == illegal);
  CHECK(CU(cuEventQuery)(event) == illegal);
  CHECK(CU(cuEventSynchronize)(event) == illegal);
  CHECK(CU(cuCtxSynchronize)() == illegal);
  CHECK(CU(cuMemFree_v2)(block) == illegal);
  CUdeviceptr more = 77;
  CHECK(CU(cuMemAlloc_v2)(&more, 4) == illegal);
  CHECK(CU(cuMemAllocAsync)(&more, 4, stream) == illegal);
  CHECK(more == 77);
  CHECK(CU(cuMemsetD8_v2)(block, 1, 1) == illegal);
  CHECK(kernels.launch("sim_spin", stream, {1}) == illegal);
  REQUIRE(CU(cuCtxSetCurrent)(bystander.handle) == CUDA_SUCCESS);
  others.spin(nullptr, 2 * long_time);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(peek(block) == 0);  // what was queued beside it ended with the context
  const CUcontext broken = context.handle;
  context.handle = nullptr;
  CHECK(CU(cuCtxDestroy_v2)(broken) == CUDA_SUCCESS);
}

TEST_CASE("a reset mends a broken primary context") {
  CUcontext primary = nullptr;
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSetCurrent)(primary) == CUDA_SUCCESS);
  {
    const Kernels kernels;
    kernels.fill(nullptr, 4096, 1);
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  REQUIRE(CU(cuDevicePrimaryCtxReset_v2)(0) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSetCurrent)(primary) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(CU(cuMemFree_v2)(block_of(4)) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRelease_v2)(0) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRelease_v2)(0) == CUDA_SUCCESS);
}

TEST_CASE("after an error host functions are not called, and callbacks learn of it") {
  OwnContext context;
  const Kernels kernels;
  int called = 0;
  CUresult told = CUDA_SUCCESS;
  kernels.spin(nullptr);
  kernels.fill(nullptr, 4096, 1);
  REQUIRE(CU(cuLaunchHostFunc)(
              nullptr, [](void* data) { ++*static_cast<int*>(data); }, &called) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamAddCallback)(
              nullptr, [](CUstream, CUresult result, void* data) { *static_cast<CUresult*>(data) = result; },
              &told, 0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(called == 0);
  CHECK(told == CUDA_ERROR_ILLEGAL_ADDRESS);
}
