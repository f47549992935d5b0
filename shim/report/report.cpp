// The report of one process as JSON, and its file.
#include "shim/report/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

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

Json to_object(const OutOfMemory& event) {
  return {{"time", event.time},         {"entry", event.entry},
          {"requested_bytes", event.requested}, {"free_bytes", or_null(event.free)},
          {"total_bytes", event.total}, {"live_bytes", event.live},
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
          {"requested_peak_bytes", device.requested_peak},
          {"reserved_bytes", device.reserved},
          {"reserved_peak_bytes", device.reserved_peak},
          {"unbacked_reservation_bytes", device.unbacked_reservation},
          {"allocations", device.allocations},
          {"frees", device.frees},
          {"oom", events}};
}

bool write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

std::string to_json(const Report& report) {
  Json settings = Json::object();
  for (const Setting& setting : report.settings)
    settings[setting.variable] = {{"value", setting.value},
                                  {"source", setting.from_environment ? "environment" : "default"}};
  Json frameworks = Json::array();
  for (const auto& [name, value] : report.frameworks) frameworks.push_back({{"name", name}, {"value", value}});
  Json devices = Json::array();
  for (const Device& device : report.devices) devices.push_back(to_object(device));
  const Json document = {{"schema", 1},
                         {"pid", report.pid},
                         {"command", report.command},
                         {"mode", report.mode},
                         {"settings", settings},
                         {"frameworks", frameworks},
                         {"started", report.started},
                         {"ended", report.ended},
                         {"devices", devices},
                         {"intercepted", to_object(report.intercepted)},
                         {"driver_calls", to_object(report.driver_calls)},
                         {"uncovered", report.uncovered}};
  // A command line may hold any bytes; a report must stay readable.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_report(const std::string& json, const std::string& path) {
  if (path == "stderr") return write_all(STDERR_FILENO, json) ? "" : std::strerror(errno);
  const std::string beside = path + ".part";
  const int descriptor = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return std::strerror(errno);
  const bool written = write_all(descriptor, json);
  const int cause = errno;
  ::close(descriptor);
  if (!written || std::rename(beside.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(written ? errno : cause);
    ::unlink(beside.c_str());
    return reason;
  }
  return "";
}

}  // namespace tidepool::report
