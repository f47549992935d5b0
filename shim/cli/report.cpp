// `tidepool report`: one report readable, or several side by side.
#include <algorithm>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>

#include "shim/base/settings.hpp"
#include "shim/base/sizes.hpp"
#include "shim/cli/commands.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/table.hpp"

namespace tidepool::cli {
namespace {

using nlohmann::json;
using Row = std::vector<std::string>;
using Cell = std::function<std::string(const json& report)>;

struct Shown {
  std::string file;
  json report;  // gathered
};

using Amount = std::function<std::optional<std::uint64_t>(const json& report)>;
using Format = std::function<std::string(std::uint64_t amount)>;

// "+1.5 GiB (+50 %)"
std::string difference(std::uint64_t before, std::uint64_t after, const Format& format) {
  const bool less = after < before;
  std::string text = (less ? "-" : "+") + format(less ? before - after : after - before);
  char share[32];
  if (before > 0) {
    std::snprintf(share, sizeof share, " (%+.0f %%)",
                  (static_cast<double>(after) / static_cast<double>(before) - 1) * 100);
    text += share;
  }
  return text;
}

// Builds the table row by row; one column for each report. Of differences: two, and only rows that differ.
class SideBySide {
 public:
  SideBySide(const std::vector<Shown>& shown, bool differences) : shown_(shown), differences_(differences) {
    Row files{"report"};
    for (const Shown& one : shown) files.push_back(fitting(one.file));
    if (differences_) files.push_back("difference");
    rows_.push_back(files);
  }
  void add_amount(const std::string& label, const Amount& amount, const Format& format) {
    add(label, [&](const json& report) {
      const auto known = amount(report);
      return known ? format(*known) : std::string();
    });
    if (!differences_ || rows_.back().front() != label) return;
    const auto before = amount(shown_[0].report);
    const auto after = amount(shown_[1].report);
    if (before && after) rows_.back().back() = difference(*before, *after, format);
  }
  void add(const std::string& label, const Cell& cell) {
    Row row{label};
    bool any = false;
    for (const Shown& one : shown_) {
      row.push_back(fitting(cell(one.report)));
      any = any || !row.back().empty();
      if (row.back().empty()) row.back() = "-";
    }
    if (differences_) {
      any = row[1] != row[2];
      row.push_back("");
    }
    if (any) rows_.push_back(row);
  }
  void heading(const std::string& text) {
    rows_.push_back({""});
    rows_.push_back({text});
  }
  std::string table() const { return format_table(rows_, Align::right); }

 private:
  std::string fitting(const std::string& cell) const {
    return shorten(printable(cell), shown_.size() > 1 ? 44 : 200);
  }

