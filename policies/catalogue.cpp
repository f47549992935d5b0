// Names to policies.
#include "policies/catalogue.hpp"

#include "policies/on_demand.hpp"
#include "policies/preallocated.hpp"

namespace tidepool {

std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, Backing& backing) {
  if (name == "prealloc") return std::make_unique<Preallocated>(config, backing);
  if (name == "ondemand") return std::make_unique<OnDemand>(config, backing);
  return nullptr;
}

}  // namespace tidepool
