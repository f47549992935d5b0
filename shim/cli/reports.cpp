// Reports as data: reading one file, and the members that it may lack.
#include "shim/cli/reports.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace tidepool::cli {
namespace {

using nlohmann::json;

bool has_type(const json& report, const char* key, json::value_t type) {
  const json& value = member(report, key);
  return value.is_null() || value.type() == type;
}

bool objects_only(const json& list) {
  for (const json& entry : list)
    if (!entry.is_object()) return false;
  return true;
}

void require_shape(const json& report) {
  for (const char* key : {"devices", "processes", "command", "frameworks", "uncovered", "diagnoses"})
    if (!has_type(report, key, json::value_t::array))
      throw std::runtime_error(std::string("is not a report of tidepool: ") + key + " is not a list");
  for (const char* key : {"settings", "intercepted", "driver_calls"})
    if (!has_type(report, key, json::value_t::object))
      throw std::runtime_error(std::string("is not a report of tidepool: ") + key + " is not an object");
  if (!objects_only(member(report, "devices")) || !objects_only(member(report, "processes")))
    throw std::runtime_error("is not a report of tidepool: a device or process is not an object");
  for (const json& process : member(report, "processes")) require_shape(process);
}

}  // namespace

json read_report(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (file) content << file.rdbuf();
  const std::string bytes = content.str();
  if (!file || (bytes.empty() && errno != 0))
    throw std::runtime_error(std::string("cannot be read (") + std::strerror(errno) + ")");
  if (bytes.find_first_not_of(" \t\r\n") == std::string::npos)
    throw std::runtime_error("is empty; its process may have been killed while it wrote");
  json report;
  try {
    report = json::parse(bytes);
  } catch (const json::parse_error& error) {
    if (error.byte > bytes.size() && (bytes.front() == '{' || bytes.front() == '['))
      throw std::runtime_error("is cut off; its process may have been killed while it wrote");
    throw std::runtime_error("is not JSON");
  }
  if (!report.is_object() || !report.contains("schema"))
    throw std::runtime_error("is not a report of tidepool: it has no schema");
  if (report["schema"] != kSchema)
    throw std::runtime_error("has schema " + to_text(report["schema"]) + "; this tidepool reads schema " +
                             std::to_string(kSchema));
  require_shape(report);
  return report;
}

const json& member(const json& object, const char* key) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::optional<std::uint64_t> number(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_number_integer() || value < 0) return std::nullopt;
  return value.get<std::uint64_t>();
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string printable(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
  return text;
}

std::string to_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace tidepool::cli
