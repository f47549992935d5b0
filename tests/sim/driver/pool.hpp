// A memory pool of the stream-ordered family: chunks of device memory, carved by best fit.
//
// What is freed in the order of a stream is at once there for that stream; for another one only as the
// pool's REUSE attributes say (cuda.h), until the host has seen the free done. Chunks stay with the pool
// until a synchronisation finds more than the release threshold in it, or an allocation would fail.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "device.hpp"
#include "ranges.hpp"
#include "timeline.hpp"

namespace sim {

class Pool {
 public:
  explicit Pool(int ordinal) : device(ordinal) {}

  // For the stream of this queue, or for a graph (null). 0: out of memory. Adds to after what the
  // stream must wait for before it uses the memory.
  std::uint64_t allocate(std::uint64_t bytes, const Lane* stream, Marks* after);
  // The block goes when the mark is done; null: it is nobody's at once.
  void release(std::uint64_t base, std::uint64_t bytes, std::shared_ptr<Mark> mark);
  // Gives free chunks back until no more than keep bytes are reserved.
  void trim(std::uint64_t keep);
  // The host knows of these frees, so every stream may have their memory.
  void settle(const std::function<bool(const Mark&)>& seen);
  bool empty() const { return !live && !waiting; }

  int device;
  bool is_default = false;
  int imported_from = 0;   // pid of its owner; an imported pool makes no memory (cuda.h)
  bool destroyed = false;  // waits for its last block (cuda.h, cuMemPoolDestroy)
  CUmemPoolProps props{};
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0;
  std::uint64_t used = 0, used_high = 0;
  std::uint64_t live = 0;     // blocks handed out
  std::uint64_t waiting = 0;  // frees that are not done
  int reuse_follow = 1, reuse_opportunistic = 1, reuse_internal = 1;
  std::map<int, CUmemAccess_flags> access;  // other devices that may use it

 private:
  struct Freed {
    std::uint64_t base, size;
    std::shared_ptr<Mark> mark;
  };
  bool usable(const Freed& freed, const Lane* stream) const;
  std::uint64_t take_freed(std::uint64_t size, const Lane* stream);
  std::uint64_t take_joined(std::uint64_t size, const Lane* stream);
  void cut(std::uint64_t base, std::uint64_t size);
  bool grow(std::uint64_t bytes);

  std::map<std::uint64_t, std::uint64_t> chunks_;  // base -> size
  Ranges free_;                                    // for every stream
  std::vector<Freed> freed_;                       // for some, the latest last
};

CUresult default_pool(CUmemoryPool* handle, int device);
Pool* find_pool(CUmemoryPool handle);
CUmemoryPool add_pool(std::unique_ptr<Pool> pool);
void destroy_pool(Pool* pool);
void end_pool_if_over(Pool* pool);
// The host has seen this moment of a stream, or all of a context.
void settle_pools(const Mark& seen);
void settle_pools(const Context& seen);
// Gives every pool's surplus back; called by what synchronises.
void trim_pools(int device);
// Frees what pools of the device hold without need; true if that gave memory back.
bool reclaim_pools(int device);

}  // namespace sim
