// Resolves the driver the way the real runtime does; see driver.hpp.
#include "driver.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace cudart {
namespace {

Driver resolve() {
  Driver found{};
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return found;
  const auto first = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!first) return found;
  CUdriverProcAddressQueryResult status{};
  const auto get = [&](const char* name, int version, auto& into) {
    void* address = nullptr;
    const auto ask = found.get_proc_address ? found.get_proc_address : first;
    if (ask(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) == CUDA_SUCCESS)
      into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(address);
    return into != nullptr;
  };
  bool all = get("cuGetProcAddress", 12000, found.get_proc_address);
  all &= get("cuInit", 2000, found.init) && get("cuDriverGetVersion", 2020, found.driver_get_version);
  all &= get("cuDeviceGetCount", 2000, found.device_get_count) && get("cuDeviceGet", 2000, found.device_get);
  all &= get("cuDeviceGetAttribute", 2000, found.device_get_attribute);
  all &= get("cuDeviceGetName", 2000, found.device_get_name);
  all &= get("cuDeviceTotalMem", 3020, found.device_total_mem);
  all &= get("cuDeviceGetUuid", 11040, found.device_get_uuid);
  all &= get("cuDeviceGetPCIBusId", 4010, found.device_get_pci_bus_id);
  all &= get("cuDevicePrimaryCtxRetain", 7000, found.primary_retain);
  all &= get("cuDevicePrimaryCtxReset", 11000, found.primary_reset);
  all &= get("cuDevicePrimaryCtxGetState", 7000, found.primary_get_state);
  all &= get("cuCtxSetCurrent", 4000, found.ctx_set_current) &&
         get("cuCtxGetCurrent", 4000, found.ctx_get_current);
  all &= get("cuCtxGetDevice", 2000, found.ctx_get_device) &&
         get("cuCtxSynchronize", 2000, found.ctx_synchronize);
  all &= get("cuCtxGetStreamPriorityRange", 5050, found.stream_priority_range);
  all &= get("cuMemAlloc", 3020, found.mem_alloc) && get("cuMemFree", 3020, found.mem_free);
  all &= get("cuMemAllocManaged", 6000, found.mem_alloc_managed) &&
         get("cuMemGetInfo", 3020, found.mem_get_info);
  all &= get("cuMemHostAlloc", 2020, found.mem_host_alloc) && get("cuMemFreeHost", 2000, found.mem_free_host);
  all &= get("cuMemAllocAsync", 11020, found.mem_alloc_async);
  all &= get("cuMemAllocFromPoolAsync", 11020, found.mem_alloc_from_pool_async);
  all &= get("cuMemFreeAsync", 11020, found.mem_free_async);
  all &= get("cuDeviceGetDefaultMemPool", 11020, found.default_mem_pool);
  all &= get("cuMemPoolSetAttribute", 11020, found.pool_set_attribute);
  all &= get("cuMemPoolGetAttribute", 11020, found.pool_get_attribute);
  all &= get("cuMemPoolTrimTo", 11020, found.pool_trim_to);
  all &= get("cuMemcpy", 4000, found.memcpy) && get("cuMemcpyAsync", 4000, found.memcpy_async);
  all &= get("cuMemsetD8", 3020, found.memset_d8) && get("cuMemsetD8Async", 3020, found.memset_d8_async);
  all &= get("cuStreamCreateWithPriority", 5050, found.stream_create_with_priority);
  all &= get("cuStreamDestroy", 4000, found.stream_destroy);
  all &= get("cuStreamSynchronize", 2000, found.stream_synchronize) &&
         get("cuStreamQuery", 2000, found.stream_query);
  all &= get("cuStreamGetPriority", 5050, found.stream_get_priority);
  all &= get("cuStreamWaitEvent", 3020, found.stream_wait_event);
  all &= get("cuStreamIsCapturing", 10000, found.stream_is_capturing);
  all &= get("cuStreamGetCaptureInfo", 11030, found.stream_get_capture_info);
  all &= get("cuThreadExchangeStreamCaptureMode", 10010, found.exchange_capture_mode);
  all &= get("cuEventCreate", 2000, found.event_create) && get("cuEventDestroy", 4000, found.event_destroy);
  all &= get("cuEventRecord", 2000, found.event_record) && get("cuEventQuery", 2000, found.event_query);
  all &= get("cuEventSynchronize", 2000, found.event_synchronize);
  all &= get("cuEventElapsedTime", 2000, found.event_elapsed_time);
  all &= get("cuPointerGetAttributes", 7000, found.pointer_get_attributes);
  all &= get("cuLaunchHostFunc", 10000, found.launch_host_func);
  all &= get("cuModuleLoadData", 2000, found.module_load_data);
  all &= get("cuModuleGetFunction", 2000, found.module_get_function);
  all &= get("cuLaunchKernel", 4000, found.launch_kernel);
  found.present = all;
  return found;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = resolve();
  return instance;
}

}  // namespace cudart
