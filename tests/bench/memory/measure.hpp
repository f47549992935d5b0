// What one policy holds, maps and costs for one recorded program, on a device that counts.
//
// The device is done with a block as soon as it is freed: so "asked" is exactly what is live, the
// smallest it can be. A fence that the policy wants closes at once and is counted.
#pragma once

#include <string>
#include <vector>

#include "tests/property/replay.hpp"

namespace tidepool::bench {

inline constexpr Bytes kDevice = 80 * kGiB;
inline constexpr Bytes kShare = kDevice / 4 * 3;  // of a preallocated policy

// The most that was live and held since the sample before: so no peak is lost between two.
struct Sample {
  std::size_t event = 0;
  Bytes live = 0;
  Bytes held = 0;
};

struct Measured {
  Bytes asked_peak = 0;
  Bytes held_peak = 0;
  Bytes rounding = 0;     // rounded less asked, at the moment of asked_peak
  Bytes held_at_end = 0;  // after every block is freed and the policy told to trim
  double operations = 0;  // map operations per 1,000 events of the second half
  int fences = 0;
  double nanoseconds = 0;  // of the host, an event; the median of several passes
  std::vector<Sample> samples;
};

// Requires: every block of `events` fits the device.
Measured measure(const std::string& policy, const std::vector<testing::Event>& events);

}  // namespace tidepool::bench
