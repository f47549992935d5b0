// Checked copies and fills between device and host memory.
//
// Every range is checked before the work is queued, so that a call with a wrong pointer fails
// instead of the process. Host pointers that the driver does not know are taken as they come.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>

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

// Fills work with the copy, or says why it cannot be done.
CUresult plan_copy(const Box& to, const Box& from, std::size_t width, std::size_t height, std::size_t depth,
                   std::function<void()>* work);
CUresult plan_copy(const CUDA_MEMCPY3D& copy, std::function<void()>* work);
CUresult plan_fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                   std::size_t height, std::function<void()>* work);

}  // namespace sim
