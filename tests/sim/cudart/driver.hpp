// The driver's entries as the runtime reaches them: dlopen libcuda.so.1, dlsym cuGetProcAddress_v2,
// and every other name through cuGetProcAddress with the version that introduced the ABI (observed
// on the real runtime). A shim in front of the driver meets the same questions here.
#pragma once
#include <cuda.h>
#include <cudaTypedefs.h>

namespace cudart {

struct Driver {
  PFN_cuInit_v2000 init;
  PFN_cuDriverGetVersion_v2020 driver_get_version;
  PFN_cuDeviceGetCount_v2000 device_get_count;
  PFN_cuDeviceGet_v2000 device_get;
  PFN_cuDeviceGetAttribute_v2000 device_get_attribute;
  PFN_cuDeviceGetName_v2000 device_get_name;
  PFN_cuDeviceTotalMem_v3020 device_total_mem;
  PFN_cuDeviceGetUuid_v11040 device_get_uuid;
  PFN_cuDeviceGetPCIBusId_v4010 device_get_pci_bus_id;
  PFN_cuDevicePrimaryCtxRetain_v7000 primary_retain;
  PFN_cuDevicePrimaryCtxReset_v11000 primary_reset;
  PFN_cuDevicePrimaryCtxGetState_v7000 primary_get_state;
  PFN_cuCtxSetCurrent_v4000 ctx_set_current;
  PFN_cuCtxGetCurrent_v4000 ctx_get_current;
  PFN_cuCtxGetDevice_v2000 ctx_get_device;
  PFN_cuCtxSynchronize_v2000 ctx_synchronize;
  PFN_cuCtxGetStreamPriorityRange_v5050 stream_priority_range;
  PFN_cuMemAlloc_v3020 mem_alloc;
  PFN_cuMemFree_v3020 mem_free;
  PFN_cuMemAllocManaged_v6000 mem_alloc_managed;
  PFN_cuMemGetInfo_v3020 mem_get_info;
  PFN_cuMemHostAlloc_v2020 mem_host_alloc;
  PFN_cuMemFreeHost_v2000 mem_free_host;
  PFN_cuMemAllocAsync_v11020 mem_alloc_async;
  PFN_cuMemAllocFromPoolAsync_v11020 mem_alloc_from_pool_async;
  PFN_cuMemFreeAsync_v11020 mem_free_async;
  PFN_cuDeviceGetDefaultMemPool_v11020 default_mem_pool;
  PFN_cuMemPoolSetAttribute_v11020 pool_set_attribute;
  PFN_cuMemPoolGetAttribute_v11020 pool_get_attribute;
  PFN_cuMemPoolTrimTo_v11020 pool_trim_to;
  PFN_cuMemcpy_v4000 memcpy;
  PFN_cuMemcpyAsync_v4000 memcpy_async;
  PFN_cuMemsetD8_v3020 memset_d8;
  PFN_cuMemsetD8Async_v3020 memset_d8_async;
  PFN_cuStreamCreateWithPriority_v5050 stream_create_with_priority;
  PFN_cuStreamDestroy_v4000 stream_destroy;
  PFN_cuStreamSynchronize_v2000 stream_synchronize;
  PFN_cuStreamQuery_v2000 stream_query;
  PFN_cuStreamGetPriority_v5050 stream_get_priority;
  PFN_cuStreamWaitEvent_v3020 stream_wait_event;
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing;
  PFN_cuStreamGetCaptureInfo_v11030 stream_get_capture_info;
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange_capture_mode;
  PFN_cuEventCreate_v2000 event_create;
  PFN_cuEventDestroy_v4000 event_destroy;
  PFN_cuEventRecord_v2000 event_record;
  PFN_cuEventQuery_v2000 event_query;
  PFN_cuEventSynchronize_v2000 event_synchronize;
  PFN_cuEventElapsedTime_v2000 event_elapsed_time;
  PFN_cuPointerGetAttributes_v7000 pointer_get_attributes;
  PFN_cuLaunchHostFunc_v10000 launch_host_func;
  PFN_cuModuleLoadData_v2000 module_load_data;
  PFN_cuModuleGetFunction_v2000 module_get_function;
  PFN_cuLaunchKernel_v4000 launch_kernel;
  PFN_cuGetProcAddress_v12000 get_proc_address;

  bool present = false;
};

// Opened and resolved at the first use, then kept.
const Driver& driver();

// In cudart.cpp. Makes the chosen device's primary context current where there is none; a cudaError_t.
int start_context();
// Remembers an error for cudaGetLastError, and gives it back.
int keep_error(int error);

}  // namespace cudart
