// Reads SIM_NVML. What it does not know ends the process, as with the driver's variables.
#include "answers.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace sim {
namespace {

constexpr std::array<const char*, 8> can_fail{"nvmlInit_v2",
                                              "nvmlDeviceGetCount_v2",
                                              "nvmlDeviceGetHandleByIndex_v2",
                                              "nvmlDeviceGetMemoryInfo",
                                              "nvmlDeviceGetMemoryInfo_v2",
                                              "nvmlDeviceGetComputeRunningProcesses_v2",
                                              "nvmlDeviceGetComputeRunningProcesses_v3",
                                              "nvmlDeviceGetMigMode"};

struct Choices {
  NvmlAnswers answers;
  std::map<std::string, int> faults;
};

[[noreturn]] void refuse(const std::string& item) {
  std::fprintf(stderr, "simulated GPU: SIM_NVML: '%s' is not understood; see tests/sim/nvml/answers.hpp\n",
               item.c_str());
  std::abort();
}

unsigned number(const std::string& item, const std::string& value) {
  if (value.empty() || value.size() > 4 || value.find_first_not_of("0123456789") != std::string::npos)
    refuse(item);
  return static_cast<unsigned>(std::stoul(value));
}

void read(const std::string& item, Choices& choices) {
  const auto equals = item.find('=');
  const std::string name = item.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
  if (item == "hide-processes")
    choices.answers.processes_hidden = true;
  else if (item == "process-memory=unavailable")
    choices.answers.process_memory_unavailable = true;
  else if (name == "compute-mode")
    choices.answers.compute_mode = number(item, value);
  else if (name == "virtualization")
    choices.answers.virtualization = number(item, value);
  else if (std::find(can_fail.begin(), can_fail.end(), name) != can_fail.end())
    choices.faults[name] = static_cast<int>(number(item, value));
  else
    refuse(item);
}

const Choices& choices() {
  static const Choices* const read_once = [] {
    auto* const fresh = new Choices;
    const char* list = std::getenv("SIM_NVML");
    std::istringstream items(list ? list : "");
    for (std::string item; std::getline(items, item, ',');) read(item, *fresh);
    return fresh;
  }();
  return *read_once;
}

}  // namespace

const NvmlAnswers& nvml_answers() { return choices().answers; }

int nvml_fault(const char* entry) {
  const auto& faults = choices().faults;
  const auto found = faults.find(entry);
  return found == faults.end() ? 0 : found->second;
}

}  // namespace sim
