// Why memory could not be had, decided from numbers. "Unknown" is an answer; a wrong one is not.
#pragma once

#include "shim/report/failure.hpp"

namespace tidepool::report {

enum class Cause {
  not_memory,       // the driver's error speaks of something else
  host_memory,      // host or pinned memory: the GPU is not to blame
  context,          // the context of a process has no room
  own_limit,        // TIDEPOOL_LIMIT
  framework_share,  // the part of the device at which the framework's own pool stops
  capacity,         // more than the device has
  own_use,          // this process itself has filled it
  other_processes,  // it would fit if others did not hold what they hold
  own_pool,         // a framework's pool has left nothing for the driver and its libraries
  fragmentation,    // there is enough, but not in one piece
  unknown,
};

// As reports name it.
const char* cause_name(Cause cause);

Cause find_cause(const Failure& failure);

}  // namespace tidepool::report
