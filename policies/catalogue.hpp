// The policies by name: the only place that knows them all.
#pragma once

#include <memory>
#include <string_view>

#include "policies/policy.hpp"

namespace tidepool {

// `name` is "prealloc" or "ondemand"; null for another. `backing` must outlive the policy.
std::unique_ptr<Policy> make_policy(std::string_view name, const PolicyConfig& config, Backing& backing);

}  // namespace tidepool
