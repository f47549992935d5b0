// Gathers the reports of the processes of one command into one. What can only be bounded says so.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "shim/cli/reports.hpp"

namespace tidepool::cli {
namespace {

using nlohmann::json;

// A device as one process saw it.
struct Sighting {
  const json* device;
  const json* process;
};

bool used(const json& device) {
  return number(device, "allocations").value_or(0) > 0 ||
         number(device, "requested_peak_bytes").value_or(0) > 0 ||
         number(device, "reserved_peak_bytes").value_or(0) > 0 || !member(device, "oom").empty();
}

// Ordinals differ between processes with different CUDA_VISIBLE_DEVICES; UUIDs do not.
std::string identity(const json& device) {
  const std::string uuid = text(device, "uuid");
  return uuid.empty() ? "#" + to_text(member(device, "ordinal")) : uuid;
}

// ISO 8601 times in one form compare as text. What lacks a time may have run at any time, and equal
// times may be an overlap of less than their resolution.
bool overlap(const json& one, const json& other) {
  const auto ended_before = [](const json& first, const json& second) {
    const std::string end = text(first, "ended");
    const std::string start = text(second, "started");
    return !end.empty() && !start.empty() && end < start;
  };
  return !ended_before(one, other) && !ended_before(other, one);
}

std::uint64_t sum(const std::vector<Sighting>& sightings, const char* key) {
  std::uint64_t total = 0;
  for (const Sighting& sighting : sightings) total += number(*sighting.device, key).value_or(0);
  return total;
}

// At any moment the processes that run hold at most the sum of their peaks, so the most that can have
// been held is the largest such sum. Those that never ran at the same time are not added up.
std::uint64_t peak(const std::vector<Sighting>& sightings, const char* key) {
  std::uint64_t highest = 0;
  for (const Sighting& one : sightings) {
    std::uint64_t at_once = 0;
    for (const Sighting& sighting : sightings)
      if (overlap(*one.process, *sighting.process)) at_once += number(*sighting.device, key).value_or(0);
    highest = std::max(highest, at_once);
  }
  return highest;
}

bool any_overlap(const std::vector<Sighting>& sightings) {
  for (std::size_t i = 0; i < sightings.size(); ++i)
    for (std::size_t j = i + 1; j < sightings.size(); ++j)
      if (overlap(*sightings[i].process, *sightings[j].process)) return true;
  return false;
}

json merge_device(const std::vector<Sighting>& all) {
  std::vector<Sighting> users;
  for (const Sighting& sighting : all)
    if (used(*sighting.device)) users.push_back(sighting);
  json merged;
  for (const char* key : {"ordinal", "uuid", "name", "total_bytes", "limit_bytes"})
    merged[key] = member(*all.front().device, key);
  for (const Sighting& sighting : all)
    if (member(*sighting.device, "limit_bytes") != merged["limit_bytes"]) merged["limit_bytes"] = nullptr;
  merged["processes"] = users.size();
  for (const char* key : {"requested_peak_bytes", "reserved_peak_bytes"}) merged[key] = peak(users, key);
  merged["peaks_are"] = any_overlap(users) ? kPeakSummed : kPeakCounted;
  for (const char* key : {"live_bytes", "reserved_bytes", "allocations", "frees"})
    merged[key] = sum(users, key);
  merged["oom"] = json::array();
  for (const Sighting& sighting : all)
    for (json event : member(*sighting.device, "oom")) {
      if (!event.is_object()) continue;
      event["pid"] = member(*sighting.process, "pid");
      merged["oom"].push_back(std::move(event));
    }
  return merged;
}

json merge_devices(const json& processes) {
  std::vector<std::pair<std::string, std::vector<Sighting>>> found;
  for (const json& process : processes)
    for (const json& device : member(process, "devices")) {
      const std::string key = identity(device);
      auto place =
          std::find_if(found.begin(), found.end(), [&](const auto& entry) { return entry.first == key; });
      if (place == found.end()) place = found.insert(found.end(), {key, {}});
      place->second.push_back({&device, &process});
    }
  json devices = json::array();
  for (const auto& entry : found) devices.push_back(merge_device(entry.second));
  std::stable_sort(devices.begin(), devices.end(), [](const json& one, const json& other) {
    return number(one, "ordinal").value_or(0) < number(other, "ordinal").value_or(0);
  });
  return devices;
}

json add_counts(const json& processes, const char* key) {
  json total = json::object();
  for (const json& process : processes)
    for (const auto& entry : member(process, key).items()) {
      const char* name = entry.key().c_str();
      if (const auto count = number(member(process, key), name))
        total[name] = *count + number(total, name).value_or(0);
    }
  return total;
}

json unite(const json& processes, const char* key) {
  json all = json::array();
  for (const json& process : processes)
    for (const json& entry : member(process, key))
      if (std::find(all.begin(), all.end(), entry) == all.end()) all.push_back(entry);
  return all;
}

// Settings that every process shares; one that differs says so instead of a value.
json common_settings(const json& processes) {
  json common = json::object();
  for (const json& process : processes)
    for (const auto& [name, setting] : member(process, "settings").items()) {
      if (!common.contains(name)) common[name] = setting;
      if (text(common[name], "value") != text(setting, "value"))
        common[name] = {{"value", "differs by process"}, {"source", "environment"}};
    }
  return common;
}

void work_out(json& gathered) {
  const json& processes = gathered["processes"];
  gathered["devices"] = merge_devices(processes);
  gathered["settings"] = common_settings(processes);
  gathered["frameworks"] = unite(processes, "frameworks");
  gathered["set_late"] = unite(processes, "set_late");
  gathered["intercepted"] = add_counts(processes, "intercepted");
  gathered["driver_calls"] = add_counts(processes, "driver_calls");
  gathered["uncovered"] = unite(processes, "uncovered");
  gathered["diagnoses"] = unite(processes, "diagnoses");
}

}  // namespace

json gather(const CommandRun& run, std::vector<json> processes) {
  std::stable_sort(processes.begin(), processes.end(), [](const json& one, const json& other) {
    return text(one, "started") < text(other, "started");
  });
  json gathered{{"schema", kSchema},      {"command", run.command}, {"mode", run.mode},
                {"started", run.started}, {"ended", run.ended},     {"exit_code", run.exit_code},
                {"processes", processes}};
  work_out(gathered);
  return gathered;
}

json as_gathered(json report) {
  if (member(report, "processes").is_array()) {
    work_out(report);
    return report;
  }
  json gathered{{"schema", kSchema}};
  for (const char* key : {"command", "mode", "started", "ended"}) gathered[key] = member(report, key);
  gathered["processes"] = json::array({std::move(report)});
  work_out(gathered);
  return gathered;
}

}  // namespace tidepool::cli
