// The driver's own blocks that the application holds, or freed and we keep, by their first byte. Those of an
// arena are in its policy.
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
  // What may be kept for an equal request after its free: what cuMemAlloc gave, what cuMemAllocPitch gave (a
  // number above kPlain for each form), or neither.
  static constexpr int kOnce = -1;
  static constexpr int kPlain = 0;

  int device = 0;
  int form = kOnce;
  Bytes requested = 0;
  Kind kind = Kind::synchronous;
  bool lazy = false;          // managed memory of our choosing
  bool kept = false;          // the application has freed it, the driver does not know
  std::uint64_t context = 0;  // CUcontext of a synchronous block
  std::uint64_t stream = 0;   // CUstream of a stream-ordered one
};

class Ledger {
 public:
  // Returns the record that stood there before.
  std::optional<Record> add(Address address, Record record);
  std::optional<Record> find(Address address) const;
  // Not of a block that is kept.
  std::optional<Record> remove(Address address);
  // Others have a claim on the block now: it is used once.
  void share(Address address);
  // The block's record, if it may be kept: from now on it is. Of several frees of one address one succeeds.
  std::optional<Record> keep(Address address);
  // The application has it again, or still.
  void unkeep(Address address);
  // Removes a block that is kept.
  std::optional<Record> remove_kept(Address address);
  bool is_kept(Address address) const;
  // Bytes of the largest block that the application has on the device. O(blocks).
  Bytes largest(int device) const;
  // Removes all synchronous blocks of a context that died, but for those that are kept, and returns them.
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
