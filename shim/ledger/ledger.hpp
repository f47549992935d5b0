// The driver's own blocks that the application holds, by their first byte. Those of an arena are in its
// policy.
//
// Threading: any thread. Locks are held for a look-up only, never over a driver call.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/units.hpp"

namespace tidepool {

enum class Kind {
  synchronous,     // cuMemAlloc: dies with its context
  stream_ordered,  // cuMemAllocAsync: outlives it
};

struct Record {
  int device = 0;
  Bytes requested = 0;
  Kind kind = Kind::synchronous;
  bool lazy = false;          // managed memory of our choosing
  std::uint64_t context = 0;  // CUcontext of a synchronous block
};

class Ledger {
 public:
  // Returns the record that stood there before.
  std::optional<Record> add(Address address, Record record);
  std::optional<Record> find(Address address) const;
  std::optional<Record> remove(Address address);
  // Removes all synchronous blocks of a context that died, and returns them.
  std::vector<std::pair<Address, Record>> remove_context(std::uint64_t context);

 private:
  struct Shard {
    mutable std::mutex lock;
    std::unordered_map<std::uint64_t, Record> records;
  };
  static constexpr std::size_t kShards = 64;
  const Shard& shard(Address address) const { return shards_[(address.value >> 9) % kShards]; }
  Shard& shard(Address address) { return shards_[(address.value >> 9) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace tidepool
