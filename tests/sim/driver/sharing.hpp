// Memory that another process names: where a block lies, in a form that fits the 64 bytes of an IPC
// handle, and how to reach it from here.
//
// A block lies in the memory file of its process's device. The other process opens that file by the
// owner's /proc entry, so the owner must live and belong to the same user.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "state.hpp"

namespace sim {

struct Place {
  std::uint64_t magic;
  std::uint64_t started;  // of the owner: its pid may be used again
  std::int32_t pid;
  std::int32_t file;
  std::uint64_t offset;
  std::uint64_t size;
  std::uint64_t block;  // unique within the owner
  std::int32_t device;  // partition of the machine
};
static_assert(sizeof(Place) <= CU_IPC_HANDLE_SIZE && sizeof(Place) <= sizeof(CUmemPoolPtrExportData));

// For blocks of the device's heap: the cuMemAlloc family and stream-ordered ones.
Place place_of(const Block& block);
bool owned_here(const Place& place);

// Maps it. INVALID_HANDLE: no handle of this driver's. MAP_FAILED: its owner is gone.
CUresult map_place(const Place& place, std::uint64_t* base);
void unmap_place(std::uint64_t base, std::uint64_t size);

// The device of this process that is the place's partition, or -1.
int device_of(const Place& place);

}  // namespace sim
