// Runs a client program on the simulated GPU, with and without the shim, and keeps what the simulator and
// the shim recorded of each of its processes: unlike the preload suite's programs, clients have many.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/preload/harness.hpp"

namespace tidepool::test {

using Counts = std::map<std::string, std::uint64_t>;

struct Client {
  std::string name;  // of its Python environment, see scripts/setup
  std::string program;
  std::vector<std::string> arguments = {};
  Environment variables = {};  // a user's settings of the framework
};

struct Process {
  Counts calls;                         // hooked entries in the simulator's log
  nlohmann::json report;                // null if it left none
  std::string verdict;                  // the referee's, where it looked on
  std::vector<std::string> violations;  // what the simulator says of memory that went while in use
};

struct ClientRun {
  Outcome outcome;
  std::map<std::string, Process> processes;  // by pid: those that called the driver or left a report
  // The one process that allocated; for programs of one process.
  const Process& only() const;
};

std::string python_of(const std::string& environment);

// An empty mode is a run without the shim. A program that fails is reported with what it wrote.
ClientRun run_client(const Client& client, const std::string& mode, const Environment& more = {});

// Without a demand on the exit code, and any command after `simgpu`. Both fail the test if memory went while
// the device used it.
ClientRun run_command(const std::vector<std::string>& command, const std::string& mode,
                      const Environment& more);

}  // namespace tidepool::test
