// The doctor's findings as a screen for people.
#pragma once

#include <string>

#include "shim/cli/doctor/finding.hpp"

namespace tidepool::cli::doctor {

std::string to_screen(const Findings& findings, bool colour);

// On a terminal, unless NO_COLOR says something.
bool colour_wanted(int descriptor);

}  // namespace tidepool::cli::doctor
