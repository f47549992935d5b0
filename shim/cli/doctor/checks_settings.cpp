// Settings that no framework is to blame for: names that nobody reads, tidepool's own, visible devices.
#include <array>

#include "shim/base/frameworks.hpp"
#include "shim/base/sizes.hpp"
#include "shim/cli/doctor/names.hpp"
#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

void check_misspelt(const Observation& run, Findings& findings) {
  for (const auto& [name, value] : run.environment)
    if (const std::string meant = probably_meant(name); !meant.empty())
      findings.push_back({Verdict::problem, "misspelt",
                          printable(name) + "=" + printable(value) + " is read by nobody",
                          "did you mean " + meant + "?"});
}

void check_limit(const Observation& run, Findings& findings) {
  for (const nlohmann::json& device : member(run.report, "devices")) {
    const auto total = number(device, "total_bytes");
    const auto limit = number(device, "limit_bytes");
    if (!total || !limit || *limit <= *total) continue;
    findings.push_back({Verdict::warning, "limit",
                        "TIDEPOOL_LIMIT allows " + format_size(*limit) + " and the device has " +
                            format_size(*total) + ": it has no effect",
                        "a limit below the device's memory, or a share: TIDEPOOL_LIMIT=50%"});
  }
}

void check_fraction(const Observation& run, Findings& findings) {
  const std::string* fraction = run.given("TIDEPOOL_FRACTION");
  if (fraction == nullptr || run.settings.mode == Mode::prealloc) return;
  findings.push_back({Verdict::warning, "fraction",
                      "TIDEPOOL_FRACTION=" + printable(*fraction) + " has no effect in mode " +
                          mode_name(run.settings.mode) + ": only prealloc takes a fraction",
                      "--mode prealloc, or TIDEPOOL_LIMIT to bound what is held"});
}

void check_visible_devices(const Observation& run, Findings& findings) {
  const auto list = run.environment.find("CUDA_VISIBLE_DEVICES");
  if (list == run.environment.end() || count_visible_gpus(list->second, std::nullopt) > 0) return;
  findings.push_back({Verdict::problem, "visible-devices",
                      "CUDA_VISIBLE_DEVICES=" + printable(list->second) +
                          " leaves no GPU to the command: it runs on the CPU, or fails",
                      "unset CUDA_VISIBLE_DEVICES"});
}

// JAX and PyTorch have read their settings before they start CUDA. Where another framework started it, this
// one may have come later.
void check_set_late(const Observation& run, Findings& findings) {
  for (const nlohmann::json& variable : member(run.report, "set_late")) {
    const std::string name = text(variable, "name");
    const Framework owner = name.starts_with("PYTORCH") ? Framework::torch : Framework::jax;
    bool alone = true;
    for (const Framework other : {Framework::jax, Framework::tensorflow, Framework::torch, Framework::cupy})
      alone = alone && (other == owner) == run.has(other);
    findings.push_back({alone ? Verdict::problem : Verdict::warning, "set-late",
                        printable(name + "=" + text(variable, "value")) +
                            " was set by the program after it had started CUDA" +
                            (alone ? ": too late, it has no effect" : ": perhaps too late"),
                        "set it before the command, or before the framework is imported"});
  }
}

constexpr std::array<RunCheck, 5> kChecks{check_set_late, check_misspelt, check_limit, check_fraction,
                                          check_visible_devices};

}  // namespace

std::span<const RunCheck> setting_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
