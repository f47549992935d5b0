// Reports as data: reading one file, and gathering those of the processes of one command into one.
//
// A gathered report is {schema, command, mode, started, ended, exit_code, processes[], devices[],
// settings{}, frameworks[], set_late[], intercepted{}, driver_calls{}, uncovered[], unreadable[]}. Everything after
// `processes` is worked out from it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tidepool::cli {

inline constexpr int kSchema = 1;

// How the peaks of a device in a gathered report came about.
inline constexpr const char* kPeakCounted = "counted";
inline constexpr const char* kPeakSummed = "sum of peaks, an upper bound";

struct CommandRun {
  std::vector<std::string> command;
  std::string mode;
  std::string started;
  std::string ended;
  int exit_code = 0;
};

nlohmann::json gather(const CommandRun& run, std::vector<nlohmann::json> processes);

// A report of one process as a gathered one; a gathered one as it is.
nlohmann::json as_gathered(nlohmann::json report);

// The report in a file. Throws std::runtime_error with what is wrong with the file, without its name.
nlohmann::json read_report(const std::string& path);

// Members of reports, which may lack anything or hold it in another type.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
std::optional<std::uint64_t> number(const nlohmann::json& object, const char* key);
std::string text(const nlohmann::json& object, const char* key);

// One line of a report's text for a terminal: without control characters.
std::string printable(std::string text);

// Never throws over text that is not UTF-8, such as an argument of the command.
std::string to_text(const nlohmann::json& value, int indent = -1);

}  // namespace tidepool::cli
