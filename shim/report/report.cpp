// The report of one process as JSON, and its file.
#include "shim/report/report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "shim/base/descriptor.hpp"
#include "shim/report/advice.hpp"

namespace tidepool::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_object(const std::map<std::string, std::uint64_t>& counts) {
  Json object = Json::object();
  for (const auto& [entry, calls] : counts)
    if (calls > 0) object[entry] = calls;
  return object;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_list(const std::vector<std::pair<std::string, std::string>>& variables) {
  Json list = Json::array();
  for (const auto& [name, value] : variables) list.push_back({{"name", name}, {"value", value}});
  return list;
}

Json to_object(const OutOfMemory& event) {
  return {{"time", event.time},
          {"entry", event.entry},
          {"requested_bytes", event.requested},
          {"free_bytes", or_null(event.free)},
          {"total_bytes", event.total},
          {"live_bytes", event.live},
          {"reserved_bytes", event.reserved}};
}

Json to_object(const Device& device) {
  Json events = Json::array();
  for (const OutOfMemory& event : device.out_of_memory) events.push_back(to_object(event));
  return {{"ordinal", device.ordinal},
          {"uuid", device.uuid},
          {"name", device.name},
          {"total_bytes", device.total},
          {"limit_bytes", or_null(device.limit)},
          {"live_bytes", device.live},
          {"requested_bytes", device.requested},
          {"served_bytes", device.served},
          {"requested_peak_bytes", device.requested_peak},
          {"reserved_bytes", device.reserved},
          {"reserved_peak_bytes", device.reserved_peak},
          {"cached_bytes", device.cached},
          {"unbacked_reservation_bytes", device.unbacked_reservation},
          {"lazily_backed_bytes", device.lazily_backed},
          {"allocations", device.allocations},
          {"frees", device.frees},
          {"oom", events}};
}

Json to_object(const Holder& holder) {
  return {{"pid", holder.pid},
          {"bytes", or_null(holder.bytes)},
          {"in_sight", holder.in_sight},
          {"user", holder.user.text},
          {"command", holder.command.text}};
}

Json to_object(const Diagnosis& diagnosis) {
  const Failure& failure = diagnosis.failure;
  Json holders = Json::array();
  for (std::size_t i = 0; i < failure.machine.listed; ++i)
    if (!failure.machine.holders[i].is_self) holders.push_back(to_object(failure.machine.holders[i]));
  const auto name = [](const std::optional<Part>& part) {
    return part ? Json(part_name(*part)) : Json(nullptr);
  };
  Advice advice;
  advise(failure, diagnosis.cause, advice);
  return {{"time", diagnosis.time},
          {"cause", cause_name(diagnosis.cause)},
          {"entry", failure.entry},
          {"error", failure.error},
          {"ordinal", failure.device},
          {"requested_bytes", failure.requested},
          {"first_requested_bytes", failure.tried_first},
          {"refusals", failure.refusals},
          {"framework", name(failure.framework)},
          {"library", name(failure.library)},
          {"total_bytes", failure.total},
          {"free_bytes", or_null(failure.known_free())},
          {"live_bytes", failure.live},
          {"cached_bytes", failure.cached},
          {"held_by_others_bytes", failure.held_by_others()},
          {"unattributed_bytes", failure.unattributed()},
          {"holders", holders},
          {"to_do", std::string(advice.to_do.view())},
          {"no_use", std::string(advice.no_use.view())},
          {"screen", diagnosis.screen}};
}

// A device, a pipe, a terminal: nothing to replace, so it is written as it stands.
std::string write_in_place(const std::string& json, const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::strerror(errno);
  const bool written = write_quietly(descriptor, json);
  const std::string reason = written ? "" : std::strerror(errno);
  ::close(descriptor);
  return reason;
}

}  // namespace

std::string to_json(const Report& report) {
  Json settings = Json::object();
  for (const Setting& setting : report.settings)
    settings[setting.variable] = {{"value", setting.value},
                                  {"source", setting.from_environment ? "environment" : "default"}};
  Json devices = Json::array();
  for (const Device& device : report.devices) devices.push_back(to_object(device));
  Json diagnoses = Json::array();
  for (const Diagnosis& diagnosis : report.diagnoses) diagnoses.push_back(to_object(diagnosis));
  const Json document = {{"schema", 1},
                         {"pid", report.pid},
                         {"command", report.command},
                         {"mode", report.mode},
                         {"settings", settings},
                         {"frameworks", to_list(report.frameworks)},
                         {"set_late", to_list(report.set_late)},
                         {"started", report.started},
                         {"ended", report.ended},
                         {"devices", devices},
                         {"intercepted", to_object(report.intercepted)},
                         {"driver_calls", to_object(report.driver_calls)},
                         {"uncovered", report.uncovered},
                         {"diagnoses", diagnoses},
                         {"further_refusals", report.refusals_counted}};
  // A command line may hold any bytes; a report must stay readable.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_report(const std::string& json, const std::string& path) {
  if (path == "stderr") return write_quietly(STDERR_FILENO, json) ? "" : std::strerror(errno);
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return write_in_place(json, path);
  // Of this process alone: several may have been given one path.
  const std::string beside = path + "." + std::to_string(::getpid()) + ".part";
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return std::strerror(errno);
  const bool written = write_quietly(descriptor, json);
  const int cause = errno;
  ::close(descriptor);
  if (written && std::rename(beside.c_str(), path.c_str()) == 0) return "";
  const std::string reason = std::strerror(written ? errno : cause);
  ::unlink(beside.c_str());
  return reason;
}

}  // namespace tidepool::report
