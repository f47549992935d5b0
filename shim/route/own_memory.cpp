// The application's own virtual memory (cuMemCreate and what follows): always the driver's, never
// carved, since one handle maps only whole. It is charged to the process for as long as it exists.
#include "shim/route/router.hpp"

namespace tidepool {

CUresult Router::create(CUmemGenericAllocationHandle* handle, std::size_t size,
                        const CUmemAllocationProp* properties, const Pass& pass) {
  const bool on_device =
      handle != nullptr && properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!on_device || !find_devices()) return pass_on(pass);
  // The device is the one that the properties name, not the current context's.
  const auto index = static_cast<std::size_t>(properties->location.id);
  if (index >= devices_.size()) return pass_on(pass);
  Device& device = *devices_[index];
  if (!take(device, size)) return refuse(device, size, pass);
  const CUresult result = pass_on(pass);
  if (result != CUDA_SUCCESS) {
    device.account.give_back(size);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? refuse(device, size, pass) : result;
  }
  mappings_.created(*handle, {device.ordinal, size});
  device.passed(size);
  return result;
}

CUresult Router::retain(CUmemGenericAllocationHandle* handle, void* address, const Pass& pass) {
  const Address inside{reinterpret_cast<std::uint64_t>(address)};
  // A block of ours answers as a block of cuMemAlloc: it has no handle that could be retained.
  if (owner_of(inside) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = pass_on(pass);
  if (result == CUDA_SUCCESS) mappings_.retained(*handle, inside);
  return result;
}

void Router::end_use(Mappings::Id id) {
  const std::optional<Physical> ended = mappings_.end_use(id);
  if (!ended) return;
  device_at(ended->device).passed_back(ended->size);
}

CUresult Router::release(CUmemGenericAllocationHandle handle, const Pass& pass) {
  const std::optional<Mappings::Id> taken = mappings_.take_handle(handle);
  const CUresult result = pass();
  if (!taken) return result;
  if (result == CUDA_SUCCESS)
    end_use(*taken);
  else
    mappings_.put_back(handle, *taken);
  return result;
}

bool Router::touches_arena(CUdeviceptr at, std::size_t size) {
  return owner_of({at}) != nullptr || (size > 0 && owner_of({at + size - 1}) != nullptr);
}

CUresult Router::about_mapping(CUdeviceptr at, std::size_t size, const Pass& pass) {
  return touches_arena(at, size) ? CUDA_ERROR_INVALID_VALUE : pass_on(pass);
}

CUresult Router::map(CUdeviceptr at, std::size_t size, CUmemGenericAllocationHandle handle,
                     const Pass& pass) {
  if (touches_arena(at, size)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = pass_on(pass);
  if (result == CUDA_SUCCESS) mappings_.mapped({at}, size, handle);
  return result;
}

CUresult Router::unmap(CUdeviceptr at, std::size_t size, const Pass& pass) {
  if (touches_arena(at, size)) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<Mappings::Mapping> taken = mappings_.take_mappings({{at}, size});
  const CUresult result = pass();
  if (result == CUDA_SUCCESS)
    for (const Mappings::Mapping& mapping : taken) end_use(mapping.id);
  else
    mappings_.put_back(taken);
  return result;
}

}  // namespace tidepool
