// Runs a program on the simulated driver and reads what the simulator and the shim recorded.
#include "tests/preload/harness.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <sstream>

namespace tidepool::test {
namespace {

// Another one than the build's, for a tool that proves that tests fail without a part of it.
std::string shim_under_test() {
  const char* other = std::getenv("SHIM_UNDER_TEST");
  return other == nullptr ? SHIM : other;
}

}  // namespace

void read_log(const std::string& log, Run& run) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    if (const auto violation = entry.find("violation"); violation != entry.end())
      run.violations.push_back(violation->get<std::string>());
    else
      ++run.calls[entry.at("entry").get<std::string>()];
  }
}

Run run_on_simulator(const std::vector<std::string>& command, const std::string& mode,
                     const Environment& more, std::chrono::seconds patience) {
  const ScratchFolder scratch;
  Environment environment{{"LD_LIBRARY_PATH", SIMULATOR_LIBRARIES},
                          {"SIM_LOG", scratch.path("calls")},
                          {"SIM_DETECT", "all"},
                          {"TIDEPOOL_REPORT", scratch.path("report")}};
  if (!mode.empty()) {
    environment["TIDEPOOL_MODE"] = mode;
    environment["LD_PRELOAD"] = preload_of(shim_under_test());
  }
  for (const auto& [name, value] : more) environment[name] = value;
  Run run{test::run(command, environment, patience), {}, {}, {}};
  read_log(read_file(scratch.path("calls")), run);
  CHECK(run.violations == std::vector<std::string>{});
  run.report = nlohmann::json::parse(read_file(scratch.path("report")), nullptr, false);
  if (run.report.is_discarded()) run.report = nullptr;
  return run;
}

namespace {

struct Hook {
  const char* name;
  const char* family;
};

const Hook kHooks[] = {
#define HOOK(symbol, family, version) {#symbol, #family},
#include "shim/hook/hooks.def"
};

std::vector<std::string> names_where(bool (*wanted)(const Hook&)) {
  std::vector<std::string> names;
  for (const Hook& hook : kHooks)
    if (wanted(hook)) names.emplace_back(hook.name);
  return names;
}

}  // namespace

const std::vector<std::string>& hook_names() {
  static const std::vector<std::string> names = names_where([](const Hook&) { return true; });
  return names;
}

const std::vector<std::string>& launch_names() {
  static const std::vector<std::string> names =
      names_where([](const Hook& hook) { return hook.family == std::string("launch"); });
  return names;
}

std::map<std::string, std::uint64_t> hooked_only(const std::map<std::string, std::uint64_t>& counts) {
  std::map<std::string, std::uint64_t> hooked;
  for (const std::string& name : hook_names())
    if (const auto found = counts.find(name); found != counts.end() && found->second > 0)
      hooked[name] = found->second;
  return hooked;
}

}  // namespace tidepool::test
