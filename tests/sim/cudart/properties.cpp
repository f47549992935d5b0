// The properties of a device in one struct, which runtimes 12 and 13 lay out differently. All of it is the
// driver's own answer.
#include <driver_types.h>

#include <cstring>
#include <type_traits>

#include "driver.hpp"

using cudart::driver;

namespace {

// cudaDeviceProp of CUDA 12, as far as anything is filled in; the headers of the build are newer.
struct Properties12 {
  char name[256];
  struct {
    char bytes[16];
  } uuid;
  char luid[8];
  unsigned luid_mask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clock_rate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texture_pitch_alignment;
  int device_overlap, multiProcessorCount, timeout, integrated, canMapHostMemory, compute_mode;
  int textures_and_surfaces[40];
  size_t surface_alignment;
  int concurrentKernels, ecc, pciBusID, pciDeviceID, pciDomainID, tcc, asyncEngineCount, unifiedAddressing;
  int memory_clock_rate, memoryBusWidth, l2CacheSize, persisting_l2, maxThreadsPerMultiProcessor;
  int priorities, global_l1, local_l1;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, board, board_group, host_atomics, precision_ratio;
  int pageable, concurrentManagedAccess, preemption, registered_pointers, cooperative, cooperative_devices;
  size_t sharedMemPerBlockOptin;
  int page_tables, direct_managed, maxBlocksPerMultiProcessor, access_window;
  size_t reserved_shared;
  int host_register, sparse, read_only_register, semaphores, memoryPoolsSupported;
  int rest[71];
};
static_assert(sizeof(Properties12) == 1032, "the size that programs built with CUDA 12 reserve");

#if CUDART_VERSION_NUMBER >= 13000
using Properties = cudaDeviceProp;
#define SIM_GET_PROPERTIES cudaGetDeviceProperties
#else
using Properties = Properties12;
#define SIM_GET_PROPERTIES cudaGetDeviceProperties_v2
#endif

}  // namespace

extern "C" __attribute__((visibility("default"))) int SIM_GET_PROPERTIES(Properties* out, int device) {
  constexpr int invalid_value = 1, insufficient_driver = 35;
  if (!out) return invalid_value;
  if (!driver().present) return insufficient_driver;
  if (const CUresult result = driver().init(0)) return result;
  Properties found{};
  CUresult failed = driver().device_get_name(found.name, sizeof found.name, device);
  CUuuid uuid{};
  if (!failed) failed = driver().device_get_uuid(&uuid, device);
  if (!failed) failed = driver().device_total_mem(&found.totalGlobalMem, device);
  std::memcpy(found.uuid.bytes, uuid.bytes, sizeof uuid.bytes);
  const auto ask = [&](auto& field, CUdevice_attribute attribute) {
    int value = 0;
    if (!failed) failed = driver().device_get_attribute(&value, attribute, device);
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
  };
  ask(found.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  ask(found.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  ask(found.multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  ask(found.warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  ask(found.maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  ask(found.maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  ask(found.maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  ask(found.maxThreadsDim[0], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  ask(found.maxThreadsDim[1], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  ask(found.maxThreadsDim[2], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  ask(found.maxGridSize[0], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  ask(found.maxGridSize[1], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  ask(found.maxGridSize[2], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  ask(found.sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  ask(found.sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  ask(found.sharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  ask(found.regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  ask(found.regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  ask(found.totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  ask(found.l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  ask(found.memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  ask(found.textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  ask(found.pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  ask(found.pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
  ask(found.pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  ask(found.asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  ask(found.concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS);
  ask(found.unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  ask(found.canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY);
  ask(found.managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  ask(found.concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
  ask(found.memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  if (failed) return failed;
  *out = found;
  return 0;
}
