// The double of libcudart: what JAX, TensorFlow and PyTorch call of it, on top of the driver.
//
// NVIDIA's own runtime refuses a driver without its private integrity table, which is not to be
// imitated. The runtime's header is not part of the driver's headers, so the declarations that are
// needed are written out; error codes and enumerators are the runtime's.
#include <utility>

#include "driver.hpp"

#define CUDART extern "C" __attribute__((visibility("default")))

namespace {

using cudart::driver;
using Error = int;  // cudaError_t
constexpr Error success = 0, invalid_value = 1, initialization_error = 3, insufficient_driver = 35,
                invalid_device = 101;

thread_local Error last_error = success;
thread_local int chosen_device = 0;

Error keep(Error error) {
  if (error) last_error = error;
  return error;
}
// The runtime's codes are the driver's for what can happen here, but for the missing context.
Error keep(CUresult result) { return keep(static_cast<Error>(result)); }

// The runtime makes the chosen device's primary context current before it calls the driver.
Error start() {
  if (!driver().present) return insufficient_driver;
  static const CUresult initialized = driver().init(0);
  if (initialized) return initialized;
  CUcontext current = nullptr;
  if (const CUresult result = driver().ctx_get_current(&current)) return result;
  if (current) return success;
  static CUcontext retained[16];
  if (chosen_device < 0 || chosen_device >= 16) return invalid_device;
  if (!retained[chosen_device])
    if (const CUresult result = driver().primary_retain(&retained[chosen_device], chosen_device))
      return result;
  return driver().ctx_set_current(retained[chosen_device]);
}

Error start_driver() {
  if (!driver().present) return insufficient_driver;
  static const CUresult initialized = driver().init(0);
  return initialized;
}

template <typename Function, typename... Arguments>
Error call(Function function, Arguments... arguments) {
  if (const Error error = start()) return keep(error);
  return keep(function(arguments...));
}

CUdeviceptr pointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

int cudart::start_context() { return start(); }
int cudart::keep_error(int error) { return keep(error); }

#ifndef CUDART_VERSION_NUMBER
#error "the build says which runtime this is"
#endif

CUDART Error cudaRuntimeGetVersion(int* version) {
  if (!version) return keep(invalid_value);
  *version = CUDART_VERSION_NUMBER;
  return success;
}
CUDART Error cudaDriverGetVersion(int* version) {
  if (!version) return keep(invalid_value);
  *version = 0;  // documented: 0 without a driver
  return driver().present ? keep(driver().driver_get_version(version)) : success;
}
CUDART Error cudaGetLastError() { return std::exchange(last_error, success); }
CUDART Error cudaPeekAtLastError() { return last_error; }
CUDART const char* cudaGetErrorName(Error error) { return error ? "cudaError" : "cudaSuccess"; }
CUDART const char* cudaGetErrorString(Error error) {
  return error == 2 ? "out of memory" : error ? "error of the simulated runtime" : "no error";
}

CUDART Error cudaGetDeviceCount(int* count) {
  if (!count) return keep(invalid_value);
  if (const Error error = start_driver()) return keep(error);
  return keep(driver().device_get_count(count));
}
CUDART Error cudaGetDevice(int* device) {
  if (!device) return keep(invalid_value);
  CUcontext current = nullptr;
  if (driver().present && !driver().ctx_get_current(&current) && current)
    return keep(driver().ctx_get_device(device));
  *device = chosen_device;
  return success;
}
CUDART Error cudaSetDevice(int device) {
  int count = 0;
  if (const Error error = cudaGetDeviceCount(&count)) return error;
  if (device < 0 || device >= count) return keep(invalid_device);
  chosen_device = device;
  driver().ctx_set_current(nullptr);
  return keep(start());
}
CUDART Error cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
CUDART Error cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (const Error error = start_driver()) return keep(error);
  return keep(driver().device_get_attribute(value, static_cast<CUdevice_attribute>(attribute), device));
}
CUDART Error cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (const Error error = start_driver()) return keep(error);
  return keep(driver().device_get_pci_bus_id(id, length, device));
}
CUDART Error cudaDeviceSynchronize() { return call(driver().ctx_synchronize); }
CUDART Error cudaDeviceReset() { return call(driver().primary_reset, chosen_device); }
CUDART Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(driver().stream_priority_range, least, greatest);
}
CUDART Error cudaDeviceGetDefaultMemPool(CUmemoryPool* pool, int device) {
  return call(driver().default_mem_pool, pool, device);
}
CUDART Error cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!can) return keep(invalid_value);
  *can = device != peer;
  return success;
}

