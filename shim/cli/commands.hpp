// The commands of `tidepool`. Each returns the exit code and writes what it says by itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shim/base/settings.hpp"
#include "shim/cli/child.hpp"

namespace tidepool::cli {

inline constexpr int kRefused = 2;  // wrong use: nothing was run or shown

struct RunOptions {
  std::vector<std::string> command;
  Variables settings;       // of the command: TIDEPOOL_... and its value, as given by flags
  std::string report_file;  // the gathered report goes here too; empty: only to the user's folder
  bool json = false;        // the summary as JSON, wherever stderr leads
  bool audit = false;       // with the audit companion
};
int run(const RunOptions& options);

struct EnvOptions {
  bool library_only = false;
  bool json = false;
};
int show_environment(const EnvOptions& options);

struct ReportOptions {
  std::vector<std::string> files;
  bool differences = false;  // of two files: what differs, and by how much
  bool json = false;
};
int show_reports(const ReportOptions& options);

struct TraceOptions {
  std::string file;
  std::string format;  // csv, html, perfetto or torch-snapshot; empty: a summary
  std::string out;     // empty: standard output
};
int show_trace(const TraceOptions& options);

struct DoctorOptions {
  std::vector<std::string> command;  // empty: about the machine
  Variables settings;                // of the command, as in RunOptions
  double seconds = 60;               // how long it may run
  bool json = false;
};
// One screen about this machine, or about a command that it runs. 1 if there is a problem.
int examine_machine(const DoctorOptions& options);
int examine_command(const DoctorOptions& options);

// "tidepool: <line>" on stderr, by one write.
void say(std::string_view line);

}  // namespace tidepool::cli
