// Plays a recorded trace through a policy: the memory it needs, the fences it asks for, and the
// addresses it gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/policy.hpp"
#include "tests/unit/policies/checked_backing.hpp"

namespace tidepool::testing {

struct Event {
  bool allocates;
  std::uint64_t id;
  Bytes size;
  StreamKey stream;
};

struct Replayed {
  Bytes asked_peak = 0;  // bytes the program asked for at once, not rounded
  Bytes reserved_peak = 0;
  int fences = 0;
  int operations = 0;              // pages created, moved and released
  int late_operations = 0;         // of these in the second half of the events, when a program repeats itself
  std::vector<Address> addresses;  // one per allocation, in order
};

// `name` is a file of tests/property/traces, or the full path of another. Throws when it cannot be read.
std::vector<Event> read_trace(const std::string& name);

// A fence closes at once. Throws BrokenRule when an allocation fails.
Replayed replay(const std::vector<Event>& events, Policy& policy, const CheckedBacking& backing);

}  // namespace tidepool::testing
