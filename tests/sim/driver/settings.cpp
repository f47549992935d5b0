// Reads the SIM_ variables. A value that cannot be understood ends the process: a test that ran
// with another device than it asked for would prove nothing.
#include "settings.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace sim {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

[[noreturn]] void refuse(const char* name, const std::string& value, const char* allowed) {
  std::fprintf(stderr, "simulated GPU: %s=%s is not %s\n", name, value.c_str(), allowed);
  std::abort();
}

Settings read_settings() {
  Settings result;
  if (const std::string text = variable("SIM_DEVICES"); !text.empty()) {
    char* end = nullptr;
    const long count = std::strtol(text.c_str(), &end, 10);
    if (*end || count < 0 || count > 16) refuse("SIM_DEVICES", text, "a number from 0 to 16");
    result.devices = static_cast<int>(count);
  }
  if (const std::string text = variable("SIM_MEMORY"); !text.empty()) {
    result.memory = parse_size(text);
    if (!result.memory) refuse("SIM_MEMORY", text, "a size such as 80GiB, 512MiB or bytes");
  }
  if (const std::string text = variable("SIM_MIG"); !text.empty()) {
    char* end = nullptr;
    const long count = std::strtol(text.c_str(), &end, 10);
    if (*end || count < 1 || count > 7 || count * result.devices > 16)
      refuse("SIM_MIG", text, "a number from 1 to 7, 16 instances in all");
    result.instances = static_cast<int>(count);
  }
  result.log = variable("SIM_LOG");
  result.stats = variable("SIM_STATS");
  result.machine = variable("SIM_MACHINE");
  return result;
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number > 0) || number > 1e15) return 0;
  const std::string unit = end;
  const int shift = unit == "" || unit == "B" ? 0
                    : unit == "KiB"           ? 10
                    : unit == "MiB"           ? 20
                    : unit == "GiB"           ? 30
                    : unit == "TiB"           ? 40
                                              : -1;
  return shift < 0 ? 0 : static_cast<std::size_t>(number * static_cast<double>(1ull << shift));
}

const Settings& settings() {
  static const Settings* const instance = new Settings(read_settings());
  return *instance;
}

std::string expand_path(std::string path) {
  for (std::size_t at; (at = path.find("%p")) != std::string::npos;)
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

}  // namespace sim
