// The time of day as reports write it.
#include "shim/base/clock.hpp"

#include <array>
#include <ctime>

namespace tidepool {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm fields{};
  gmtime_r(&now, &fields);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &fields);
  return text.data();
}

}  // namespace tidepool
