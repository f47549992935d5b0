// What `run` and `doctor` share: the settings that a command will read, and the environment that puts the
// shim in front of it.
#pragma once

#include <string>

#include "shim/base/settings.hpp"
#include "shim/cli/child.hpp"

namespace tidepool::cli {

// Tells the shim of the folder where processes of a command leave their reports.
inline constexpr const char* kRunVariable = "TIDEPOOL_RUN";

// As a command reads them that is started with `given` added to this environment.
Settings settings_of_command(const Variables& given);

// Names the library first in LD_PRELOAD or LD_AUDIT, before what is inherited.
void put_in_front(const char* variable, const std::string& path, Variables& environment);

}  // namespace tidepool::cli
