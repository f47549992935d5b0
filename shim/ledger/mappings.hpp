// The application's own virtual memory: which physical handles it holds, and where they are mapped.
// Physical memory lives until its handle is released AND its last mapping is gone (cuMemRelease).
//
// Taking a handle or a mapping out happens *before* the driver call that ends it: once the driver has
// returned, another thread may be given the same value. A call that fails puts it back.
//
// Memory that nobody else can have a claim on may be used again: it is of a kind, has been mapped, one whole
// mapping at a time, and was shown to nobody. The driver is then not told of its release, and the reference
// is ours (`withheld`) until the last mapping is gone.
//
// Threading: any thread; one lock, never held over a driver call.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "policies/units.hpp"

namespace tidepool {

struct Physical {
  static constexpr int kOnce = -1;
  int device = 0;
  Bytes size = 0;
  int kind = kOnce;  // what it has in common with memory that may stand for it; kOnce: none may
};

class Mappings {
 public:
  using Id = std::uint64_t;
  struct Mapping {
    Address at;
    Bytes size = 0;
    Id id = 0;
  };
  struct Ended {
    Physical physical;
    std::optional<std::uint64_t> withheld;
  };

  Id created(std::uint64_t handle, Physical physical);
  // `handle` is one more reference to the memory mapped at `inside`.
  void retained(std::uint64_t handle, Address inside);
  void mapped(Address at, Bytes size, std::uint64_t handle);

  // Others are about to have a claim on it: from now on it is used once. References that were withheld are
  // given back, for the caller to release.
  void share(std::uint64_t handle);
  std::vector<std::uint64_t> share(Range range);

  // Nothing for a handle that is not charged here (imported ones are charged to their maker).
  std::optional<Id> take_handle(std::uint64_t handle);
  std::vector<Mapping> take_mappings(Range range);
  void put_back(std::uint64_t handle, Id id);
  void put_back(const std::vector<Mapping>& mappings);

  // Of a handle that was taken: whether its release stays between us.
  bool withhold(std::uint64_t handle, Id id);
  // Is it a handle that the application has released, and the driver has not?
  bool is_withheld(std::uint64_t handle) const;

  // Bytes of the largest piece of physical memory that the application has on the device. O(pieces).
  Bytes largest(int device) const;

  // One use ended; the physical memory if it was the last.
  std::optional<Ended> end_use(Id id);

 private:
  struct Memory {
    Physical physical;
    std::size_t uses = 0;  // handles not released plus mappings
    std::size_t mappings = 0;
    bool was_mapped = false;
    std::optional<std::uint64_t> withheld;
  };

  mutable std::mutex lock_;
  Id next_id_ = 1;
  std::unordered_map<Id, Memory> memories_;
  // The driver may give one handle value for several references (cuMemRetainAllocationHandle).
  std::unordered_multimap<std::uint64_t, Id> handles_;
  std::map<std::uint64_t, Mapping> mapped_;
  std::unordered_set<std::uint64_t> withheld_;
};

}  // namespace tidepool