  const std::vector<Shown>& shown_;
  const bool differences_;
  std::vector<Row> rows_;
};

std::string plain_number(std::uint64_t amount) { return std::to_string(amount); }

std::string command_of(const json& report) {
  std::string line;
  for (const json& argument : member(report, "command"))
    if (argument.is_string()) line += (line.empty() ? "" : " ") + argument.get<std::string>();
  return line;
}

std::string scalar(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

std::set<std::string> names_in(const std::vector<Shown>& shown, const char* key) {
  std::set<std::string> names;
  for (const Shown& one : shown)
    for (const auto& entry : member(one.report, key).items()) names.insert(entry.key());
  return names;
}

std::string fallback_of(const std::string& variable) {
  for (const SettingRow& row : setting_rows())
    if (variable == row.variable) return row.fallback;
  return "";
}

void add_settings(SideBySide& table, const std::vector<Shown>& shown) {
  for (const std::string& name : names_in(shown, "settings")) {
    const std::string fallback = fallback_of(name);
    const auto value = [&](const json& report) {
      return text(member(member(report, "settings"), name.c_str()), "value");
    };
    const bool differs = std::any_of(shown.begin(), shown.end(), [&](const Shown& one) {
      return member(member(one.report, "settings"), name.c_str()).is_object() &&
             value(one.report) != fallback;
    });
    // The mode has a row of its own.
    if (differs && name != "TIDEPOOL_MODE") table.add(name, value);
  }
}

void add_device(SideBySide& table, std::size_t index) {
  const auto device = [index](const json& report) -> const json& {
    const json& devices = member(report, "devices");
    return index < devices.size() ? devices[index] : member(devices, "");
  };
  const auto plain = [&](const char* key) {
    return [device, key](const json& report) { return scalar(member(device(report), key)); };
  };
  const auto amount = [&](const char* key) {
    return [device, key](const json& report) { return number(device(report), key); };
  };
  table.heading("device " + std::to_string(index));
  table.add("  name", plain("name"));
  table.add("  uuid", plain("uuid"));
  table.add_amount("  total", amount("total_bytes"), format_size);
  table.add("  limit", [device](const json& report) {
    if (device(report).is_null()) return std::string();
    const auto bytes = number(device(report), "limit_bytes");
    return bytes ? format_size(*bytes) : std::string("none");
  });
  table.add_amount("  live at end", amount("live_bytes"), format_size);
  table.add_amount("  asked, peak", amount("requested_peak_bytes"), format_size);
  table.add_amount("  held, peak", amount("reserved_peak_bytes"), format_size);
  table.add("  held / asked", [device](const json& report) {
    const auto asked = number(device(report), "requested_peak_bytes");
    const auto held = number(device(report), "reserved_peak_bytes");
    if (!asked || !held || *asked == 0) return std::string();
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.2f", static_cast<double>(*held) / static_cast<double>(*asked));
    return std::string(ratio);
  });
  table.add("  peaks are", plain("peaks_are"));
  table.add("  used by processes", plain("processes"));
  table.add_amount("  allocations", amount("allocations"), plain_number);
  table.add_amount("  frees", amount("frees"), plain_number);
  table.add("  out of memory", [device](const json& report) {
    return device(report).is_null() ? "" : std::to_string(member(device(report), "oom").size());
  });
}

void add_calls(SideBySide& table, const std::vector<Shown>& shown, const char* key,
               const std::string& heading) {
  const std::set<std::string> names = names_in(shown, key);
  if (names.empty()) return;
  table.heading(heading);
  for (const std::string& name : names)
    table.add_amount(
        "  " + printable(name), [&](const json& report) { return number(member(report, key), name.c_str()); },
        plain_number);
}

std::string side_by_side(const std::vector<Shown>& shown, bool differences) {
  SideBySide table(shown, differences);
  table.add("command", command_of);
  table.add("mode", [](const json& report) { return text(report, "mode"); });
  table.add("exit code", [](const json& report) { return scalar(member(report, "exit_code")); });
  table.add("started", [](const json& report) { return text(report, "started"); });
  table.add("ended", [](const json& report) { return text(report, "ended"); });
  table.add("processes",
            [](const json& report) { return std::to_string(member(report, "processes").size()); });
  add_settings(table, shown);
  std::set<std::string> frameworks;
  for (const Shown& one : shown)
    for (const json& variable : member(one.report, "frameworks")) frameworks.insert(text(variable, "name"));
  for (const std::string& name : frameworks)
    table.add("set: " + name, [&](const json& report) {
      for (const json& variable : member(report, "frameworks"))
        if (text(variable, "name") == name) return text(variable, "value");
      return std::string();
    });
  std::size_t devices = 0;
  for (const Shown& one : shown) devices = std::max(devices, member(one.report, "devices").size());
  for (std::size_t i = 0; i < devices; ++i) add_device(table, i);
  add_calls(table, shown, "intercepted", "calls of the program");
  add_calls(table, shown, "driver_calls", "calls of tidepool to the driver");
  return table.table();
}

// The screens that were shown when memory could not be had.
void list_diagnoses(const std::vector<Shown>& shown) {
  for (const Shown& one : shown)
    for (const json& diagnosis : member(one.report, "diagnoses")) {
      std::cout << "\n" << printable("in " + one.file + ", " + text(diagnosis, "time") + ":") << "\n";
      std::istringstream lines(text(diagnosis, "screen"));
      for (std::string line; std::getline(lines, line);) std::cout << printable(line) << "\n";
    }
}

void list_uncovered(const std::vector<Shown>& shown) {
  for (const Shown& one : shown)
    for (const json& entry : member(one.report, "uncovered"))
      std::cout << printable("not covered in " + one.file + ": " + scalar(entry)) << "\n";
  for (const Shown& one : shown)
    for (const json& entry : member(one.report, "unreadable"))
      std::cout << printable("left out of " + one.file + ": " + scalar(entry)) << "\n";
}

}  // namespace

int show_reports(const ReportOptions& options) {
  std::vector<Shown> shown;
  json problems = json::array();
  for (const std::string& file : options.files) {
    try {
      shown.push_back({file, as_gathered(read_report(file))});
    } catch (const std::runtime_error& error) {
      say(printable(file) + " " + error.what());
      problems.push_back({{"file", file}, {"problem", error.what()}});
    }
  }
  if (options.json) {
    json reports = json::array();
    for (Shown& one : shown) {
      one.report["file"] = one.file;
      reports.push_back(one.report);
    }
    std::cout << to_text({{"schema", kSchema}, {"reports", reports}, {"problems", problems}}, 2) << "\n";
  } else if (!shown.empty()) {
    std::cout << side_by_side(shown, options.differences && shown.size() == 2);
    list_uncovered(shown);
    list_diagnoses(shown);
  }
  if (shown.empty()) return kRefused;
  return problems.empty() ? 0 : 1;
}

}  // namespace tidepool::cli
