// What a policy holds at one moment, as plain numbers for reports and decisions.
#pragma once

#include "policies/units.hpp"

namespace tidepool {

struct Snapshot {
  Bytes live = 0;      // handed out, as the arena rounded it
  Bytes cached = 0;    // free and usable by some stream or by all
  Bytes in_limbo = 0;  // free, but the device may still use it: waits for a fence
  Bytes reserved = 0;  // physical memory held; live + cached + in_limbo
  Bytes reserved_peak = 0;
  Bytes largest_free = 0;  // largest request that needs neither growth nor a fence
  Bytes releasable = 0;    // what trim(0) would hand back now
  Bytes requested = 0;     // what the program asked for and has, outside memory included
  Bytes requested_peak = 0;
  Bytes grouped = 0;  // the part of it whose requests said so
  Bytes grouped_peak = 0;
  Bytes free_pages = 0;  // what it would once the device has finished with all that was freed
};

}  // namespace tidepool
