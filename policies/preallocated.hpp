// The policy that takes a fixed share at once, as frameworks' own pools do; beyond it, it grows like
// on_demand, which it is in everything else. trim() may go below the share: pressure is the caller's.
#pragma once

#include "policies/on_demand.hpp"

namespace tidepool {

class Preallocated final : public OnDemand {
 public:
  Preallocated(const PolicyConfig& config, Backing& backing)
      : OnDemand(config, backing), initial_(config.initial) {}

  // The first request of 1 MiB or more takes the share; what the backing refuses of it is no error.
  Result<Block> allocate(const Request& request) override;

 private:
  const Bytes initial_;
  std::atomic<bool> taken_{false};
};

}  // namespace tidepool
