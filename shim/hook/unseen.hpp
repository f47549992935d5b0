// What of this process's driver calls the shim does not see, in words, for the report.
#pragma once

#include <string>
#include <vector>

namespace tidepool {

// A libcuda is mapped, in any namespace, that was never adopted or not redirected: calls may pass us by.
bool has_unseen_driver();

// A line each: drivers never adopted, drivers that are counted only, interposers that we keep from their
// work. The paths are as the loader has them.
std::vector<std::string> describe_uncovered();

}  // namespace tidepool
