// NVML, kept open for questions that come again.
#include "shim/peers/machine.hpp"

namespace tidepool::peers {
namespace {

struct Opened {
  Nvml nvml;
  std::string problem;
};

// Never closed: other threads may be asking when the process ends.
const Opened& opened() {
  static const Opened* const instance = [] {
    auto* const made = new Opened;
    made->problem = open_nvml(made->nvml);
    if (!made->problem.empty()) return made;
    if (const int result = made->nvml.init(); result != nvml_result::kSuccess)
      made->problem = nvml_error(result);
    return made;
  }();
  return *instance;
}

// Null, and why.
NvmlDevice find(const Nvml& nvml, const std::string& uuid, std::string& problem) {
  NvmlDevice device = nullptr;
  int result = nvml.by_uuid(uuid.c_str(), &device);
  // The driver does not say of a UUID whether it is a MIG instance's.
  if (result != nvml_result::kSuccess && uuid.starts_with("GPU-"))
    result = nvml.by_uuid(("MIG-" + uuid.substr(4)).c_str(), &device);
  if (result == nvml_result::kSuccess) return device;
  problem = "NVML does not know this device (" + nvml_error(result) + ")";
  return nullptr;
}

}  // namespace

DeviceUsage usage_of(const std::string& uuid) {
  DeviceUsage usage;
  const Opened& library = opened();
  usage.problem = library.problem;
  if (!usage.problem.empty()) return usage;
  NvmlDevice const device = find(library.nvml, uuid, usage.problem);
  if (device == nullptr) return usage;
  usage.memory = memory_of(library.nvml, device);
  usage.holders = holders_of(library.nvml, device);
  return usage;
}

std::optional<Bytes> free_memory(const std::string& uuid) {
  std::string problem;
  const Opened& library = opened();
  NvmlDevice const device = library.problem.empty() ? find(library.nvml, uuid, problem) : nullptr;
  if (device == nullptr) return std::nullopt;
  const Answer<Memory> memory = memory_of(library.nvml, device);
  if (!memory.value) return std::nullopt;
  return memory.value->free;
}

}  // namespace tidepool::peers
