// Asks NVML for the devices, their memory and the processes on them.
#include "shim/cli/doctor/machine.hpp"

namespace tidepool::cli::doctor {
namespace {

using namespace peers;

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
  using namespace peers;
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
