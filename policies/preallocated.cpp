// The share is taken here; everything else is on_demand.
#include "policies/preallocated.hpp"

namespace tidepool {

Result<Block> Preallocated::allocate(const Request& request) {
  if (request.size >= kMiB && !taken_.load(std::memory_order_relaxed) && !taken_.exchange(true))
    take_share(initial_);
  return OnDemand::allocate(request);
}

}  // namespace tidepool
