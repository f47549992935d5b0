// The limits of every trace and policy.
#include "tests/bench/memory/check.hpp"

#include <cstdio>

namespace tidepool::bench {
namespace {

struct Tightness {
  double ratio;       // held / asked, at their peaks
  double operations;  // per 1,000 events of the second half
};

// Two programs change their sizes all the time; the others repeat themselves.
Tightness tightness_of(const std::string& trace) {
  if (trace == "torch_transformer_async.csv" || trace == "somas_pangu_13B.csv") return {1.07, 10};
  return {1.03, 1};
}

// Pages are whole: of a small program a ratio says nothing.
constexpr Bytes kSmall = kGiB;
constexpr double kSlackMiB = 32;

constexpr double kMostRounding = 0.01;
constexpr double kMostAtEndMiB = 64;

double mib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

}  // namespace

std::vector<Check> checks_of(const std::string& trace, const std::string& policy, const Measured& measured) {
  if (trace.starts_with("minimalloc")) return {};
  const auto asked = static_cast<double>(measured.asked_peak);
  std::vector<Check> checks{
      {"rounding/asked", static_cast<double>(measured.rounding) / asked, kMostRounding}};
  if (policy != "ondemand") return checks;  // preallocated holds its share, whoever asks

  const Tightness most = tightness_of(trace);
  if (measured.asked_peak < kSmall)
    checks.push_back({"slack MiB", mib(measured.held_peak - measured.asked_peak), kSlackMiB});
  else
    checks.push_back({"held/asked", static_cast<double>(measured.held_peak) / asked, most.ratio});
  checks.push_back({"map operations", measured.operations, most.operations});
  checks.push_back({"held at the end, MiB", mib(measured.held_at_end), kMostAtEndMiB});
  return checks;
}

std::string verdict_of(const std::vector<Check>& checks) {
  if (checks.empty()) return "reported";
  std::string faults;
  for (const Check& check : checks) {
    if (check.ok()) continue;
    char text[120];
    std::snprintf(text, sizeof text, "%s %s %.4g > %.4g", faults.empty() ? "" : ",", check.what.c_str(),
                  check.value, check.limit);
    faults += text;
  }
  return faults.empty() ? "ok" : "FAILS:" + faults;
}

}  // namespace tidepool::bench
