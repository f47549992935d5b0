// Arrays, mipmapped arrays and the first, 32-bit ABI of the memory entries: what they cost the device and
// when that comes back.
#include "driver.hpp"

namespace {

constexpr CUDA_ARRAY3D_DESCRIPTOR shape(std::size_t width, std::size_t height, std::size_t depth) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 4, 0};
}

}  // namespace

TEST_CASE("an array occupies memory until it is destroyed, or its context is") {
  const bool by_context = GENERATE(false, true);
  OwnContext outer;
  const std::size_t before = free_bytes();
  {
    OwnContext inner;
    CUarray array = nullptr;
    const auto wanted = shape(512, 512, 4);  // 16 MiB
    REQUIRE(CU(cuArray3DCreate_v2)(&array, &wanted) == CUDA_SUCCESS);
    CHECK(free_bytes() == before - 16 * mib);
    CUDA_ARRAY_DESCRIPTOR read{};
    REQUIRE(CU(cuArrayGetDescriptor_v2)(&read, array) == CUDA_SUCCESS);
    CHECK((read.Width == 512 && read.Height == 512 && read.NumChannels == 4));
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
    REQUIRE(CU(cuArrayGetMemoryRequirements)(&needs, array, 0) == CUDA_SUCCESS);
    CHECK(needs.size == 16 * mib);
    if (!by_context) {
      REQUIRE(CU(cuArrayDestroy)(array) == CUDA_SUCCESS);
      CHECK(free_bytes() == before);
      CHECK(CU(cuArrayDestroy)(array) == CUDA_ERROR_INVALID_HANDLE);
    }
  }
  REQUIRE(CU(cuCtxSetCurrent)(outer.handle) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}

TEST_CASE("a mipmapped array owns its levels, each half as large, down to one element") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUmipmappedArray mipmap = nullptr;
  const auto wanted = shape(1024, 1024, 0);
  REQUIRE(CU(cuMipmappedArrayCreate)(&mipmap, &wanted, 99) == CUDA_SUCCESS);
  CHECK(free_bytes() < before - 16 * mib);
  CUarray level = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR read{};
  REQUIRE(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 10) == CUDA_SUCCESS);
  REQUIRE(CU(cuArray3DGetDescriptor_v2)(&read, level) == CUDA_SUCCESS);
  CHECK((read.Width == 1 && read.Height == 1 && read.Depth == 0));
  CHECK(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 11) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 0) == CUDA_SUCCESS);
  CHECK(CU(cuArrayDestroy)(level) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(CU(cuMipmappedArrayDestroy)(mipmap) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
  CHECK(CU(cuArray3DGetDescriptor_v2)(&read, level) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an array larger than the device is out of memory, and writes no handle") {
  OwnContext context;
  auto* array = reinterpret_cast<CUarray>(7);
  const auto wanted = shape(1 << 14, 1 << 14, 4);
  CHECK(CU(cuArray3DCreate_v2)(&array, &wanted) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(array == reinterpret_cast<CUarray>(7));
}

TEST_CASE("the first ABI gives addresses of 32 bits, charged and usable by both ABIs") {
  OwnContext context;
  const std::size_t before = free_bytes();
  CUdeviceptr_v1 block = 0, base = 0;
  unsigned size = 0, pitch = 0, free = 0, total = 0, value = 0;
  REQUIRE(CU(cuMemAlloc)(&block, 4 * mib) == CUDA_SUCCESS);
  CHECK(free_bytes() == before - 4 * mib);
  REQUIRE(CU(cuMemsetD32)(block, 7, 4) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpyDtoH_v2)(&value, block + 12, 4) == CUDA_SUCCESS);
  CHECK(value == 7);
  REQUIRE(CU(cuMemGetAddressRange)(&base, &size, block + 100) == CUDA_SUCCESS);
  CHECK((base == block && size == 4 * mib));
  REQUIRE(CU(cuMemGetInfo)(&free, &total) == CUDA_SUCCESS);
  CHECK((free == free_bytes() && total == gib));
  REQUIRE(CU(cuMemFree)(block) == CUDA_SUCCESS);
  CHECK(CU(cuMemFree)(block) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemAllocPitch)(&block, &pitch, 100, 10, 4) == CUDA_SUCCESS);
  CHECK(pitch == 512);
  REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
  CHECK(free_bytes() == before);
}
