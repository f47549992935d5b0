// The share is taken here; everything else is on_demand.
#include "policies/preallocated.hpp"

#include <algorithm>

namespace tidepool {

Result<Block> Preallocated::allocate(const Request& request) {
  if (!taken_ && request.size >= kMiB) take_share();
  return OnDemand::allocate(request);
}

// In units, because a commit can only be released whole; smaller where the backing refuses, because
// the last gap should not cost the rest.
void Preallocated::take_share() {
  taken_ = true;
  for (Bytes unit = kGiB; unit >= kPage; unit /= 2) {
    while (arena().reserved() < initial_) {
      const Bytes lacking = (initial_ - arena().reserved()) & ~(kPage - 1);
      if (lacking == 0 || !arena().commit(std::min(unit, lacking))) break;
    }
  }
}

}  // namespace tidepool
