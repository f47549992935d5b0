// The command line of `tidepool`: what is understood, and the help.
#pragma once

#include <string>
#include <vector>

namespace tidepool::cli {

// Runs the command that the arguments name (without the program's own name); the exit code.
int run_command_line(std::vector<std::string> arguments);

}  // namespace tidepool::cli
