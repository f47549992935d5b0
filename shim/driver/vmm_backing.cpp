// Physical memory of one device by cuMemCreate, cuMemMap and cuMemSetAccess.
#include "shim/driver/vmm_backing.hpp"

namespace tidepool {
namespace {

CUmemAllocationProp properties_for(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

Failure failure_of(CUresult result) { return {Reason::driver, static_cast<int>(result)}; }

}  // namespace

bool vmm_supported(int device) {
  int supported = 0;
  if (driver.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                                  device) != CUDA_SUCCESS ||
      supported == 0)
    return false;
  const CUmemAllocationProp properties = properties_for(device);
  std::size_t granularity = 0;
  return driver.cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
             CUDA_SUCCESS &&
         granularity != 0 && kPage % granularity == 0;
}

Result<Range> VmmBacking::reserve(Bytes size) {
  CUdeviceptr begin = 0;
  const CUresult result = driver.cuMemAddressReserve(&begin, size, kPage, 0, 0);
  if (result != CUDA_SUCCESS) return failure_of(result);
  return Range{{begin}, size};
}

Status VmmBacking::create(Address page) {
  const CUmemAllocationProp properties = properties_for(device_);
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = driver.cuMemCreate(&handle, kPage, &properties, 0);
  // Only here is it the device that has no more; elsewhere it is ours to find another way.
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return Failure{Reason::out_of_memory, result};
  if (result != CUDA_SUCCESS) return failure_of(result);
  result = driver.cuMemMap(page.value, kPage, 0, handle, 0);
  driver.cuMemRelease(handle);
  return result == CUDA_SUCCESS ? Status(Done{}) : failure_of(result);
}

Status VmmBacking::move(Address page, Address to) {
  CUmemGenericAllocationHandle handle = 0;
  // cuMemRetainAllocationHandle takes a pointer that is only looked up.
  CUresult result = driver.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(page.value));
  if (result != CUDA_SUCCESS) return failure_of(result);
  result = driver.cuMemMap(to.value, kPage, 0, handle, 0);
  driver.cuMemRelease(handle);
  if (result != CUDA_SUCCESS) return failure_of(result);
  result = driver.cuMemUnmap(page.value, kPage);
  if (result == CUDA_SUCCESS) return Done{};
  driver.cuMemUnmap(to.value, kPage);
  return failure_of(result);
}

Status VmmBacking::enable(Range range) {
  CUmemAccessDesc access{};
  access.location = properties_for(device_).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = driver.cuMemSetAccess(range.begin.value, range.size, &access, 1);
  return result == CUDA_SUCCESS ? Status(Done{}) : failure_of(result);
}

Status VmmBacking::release(Address page) {
  const CUresult result = driver.cuMemUnmap(page.value, kPage);
  return result == CUDA_SUCCESS ? Status(Done{}) : failure_of(result);
}

}  // namespace tidepool
