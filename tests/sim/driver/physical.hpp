// Physical memory of cuMemCreate: pages of a device's file or, where it may be exported, a file of its
// own, which is what a POSIX file descriptor of it is.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "context.hpp"

namespace sim {

struct Physical {
  int device = 0;
  int own_file = -1;         // -1: in the device's
  std::uint64_t offset = 0;  // in the file
  std::uint64_t size = 0;
  std::uint64_t references = 1;
  std::uint64_t mappings = 0;
  bool imported = false;  // its owner pays for it
  CUmemAllocationProp props{};
};

Table<Physical, CUmemGenericAllocationHandle>& physical_memory();
// Null if the application holds no reference to it.
Physical* find_referenced(CUmemGenericAllocationHandle handle);
int file_of(const Physical& physical);

}  // namespace sim
