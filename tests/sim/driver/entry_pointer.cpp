// Questions about pointers: cuPointerGetAttribute and its plural.
#include <cstring>

#include "entries.hpp"
#include "state.hpp"

namespace sim {
namespace {

template <typename T>
CUresult write(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

bool on_host(const Block& block) {
  return block.kind == Block::Kind::host || block.kind == Block::Kind::registered;
}

// The answer for a pointer that the driver knows.
CUresult answer(void* data, CUpointer_attribute attribute, CUdeviceptr pointer, const Block& block) {
  using Kind = Block::Kind;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return write(data, reinterpret_cast<CUcontext>(block.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return write<unsigned>(data, on_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return write(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:  // cuda.h: an error where the host has no access
      if (!on_host(block) && block.kind != Kind::managed) return CUDA_ERROR_INVALID_VALUE;
      return write(data, reinterpret_cast<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return write<unsigned>(data, block.sync_memops);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return write<unsigned long long>(data, block.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return write<unsigned>(data, block.kind == Kind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return write(data, block.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return write<unsigned>(data, block.kind == Kind::device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return write<CUdeviceptr>(data, block.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return write<size_t>(data, block.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return write<unsigned>(data, block.kind != Kind::mapped || block.accessible);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return write<unsigned long long>(data, block.handle_types);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return write<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return write<unsigned>(data, block.accessible ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                    : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return write(data, reinterpret_cast<CUmemoryPool>(block.pool));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return write<unsigned long long>(data, block.id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return write<unsigned>(data, 0);
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

// cuda.h, cuPointerGetAttributes: an unknown pointer gets "default NULL values". -2 for the
// ordinal, so that it names no device (guess; the runtime's own default).
CUresult nothing(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return write(data, -2);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return write<unsigned>(data, 0);
    default: return write<std::uint64_t>(data, 0);
  }
}

bool known(CUpointer_attribute attribute) {
  return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
         attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

}  // namespace

CUresult SIM_ENTRY(cuPointerGetAttribute)(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!data || !known(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Block* block = state().find_block(ptr);
  return block ? answer(data, attribute, ptr, *block) : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuPointerGetAttributes)(unsigned int numAttributes, CUpointer_attribute* attributes,
                                           void** data, CUdeviceptr ptr) {
  if (!numAttributes || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < numAttributes; ++i)
    if (!data[i] || !known(attributes[i])) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Block* block = state().find_block(ptr);
  for (unsigned i = 0; i < numAttributes; ++i)
    if (!block || answer(data[i], attributes[i], ptr, *block) != CUDA_SUCCESS)
      nothing(data[i], attributes[i]);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuPointerSetAttribute)(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Block* block = state().find_block(ptr);
  if (!block || on_host(*block)) return CUDA_ERROR_INVALID_VALUE;
  // Measured by others (libfabric#12853): mapped and pooled memory does not support it.
  if (block->kind != Block::Kind::device && block->kind != Block::Kind::managed)
    return CUDA_ERROR_NOT_SUPPORTED;
  unsigned flag = 0;
  std::memcpy(&flag, value, sizeof flag);
  block->sync_memops = flag;
  return CUDA_SUCCESS;
}

}  // namespace sim
