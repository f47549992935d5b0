// The time of day as reports write it.
#pragma once

#include <string>

namespace tidepool {

// Now, in UTC, as ISO 8601 to the second: 2026-11-30T09:58:22Z.
std::string utc_now();

}  // namespace tidepool
