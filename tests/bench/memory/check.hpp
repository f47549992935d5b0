// One figure beside the most it may be. What a row may be is decided here and nowhere else; a figure
// that cannot be reached stays failing.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/memory/measure.hpp"

namespace tidepool::bench {

struct Check {
  std::string what;
  double value = 0;
  double limit = 0;
  bool ok() const { return value <= limit; }
};

// `trace` is a file's name. None for what is only reported.
std::vector<Check> checks_of(const std::string& trace, const std::string& policy, const Measured& measured);

// "ok", "reported", or FAILS with every figure that is too large.
std::string verdict_of(const std::vector<Check>& checks);

}  // namespace tidepool::bench
