// What the run came to: its end, what it set and held, what it would have needed, what passed the shim by.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "shim/base/sizes.hpp"
#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/summary.hpp"

namespace tidepool::cli::doctor {
namespace {

using nlohmann::json;

constexpr Bytes kMiB = Bytes{1} << 20;

constexpr std::pair<Framework, const char*> kTitles[] = {{Framework::jax, "JAX"},
                                                         {Framework::tensorflow, "TensorFlow"},
                                                         {Framework::torch, "PyTorch"},
                                                         {Framework::cupy, "CuPy"}};

bool in_use(const json& device) { return number(device, "processes").value_or(0) > 0; }

std::string label(const json& device) {
  const auto ordinal = number(device, "ordinal");
  return "GPU " + (ordinal ? std::to_string(*ordinal) : "?");
}

void check_end(const Observation& run, Findings& findings) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.0f s", run.seconds);
  if (run.time_up)
    findings.push_back(
        {Verdict::ok, "command",
         std::string("was ended after ") + seconds + "; what it would have needed later is not known",
         "--seconds N watches longer"});
  else if (run.exit_code == 0)
    findings.push_back({Verdict::ok, "command", std::string("ended well after ") + seconds, ""});
  else
    findings.push_back(
        {Verdict::problem, "command",
         std::string("ended with exit code ") + std::to_string(run.exit_code) + " after " + seconds, ""});
}

std::string titles_of(const Observation& run) {
  std::string titles;
  for (const auto& [framework, title] : kTitles)
    if (run.has(framework)) titles += (titles.empty() ? "" : ", ") + std::string(title);
  return titles.empty() ? "no framework known here" : titles;
}

std::size_t processes_with_memory(const Observation& run) {
  std::size_t count = 0;
  for (const json& process : member(run.report, "processes")) {
    const json& devices = member(process, "devices");
    count +=
        std::any_of(devices.begin(), devices.end(),
                    [](const json& device) {
                      return number(device, "allocations").value_or(0) > 0 || !member(device, "oom").empty();
                    })
            ? 1
            : 0;
  }
  return count;
}

void check_loaded(const Observation& run, Findings& findings) {
  const std::string titles = titles_of(run);
  const std::size_t users = processes_with_memory(run);
  // One that a signal ended, or that was not to be counted, left no report of what it did.
  const bool silent = run.time_up || run.exit_code >= 128 || run.settings.mode == Mode::off;
  if (users > 0)
    findings.push_back(
        {Verdict::ok, "loaded",
         titles + "; " + std::to_string(users) + (users == 1 ? " process" : " processes") + " had GPU memory",
         ""});
  else if (silent)
    findings.push_back({Verdict::ok, "loaded", titles + "; no process left a report of GPU memory", ""});
  else
    findings.push_back({Verdict::warning, "loaded",
                        titles + "; no process asked for GPU memory: nothing was computed on a GPU", ""});
}

void check_told(const Observation& run, Findings& findings) {
  std::string set;
  for (const json& variable : member(run.report, "frameworks"))
    set += " " + text(variable, "name") + "=" + text(variable, "value");
  std::string yours;
  for (const auto& [name, value] : run.environment)
    if (name.starts_with("XLA_PYTHON_CLIENT_") || name == "XLA_CLIENT_MEM_FRACTION" ||
        name.starts_with("TF_GPU_") || name.starts_with("TF_FORCE_") || name.starts_with("PYTORCH_") ||
        name == "JAX_PJRT_CLIENT_CREATE_OPTIONS" || name.starts_with("CUPY_GPU_") ||
        (name.starts_with("TIDEPOOL_") && name != "TIDEPOOL_LIBRARY"))
      yours += " " + name + "=" + value;
  findings.push_back({Verdict::ok, "settings",
                      std::string("mode ") + mode_name(run.settings.mode) +
                          "; in the environment:" + (yours.empty() ? " nothing" : printable(yours)) +
                          "; set by tidepool:" + (set.empty() ? " nothing" : printable(set)),
                      ""});
}

// A pool that a framework keeps for itself hides what the program needs of it.
bool hidden_need(const Observation& run) {
  if (!run.has(Framework::jax_cuda)) return false;
  for (const json& variable : member(run.report, "frameworks"))
    if (text(variable, "name") == "XLA_PYTHON_CLIENT_ALLOCATOR") return false;
  const std::string* allocator = run.given("XLA_PYTHON_CLIENT_ALLOCATOR");
  return allocator == nullptr || (*allocator != "cuda_async" && *allocator != "platform");
}

std::string limit_for(Bytes asked) {
  const auto wanted = static_cast<Bytes>(std::ceil(static_cast<double>(asked) * kSlack));
  return std::to_string(std::max<Bytes>((wanted + 64 * kMiB - 1) / (64 * kMiB) * 64, 64)) + "MiB";
}

void check_peak(const Observation& run, Findings& findings) {
  for (const json& device : member(run.report, "devices")) {
    if (!in_use(device)) continue;
    const Bytes asked = number(device, "requested_peak_bytes").value_or(0);
    const Bytes held = number(device, "reserved_peak_bytes").value_or(0);
    const Bytes total = number(device, "total_bytes").value_or(0);
    const auto free = run.free_before.find(text(device, "uuid"));
    const Bytes room = free == run.free_before.end() ? total : free->second;
    findings.push_back(
        {Verdict::ok, "peak",
         label(device) + ": " + format_size(asked) + " asked for at the peak, " + format_size(held) +
             " held; " + format_size(room - std::min(room, held)) + " of the " + format_size(room) +
             (free == run.free_before.end() ? " of the device" : " that were free") + " stayed free",
         ""});
    if (!hidden_need(run)) continue;
    findings.push_back({Verdict::ok, "pool",
                        label(device) + ": JAX took " + format_size(held) +
                            " for a pool of its own, so what the "
                            "program needs of it cannot be seen",
                        "unset JAX's memory variables and ask again: tidepool then sees every buffer"});
  }
}

void check_advice(const Observation& run, Findings& findings) {
  if (hidden_need(run)) return;
  for (const json& device : member(run.report, "devices")) {
    const Bytes asked = number(device, "requested_peak_bytes").value_or(0);
    const Bytes total = number(device, "total_bytes").value_or(0);
    if (!in_use(device) || asked == 0 || total == 0 || !member(device, "oom").empty()) continue;
    findings.push_back(
        {Verdict::ok, "advice",
         label(device) + ": with a tenth to spare, TIDEPOOL_LIMIT=" + limit_for(asked) + " is enough" +
             (run.has(Framework::jax)
                  ? "; without tidepool XLA_PYTHON_CLIENT_MEM_FRACTION=" + fraction_for(asked, total)
                  : ""),
         ""});
  }
}

void check_refusals(const Observation& run, Findings& findings) {
  constexpr std::size_t kMostKept = 32;  // by a process
  for (const json& device : member(run.report, "devices")) {
    const json& refused = member(device, "oom");
    if (refused.empty()) continue;
    const auto limit = number(device, "limit_bytes");
    const bool went_on = run.exit_code == 0 && !run.time_up;
    const json& first = refused.front();
    findings.push_back(
        {went_on ? Verdict::warning : Verdict::problem, "out-of-memory",
         label(device) + ": " + std::to_string(refused.size()) +
             (refused.size() >= kMostKept ? " or more" : "") +
             (refused.size() == 1 ? " allocation was" : " allocations were") + " refused, the first of " +
             format_size(number(first, "requested_bytes").value_or(0)) + " by " + text(first, "entry") +
             " with " + format_size(number(first, "reserved_bytes").value_or(0)) + " held" +
             (went_on ? "; the program went on, as pools do that then ask for less" : ""),
         limit ? "the limit is " + format_size(*limit) + ": a higher one, or a smaller job"
               : "tidepool doctor shows who else holds the device; else a smaller job"});
  }
}

void check_uncovered(const Observation& run, Findings& findings) {
  for (const json& line : member(run.report, "uncovered"))
    if (line.is_string())
      findings.push_back({Verdict::warning, "uncovered", "not seen: " + printable(line.get<std::string>()),
                          "README, \"What it sees, and what it does not\""});
}

constexpr std::array<RunCheck, 7> kChecks{check_end,    check_loaded,   check_told,     check_peak,
                                          check_advice, check_refusals, check_uncovered};

}  // namespace

std::span<const RunCheck> outcome_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
