// What `run` says at the end, worked out from the gathered report.
#include "shim/cli/summary.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "shim/base/sizes.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli {
namespace {

using nlohmann::json;

std::string size_of(const json& device, const char* key) {
  const auto size = number(device, key);
  return size ? format_size(*size) : "?";
}

std::string gpu(const json& device) {
  const auto ordinal = number(device, "ordinal");
  return "GPU " + (ordinal ? std::to_string(*ordinal) : "?");
}

bool in_use(const json& device) { return number(device, "processes").value_or(0) > 0; }

std::string device_phrase(const json& device, std::size_t reported) {
  const std::uint64_t users = number(device, "processes").value_or(0);
  const std::string at_most = text(device, "peaks_are") == kPeakSummed ? "at most " : "";
  return gpu(device) + ": " + at_most + size_of(device, "requested_peak_bytes") + " asked for at the peak, " +
         at_most + size_of(device, "reserved_peak_bytes") + " held of " + size_of(device, "total_bytes") +
         ", by " + std::to_string(users) + " of " + std::to_string(reported) +
         (reported == 1 ? " process" : " processes");
}

// The device on which memory was scarcest.
const json* fullest_device(const json& gathered) {
  const json* fullest = nullptr;
  double highest = -1;
  for (const json& device : member(gathered, "devices")) {
    const auto total = number(device, "total_bytes");
    if (!in_use(device) || !total || *total == 0) continue;
    const double share =
        static_cast<double>(number(device, "reserved_peak_bytes").value_or(0)) / static_cast<double>(*total);
    if (share > highest) highest = share, fullest = &device;
  }
  return fullest;
}

std::string fraction_of(const json& device) {
  return fraction_for(number(device, "requested_peak_bytes").value_or(0),
                      number(device, "total_bytes").value_or(1));
}

}  // namespace

std::string fraction_for(std::uint64_t bytes, std::uint64_t total) {
  const double part = std::clamp(
      std::ceil(static_cast<double>(bytes) * kSlack / static_cast<double>(total) * 100 - 1e-9) / 100, 0.01,
      1.0);
  char written[16];
  std::snprintf(written, sizeof written, "%.2f", part);
  return written;
}

std::string usage_line(const json& gathered) {
  const std::size_t reported = member(gathered, "processes").size();
  std::string line;
  for (const json& device : member(gathered, "devices"))
    if (in_use(device)) line += (line.empty() ? "" : "; ") + device_phrase(device, reported);
  if (line.empty() && text(gathered, "mode") == "off") return "mode off: nothing was counted";
  if (line.empty() && reported == 0) return "no process of the command reached a CUDA driver through it";
  if (line.empty()) line = "no process of the command allocated GPU memory";
  std::string set;
  for (const json& variable : member(gathered, "frameworks"))
    set += " " + text(variable, "name") + "=" + text(variable, "value");
  if (!set.empty()) line += "; set for it:" + set;
  return printable(line);
}

std::string advice(const json& gathered) {
  std::size_t refused = 0;
  for (const json& device : member(gathered, "devices")) refused += member(device, "oom").size();
  if (refused > 0) {
    bool limited = false;
    for (const json& device : member(gathered, "devices"))
      limited = limited || (!member(device, "oom").empty() && number(device, "limit_bytes"));
    return std::to_string(refused) + (refused == 1 ? " allocation was" : " allocations were") +
           " refused; next time: " +
           (limited ? "a higher --limit" : "--wait forever if others hold the GPU, else a smaller job");
  }
  const json* device = fullest_device(gathered);
  if (device == nullptr) return "";
  const double asked = static_cast<double>(number(*device, "requested_peak_bytes").value_or(0));
  const double held = static_cast<double>(number(*device, "reserved_peak_bytes").value_or(0));
  const std::string mode = text(gathered, "mode");
  if (mode == "ondemand")
    return "next time: the same, or --mode prealloc --fraction " + fraction_of(*device) +
           " to have it all from the start";
  if (mode == "prealloc" && held > 1.25 * asked * kSlack)
    return "next time: --fraction " + fraction_of(*device) + " is enough, or --mode ondemand";
  if (mode == "passthrough") return "next time: --mode ondemand, to hold only what is in use";
  return "next time: the same";
}

json summary(const json& gathered, const std::string& kept_as) {
  json devices = json::array();
  for (json device : member(gathered, "devices")) {
    if (!in_use(device)) continue;
    device["oom"] = member(device, "oom").size();
    devices.push_back(std::move(device));
  }
  return {{"schema", kSchema},
          {"mode", member(gathered, "mode")},
          {"exit_code", member(gathered, "exit_code")},
          {"processes", member(gathered, "processes").size()},
          {"devices", devices},
          {"frameworks", member(gathered, "frameworks")},
          {"uncovered", member(gathered, "uncovered")},
          {"advice", advice(gathered)},
          {"report", kept_as.empty() ? json() : json(kept_as)}};
}

}  // namespace tidepool::cli