CUDART Error cudaMalloc(void** address, size_t bytes) {
  if (!address) return keep(invalid_value);
  *address = nullptr;
  if (!bytes) return success;  // documented: nothing to do
  return call(driver().mem_alloc, reinterpret_cast<CUdeviceptr*>(address), bytes);
}
CUDART Error cudaFree(void* address) {
  return address ? call(driver().mem_free, pointer(address)) : keep(start());
}
CUDART Error cudaMallocManaged(void** address, size_t bytes, unsigned flags) {
  return call(driver().mem_alloc_managed, reinterpret_cast<CUdeviceptr*>(address), bytes, flags);
}
CUDART Error cudaMallocHost(void** address, size_t bytes) {
  return call(driver().mem_host_alloc, address, bytes, 0u);
}
CUDART Error cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return call(driver().mem_host_alloc, address, bytes, flags);
}
CUDART Error cudaFreeHost(void* address) { return call(driver().mem_free_host, address); }
CUDART Error cudaMallocAsync(void** address, size_t bytes, CUstream stream) {
  return call(driver().mem_alloc_async, reinterpret_cast<CUdeviceptr*>(address), bytes, stream);
}
CUDART Error cudaMallocFromPoolAsync(void** address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  return call(driver().mem_alloc_from_pool_async, reinterpret_cast<CUdeviceptr*>(address), bytes, pool,
              stream);
}
CUDART Error cudaFreeAsync(void* address, CUstream stream) {
  return call(driver().mem_free_async, pointer(address), stream);
}
CUDART Error cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  return call(driver().pool_set_attribute, pool, static_cast<CUmemPool_attribute>(attribute), value);
}
CUDART Error cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  return call(driver().pool_get_attribute, pool, static_cast<CUmemPool_attribute>(attribute), value);
}
CUDART Error cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes) {
  return call(driver().pool_trim_to, pool, keep_bytes);
}
CUDART Error cudaMemGetInfo(size_t* free, size_t* total) { return call(driver().mem_get_info, free, total); }
CUDART Error cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return bytes ? call(driver().memcpy, pointer(to), pointer(from), bytes) : success;
}
CUDART Error cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, CUstream stream) {
  return bytes ? call(driver().memcpy_async, pointer(to), pointer(from), bytes, stream) : success;
}
CUDART Error cudaMemset(void* to, int value, size_t bytes) {
  return call(driver().memset_d8, pointer(to), static_cast<unsigned char>(value), bytes);
}
CUDART Error cudaMemsetAsync(void* to, int value, size_t bytes, CUstream stream) {
  return call(driver().memset_d8_async, pointer(to), static_cast<unsigned char>(value), bytes, stream);
}

struct PointerAttributes {
  int type, device;
  void* device_pointer;
  void* host_pointer;
  long reserved[8];
};
CUDART Error cudaPointerGetAttributes(PointerAttributes* out, const void* address) {
  if (!out) return keep(invalid_value);
  unsigned type = 0, managed = 0;
  int device = -2;
  void *on_device = nullptr, *on_host = nullptr;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&type, &managed, &device, &on_device, &on_host};
  if (const Error error = call(driver().pointer_get_attributes, 5u, asked, answers, pointer(address)))
    return error;
  *out = {managed ? 3 : static_cast<int>(type), device, on_device, on_host, {}};
  return success;
}

CUDART Error cudaStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return call(driver().stream_create_with_priority, stream, flags, priority);
}
CUDART Error cudaStreamCreateWithFlags(CUstream* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
CUDART Error cudaStreamCreate(CUstream* stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }
CUDART Error cudaStreamDestroy(CUstream stream) { return call(driver().stream_destroy, stream); }
CUDART Error cudaStreamSynchronize(CUstream stream) { return call(driver().stream_synchronize, stream); }
CUDART Error cudaStreamQuery(CUstream stream) { return call(driver().stream_query, stream); }
CUDART Error cudaStreamGetPriority(CUstream stream, int* priority) {
  return call(driver().stream_get_priority, stream, priority);
}
CUDART Error cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return call(driver().stream_wait_event, stream, event, flags);
}
CUDART Error cudaStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return call(driver().stream_is_capturing, stream, status);
}
CUDART Error cudaStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                         CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return call(driver().stream_get_capture_info, stream, status, id, graph, dependencies, count);
}
CUDART Error cudaStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                         CUgraph* graph, const CUgraphNode** dependencies, const void** edges,
                                         size_t* count) {
  if (edges) *edges = nullptr;
  return call(driver().stream_get_capture_info, stream, status, id, graph, dependencies, count);
}
CUDART Error cudaStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                      CUgraph* graph, const CUgraphNode** dependencies, const void** edges,
                                      size_t* count) {
#if CUDART_VERSION_NUMBER < 13000  // three parameters before 13
  static_cast<void>(graph), static_cast<void>(dependencies), static_cast<void>(edges),
      static_cast<void>(count);
  return cudaStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr);
#else
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges, count);
#endif
}
CUDART Error cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return call(driver().exchange_capture_mode, mode);
}
CUDART Error cudaLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return call(driver().launch_host_func, stream, function, data);
}
CUDART Error cudaEventCreateWithFlags(CUevent* event, unsigned flags) {
  return call(driver().event_create, event, flags);
}
CUDART Error cudaEventCreate(CUevent* event) { return cudaEventCreateWithFlags(event, 0); }
CUDART Error cudaEventDestroy(CUevent event) { return call(driver().event_destroy, event); }
CUDART Error cudaEventRecord(CUevent event, CUstream stream) {
  return call(driver().event_record, event, stream);
}
CUDART Error cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cudaEventRecord(event, stream);
}
CUDART Error cudaEventQuery(CUevent event) { return call(driver().event_query, event); }
CUDART Error cudaEventSynchronize(CUevent event) { return call(driver().event_synchronize, event); }
CUDART Error cudaEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return call(driver().event_elapsed_time, milliseconds, from, to);
}

CUDART Error cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                              unsigned long long flags, int* status) {
  if (!driver().present) return keep(insufficient_driver);
  CUdriverProcAddressQueryResult found{};
  const Error error =
      keep(driver().get_proc_address(name, function, static_cast<int>(version), flags, &found));
  if (status) *status = static_cast<int>(found);
  return error;
}
CUDART Error cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                     int* status) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION_NUMBER, flags, status);
}
