// The application's own virtual memory: which physical handles it holds, and where they are mapped.
// Physical memory lives until its handle is released AND its last mapping is gone (cuMemRelease).
//
// Taking a handle or a mapping out happens *before* the driver call that ends it: once the driver has
// returned, another thread may be given the same value. A call that fails puts it back.
//
// Threading: any thread; one lock, never held over a driver call.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/units.hpp"

namespace tidepool {

struct Physical {
  int device = 0;
  Bytes size = 0;
};

class Mappings {
 public:
  using Id = std::uint64_t;
  struct Mapping {
    Address at;
    Bytes size = 0;
    Id id = 0;
  };

  void created(std::uint64_t handle, Physical physical);
  // `handle` is one more reference to the memory mapped at `inside`.
  void retained(std::uint64_t handle, Address inside);
  void mapped(Address at, Bytes size, std::uint64_t handle);

  // Nothing for a handle that is not charged here (imported ones are charged to their maker).
  std::optional<Id> take_handle(std::uint64_t handle);
  std::vector<Mapping> take_mappings(Range range);
  void put_back(std::uint64_t handle, Id id);
  void put_back(const std::vector<Mapping>& mappings);

  // One use ended; the physical memory if it was the last.
  std::optional<Physical> end_use(Id id);

 private:
  struct Memory {
    Physical physical;
    std::size_t uses = 0;  // handles not released plus mappings
  };

  std::mutex lock_;
  Id next_id_ = 1;
  std::unordered_map<Id, Memory> memories_;
  // The driver may give one handle value for several references (cuMemRetainAllocationHandle).
  std::unordered_multimap<std::uint64_t, Id> handles_;
  std::map<std::uint64_t, Mapping> mapped_;
};

}  // namespace tidepool
