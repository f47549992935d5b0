// A memory pool of the stream-ordered family: chunks of device memory, carved by best fit.
//
// Freed memory stays with its pool until a synchronisation finds more than the release threshold
// in it (cuda.h, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), or until an allocation would fail.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>

#include "device.hpp"
#include "ranges.hpp"

namespace sim {

struct Pool {
  explicit Pool(int ordinal) : device(ordinal) {}

  std::uint64_t allocate(std::uint64_t bytes);  // 0: out of memory
  void release(std::uint64_t base, std::uint64_t bytes);
  // Gives free chunks back until no more than keep bytes are reserved.
  void trim(std::uint64_t keep);

  int device;
  bool is_default = false;
  int imported_from = 0;  // pid of its owner; an imported pool makes no memory (cuda.h)
  bool destroyed = false;  // waits for its last block (cuda.h, cuMemPoolDestroy)
  CUmemPoolProps props{};
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t used = 0, used_high = 0;
  std::uint64_t live = 0;  // blocks handed out
  int reuse_follow = 1, reuse_opportunistic = 1, reuse_internal = 1;
  std::map<int, CUmemAccess_flags> access;  // other devices that may use it

 private:
  bool grow(std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> chunks_;  // base -> size
  Ranges free_;
};

CUresult default_pool(CUmemoryPool* handle, int device);
Pool* find_pool(CUmemoryPool handle);
CUmemoryPool add_pool(std::unique_ptr<Pool> pool);
void destroy_pool(Pool* pool);
// Gives every pool's surplus back; called by what synchronises.
void trim_pools(int device);
// Frees what pools of the device hold without need; true if that gave memory back.
bool reclaim_pools(int device);
void release_to_pool(Pool* pool, std::uint64_t base, std::uint64_t size);

}  // namespace sim
