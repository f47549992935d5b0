// Runs a client program on the simulated GPU and gathers the records of its processes.
#include "tests/clients/client_run.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

namespace tidepool::test {
using namespace std::string_literals;
namespace {

void read_log(const std::string& log, Process& process) {
  Counts counts;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    // Parsing all of a hundred thousand lines would take longer than the run.
    const std::string key = "\"entry\":\"";
    const auto found = line.find(key);
    if (found == std::string::npos) {
      process.violations.push_back(nlohmann::json::parse(line).at("violation").get<std::string>());
      continue;
    }
    const auto name = found + key.size();
    ++counts[line.substr(name, line.find('"', name) - name)];
  }
  process.calls = hooked_only(counts);
}

std::string pid_of(const std::filesystem::path& path) { return path.extension().string().substr(1); }

}  // namespace

const Process& ClientRun::only() const {
  REQUIRE(processes.size() == 1);
  return processes.begin()->second;
}

std::string python_of(const std::string& environment) {
  const Outcome found = run({CLIENT_PYTHON, environment});
  INFO("scripts/setup " << environment << " installs what is missing: " << found.err);
  REQUIRE(found.exit_code == 0);
  return found.out.substr(0, found.out.find('\n'));
}

ClientRun run_command(const std::vector<std::string>& command, const std::string& mode,
                      const Environment& more) {
  const ScratchFolder scratch;
  Environment environment{
      {"SIM_LOG", scratch.path("calls.%p")},
      {"SIM_DETECT", "all"},
      {"TIDEPOOL_REPORT", scratch.path("report.%p")},
      // XLA compiles for a minute where two cores are shared, so each program is compiled once.
      {"JAX_COMPILATION_CACHE_DIR", COMPILED},
      {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0"},
      {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1"},
      {"TF_CPP_MIN_LOG_LEVEL", "1"},
  };
  if (!mode.empty()) {
    environment["TIDEPOOL_MODE"] = mode;
    // Where the arena serves, the referee looks on: it neither counts nor logs a call.
    const bool judged = mode != "off" && mode != "passthrough";
    environment["LD_PRELOAD"] = preload_of(judged ? REFEREE + (":"s + SHIM) : SHIM);
    environment["REFEREE_LOG"] = scratch.path("verdict.%p");
  }
  for (const auto& [name, value] : more) environment[name] = value;
  std::vector<std::string> whole{SIMGPU};
  whole.insert(whole.end(), command.begin(), command.end());
  ClientRun result{run(whole, environment, std::chrono::minutes(10)), {}};
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path("."))) {
    Process& process = result.processes[pid_of(entry.path())];
    const std::string text = read_file(entry.path().string());
    if (entry.path().stem() == "calls")
      read_log(text, process);
    else if (entry.path().stem() == "verdict")
      process.verdict = text;
    else
      process.report = nlohmann::json::parse(text, nullptr, false);
  }
  // A process that opened the driver and called nothing that is hooked has nothing to compare.
  std::erase_if(result.processes, [](const auto& entry) {
    return entry.second.calls.empty() && entry.second.report.is_null();
  });
  for (const auto& [pid, process] : result.processes) {
    INFO("process " << pid << " of " << command.back() << " in " << (mode.empty() ? "no shim" : mode));
    CHECK(process.violations == std::vector<std::string>{});
  }
  return result;
}

ClientRun run_client(const Client& client, const std::string& mode, const Environment& more) {
  std::vector<std::string> command{python_of(client.name), PROGRAMS + ("/" + client.program)};
  command.insert(command.end(), client.arguments.begin(), client.arguments.end());
  Environment environment = client.variables;
  for (const auto& [name, value] : more) environment[name] = value;
  ClientRun result = run_command(command, mode, environment);
  INFO(client.name << " in " << (mode.empty() ? "no shim" : mode) << ": " << result.outcome.out
                   << result.outcome.err.substr(0, 4000));
  REQUIRE(result.outcome.exit_code == 0);
  return result;
}

}  // namespace tidepool::test
