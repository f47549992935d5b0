// `tidepool env`: every setting as a process started here would read it.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shim/base/frameworks.hpp"
#include "shim/cli/commands.hpp"
#include "shim/cli/library.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/table.hpp"

namespace tidepool::cli {
namespace {

using nlohmann::json;

tidepool::Variables frameworks_here(const Settings& settings) {
  return plan_framework_variables({settings.mode, settings.frameworks,
                                   [](const char* name) -> const char* { return std::getenv(name); },
                                   count_gpus_present()})
      .set;
}

std::string error_of(const Settings& settings, const std::string& variable) {
  for (const SettingError& error : settings.errors)
    if (error.variable == variable) return error.message();
  return "";
}

json as_json(const Settings& settings, const Library& library) {
  json variables = json::array();
  for (std::size_t i = 0; i < setting_rows().size(); ++i) {
    const SettingRow& row = setting_rows()[i];
    const SettingValue& value = settings.written[i];
    json entry{{"name", row.variable},
               {"value", value.value},
               {"source", value.from_environment ? "environment" : "default"},
               {"default", row.fallback},
               {"allowed", row.allowed},
               {"meaning", row.meaning}};
    if (const std::string error = error_of(settings, row.variable); !error.empty()) entry["error"] = error;
    variables.push_back(std::move(entry));
  }
  json frameworks = json::array();
  for (const auto& [name, value] : frameworks_here(settings))
    frameworks.push_back({{"name", name}, {"value", value}});
  return {{"schema", kSchema},
          {"mode", mode_name(settings.mode)},
          {"variables", variables},
          {"frameworks", frameworks},
          {"library", {{"path", library.path}, {"problem", library.problem}}}};
}

void print_table(const Settings& settings) {
  std::vector<std::vector<std::string>> rows{{"VARIABLE", "VALUE", "SOURCE", "ALLOWED", "MEANING"}};
  for (std::size_t i = 0; i < setting_rows().size(); ++i) {
    const SettingRow& row = setting_rows()[i];
    const SettingValue& value = settings.written[i];
    const bool refused = !error_of(settings, row.variable).empty();
    rows.push_back({row.variable, value.value.empty() ? "-" : shorten(printable(value.value), 40),
                    refused                  ? "REFUSED"
                    : value.from_environment ? "environment"
                                             : "default",
                    row.allowed, row.meaning});
  }
  std::cout << format_table(rows, Align::left);
}

}  // namespace

int show_environment(const EnvOptions& options) {
  const Library library = find_library();
  if (options.library_only) {
    std::cout << library.path << "\n";
    if (!library.problem.empty()) say(library.path + " " + library.problem);
    return library.problem.empty() ? 0 : 1;
  }
  const Settings settings = settings_from_environment();
  const int exit_code = settings.errors.empty() ? 0 : 1;
  if (options.json) {
    std::cout << to_text(as_json(settings, library), 2) << "\n";
    return exit_code;
  }
  print_table(settings);
  std::cout << "\n";
  for (const SettingError& error : settings.errors)
    std::cout << printable(error.message()) << "; a process here passes everything through\n";
  std::string set;
  for (const auto& [name, value] : frameworks_here(settings)) set += " " + name + "=" + value;
  std::cout << "set for a Python process here:" << (set.empty() ? " nothing" : set) << "\n"
            << "library: " << printable(library.path)
            << (library.problem.empty() ? "" : " " + library.problem) << "\n";
  return exit_code;
}

}  // namespace tidepool::cli
