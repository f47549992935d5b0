// Host memory that the device can use: allocated by the driver, or registered with it.
#include "capture.hpp"
#include "entries.hpp"
#include "rules.hpp"
#include "state.hpp"

namespace sim {
namespace {

// Whole pages: XLA ends the process if host memory is aligned to less than 256 bytes.
CUresult allocate(void** pointer, std::size_t bytes, unsigned flags) {
  if (!pointer || !bytes || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  SIM_TRY(refuse_unsafe());
  void* base = map_host(bytes);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  state().add_block({.kind = Block::Kind::host,
                     .base = reinterpret_cast<std::uint64_t>(base),
                     .size = bytes,
                     .device = context->device,
                     .context = context,
                     .flags = flags});
  *pointer = base;
  return CUDA_SUCCESS;
}

CUresult remove(const char* how, void* pointer, Block::Kind kind, CUresult otherwise) {
  Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  auto at = state().blocks.find(base);
  if (at == state().blocks.end() || at->second.kind != kind) return otherwise;
  if (rules().free_host_synchronises && !timeline().idle(*at->second.context)) {
    SIM_TRY(drain(lock, *at->second.context));
    at = state().blocks.find(base);  // the lock may have been let go
    if (at == state().blocks.end() || at->second.kind != kind) return otherwise;
  }
  check_free(how, at->second);
  free_block(at);
  return CUDA_SUCCESS;
}

bool overlaps(std::uint64_t base, std::uint64_t size) {
  if (state().find_block(base)) return true;
  const auto next = state().blocks.lower_bound(base);
  return next != state().blocks.end() && next->first < base + size;
}

CUresult add_registered(void* pointer, std::size_t bytes, unsigned flags) {
  if (!pointer || !bytes || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const auto base = reinterpret_cast<std::uint64_t>(pointer);
  if (overlaps(base, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  state().add_block({.kind = Block::Kind::registered,
                     .base = base,
                     .size = bytes,
                     .device = context->device,
                     .context = context,
                     .flags = flags});
  return CUDA_SUCCESS;
}

}  // namespace

CUresult SIM_ENTRY(cuMemHostAlloc)(void** pp, size_t bytesize, unsigned int Flags) {
  return allocate(pp, bytesize, Flags);
}
CUresult SIM_ENTRY(cuMemAllocHost_v2)(void** pp, size_t bytesize) { return allocate(pp, bytesize, 0); }

CUresult SIM_ENTRY(cuMemFreeHost)(void* p) {
  return p ? remove("cuMemFreeHost", p, Block::Kind::host, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemHostRegister)(void* p, size_t bytesize, unsigned int Flags) {
  return add_registered(p, bytesize, Flags);
}
CUresult SIM_ENTRY(cuMemHostRegister_v2)(void* p, size_t bytesize, unsigned int Flags) {
  return add_registered(p, bytesize, Flags);
}

CUresult SIM_ENTRY(cuMemHostUnregister)(void* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  return remove("cuMemHostUnregister", p, Block::Kind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult SIM_ENTRY(cuMemHostGetDevicePointer_v2)(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  if (!pdptr || Flags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Block* block = state().find_block(reinterpret_cast<std::uint64_t>(p));
  if (!block || (block->kind != Block::Kind::host && block->kind != Block::Kind::registered))
    return CUDA_ERROR_INVALID_VALUE;
  *pdptr = reinterpret_cast<CUdeviceptr>(p);  // unified addresses
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMemHostGetFlags)(unsigned int* pFlags, void* p) {
  if (!pFlags) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Block* block = state().find_block(reinterpret_cast<std::uint64_t>(p));
  if (!block || block->kind != Block::Kind::host) return CUDA_ERROR_INVALID_VALUE;
  *pFlags = block->flags;
  return CUDA_SUCCESS;
}

}  // namespace sim
