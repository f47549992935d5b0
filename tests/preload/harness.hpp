// Runs a program on the simulated driver, with and without the shim, and reads what both recorded.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace tidepool::test {

struct Run {
  Outcome outcome;
  nlohmann::json report;                       // null if none was written
  std::map<std::string, std::uint64_t> calls;  // the simulator's log by entry
  std::vector<std::string> violations;         // what its detector says of memory in use
};

// The simulator's variables and, with a mode, the shim in that mode. No mode: without the shim. Fails the
// test if memory went while the device used it.
Run run_on_simulator(const std::vector<std::string>& command, const std::string& mode,
                     const Environment& more = {}, std::chrono::seconds patience = std::chrono::minutes(2));

// Adds what a log of the simulator's tells.
void read_log(const std::string& log, Run& run);

// The entries of hooks.def, and the launches among them.
const std::vector<std::string>& hook_names();
const std::vector<std::string>& launch_names();

// counts[entry] for every counted entry that is not 0.
std::map<std::string, std::uint64_t> hooked_only(const std::map<std::string, std::uint64_t>& counts);

}  // namespace tidepool::test
