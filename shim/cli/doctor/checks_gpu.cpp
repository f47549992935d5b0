// Each GPU: its memory, who holds it, and what keeps programs off it.
#include <algorithm>
#include <array>

#include "shim/base/sizes.hpp"
#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/table.hpp"

namespace tidepool::cli::doctor {
namespace {

// A context costs some hundred MiB; below a twentieth of a device no framework gets far.
constexpr double kNearlyFull = 0.05;
// JAX's pool, unless told otherwise.
constexpr double kJaxShare = 0.75;
// The driver's own bookkeeping is below this.
constexpr Bytes kNoteworthy = Bytes{256} << 20;
constexpr std::size_t kLongestCommand = 60;

std::string time_text(const std::optional<std::time_t>& time) {
  if (!time) return "?";
  std::tm parts{};
  ::localtime_r(&*time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

std::string mebibytes(const std::optional<Bytes>& bytes) {
  return bytes ? std::to_string(*bytes >> 20) : "?";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::vector<std::string> table_of(const std::vector<Holder>& holders) {
  std::vector<std::vector<std::string>> rows{{"PID", "USER", "MiB", "SINCE", "COMMAND"}};
  for (const Holder& holder : holders) {
    const std::string command = holder.in_sight ? shorten(holder.command, kLongestCommand)
                                                : "(not visible here: another container's, or gone)";
    rows.push_back({std::to_string(holder.pid), holder.in_sight ? holder.user : "?", mebibytes(holder.bytes),
                    time_text(holder.since), command + (holder.of_mps ? " (MPS)" : "")});
  }
  return lines_of(format_table(rows, Align::left));
}

// The GPU with the most free memory, if that is not this one.
const Gpu* freer_gpu(const Machine& machine, const Gpu& gpu) {
  const Gpu* best = &gpu;
  const auto free = [](const Gpu& one) { return one.memory.value ? one.memory.value->free : 0; };
  for (const Gpu& other : machine.driver.gpus)
    if (!other.mig.value.value_or(false) && free(other) > free(*best)) best = &other;
  return best == &gpu ? nullptr : best;
}

std::string room_advice(const Machine& machine, const Gpu& gpu, const Memory& memory) {
  if (const Gpu* freer = freer_gpu(machine, gpu))
    return "CUDA_VISIBLE_DEVICES=" + freer->uuid + " has " + format_size(freer->memory.value->free) + " free";
  constexpr Bytes kStep = Bytes{1} << 20;
  const Bytes limit = memory.free / 10 * 9 / kStep;
  if (static_cast<double>(memory.free) < kNearlyFull * static_cast<double>(memory.total))
    return "wait for the processes below, or end them";
  return "to fit into what is free: tidepool run --limit " + std::to_string(limit) + "MiB -- COMMAND";
}

void check_room(const Machine& machine, const Gpu& gpu, const std::string& what, const Answer<Memory>& answer,
                Findings& findings) {
  if (!answer.value) {
    findings.push_back(
        {Verdict::warning, "memory", what + ": memory cannot be asked: " + answer.problem, ""});
    return;
  }
  const Memory& memory = *answer.value;
  const std::string numbers = what + ": " + format_size(memory.total) + ", " + format_size(memory.used) +
                              " used, " + format_size(memory.free) + " free";
  const double share =
      static_cast<double>(memory.free) / static_cast<double>(std::max<Bytes>(memory.total, 1));
  if (share < kNearlyFull)
    findings.push_back({Verdict::problem, "memory", numbers + ": what starts here runs out of memory",
                        room_advice(machine, gpu, memory)});
  else if (share < kJaxShare)
    findings.push_back({Verdict::warning, "memory", numbers + ": less than the 75 % that JAX takes by itself",
                        room_advice(machine, gpu, memory)});
  else
    findings.push_back({Verdict::ok, "memory", numbers, ""});
}

std::string elsewhere(const Machine& machine) {
  return machine.around.container.empty()
             ? "not attributed: no process that NVML lists explains it"
             : "held outside this container, or by processes that NVML does not list here";
}

std::string others_advice(const Machine& machine) {
  return machine.around.container.empty() ? "nvidia-smi and fuser -v /dev/nvidia*, as root, may name more"
                                          : "look on the host: nvidia-smi and fuser -v /dev/nvidia*, as root";
}

void check_list(const Machine& machine, const std::string& what, const std::vector<Holder>& holders,
                const std::optional<Memory>& memory, Findings& findings) {
  Bytes explained = 0;
  bool all_said = true;
  bool all_in_sight = true;
  for (const Holder& holder : holders) {
    explained += holder.bytes.value_or(0);
    all_said = all_said && holder.bytes.has_value();
    all_in_sight = all_in_sight && holder.in_sight;
  }
  Finding finding{Verdict::ok, "holders", what + ": ", "", {}};
  finding.text +=
      std::to_string(holders.size()) + (holders.size() == 1 ? " process" : " processes") + " listed";
  if (!holders.empty()) finding.details = table_of(holders);
  if (!all_in_sight) {
    finding.verdict = Verdict::warning;
    finding.advice = others_advice(machine);
  }
  const Bytes used = memory ? memory->used : 0;
  if (!all_said) {
    finding.verdict = Verdict::warning;
    finding.text += "; NVML does not say here how much each holds (of " + format_size(used) + " in all)";
  } else if (used > explained) {
    const Bytes rest = used - explained;
    finding.text += "; " + format_size(rest) + " " + elsewhere(machine);
    if (rest >= kNoteworthy) {
      finding.verdict = Verdict::warning;
      finding.advice = others_advice(machine);
    }
  }
  findings.push_back(std::move(finding));
}

void check_holders(const Machine& machine, const std::string& what, const Answer<std::vector<Holder>>& answer,
                   const Answer<Memory>& memory, Findings& findings) {
  if (answer.value) return check_list(machine, what, *answer.value, memory.value, findings);
  const std::string used =
      memory.value ? format_size(memory.value->used) + " used, by processes" : "processes";
  findings.push_back({Verdict::warning, "holders",
                      what + ": " + used + " that NVML does not list: " + answer.problem,
                      others_advice(machine)});
}

void check_instances(const Machine& machine, const Gpu& gpu, Findings& findings) {
  if (gpu.instances.empty()) {
    findings.push_back({Verdict::problem, "mig",
                        gpu_label(gpu) + ": MIG is on and there is no instance: CUDA finds no device on it",
                        "nvidia-smi mig -cgi PROFILE -C, or turn it off: nvidia-smi -mig 0"});
    return;
  }
  findings.push_back({Verdict::ok, "mig",
                      gpu_label(gpu) + ": MIG is on, " + std::to_string(gpu.instances.size()) +
                          (gpu.instances.size() == 1 ? " instance" : " instances") +
                          "; a process sees one of them, by CUDA_VISIBLE_DEVICES",
                      ""});
  for (const Instance& instance : gpu.instances) {
    const std::string what = gpu_label(gpu) + " " + instance.uuid;
    check_room(machine, gpu, what, instance.memory, findings);
    check_holders(machine, what, instance.holders, instance.memory, findings);
  }
}

void check_each_memory(const Machine& machine, Findings& findings) {
  for (const Gpu& gpu : machine.driver.gpus) {
    if (gpu.mig.value.value_or(false)) {
      check_instances(machine, gpu, findings);
      continue;
    }
    check_room(machine, gpu, gpu_label(gpu) + " " + gpu.name + " (" + gpu.uuid + ")", gpu.memory, findings);
    check_holders(machine, gpu_label(gpu), gpu.holders, gpu.memory, findings);
  }
}

void check_compute_mode(const Machine& machine, Findings& findings) {
  for (const Gpu& gpu : machine.driver.gpus) {
    const ComputeMode mode = gpu.compute_mode.value.value_or(ComputeMode::shared);
    const bool taken = gpu.holders.value && !gpu.holders.value->empty();
    const std::string share = "sudo nvidia-smi -i " + std::to_string(gpu.index) + " -c DEFAULT";
    if (mode == ComputeMode::prohibited)
      findings.push_back({Verdict::problem, "compute-mode",
                          gpu_label(gpu) + ": compute mode PROHIBITED: no program may use it", share});
    else if (mode != ComputeMode::shared && !machine.around.mps_control)
      findings.push_back({taken ? Verdict::problem : Verdict::warning, "compute-mode",
                          gpu_label(gpu) + ": compute mode EXCLUSIVE_PROCESS: one program at a time" +
                              (taken ? ", and one has it; others are refused, whatever memory is free" : ""),
                          "start MPS (nvidia-cuda-mps-control -d), or " + share});
  }
}

void check_virtual_gpu(const Machine& machine, Findings& findings) {
  for (const Gpu& gpu : machine.driver.gpus)
    if (gpu.virtual_gpu)
      findings.push_back({Verdict::warning, "virtual-gpu",
                          gpu_label(gpu) +
                              ": a vGPU, which may lack virtual memory management: JAX after "
                              "0.10.0 then finds no device, and pools need TIDEPOOL_BACKING=native",
                          "ask for a vGPU profile with unified memory, or use JAX 0.10.0"});
}

constexpr std::array<MachineCheck, 3> kChecks{check_each_memory, check_compute_mode, check_virtual_gpu};

}  // namespace

std::string gpu_label(const Gpu& gpu) { return "GPU " + std::to_string(gpu.index); }

std::span<const MachineCheck> gpu_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
