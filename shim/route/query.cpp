// Questions about memory, answered as if the arena were the driver: its blocks look like blocks of
// cuMemAlloc, its holes like addresses of nobody.
#include <algorithm>

#include "shim/base/log.hpp"
#include "shim/route/router.hpp"

namespace tidepool {
namespace {

// Never an address of the device.
constexpr CUdeviceptr kNobody = 1;

// What the attribute is for an arena's block, where the driver would speak of the mapping below it.
// False: the driver's answer stands.
bool answer(CUpointer_attribute attribute, const Block& block, void* data) {
  const Owner owner = Owner::of(block.label);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      *static_cast<CUdeviceptr*>(data) = block.address.value;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *static_cast<std::size_t*>(data) = block.label.requested;
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      *static_cast<unsigned long long*>(data) = block.label.number;
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *static_cast<unsigned long long*>(data) = 0; return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(data) = owner.pool == nullptr ? nullptr : owner.pool->handle.load();
      return true;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (owner.kind != Kind::synchronous) return false;
      *static_cast<CUcontext*>(data) = reinterpret_cast<CUcontext>(owner.context);
      return true;
    default: return false;
  }
}

}  // namespace

std::optional<Block> Router::find(Address inside) {
  Device* device = owner_of(inside);
  if (device == nullptr || !device->has_policy()) return std::nullopt;
  const std::optional<Block> block = device->policy().find(inside);
  // The rest of its last granule is nobody's.
  return block && inside - block->address < block->label.requested ? block : std::nullopt;
}

CUresult Router::memory_info(std::size_t* free, const Pass& pass) {
  back_reservations();
  const CUresult result = pass();
  if (result != CUDA_SUCCESS || free == nullptr || devices().empty()) return result;
  Device* device = current_device();
  if (device == nullptr || !settings_.serves()) return result;
  *free = could_get(*device, *free);
  return result;
}

// What the arena and idle handles hold counts, a limit caps.
Bytes Router::could_get(Device& device, Bytes free_on_device) {
  const Bytes own_free =
      device.snapshot().free_pages + device.idle_handles.bytes() + device.native_blocks.bytes();
  const Bytes limit = device.account.limit();
  const Bytes used = device.account.reserved.now();
  Bytes sum = free_on_device + own_free;
  if (limit != kUnlimited) sum = std::min(sum, (limit > used ? limit - used : 0) + own_free);
  return std::min(sum, device.total);
}

CUresult Router::address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer, const Pass& pass) {
  if (owner_of({pointer}) == nullptr) return is_kept(pointer) ? CUDA_ERROR_NOT_FOUND : pass();
  const std::optional<Block> found = find({pointer});
  if (!found) return CUDA_ERROR_NOT_FOUND;
  // In a host callback the driver refuses every call.
  CUcontext current = nullptr;
  if (const CUresult refused = driver.cuCtxGetCurrent(&current); refused != CUDA_SUCCESS) return refused;
  if (base != nullptr) *base = found->address.value;
  if (size != nullptr) *size = found->label.requested;
  return CUDA_SUCCESS;
}

CUresult Router::pointer_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer,
                                   const Pass& pass) {
  if (owner_of({pointer}) == nullptr) {
    if (is_kept(pointer)) return CUDA_ERROR_INVALID_VALUE;
    // Tokens lead other devices to the memory.
    return attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS ? share_block(pointer, pass) : pass();
  }
  const std::optional<Block> found = find({pointer});
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  if (data != nullptr && answer(attribute, *found, data)) return CUDA_SUCCESS;
  return pass();
}

CUresult Router::pointer_attributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                    CUdeviceptr pointer, const Pass& pass) {
  if (attributes == nullptr || data == nullptr) return pass();
  if (owner_of({pointer}) == nullptr) {
    if (is_kept(pointer)) return driver.cuPointerGetAttributes(count, attributes, data, kNobody);
    const bool tokens =
        std::find(attributes, attributes + count, CU_POINTER_ATTRIBUTE_P2P_TOKENS) != attributes + count;
    return tokens ? share_block(pointer, pass) : pass();
  }
  const std::optional<Block> found = find({pointer});
  // A hole answers as an address of nobody does.
  if (!found) return driver.cuPointerGetAttributes(count, attributes, data, kNobody);
  const CUresult result = pass();
  if (result != CUDA_SUCCESS) return result;
  for (unsigned i = 0; i < count; ++i)
    if (data[i] != nullptr) answer(attributes[i], *found, data[i]);
  return result;
}

// Mapped pages cannot be made to wait for copies (openucx/ucx#9895), so libraries that ask for it fail as the
// driver says; what helps them is named.
CUresult Router::set_pointer_attribute(CUpointer_attribute attribute, CUdeviceptr pointer, const Pass& pass) {
  if (owner_of({pointer}) == nullptr) return share_block(pointer, pass);
  const std::optional<Block> found = find({pointer});
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = pass();
  if (result != CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
      Owner::of(found->label).kind == Kind::synchronous)
    log::warn(
        "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS cannot be set on memory of the arena; set "
        "TIDEPOOL_BACKING=native");
  return result;
}

CUresult Router::export_ipc(CUdeviceptr pointer, const Pass& pass) {
  if (owner_of({pointer}) == nullptr) return share_block(pointer, pass);
  const CUresult result = pass();
  if (result != CUDA_SUCCESS && find({pointer}))
    log::warn(
        "cuIpcGetMemHandle: memory of the arena cannot be shared with another process yet; "
        "set TIDEPOOL_BACKING=native");
  return result;
}

}  // namespace tidepool
