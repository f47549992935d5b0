// Calls that a program should not make, and that the driver refuses: the answer must be the driver's, and
// nothing may be changed by it.
#include "tests/preload/victims/driver.hpp"
#include "tests/preload/victims/scenarios.hpp"

// A dead stream is none, even when its handle's value has come back.
void dead_stream() {
  start_driver();
  CUstream dead = nullptr, next = nullptr;
  CUdeviceptr block = 0, untouched = 7;
  OK(CU(cuStreamCreate)(&dead, CU_STREAM_NON_BLOCKING));
  OK(CU(cuMemAllocAsync)(&block, kMiB, dead));
  OK(CU(cuStreamSynchronize)(dead));
  OK(CU(cuStreamDestroy_v2)(dead));
  FAILS(CUDA_ERROR_INVALID_HANDLE, CU(cuMemFreeAsync)(block, dead));
  FAILS(CUDA_ERROR_INVALID_HANDLE, CU(cuMemAllocAsync)(&untouched, kMiB, dead));
  HOLDS(untouched == 7);
  OK(CU(cuStreamCreate)(&next, CU_STREAM_NON_BLOCKING));
  OK(CU(cuMemFreeAsync)(block, next));
  FAILS(CUDA_ERROR_INVALID_HANDLE, CU(cuMemAllocAsync)(&untouched, kMiB, reinterpret_cast<CUstream>(0x1234)));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocFromPoolAsync)(&untouched, kMiB, nullptr, next));
  HOLDS(untouched == 7);
}

// Memory of cuMemAlloc is no mapping of the program's, whatever stands behind it.
void no_mapping() {
  start_driver();
  constexpr std::size_t page = 2 * kMiB;
  CUdeviceptr block = 0, page_of_block = 0;
  OK(CU(cuMemAlloc_v2)(&block, 3 * page));
  page_of_block = block / page * page;
  const CUmemAccessDesc none{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
  unsigned long long flags = 77;
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(page_of_block, page));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemSetAccess)(page_of_block, page, &none, 1));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemGetAccess)(&flags, &none.location, block));
  FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(page_of_block, page));
  HOLDS(flags == 77);
  OK(CU(cuMemsetD32_v2)(block, 5, 3 * page / 4));
  OK(CU(cuMemFree_v2)(block));
}

// What lies behind the last byte that was asked for belongs to nobody.
void behind_the_end() {
  start_driver();
  CUdeviceptr block = 0, base = 0;
  std::size_t size = 0;
  OK(CU(cuMemAlloc_v2)(&block, 100));
  OK(CU(cuMemGetAddressRange_v2)(&base, &size, block + 99));
  HOLDS(base == block && size == 100);
  FAILS(CUDA_ERROR_NOT_FOUND, CU(cuMemGetAddressRange_v2)(&base, &size, block + 100));
  OK(CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, block));
  HOLDS(size == 100);
  FAILS(CUDA_ERROR_INVALID_VALUE,
        CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, block + 100));
  OK(CU(cuMemFree_v2)(block));
}
