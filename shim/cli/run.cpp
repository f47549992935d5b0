// `tidepool run`: the command under the shim, its exit code, and what its processes reported.
#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "shim/cli/command_file.hpp"
#include "shim/cli/commands.hpp"
#include "shim/cli/library.hpp"
#include "shim/cli/report_store.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/summary.hpp"
#include "shim/cli/under_shim.hpp"

namespace tidepool::cli {
namespace {

using nlohmann::json;

// The path under which the report was kept; empty if it was not.
std::string keep(const json& gathered, const std::string& report_file) {
  std::string kept_as;
  try {
    if (!gathered["processes"].empty()) kept_as = keep_report(kept_reports_folder(), gathered);
  } catch (const std::runtime_error& error) {
    say(std::string("the report is not kept: ") + error.what());
  }
  try {
    if (!report_file.empty()) write_report(report_file, gathered);
  } catch (const std::runtime_error& error) {
    say(std::string("--report: ") + error.what());
  }
  return kept_as;
}

void sum_up(const json& gathered, const std::string& kept_as, bool as_json) {
  if (as_json) {
    const std::string line = to_text(summary(gathered, kept_as)) + "\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
    return;
  }
  if (::isatty(STDERR_FILENO) == 0) return;
  say(usage_line(gathered));
  for (const json& line : member(gathered, "uncovered"))
    if (line.is_string()) say("not covered: " + printable(line.get<std::string>()));
  std::string next = advice(gathered);
  if (!kept_as.empty()) next += (next.empty() ? "" : "; ") + ("all of it: tidepool report " + kept_as);
  if (!next.empty()) say(next);
}

bool add_companion(const Library& library, Variables& environment) {
  if (const std::string problem = audit_problem(::gnu_get_libc_version()); !problem.empty()) {
    say("--audit " + problem + ". Leave it out, or run a newer system.");
    return false;
  }
  const Library companion = find_companion(library);
  if (!companion.problem.empty()) {
    say("--audit: " + companion.path + " " + companion.problem + ". Leave it out, or build it.");
    return false;
  }
  put_in_front("LD_AUDIT", companion.path, environment);
  return true;
}

}  // namespace

int run(const RunOptions& options) {
  const Settings settings = settings_of_command(options.settings);
  for (const SettingError& error : settings.errors) say(error.message());
  if (!settings.errors.empty()) return kRefused;

  Variables environment = options.settings;
  const Library library = find_library();
  if (options.audit && library.problem.empty() && !add_companion(library, environment)) return kRefused;
  if (library.problem.empty()) {
    put_in_front("LD_PRELOAD", library.path, environment);
    const std::string reason = why_out_of_reach(options.command[0]);
    if (!reason.empty()) say(reason + "; it runs, but only programs that it starts may be seen");
  } else {
    say(library.path + " " + library.problem +
        "; the command runs without it. Build it, or set TIDEPOOL_LIBRARY to where it is.");
  }
  const char* outer = std::getenv(kRunVariable);
  const RunFolder folder;
  if (folder.problem().empty()) {
    environment.emplace_back(kRunVariable, folder.path());
  } else {
    say(folder.problem() + "; there will be no report");
  }

  CommandRun command{options.command, mode_name(settings.mode), timestamp(), "", 0};
  const ChildEnd end = run_child(options.command, environment);
  command.ended = timestamp();
  command.exit_code = end.exit_code;
  if (!end.error.empty()) say(options.command[0] + ": " + end.error);

  // From here on only we write: a reader of our lines that is gone must not cost the command's exit code.
  std::signal(SIGPIPE, SIG_IGN);
  RunFolder::Content content = folder.read();
  if (outer != nullptr) folder.copy_to(outer);
  json gathered = gather(command, std::move(content.reports));
  if (!content.unreadable.empty()) gathered["unreadable"] = content.unreadable;
  const std::string kept_as = keep(gathered, options.report_file);
  if (library.problem.empty() && end.error.empty()) sum_up(gathered, kept_as, options.json);
  return end.exit_code;
}

}  // namespace tidepool::cli
