// Checked copies and fills between device and host memory.
//
// Every range is checked before the work is queued, so that a call with a wrong pointer fails
// instead of the process, and again when its turn has come. Host pointers that the driver does not
// know are taken as they come: what it must not keep on using them after the call, copy.cpp sees to.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "state.hpp"

namespace sim {

// Whether all of [base, base + bytes) may be used by the device.
bool device_range(std::uint64_t base, std::uint64_t bytes);

// A rectangle of bytes: one plane of rows, or several.
struct Box {
  CUmemorytype type;
  std::uint64_t base;  // of the first byte copied
  std::size_t pitch;   // from row to row
  std::size_t slice;   // from plane to plane
};

// Where memory lies, as far as asynchronous copies are concerned.
enum class MemoryKind { device, pinned, pageable };

struct Copy {
  Box to, from;
  std::size_t width = 0, height = 0, depth = 0;
  MemoryKind to_kind = MemoryKind::device, from_kind = MemoryKind::device;

  bool empty() const { return !width || !height || !depth; }
  std::size_t bytes() const { return width * height * depth; }
  // The copy as an operation on a stream.
  Work work() const;
  // Reads the source now, into memory that lasts as long as the work.
  Work staged_work() const;
};

// Fills in the copy, or says why it cannot be done.
CUresult plan_copy(const Box& to, const Box& from, std::size_t width, std::size_t height, std::size_t depth,
                   Copy* copy);
CUresult plan_copy(const CUDA_MEMCPY3D& parameters, Copy* copy);
CUresult plan_fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                   std::size_t height, Work* work);

// Whether a synchronous fill or copy within the device waits all the same: pinned host and managed
// memory, and what CU_POINTER_ATTRIBUTE_SYNC_MEMOPS asks it for.
bool waits_for_memory(CUdeviceptr address);

}  // namespace sim
