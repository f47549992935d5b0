// Which frameworks the processes of a command load, watched in /proc while they run.
#pragma once

#include <set>

#include "shim/cli/doctor/observation.hpp"

namespace tidepool::cli::doctor {

// Adds what `pid` and its descendants map now. A process of other rights shows nothing.
void add_loaded(int pid, std::set<Framework>& loaded);

}  // namespace tidepool::cli::doctor
