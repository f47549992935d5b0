// What a copy or fill has done when its call returns, by the kind of memory (CUDA's "API synchronization
// behavior"), and what frees of memory in use wait for.
#include "timed.hpp"

namespace {

unsigned* pinned_word() {
  void* word = nullptr;
  REQUIRE(CU(cuMemHostAlloc)(&word, 4 * kib, 0) == CUDA_SUCCESS);
  return static_cast<unsigned*>(word);
}

bool busy(CUstream stream) { return CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY; }

}  // namespace

TEST_CASE("a copy from pageable memory has read it when its call returns, whatever the stream does") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  unsigned word = 1;
  kernels.spin(stream);
  REQUIRE(CU(cuMemcpyHtoDAsync_v2)(block, &word, 4, stream) == CUDA_SUCCESS);
  word = 2;
  CHECK(busy(stream));
  CHECK(peek(block) == 0);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(peek(block) == 1);
}

TEST_CASE("a copy from pinned memory reads it when its turn comes") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  unsigned* word = pinned_word();
  *word = 1;
  kernels.spin(stream);
  REQUIRE(CU(cuMemcpyHtoDAsync_v2)(block, word, 4, stream) == CUDA_SUCCESS);
  *word = 2;  // too early
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(peek(block) == 2);
}

TEST_CASE("a copy into pageable memory is done when its call returns, one into pinned memory is not") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  kernels.spin(stream);
  kernels.fill(stream, block, 3);
  SECTION("pageable") {
    unsigned word = 0;
    REQUIRE(CU(cuMemcpyDtoHAsync_v2)(&word, block, 4, stream) == CUDA_SUCCESS);
    CHECK(word == 3);
    CHECK_FALSE(busy(stream));
  }
  SECTION("pinned") {
    unsigned* word = pinned_word();
    REQUIRE(CU(cuMemcpyDtoHAsync_v2)(word, block, 4, stream) == CUDA_SUCCESS);
    CHECK(*word == 0);
    CHECK(busy(stream));
    REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    CHECK(*word == 3);
  }
  SECTION("registered") {
    alignas(4096) static unsigned page[1024];
    page[0] = 0;
    REQUIRE(CU(cuMemHostRegister_v2)(page, sizeof page, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemcpyAsync)(reinterpret_cast<CUdeviceptr>(page), block, 4, stream) == CUDA_SUCCESS);
    CHECK(busy(stream));
    CHECK(CU(cuMemHostUnregister)(page) == CUDA_SUCCESS);  // waits
    CHECK(page[0] == 3);
  }
  SECTION("partly registered is pageable") {
    alignas(4096) static unsigned pages[2048];
    REQUIRE(CU(cuMemHostRegister_v2)(pages, 4096, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemsetD8Async)(block, 4, 4 * kib, stream) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemcpyDtoHAsync_v2)(pages + 512, block, 4 * kib, stream) == CUDA_SUCCESS);
    CHECK(pages[1030] == 0x04040404);
    CHECK(CU(cuMemHostUnregister)(pages) == CUDA_SUCCESS);
  }
}

TEST_CASE("synchronous copies with the host are done on return, within the device they are not") {
  OwnContext context;
  const Kernels kernels;
  const CUdeviceptr block = block_of(4 * kib);
  unsigned word = 0;
  kernels.spin(nullptr);
  kernels.fill(nullptr, block, 4);
  SECTION("to the host") {
    REQUIRE(CU(cuMemcpyDtoH_v2)(&word, block, 4) == CUDA_SUCCESS);
    CHECK(word == 4);
  }
  SECTION("from pageable memory: the stream was waited for, the bytes are on their way") {
    REQUIRE(CU(cuMemcpyHtoD_v2)(block, &word, 4) == CUDA_SUCCESS);
    CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
    CHECK(peek(block) == 0);
  }
  SECTION("from pinned memory") {
    unsigned* from = pinned_word();
    *from = 6;
    REQUIRE(CU(cuMemcpyHtoD_v2)(block, from, 4) == CUDA_SUCCESS);
    CHECK(peek(block) == 6);
  }
  SECTION("within the device") {
    REQUIRE(CU(cuMemcpyDtoD_v2)(block + 4, block, 4) == CUDA_SUCCESS);
    CHECK(busy(nullptr));
    CHECK(peek(block + 4) == 0);
  }
  SECTION("within the device, where SYNC_MEMOPS asks for it") {
    const unsigned yes = 1;
    REQUIRE(CU(cuPointerSetAttribute)(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemcpyDtoD_v2)(block + 4, block, 4) == CUDA_SUCCESS);
    CHECK(peek(block + 4) == 4);
  }
}

TEST_CASE("a synchronous fill is asynchronous, but for memory that the host shares") {
  OwnContext context;
  const Kernels kernels;
  kernels.spin(nullptr);
  SECTION("device") {
    const CUdeviceptr block = block_of(4 * kib);
    REQUIRE(CU(cuMemsetD32_v2)(block, 1, 1) == CUDA_SUCCESS);
    CHECK(busy(nullptr));
    CHECK(peek(block) == 0);
  }
  SECTION("managed") {
    CUdeviceptr managed = 0;
    REQUIRE(CU(cuMemAllocManaged)(&managed, 4 * kib, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemsetD32_v2)(managed, 1, 1) == CUDA_SUCCESS);
    CHECK(peek(managed) == 1);
  }
}

TEST_CASE("frees of device and host memory wait for their context, stream-ordered ones do not") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const CUdeviceptr block = block_of(4 * kib);
  unsigned* word = pinned_word();
  CUdeviceptr ordered = 0;
  REQUIRE(CU(cuMemAllocAsync)(&ordered, 4 * kib, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  kernels.spin(stream);
  SECTION("cuMemFree") {
    REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
    CHECK_FALSE(busy(stream));
  }
  SECTION("cuMemFreeHost") {
    REQUIRE(CU(cuMemFreeHost)(word) == CUDA_SUCCESS);
    CHECK_FALSE(busy(stream));
  }
  SECTION("cuMemFree of a stream-ordered block") {
    REQUIRE(CU(cuMemFree_v2)(ordered) == CUDA_SUCCESS);
    CHECK(busy(stream));
  }
  SECTION("cuMemFreeAsync") {
    REQUIRE(CU(cuMemFreeAsync)(ordered, stream) == CUDA_SUCCESS);
    CHECK(busy(stream));
  }
}
