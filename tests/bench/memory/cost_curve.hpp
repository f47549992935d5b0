// What an operation costs the host as blocks become more, and how much host memory each takes.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/memory/check.hpp"

namespace tidepool::bench {

struct CostPoint {
  std::size_t live = 0;        // blocks, all the time
  double nanoseconds = 0;      // an operation: a free of any block, or an allocation of any size
  std::size_t operations = 0;  // that were timed
  double host_bytes = 0;       // a live block: what malloc has given out
  double host_resident = 0;    // a live block: what became resident, malloc's or not
};

// Random sizes of 512 B to 8 MiB, all doublings as often, one stream, on a device large enough. Each
// number of blocks in a process of its own: memory that another had freed would hide what is taken.
std::vector<CostPoint> cost_curve(const std::string& policy);

std::vector<Check> checks_of(const std::vector<CostPoint>& curve);

}  // namespace tidepool::bench
