// What was seen of a command that ran under the shim, as plain data for the checks of a run.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "shim/base/settings.hpp"
#include "shim/cli/doctor/machine.hpp"

namespace tidepool::cli::doctor {

// Frameworks by the libraries that a process maps. A set of these is what was loaded.
enum class Framework { jax, jax_cuda, tensorflow, torch, cupy, cuda_driver };

struct Observation {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // the command's, without what the shim is told by us
  Settings settings;
  std::set<Framework> loaded;
  nlohmann::json report;  // gathered, see reports.hpp
  int exit_code = 0;
  bool time_up = false;                      // it was ended
  double seconds = 0;                        // how long it was watched
  std::map<std::string, Bytes> free_before;  // by UUID, where NVML answered

  bool has(Framework framework) const { return loaded.contains(framework); }
  // Of a program too short to be looked at, nothing is known.
  bool may_have(Framework framework) const { return loaded.empty() || has(framework); }
  // Null where it is not set; JAX and PyTorch read a variable set to nothing as not set.
  const std::string* given(const std::string& name) const {
    const auto found = environment.find(name);
    return found == environment.end() || found->second.empty() ? nullptr : &found->second;
  }
};

}  // namespace tidepool::cli::doctor
