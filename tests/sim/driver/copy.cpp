// Checked copies and fills; see copy.hpp.
#include "copy.hpp"

#include <cstring>

#include "detector.hpp"

namespace sim {
namespace {

// Guesses of a usual order of magnitude: only the order in which work ends depends on them.
constexpr std::int64_t copy_latency = 2000;                 // ns
constexpr std::size_t bus_speed = 25, memory_speed = 1000;  // bytes in a ns

std::uint64_t extent(std::size_t pitch, std::size_t slice, std::size_t width, std::size_t height,
                     std::size_t depth) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

// Memory of which only a part is registered is pageable.
MemoryKind kind_of(std::uint64_t address, std::uint64_t bytes) {
  const Block* block = state().find_block(address);
  if (!block) return MemoryKind::pageable;
  if (block->kind != Block::Kind::host && block->kind != Block::Kind::registered) return MemoryKind::device;
  return address + bytes <= block->base + block->size ? MemoryKind::pinned : MemoryKind::pageable;
}

CUresult check(const Box& box, std::size_t width, std::size_t height, std::size_t depth) {
  const std::uint64_t bytes = extent(box.pitch, box.slice, width, height, depth);
  switch (box.type) {
    case CU_MEMORYTYPE_DEVICE: return device_range(box.base, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_HOST: return box.base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEMORYTYPE_UNIFIED:
      if (!box.base) return CUDA_ERROR_INVALID_VALUE;
      return kind_of(box.base, bytes) != MemoryKind::device || device_range(box.base, bytes)
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_NOT_SUPPORTED;  // arrays are not simulated
  }
}

MemoryKind kind_of(const Box& box, const Copy& copy) {
  if (box.type == CU_MEMORYTYPE_DEVICE) return MemoryKind::device;
  return kind_of(box.base, extent(box.pitch, box.slice, copy.width, copy.height, copy.depth));
}

void copy_bytes(const Copy& copy) {
  for (std::size_t z = 0; z < copy.depth; ++z)
    for (std::size_t y = 0; y < copy.height; ++y)
      std::memmove(reinterpret_cast<void*>(copy.to.base + z * copy.to.slice + y * copy.to.pitch),
                   reinterpret_cast<const void*>(copy.from.base + z * copy.from.slice + y * copy.from.pitch),
                   copy.width);
}

// What is checked when the turn comes: pageable memory is not known to the driver.
void add_touch(Work& work, const Copy& copy, const Box& box, MemoryKind kind, bool writes) {
  if (kind == MemoryKind::pageable) return;
  work.touches.push_back(
      {box.base, extent(box.pitch, box.slice, copy.width, copy.height, copy.depth), writes});
}

Work copy_work(const Copy& copy, std::shared_ptr<const void> staging) {
  Work work;
  work.kind = Work::Kind::copy;
  work.name = "a copy";
  const bool inside = copy.to_kind == MemoryKind::device && copy.from_kind == MemoryKind::device;
  work.cost = copy_latency + static_cast<std::int64_t>(copy.bytes() / (inside ? memory_speed : bus_speed));
  add_touch(work, copy, copy.to, copy.to_kind, true);
  add_touch(work, copy, copy.from, copy.from_kind, false);
  work.effect = [copy, staging, touches = work.touches](Context& context) {
    if (check_touches(context, "a copy", touches, false)) copy_bytes(copy);
  };
  return work;
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

Work Copy::work() const { return copy_work(*this, nullptr); }

Work Copy::staged_work() const {
  const auto bytes_kept = std::make_shared<std::vector<unsigned char>>(bytes());
  Copy in = *this;
  in.to = {CU_MEMORYTYPE_HOST, reinterpret_cast<std::uint64_t>(bytes_kept->data()), width, width * height};
  copy_bytes(in);
  Copy out = *this;
  out.from = in.to;
  return copy_work(out, bytes_kept);
}

CUresult plan_copy(const Box& to, const Box& from, std::size_t width, std::size_t height, std::size_t depth,
                   Copy* copy) {
  *copy = {to, from, width, height, depth, MemoryKind::device, MemoryKind::device};
  if (copy->empty()) return CUDA_SUCCESS;
  SIM_TRY(check(to, width, height, depth));
  SIM_TRY(check(from, width, height, depth));
  copy->to_kind = kind_of(to, *copy);
  copy->from_kind = kind_of(from, *copy);
  return CUDA_SUCCESS;
}

CUresult plan_copy(const CUDA_MEMCPY3D& request, Copy* copy) {
  const auto box = [](CUmemorytype type, CUdeviceptr device, const void* host, std::size_t pitch,
                      std::size_t height, std::size_t x, std::size_t y, std::size_t z) {
    const std::uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
    return Box{type, base + z * pitch * height + y * pitch + x, pitch, pitch * height};
  };
  return plan_copy(box(request.dstMemoryType, request.dstDevice, request.dstHost, request.dstPitch,
                       request.dstHeight, request.dstXInBytes, request.dstY, request.dstZ),
                   box(request.srcMemoryType, request.srcDevice, request.srcHost, request.srcPitch,
                       request.srcHeight, request.srcXInBytes, request.srcY, request.srcZ),
                   request.WidthInBytes, request.Height, request.Depth, copy);
}

CUresult plan_fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                   std::size_t height, Work* work) {
  if (!width || !height) return CUDA_SUCCESS;
  if (to % element || (height > 1 && pitch % element)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t bytes = extent(pitch, 0, width * element, height, 1);
  if (!device_range(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  work->kind = Work::Kind::fill;
  work->name = "a fill";
  work->cost = copy_latency + static_cast<std::int64_t>(bytes / memory_speed);
  work->touches = {{to, bytes, true}};
  work->effect = [=, touches = work->touches](Context& context) {
    if (!check_touches(context, "a fill", touches, false)) return;
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

bool waits_for_memory(CUdeviceptr address) {
  const Block* block = state().find_block(address);
  return block && (block->kind == Block::Kind::host || block->kind == Block::Kind::registered ||
                   block->kind == Block::Kind::managed || block->sync_memops);
}

}  // namespace sim
