// Who owns an address: every block of device memory that the application holds, by its first byte.
//
// Threading: any thread. Locks are held for a look-up only, never over a driver call.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/units.hpp"

namespace tidepool {

enum class Origin {
  arena,   // a block of the policy
  driver,  // the driver's own block, passed through
};

enum class Kind {
  synchronous,     // cuMemAlloc: dies with its context
  stream_ordered,  // cuMemAllocAsync: outlives it
};

struct Record {
  int device = 0;
  Bytes requested = 0;
  Origin origin = Origin::driver;
  Kind kind = Kind::synchronous;
  std::uint64_t context = 0;  // CUcontext of a synchronous block
  std::uint64_t pool = 0;     // CUmemoryPool of a stream-ordered block
  bool of_share = false;      // taken of the share of JAX's pool
  std::uint64_t number = 0;   // unique for the life of the process, as CU_POINTER_ATTRIBUTE_BUFFER_ID is
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
  std::atomic<std::uint64_t> next_number_{1};
};

}  // namespace tidepool
