// Device nodes, MPS, and what a container leaves to a program.
#include <algorithm>
#include <array>

#include "shim/base/sizes.hpp"
#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;

void check_nodes(const Machine& machine, Findings& findings) {
  if (machine.driver.gpus.empty()) return;
  const auto& nodes = machine.around.nodes;
  const auto has = [&](const std::string& name) {
    return std::find(nodes.begin(), nodes.end(), name) != nodes.end();
  };
  if (has("dxg")) {
    findings.push_back({Verdict::ok, "nodes", "/dev/dxg: GPUs of Windows, through WSL", ""});
    return;
  }
  if (!machine.around.kernel_module) {
    findings.push_back({Verdict::warning, "nodes",
                        "NVML answers and NVIDIA's kernel module is not there: a simulated GPU", ""});
    return;
  }
  std::string missing;
  const auto want = [&](const std::string& name) {
    if (!has(name)) missing += (missing.empty() ? "/dev/" : ", /dev/") + name;
  };
  want("nvidiactl");
  want("nvidia-uvm");
  for (const Gpu& gpu : machine.driver.gpus)
    if (gpu.minor) want("nvidia" + std::to_string(*gpu.minor));
  if (missing.empty())
    findings.push_back({Verdict::ok, "nodes", "/dev/nvidia* are complete", ""});
  else
    findings.push_back({Verdict::problem, "nodes", "missing: " + missing,
                        machine.around.container.empty()
                            ? "nvidia-modprobe -u -c 0, as root"
                            : "start the container with --gpus all, or add them with --device"});
}

void check_mps(const Machine& machine, Findings& findings) {
  const Surroundings& around = machine.around;
  const std::string* limit = around.variable("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  if (around.mps_control) {
    std::string text = "MPS: its control daemon is at " + printable(around.mps_pipes);
    if (limit != nullptr && !limit->empty())
      findings.push_back({Verdict::warning, "mps",
                          text + "; CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" + printable(*limit) +
                              " refuses memory beyond it, whatever is free",
                          "unset it, or ask for less: tidepool run --limit"});
    else
      findings.push_back({Verdict::ok, "mps", text, ""});
    return;
  }
  if (around.variable("CUDA_MPS_PIPE_DIRECTORY") != nullptr)
    findings.push_back({Verdict::warning, "mps",
                        "CUDA_MPS_PIPE_DIRECTORY=" + printable(around.mps_pipes) +
                            " has no control daemon: programs run without MPS",
                        "nvidia-cuda-mps-control -d, or unset the variable"});
}

void check_container(const Machine& machine, Findings& findings) {
  const Surroundings& around = machine.around;
  const std::string kind = around.container.empty() ? "none seen" : printable(around.container);
  if (!around.memory.limit) {
    if (!around.container.empty())
      findings.push_back({Verdict::ok, "container", kind + ", without a limit on host memory", ""});
    return;
  }
  const Bytes left = *around.memory.limit - std::min(*around.memory.limit, around.memory.used);
  const std::string text = kind + "; host memory limited to " + format_size(*around.memory.limit) + ", " +
                           format_size(left) + " left";
  if (left < 2 * kGiB)
    findings.push_back({Verdict::warning, "container",
                        text + ": loading a framework and pinning memory may get a program killed",
                        "give it more (docker run --memory, resources.limits.memory, sbatch --mem)"});
  else
    findings.push_back({Verdict::ok, "container", text, ""});
}

void check_shared_memory(const Machine& machine, Findings& findings) {
  const auto& size = machine.around.shared_memory;
  if (machine.around.container.empty() || !size || *size >= kGiB) return;
  findings.push_back({Verdict::warning, "shared-memory",
                      "/dev/shm is " + format_size(*size) + ": NCCL and data loaders fail without more",
                      "docker run --shm-size=8g, or --ipc=host"});
}

constexpr std::array<MachineCheck, 4> kChecks{check_nodes, check_mps, check_container, check_shared_memory};

}  // namespace

std::span<const MachineCheck> surroundings_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
