// Legacy IPC: memory of cuMemAlloc that other processes open by a handle of 64 bytes.
#include <cstring>

#include "entries.hpp"
#include "sharing.hpp"

namespace sim {
namespace {

struct Opened {
  Place place;
  Context* context;
  std::uint64_t references;
};

// By their base here.
std::map<std::uint64_t, Opened>& opened() {
  static auto* const table = new std::map<std::uint64_t, Opened>;
  return *table;
}

bool same(const Place& a, const Place& b) {
  return a.pid == b.pid && a.started == b.started && a.block == b.block;
}

// cuda.h: opened again by the same context, it is the same pointer.
bool open_again(const Place& place, const Context* context, CUdeviceptr* pointer) {
  for (auto& [base, entry] : opened()) {
    if (entry.context != context || !same(entry.place, place) || !state().find_block(base)) continue;
    ++entry.references;
    *pointer = base;
    return true;
  }
  return false;
}

}  // namespace

CUresult SIM_ENTRY(cuIpcGetMemHandle)(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  if (!pHandle) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const auto at = state().blocks.find(dptr);  // cuda.h: a pointer to the base
  if (at == state().blocks.end() || at->second.kind != Block::Kind::device || at->second.low)
    return CUDA_ERROR_INVALID_VALUE;
  const Place place = place_of(at->second);
  *pHandle = {};
  std::memcpy(pHandle->reserved, &place, sizeof place);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuIpcOpenMemHandle_v2)(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  // cuda.h: Flags "must be specified as" the one there is.
  if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  Place place{};
  std::memcpy(&place, handle.reserved, sizeof place);
  if (owned_here(place)) return CUDA_ERROR_INVALID_CONTEXT;  // measured by others: not in the owner itself
  if (open_again(place, context, pdptr)) return CUDA_SUCCESS;
  std::uint64_t base = 0;
  SIM_TRY(map_place(place, &base));
  const int device = device_of(place);
  state().add_block({.kind = Block::Kind::imported,
                     .base = base,
                     .size = place.size,
                     .device = device < 0 ? context->device : device,
                     .context = context});
  opened()[base] = {place, context, 1};
  *pdptr = base;
  return CUDA_SUCCESS;
}
CUresult SIM_ENTRY(cuIpcOpenMemHandle)(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return entry::cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
}

CUresult SIM_ENTRY(cuIpcCloseMemHandle)(CUdeviceptr dptr) {
  const Lock lock;
  Context* context = nullptr;
  SIM_TRY(current_context(&context));
  const auto block = state().blocks.find(dptr);
  const auto found = opened().find(dptr);
  if (block == state().blocks.end() || found == opened().end()) return CUDA_ERROR_INVALID_VALUE;
  if (--found->second.references) return CUDA_SUCCESS;
  opened().erase(found);
  check_free("cuIpcCloseMemHandle", block->second);
  free_block(block);
  return CUDA_SUCCESS;
}

}  // namespace sim
