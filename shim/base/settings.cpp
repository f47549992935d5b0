// The settings of a process: the table of settings.def and the parser of each field.
#include "shim/base/settings.hpp"

#include <cstdlib>
#include <limits>
#include <utility>

#include "shim/base/sizes.hpp"

namespace tidepool {
namespace {

constexpr SettingRow kRows[] = {
#define SETTING(field, variable, fallback, allowed, meaning) {#field, variable, fallback, allowed, meaning},
#include "shim/base/settings.def"
#undef SETTING
};

template <typename Choice>
using Names = std::initializer_list<std::pair<const char*, Choice>>;

constexpr std::pair<const char*, Mode> kModes[] = {{"ondemand", Mode::ondemand},
                                                   {"prealloc", Mode::prealloc},
                                                   {"managed", Mode::managed},
                                                   {"passthrough", Mode::passthrough},
                                                   {"off", Mode::off}};

template <typename Choice, typename Table>
bool choose(const Table& names, std::string_view text, Choice& out) {
  for (const auto& [name, value] : names)
    if (text == name) return out = value, true;
  return false;
}

bool parse(std::string_view text, Mode& out) { return choose(kModes, text, out); }
bool parse(std::string_view text, BackingChoice& out) {
  return choose(Names<BackingChoice>{{"auto", BackingChoice::automatic},
                                     {"native", BackingChoice::native},
                                     {"vmm", BackingChoice::vmm}},
                text, out);
}
bool parse(std::string_view text, FrameworkChoice& out) {
  return choose(Names<FrameworkChoice>{{"auto", FrameworkChoice::automatic},
                                       {"all", FrameworkChoice::all},
                                       {"keep", FrameworkChoice::keep}},
                text, out);
}
bool parse(std::string_view text, LogLevel& out) {
  return choose(Names<LogLevel>{{"off", LogLevel::off},
                                {"error", LogLevel::error},
                                {"warn", LogLevel::warn},
                                {"info", LogLevel::info},
                                {"debug", LogLevel::debug}},
                text, out);
}
bool parse(std::string_view text, bool& out) {
  return choose(Names<bool>{{"0", false}, {"1", true}}, text, out);
}
bool parse(std::string_view text, std::string& out) { return out = text, true; }
bool parse(std::string_view text, double& out) {
  const auto number = parse_fraction(text);
  return number ? out = *number, true : false;
}
bool parse(std::string_view text, std::optional<Bytes>& out) {
  if (text == "auto") return out.reset(), true;
  out = parse_size(text);
  return out.has_value();
}
bool parse(std::string_view text, std::optional<double>& out) {
  if (text == "auto") return out.reset(), true;
  if (text == "forever") return out = std::numeric_limits<double>::infinity(), true;
  out = take_number(text);
  return out.has_value() && text.empty();
}

std::optional<LimitRule> parse_limit_rule(std::string_view text) {
  LimitRule rule;
  if (const auto equals = text.find('='); equals != std::string_view::npos) {
    rule.device = text.substr(0, equals);
    if (rule.device.empty()) return std::nullopt;
    text.remove_prefix(equals + 1);
  }
  if (!text.empty() && text.back() == '%') {
    text.remove_suffix(1);
    const std::optional<double> percent = take_number(text);
    if (!percent || !text.empty() || *percent <= 0 || *percent > 100) return std::nullopt;
    rule.share = *percent / 100;
    return rule;
  }
  rule.bytes = parse_size(text);
  if (!rule.bytes || *rule.bytes == 0) return std::nullopt;
  return rule;
}

bool parse(std::string_view text, std::vector<LimitRule>& out) {
  out.clear();
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto rule = parse_limit_rule(text.substr(0, comma));
    if (!rule) return false;
    out.push_back(*rule);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
    if (text.empty()) return false;
  }
  return true;
}

template <typename Field>
void read(const SettingRow& row, const Lookup& lookup, Field& field, Settings& settings) {
  const char* given = lookup(row.variable);
  // An empty variable means "not set", as everywhere in a shell.
  const bool set = given != nullptr && *given != '\0';
  settings.written.push_back({set ? given : row.fallback, set});
  if (set && !parse(given, field)) settings.errors.push_back({row.variable, given, row.allowed});
}

// The driver gives a UUID's bytes, not whether it is a whole GPU's or a MIG instance's.
bool names_same_device(std::string_view one, std::string_view other) {
  const auto bare = [](std::string_view uuid) {
    return uuid.starts_with("GPU-") || uuid.starts_with("MIG-") ? uuid.substr(4) : std::string_view();
  };
  return !bare(one).empty() && bare(one) == bare(other);
}

}  // namespace

std::span<const SettingRow> setting_rows() { return kRows; }

std::string SettingError::message() const {
  return variable + "=" + value + " is not understood; allowed: " + allowed;
}

Settings parse_settings(const Lookup& lookup) {
  Settings settings;
  const SettingRow* row = kRows;
#define SETTING(field, variable, fallback, allowed, meaning) read(*row++, lookup, settings.field, settings);
#include "shim/base/settings.def"
#undef SETTING
  if (!settings.errors.empty()) settings.mode = Mode::passthrough;
  return settings;
}

Settings settings_from_environment() {
  return parse_settings([](const char* variable) { return std::getenv(variable); });
}

Bytes limit_for_device(const Settings& settings, int ordinal, std::string_view uuid, Bytes total) {
  const LimitRule* found = nullptr;
  for (const LimitRule& rule : settings.limit) {
    if (rule.device == std::to_string(ordinal) || names_same_device(rule.device, uuid)) found = &rule;
    if (rule.device.empty() && (found == nullptr || found->device.empty())) found = &rule;
  }
  if (found == nullptr) return kUnlimited;
  return found->bytes ? *found->bytes : static_cast<Bytes>(found->share * static_cast<double>(total));
}

const char* mode_name(Mode mode) {
  for (const auto& [name, value] : kModes)
    if (value == mode) return name;
  return "?";
}

std::string expand_path(std::string_view path, long pid) {
  std::string expanded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '%' && i + 1 < path.size() && path[i + 1] == 'p') {
      expanded += std::to_string(pid);
      ++i;
    } else {
      expanded += path[i];
    }
  }
  return expanded;
}

}  // namespace tidepool
