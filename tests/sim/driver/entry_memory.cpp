// The cuMemAlloc family: device, pitched and managed memory, and what is known of it.
#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

CUresult allocate(CUdeviceptr* pointer, std::size_t bytes) {
  if (!pointer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  SIM_TRY(refuse_unsafe());
  Device& device = *state().devices[static_cast<std::size_t>(context->device)];
  std::uint64_t base = device.allocate(bytes);
  // Memory that pools keep unused is given up before an allocation fails (guess for this family).
  if (!base && rules().pools_give_way && reclaim_pools(context->device)) base = device.allocate(bytes);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  state().add_block({.kind = Block::Kind::device,
                     .base = base,
                     .size = bytes,
                     .device = context->device,
                     .context = context});
  *pointer = base;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult SIM_ENTRY(cuMemAlloc_v2)(CUdeviceptr* dptr, size_t bytesize) { return allocate(dptr, bytesize); }

CUresult SIM_ENTRY(cuMemAllocPitch_v2)(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                                       unsigned int ElementSizeBytes) {
  if (!pPitch || !WidthInBytes || !Height) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t pitch = round_up(WidthInBytes, 512);
  std::size_t bytes = 0;
  if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(allocate(dptr, bytes));
  *pPitch = pitch;
  return CUDA_SUCCESS;
}

// Managed memory may exceed the device, so it takes none of the budget until a later form moves pages.
CUresult SIM_ENTRY(cuMemAllocManaged)(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  if (!dptr || !bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  SIM_TRY(refuse_unsafe());
  void* base = map_host(bytesize);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  *dptr = reinterpret_cast<CUdeviceptr>(base);
  state().add_block({.kind = Block::Kind::managed,
                     .base = *dptr,
                     .size = bytesize,
                     .device = context->device,
                     .context = context,
                     .flags = flags});
  return CUDA_SUCCESS;
}

// Takes pointers of cuMemAlloc, AllocPitch, AllocManaged, AllocAsync and AllocFromPoolAsync (cuda.h).
CUresult SIM_ENTRY(cuMemFree_v2)(CUdeviceptr dptr) {
  Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  if (!dptr) return rules().free_null ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(refuse_unsafe());
  auto at = state().blocks.find(dptr);
  if (at == state().blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  switch (at->second.kind) {
    case Block::Kind::device:
    case Block::Kind::managed:
      if (rules().free_synchronises && !timeline().idle(*at->second.context)) {
        SIM_TRY(drain(lock, *at->second.context));
        at = state().blocks.find(dptr);  // the lock may have been let go
        if (at == state().blocks.end()) return CUDA_ERROR_INVALID_VALUE;
      }
      break;
    case Block::Kind::stream_ordered: break;  // cuda.h: without any synchronisation
    default:
      if (!from_pool(at->second)) return CUDA_ERROR_INVALID_VALUE;
  }
  check_free("cuMemFree", at->second);
  free_block(at);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemGetInfo_v2)(size_t* free, size_t* total) {
  if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  Device& device = *state().devices[static_cast<std::size_t>(context->device)];
  *free = device.free();
  *total = device.total();
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemGetAddressRange_v2)(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const Block* block = state().find_block(dptr);
  if (!block || block->kind == Block::Kind::registered) return CUDA_ERROR_NOT_FOUND;
  if (pbase) *pbase = block->base;
  if (psize) *psize = block->size;
  return CUDA_SUCCESS;
}

// Hints: nothing moves in this form.
CUresult SIM_ENTRY(cuMemAdvise)(CUdeviceptr devPtr, size_t count, CUmem_advise, CUdevice) {
  const Lock lock;
  const Block* block = state().find_block(devPtr);
  return block && count && block->kind == Block::Kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult SIM_ENTRY(cuMemPrefetchAsync)(CUdeviceptr devPtr, size_t count, CUdevice, CUstream hStream) {
  const Lock lock;
  Stream* stream = nullptr;
  SIM_TRY(find_stream(hStream, &stream));
  const Block* block = state().find_block(devPtr);
  return block && count && block->kind == Block::Kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace sim
