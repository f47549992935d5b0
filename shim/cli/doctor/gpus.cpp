// Asks NVML for the devices, their memory and the processes on them.
#include <algorithm>

#include "shim/cli/doctor/machine.hpp"
#include "shim/cli/doctor/nvml.hpp"

namespace tidepool::cli::doctor {
namespace {

using Question = NvmlEntryOf<int(NvmlDevice, unsigned*, NvmlProcess*)>::type;

template <typename Value>
Answer<Value> refused(int result) {
  return {std::nullopt, nvml_error(result)};
}

Answer<Memory> memory_of(const Nvml& nvml, NvmlDevice device) {
  NvmlMemory memory{};
  memory.version = kNvmlMemoryVersion;
  if (nvml.memory(device, &memory) == nvml_result::kSuccess)
    return {Memory{memory.total, memory.used, memory.free}, ""};
  NvmlOldMemory old{};
  const int result = nvml.old_memory(device, &old);
  if (result != nvml_result::kSuccess) return refused<Memory>(result);
  return {Memory{old.total, old.used, old.free}, ""};
}

// Processes come while they are counted, so there is room for more than were.
int list_processes(const Question& question, NvmlDevice device, std::vector<NvmlProcess>& list) {
  unsigned count = 0;
  int result = question(device, &count, nullptr);
  for (int tries = 0; result == nvml_result::kInsufficientSize && tries < 4; ++tries) {
    count += 16;
    list.resize(count);
    result = question(device, &count, list.data());
  }
  list.resize(result == nvml_result::kSuccess ? std::min<std::size_t>(count, list.size()) : 0);
  return result;
}

// A process may be listed as a compute and as a graphics one, with all of its memory each time.
void add_holder(std::vector<Holder>& holders, const NvmlProcess& process, bool of_mps) {
  Holder holder;
  holder.pid = process.pid;
  if (process.used != kNvmlNotAvailable) holder.bytes = process.used;
  holder.of_mps = of_mps;
  const auto known = std::find_if(holders.begin(), holders.end(),
                                  [&](const Holder& entry) { return entry.pid == holder.pid; });
  if (known == holders.end()) {
    look_up(holder);
    holders.push_back(std::move(holder));
    return;
  }
  known->bytes = std::max(known->bytes, holder.bytes);
  known->of_mps = known->of_mps || of_mps;
}

Answer<std::vector<Holder>> holders_of(const Nvml& nvml, NvmlDevice device) {
  std::vector<Holder> holders;
  std::vector<NvmlProcess> list;
  const int result = list_processes(nvml.compute_processes, device, list);
  if (result != nvml_result::kSuccess) return refused<std::vector<Holder>>(result);
  for (const NvmlProcess& process : list) add_holder(holders, process, false);
  for (const Question* question : {&nvml.graphics_processes, &nvml.mps_processes}) {
    std::vector<NvmlProcess> more;
    list_processes(*question, device, more);
    for (const NvmlProcess& process : more) add_holder(holders, process, question == &nvml.mps_processes);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& one, const Holder& other) { return one.bytes > other.bytes; });
  return {std::move(holders), ""};
}

std::string text_of(const NvmlEntryOf<int(NvmlDevice, char*, unsigned)>::type& question, NvmlDevice device) {
  char text[96] = "";
  return question(device, text, sizeof text) == nvml_result::kSuccess ? text : "?";
}

std::vector<Instance> instances_of(const Nvml& nvml, NvmlDevice device) {
  std::vector<Instance> instances;
  unsigned most = 0;
  nvml.most_instances(device, &most);
  for (unsigned i = 0; i < most; ++i) {
    NvmlDevice instance = nullptr;
    if (nvml.instance(device, i, &instance) != nvml_result::kSuccess) continue;
    instances.push_back(
        {text_of(nvml.uuid, instance), memory_of(nvml, instance), holders_of(nvml, instance)});
  }
  return instances;
}

Gpu gpu_of(const Nvml& nvml, unsigned index, NvmlDevice device) {
  Gpu gpu;
  gpu.index = index;
  gpu.name = text_of(nvml.name, device);
  gpu.uuid = text_of(nvml.uuid, device);
  unsigned minor = 0;
  if (nvml.minor(device, &minor) == nvml_result::kSuccess) gpu.minor = minor;
  gpu.memory = memory_of(nvml, device);
  gpu.holders = holders_of(nvml, device);
  unsigned mode = 0;
  if (const int result = nvml.compute_mode(device, &mode); result == nvml_result::kSuccess)
    gpu.compute_mode.value = static_cast<ComputeMode>(mode);
  else
    gpu.compute_mode.problem = nvml_error(result);
  unsigned pending = 0;
  if (const int result = nvml.mig_mode(device, &mode, &pending); result == nvml_result::kSuccess)
    gpu.mig.value = mode == 1;
  else
    gpu.mig.problem = nvml_error(result);
  if (gpu.mig.value.value_or(false)) gpu.instances = instances_of(nvml, device);
  constexpr unsigned kVirtualGpu = 2;
  gpu.virtual_gpu = nvml.virtualization(device, &mode) == nvml_result::kSuccess && mode == kVirtualGpu;
  return gpu;
}

}  // namespace

Driver ask_driver() {
  Driver driver;
  Nvml nvml;
  driver.problem = open_nvml(nvml);
  if (!driver.problem.empty()) return driver;
  driver.error = nvml.init();
  if (driver.error != nvml_result::kSuccess) {
    driver.problem = nvml_error(driver.error);
    return driver;
  }
  char version[96] = "";
  if (nvml.driver_version(version, sizeof version) == nvml_result::kSuccess) driver.version = version;
  nvml.cuda_version(&driver.cuda);
  unsigned count = 0;
  nvml.count(&count);
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    const int result = nvml.at_index(i, &device);
    if (result == nvml_result::kSuccess) {
      driver.gpus.push_back(gpu_of(nvml, i, device));
      continue;
    }
    Gpu silent;
    silent.index = i;
    silent.memory.problem = nvml_error(result);
    driver.gpus.push_back(silent);
  }
  nvml.shutdown();
  return driver;
}

}  // namespace tidepool::cli::doctor
