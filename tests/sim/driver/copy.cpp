// Checked copies and fills; see copy.hpp.
#include "copy.hpp"

#include <cstring>

namespace sim {
namespace {

std::uint64_t extent(std::size_t pitch, std::size_t slice, std::size_t width, std::size_t height,
                     std::size_t depth) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

CUresult check(const Box& box, std::size_t width, std::size_t height, std::size_t depth) {
  const std::uint64_t bytes = extent(box.pitch, box.slice, width, height, depth);
  switch (box.type) {
    case CU_MEMORYTYPE_DEVICE: return device_range(box.base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_HOST: return box.base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_UNIFIED: {
      const Block* block = state().find_block(box.base);
      const bool host = !block || block->kind == Block::Kind::host || block->kind == Block::Kind::registered;
      if (!box.base) return CUDA_ERROR_INVALID_VALUE;
      return host || device_range(box.base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default: return CUDA_ERROR_NOT_SUPPORTED;  // arrays are not simulated
  }
}

}  // namespace

bool device_range(std::uint64_t base, std::uint64_t bytes) {
  while (true) {
    const Block* block = state().find_block(base);
    if (!block || !block->accessible) return false;
    const std::uint64_t rest = block->size - (base - block->base);
    if (bytes <= rest) return true;
    if (block->kind != Block::Kind::mapped) return false;  // only mappings can lie side by side
    base += rest;
    bytes -= rest;
  }
}

CUresult plan_copy(const Box& to, const Box& from, std::size_t width, std::size_t height, std::size_t depth,
                   std::function<void()>* work) {
  if (!width || !height || !depth) return CUDA_SUCCESS;
  SIM_TRY(check(to, width, height, depth));
  SIM_TRY(check(from, width, height, depth));
  *work = [=] {
    for (std::size_t z = 0; z < depth; ++z)
      for (std::size_t y = 0; y < height; ++y)
        std::memmove(reinterpret_cast<void*>(to.base + z * to.slice + y * to.pitch),
                     reinterpret_cast<const void*>(from.base + z * from.slice + y * from.pitch), width);
  };
  return CUDA_SUCCESS;
}

CUresult plan_copy(const CUDA_MEMCPY3D& copy, std::function<void()>* work) {
  const auto box = [](CUmemorytype type, CUdeviceptr device, const void* host, std::size_t pitch,
                      std::size_t height, std::size_t x, std::size_t y, std::size_t z) {
    const std::uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
    return Box{type, base + z * pitch * height + y * pitch + x, pitch, pitch * height};
  };
  return plan_copy(box(copy.dstMemoryType, copy.dstDevice, copy.dstHost, copy.dstPitch, copy.dstHeight,
                       copy.dstXInBytes, copy.dstY, copy.dstZ),
                   box(copy.srcMemoryType, copy.srcDevice, copy.srcHost, copy.srcPitch, copy.srcHeight,
                       copy.srcXInBytes, copy.srcY, copy.srcZ),
                   copy.WidthInBytes, copy.Height, copy.Depth, work);
}

CUresult plan_fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                   std::size_t height, std::function<void()>* work) {
  if (!width || !height) return CUDA_SUCCESS;
  if (to % element || (height > 1 && pitch % element)) return CUDA_ERROR_INVALID_VALUE;
  if (!device_range(to, extent(pitch, 0, width * element, height, 1))) return CUDA_ERROR_INVALID_VALUE;
  *work = [=] {
    for (std::size_t y = 0; y < height; ++y) {
      auto* row = reinterpret_cast<unsigned char*>(to + y * pitch);
      if (element == 1) {
        std::memset(row, static_cast<int>(value), width);
      } else {
        for (std::size_t x = 0; x < width; ++x) std::memcpy(row + x * element, &value, element);
      }
    }
  };
  return CUDA_SUCCESS;
}

}  // namespace sim
