// What a command's file is, as far as it decides whether anything can be put in front of it.
#pragma once

#include <string>

namespace tidepool::cli {

// Why the shim will not be in the command's first process, for people; empty: it will be, or the file could
// not be read. `name` is found as execvp finds it, a script stands for its interpreter.
std::string why_out_of_reach(const std::string& name);

// As execvp finds it; `name` itself if it does not.
std::string find_in_path(const std::string& name);

}  // namespace tidepool::cli
