// Does the driver answer, does CUDA start, and which devices does it see?
#include <algorithm>
#include <array>

#include "shim/base/frameworks.hpp"
#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

struct CudaError {
  int code;
  const char* meaning;
  const char* advice;
};
constexpr CudaError kCudaErrors[] = {
    {2, "out of memory: nothing is left for a context", "see who holds the memory, below"},
    {46, "the device is busy or unavailable", "see the compute mode, below"},
    {100, "no device is visible", "see visible-devices and nodes, below"},
    {101, "an invalid device", "check CUDA_VISIBLE_DEVICES"},
    {304, "the operating system refused a call", "in a container, start it with --gpus all"},
    {802, "the system is not ready", "start nvidia-fabricmanager of the driver's version"},
    {803, "libcuda and the kernel module are of different versions",
     "reboot, or take other libcuda.so.1 off LD_LIBRARY_PATH (cuda-compat)"},
    {804, "cuda-compat does not support this GPU", "take cuda-compat off LD_LIBRARY_PATH"},
    {999, "unknown error; mostly /dev/nvidia-uvm is missing", "nvidia-modprobe -u -c 0, as root"},
};

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string count_of(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void check_driver(const Machine& machine, Findings& findings) {
  const Driver& driver = machine.driver;
  if (driver.problem.empty()) {
    if (driver.gpus.empty())
      findings.push_back({Verdict::problem, "driver", "NVML " + driver.version + " finds no GPU",
                          "in a container, start it with --gpus all; else see dmesg for NVRM lines"});
    else
      findings.push_back({Verdict::ok, "driver",
                          (driver.version.empty() ? "version unknown" : driver.version) + ", CUDA " +
                              cuda_version(driver.cuda) + ", " + count_of(driver.gpus.size(), "GPU"),
                          ""});
    return;
  }
  if (driver.error == peers::nvml_result::kVersionMismatch) {
    findings.push_back({Verdict::problem, "driver", driver.problem,
                        "the driver was updated under a running kernel: reboot, or reload its modules"});
    return;
  }
  if (driver.error == 0) {
    const bool contained = !machine.around.container.empty();
    findings.push_back({Verdict::problem, "driver", "no NVIDIA driver here: " + printable(driver.problem),
                        contained ? "start the container with --gpus all (NVIDIA Container Toolkit), or "
                                    "Apptainer with --nv"
                                  : "install NVIDIA's driver, if this machine has an NVIDIA GPU"});
    return;
  }
  findings.push_back({Verdict::problem, "driver", "NVML does not start: " + driver.problem,
                      "nvidia-smi should say the same; see dmesg for NVRM lines"});
}

void check_cuda(const Machine& machine, Findings& findings) {
  const CudaStart& cuda = machine.cuda;
  if (!cuda.tried) return;
  if (!cuda.problem.empty()) {
    findings.push_back({Verdict::problem, "cuda", "CUDA does not start: " + printable(cuda.problem),
                        "libcuda.so.1 comes with the driver, not with the toolkit; in a container, it is "
                        "mounted by --gpus all with NVIDIA_DRIVER_CAPABILITIES=compute,utility"});
    return;
  }
  if (cuda.result == 0) {
    findings.push_back({Verdict::ok, "cuda",
                        "starts and sees " + count_of(static_cast<std::size_t>(cuda.devices), "device"), ""});
    return;
  }
  const auto known = std::find_if(std::begin(kCudaErrors), std::end(kCudaErrors),
                                  [&](const CudaError& error) { return error.code == cuda.result; });
  const bool named = known != std::end(kCudaErrors);
  findings.push_back({Verdict::problem, "cuda",
                      "CUDA does not start: error " + std::to_string(cuda.result) +
                          (named ? std::string(", ") + known->meaning : ""),
                      named ? known->advice : ""});
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> entries;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    std::string entry = list.substr(start, end - start);
    entry.erase(0, entry.find_first_not_of(' '));
    entry.erase(entry.find_last_not_of(' ') + 1);
    entries.push_back(entry);
    start = end + 1;
  }
  return entries;
}

// A UUID may be cut short.
bool names_device(const std::string& entry, const Machine& machine) {
  for (const Gpu& gpu : machine.driver.gpus) {
    if (gpu.uuid.starts_with(entry)) return true;
    for (const Instance& instance : gpu.instances)
      if (instance.uuid.starts_with(entry)) return true;
  }
  return false;
}

// Why CUDA stops reading the list at this entry; empty: it is a device.
std::string misfit(const std::string& entry, const Machine& machine) {
  const std::size_t gpus = machine.driver.gpus.size();
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-"))
    return names_device(entry, machine) ? "" : entry + " is the UUID of no device here";
  if (entry.empty()) return "an empty entry";
  if (entry.find_first_not_of("0123456789") != std::string::npos) return "'" + entry + "' names no device";
  if (entry.size() > 4 || std::stoul(entry) >= gpus)
    return entry + " is out of range: there " + (gpus == 1 ? "is 1 GPU" : "are " + count_of(gpus, "GPU"));
  return "";
}

void check_visible_devices(const Machine& machine, Findings& findings) {
  const std::string* list = machine.around.variable("CUDA_VISIBLE_DEVICES");
  if (list == nullptr || machine.driver.gpus.empty()) return;
  const std::string shown = "CUDA_VISIBLE_DEVICES=" + printable(*list);
  if (list->empty()) {
    findings.push_back(
        {Verdict::problem, "visible-devices",
         "CUDA_VISIBLE_DEVICES is set to nothing, which hides every GPU: programs run on the CPU",
         "unset CUDA_VISIBLE_DEVICES"});
    return;
  }
  std::size_t before = 0;
  for (const std::string& entry : split(*list)) {
    const std::string why = misfit(printable(entry), machine);
    if (why.empty()) {
      ++before;
      continue;
    }
    findings.push_back(
        {Verdict::problem, "visible-devices",
         shown + ": " + why + ", so CUDA sees only the " + count_of(before, "device") + " named before it",
         "name devices by number from 0, or by the UUIDs below"});
    return;
  }
  findings.push_back({Verdict::ok, "visible-devices", shown, ""});
}

// CUDA numbers by speed, NVML and nvidia-smi by PCI address. Equal GPUs hide the difference.
void check_device_order(const Machine& machine, Findings& findings) {
  const std::string* order = machine.around.variable("CUDA_DEVICE_ORDER");
  const auto& gpus = machine.driver.gpus;
  const bool alike =
      std::all_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.name == gpus.front().name; });
  if (alike || (order != nullptr && *order == "PCI_BUS_ID")) return;
  findings.push_back({Verdict::warning, "device-order",
                      "the GPUs differ, and CUDA numbers them by speed: its GPU 0 may not be the GPU 0 below",
                      "export CUDA_DEVICE_ORDER=PCI_BUS_ID, or name GPUs by UUID"});
}

constexpr std::array<MachineCheck, 4> kChecks{check_driver, check_cuda, check_visible_devices,
                                              check_device_order};

}  // namespace

std::span<const MachineCheck> driver_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
