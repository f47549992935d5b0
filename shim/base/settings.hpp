// The settings of a process, read once from the environment by the table in settings.def.
// Used by the shim and by the command, so that both refuse the same values with the same words.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/units.hpp"

namespace tidepool {

// Who owns device memory, see README.
enum class Mode { ondemand, prealloc, managed, passthrough, off };
enum class BackingChoice { automatic, native, vmm };
enum class FrameworkChoice { automatic, all, keep };
enum class LogLevel { off, error, warn, info, debug };

struct SettingRow {
  const char* field;
  const char* variable;
  const char* fallback;
  const char* allowed;
  const char* meaning;
};
std::span<const SettingRow> setting_rows();

// One part of TIDEPOOL_LIMIT: for every device, or for the one named by ordinal or UUID.
struct LimitRule {
  std::string device;  // empty: every device; else an ordinal or GPU-<uuid>, MIG-<uuid>
  std::optional<Bytes> bytes;
  double share = 1;  // of the device's memory, where bytes is not set
};

struct SettingError {
  std::string variable;
  std::string value;
  std::string allowed;
  // "TIDEPOOL_MODE=fast is not understood; allowed: ondemand, ..."
  std::string message() const;
};

struct SettingValue {
  std::string value;
  bool from_environment = false;
};

struct Settings {
  Mode mode = Mode::ondemand;
  double fraction = 0.75;
  std::vector<LimitRule> limit;
  BackingChoice backing = BackingChoice::automatic;
  std::optional<Bytes> headroom;  // nothing: automatic
  std::optional<double> wait;     // seconds; infinity for "forever"; nothing: automatic
  FrameworkChoice frameworks = FrameworkChoice::automatic;
  std::string report;
  std::string trace;
  LogLevel log = LogLevel::warn;
  std::string log_file;
  std::string state;
  bool fast_free = false;

  // Is memory served from an arena at all?
  bool serves() const { return mode == Mode::ondemand || mode == Mode::prealloc || mode == Mode::managed; }

  // As written, in the order of setting_rows(), for reports.
  std::vector<SettingValue> written;
  // What could not be understood. Not empty: the mode is passthrough.
  std::vector<SettingError> errors;
};

// The most a process may hold on one device, bytes; kUnlimited without a rule. A rule that names the
// device wins over one for every device.
Bytes limit_for_device(const Settings& settings, int ordinal, std::string_view uuid, Bytes total);

using Lookup = std::function<const char*(const char* variable)>;
Settings parse_settings(const Lookup& lookup);
Settings settings_from_environment();

const char* mode_name(Mode mode);

// Replaces %p by the process id.
std::string expand_path(std::string_view path, long pid);

}  // namespace tidepool
