// The application's own virtual memory (cuMemCreate and what follows): always the driver's, never
// carved, since one handle maps only whole. It is charged to the process for as long as it exists.
//
// Unmapping is the driver's at once: the address faults, and is free for other pages. The release of memory
// that only this process can reach is kept from the driver, and the handle given out again (IdleHandles).
#include <algorithm>

#include "shim/route/router.hpp"
#include "shim/route/traced.hpp"

namespace tidepool {

CUresult Router::create(CUmemGenericAllocationHandle* handle, std::size_t size,
                        const CUmemAllocationProp* properties, unsigned long long flags, const Pass& pass) {
  const bool on_device =
      handle != nullptr && properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!on_device || !find_devices()) return pass_on(pass);
  // The device is the one that the properties name, not the current context's.
  const auto index = static_cast<std::size_t>(properties->location.id);
  if (index >= devices_.size()) return pass_on(pass);
  Device& device = *devices_[index];
  if (const auto idle = device.idle_handles.take(*properties, flags, size)) {
    const Mappings::Id id =
        mappings_.created(*idle, {device.ordinal, size, device.idle_handles.kind_of(*properties, flags)});
    device.passed_again(size);
    traced::made(device, id, size, trace::Source::again);
    *handle = *idle;
    return CUDA_SUCCESS;
  }
  const auto attempt = [&] {
    if (!take(device, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = pass_with_memory(pass);
    if (result != CUDA_SUCCESS) device.account.give_back(size);
    return result;
  };
  CUresult result = attempt();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) result = refuse(device, size, Pass(pass.entry(), attempt));
  if (result != CUDA_SUCCESS) return result;
  if (announcer_.open()) served_after_all(device, size);
  // passthrough withholds nothing.
  const int kind =
      settings_.mode == Mode::passthrough ? Physical::kOnce : device.idle_handles.kind_of(*properties, flags);
  const Mappings::Id id = mappings_.created(*handle, {device.ordinal, size, kind});
  device.passed(size);
  traced::made(device, id, size, trace::Source::driver);
  return result;
}

CUresult Router::retain(CUmemGenericAllocationHandle* handle, void* address, const Pass& pass) {
  const Address inside{reinterpret_cast<std::uint64_t>(address)};
  // A block of ours answers as a block of cuMemAlloc: it has no handle that could be retained.
  if (owner_of(inside) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  share({inside, 1});
  const CUresult result = pass_on(pass);
  if (result == CUDA_SUCCESS) mappings_.retained(*handle, inside);
  return result;
}

void Router::end_use(Mappings::Id id) {
  const std::optional<Mappings::Ended> ended = mappings_.end_use(id);
  if (!ended) return;
  Device& device = device_at(ended->physical.device);
  const trace::Moment moment;
  if (!ended->withheld) {
    device.passed_back(ended->physical.size);
    traced::ended(device, moment, id, ended->physical.size);
    return;
  }
  device.kept(ended->physical.size);
  traced::ended(device, moment, id, ended->physical.size);
  const RelaxedCapture relaxed(gate_);
  device.idle_handles.keep(*ended->withheld, ended->physical);
  if (device.idle_handles.bytes() >= Keeper::kWorthwhile) keeper_.watch();
}

// The application may not use a handle that it has released; the driver would not know that it is one.
bool Router::was_released(CUmemGenericAllocationHandle handle) const {
  if (mappings_.is_withheld(handle)) return true;
  return std::any_of(devices().begin(), devices().end(),
                     [&](const auto& device) { return device->idle_handles.holds(handle); });
}

CUresult Router::release(CUmemGenericAllocationHandle handle, const Pass& pass) {
  const std::optional<Mappings::Id> taken = mappings_.take_handle(handle);
  if (!taken && was_released(handle)) return CUDA_ERROR_INVALID_VALUE;
  if (taken && mappings_.withhold(handle, *taken)) {
    end_use(*taken);
    return CUDA_SUCCESS;
  }
  const CUresult result = pass();
  if (!taken) return result;
  if (result == CUDA_SUCCESS)
    end_use(*taken);
  else
    mappings_.put_back(handle, *taken);
  return result;
}

CUresult Router::about_handle(CUmemGenericAllocationHandle handle, const Pass& pass) {
  return was_released(handle) ? CUDA_ERROR_INVALID_VALUE : pass_on(pass);
}

// Another process, or a multicast object, is about to have the memory, and keeps it after the application's
// own last use. Noted before the call: afterwards another thread may have released it.
CUresult Router::share_handle(CUmemGenericAllocationHandle handle, const Pass& pass) {
  mappings_.share(handle);
  return about_handle(handle, pass);
}

CUresult Router::share_range(CUdeviceptr at, std::size_t size, const Pass& pass) {
  share({{at}, size});
  return owner_of({at}) == nullptr ? share_block(at, pass) : pass_on(pass);
}

void Router::share(Range range) {
  for (const std::uint64_t handle : mappings_.share(range)) {
    const RelaxedCapture relaxed(gate_);
    driver.cuMemRelease(handle);
  }
}

Bytes Router::give_back_idle_handles() {
  Bytes given_back = 0;
  for (const auto& device : devices()) {
    if (device->idle_handles.bytes() == 0) continue;
    const RelaxedCapture relaxed(gate_);
    given_back += device->idle_handles.give_back_all();
  }
  return given_back;
}

bool Router::touches_arena(CUdeviceptr at, std::size_t size) {
  return owner_of({at}) != nullptr || (size > 0 && owner_of({at + size - 1}) != nullptr);
}

CUresult Router::about_mapping(CUdeviceptr at, std::size_t size, const Pass& pass) {
  return touches_arena(at, size) ? CUDA_ERROR_INVALID_VALUE : pass_on(pass);
}

CUresult Router::map(CUdeviceptr at, std::size_t size, CUmemGenericAllocationHandle handle,
                     const Pass& pass) {
  if (touches_arena(at, size) || was_released(handle)) return CUDA_ERROR_INVALID_VALUE;
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
