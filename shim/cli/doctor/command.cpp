// `tidepool doctor -- COMMAND`: runs it under the shim for a while, and tells what its settings came to.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shim/cli/command_file.hpp"
#include "shim/cli/commands.hpp"
#include "shim/cli/doctor/as_json.hpp"
#include "shim/cli/doctor/libraries.hpp"
#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/doctor/screen.hpp"
#include "shim/cli/library.hpp"
#include "shim/cli/report_store.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/under_shim.hpp"

namespace tidepool::cli {
namespace doctor {

Findings judge(const Observation& run) {
  Findings findings;
  for (const auto checks : {outcome_checks(), setting_checks(), jax_checks(), other_checks()})
    for (const RunCheck check : checks) check(run, findings);
  return findings;
}

namespace {

using Clock = std::chrono::steady_clock;

// Ends a command that runs too long. An interrupt first: Python leaves its report then, as it does not when
// another signal ends it.
class Patience {
 public:
  explicit Patience(double seconds)
      : deadline_(start_ + std::chrono::milliseconds(static_cast<long>(seconds * 1000))) {}

  int signal_due() {
    constexpr int kInTurn[] = {SIGINT, SIGTERM, SIGKILL};
    if (Clock::now() < deadline_ || sent_ == std::size(kInTurn)) return 0;
    deadline_ = Clock::now() + std::chrono::seconds(10);
    return kInTurn[sent_++];
  }
  bool over() const { return sent_ > 0; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;
  std::size_t sent_ = 0;
};

// The command's output must not run into ours.
class OutputToStderr {
 public:
  explicit OutputToStderr(bool wanted) : kept_(wanted ? ::dup(STDOUT_FILENO) : -1) {
    if (kept_ >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~OutputToStderr() {
    if (kept_ < 0) return;
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }
  OutputToStderr(const OutputToStderr&) = delete;
  OutputToStderr& operator=(const OutputToStderr&) = delete;

 private:
  int kept_;
};

std::map<std::string, Bytes> free_now() {
  std::map<std::string, Bytes> free;
  for (const Gpu& gpu : ask_driver().gpus)
    if (gpu.memory.value) free[gpu.uuid] = gpu.memory.value->free;
  return free;
}

nlohmann::ordered_json as_json(const Observation& run, const Findings& findings) {
  return {{"schema", kDoctorSchema},
          {"tidepool", TIDEPOOL_VERSION},
          {"verdict", verdict_name(worst(findings))},
          {"findings", to_json(findings)},
          {"run",
           {{"command", run.command},
            {"mode", mode_name(run.settings.mode)},
            {"exit_code", run.exit_code},
            {"ended_by_doctor", run.time_up},
            {"seconds", run.seconds},
            {"devices", member(run.report, "devices")},
            {"frameworks", member(run.report, "frameworks")},
            {"set_late", member(run.report, "set_late")},
            {"intercepted", member(run.report, "intercepted")},
            {"uncovered", member(run.report, "uncovered")}}}};
}

}  // namespace
}  // namespace doctor

int examine_command(const DoctorOptions& options) {
  using namespace doctor;
  Observation seen;
  seen.settings = settings_of_command(options.settings);
  for (const SettingError& error : seen.settings.errors) say(error.message());
  if (!seen.settings.errors.empty()) return kRefused;
  const Library library = find_library();
  if (!library.problem.empty()) {
    say(library.path + " " + library.problem + ". Build it, or set TIDEPOOL_LIBRARY to where it is.");
    return kRefused;
  }
  if (const std::string reason = why_out_of_reach(options.command[0]); !reason.empty())
    say(reason + "; it runs, but only programs that it starts may be seen");

  seen.command = options.command;
  seen.environment = look_around("").environment;
  for (const auto& [name, value] : options.settings) seen.environment[name] = value;
  seen.free_before = free_now();
  Variables environment = options.settings;
  put_in_front("LD_PRELOAD", library.path, environment);
  const RunFolder folder;
  if (!folder.problem().empty()) say(folder.problem() + "; nothing can be said of its memory");
  environment.emplace_back(kRunVariable, folder.path());

  Patience patience(options.seconds);
  CommandRun command{options.command, mode_name(seen.settings.mode), timestamp(), "", 0};
  ChildEnd end;
  {
    const OutputToStderr apart(options.json);
    end = run_child(options.command, environment, {std::chrono::milliseconds(50), [&](int pid) {
                                                     add_loaded(pid, seen.loaded);
                                                     return patience.signal_due();
                                                   }});
  }
  if (!end.error.empty()) {
    say(options.command[0] + ": " + end.error);
    return end.exit_code;
  }
  command.ended = timestamp();
  command.exit_code = seen.exit_code = end.exit_code;
  seen.time_up = patience.over();
  seen.seconds = patience.seconds();
  seen.report = gather(command, folder.read().reports);

  const Findings findings = judge(seen);
  if (options.json)
    std::cout << as_json(seen, findings).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  else
    std::cout << to_screen(findings, colour_wanted(STDOUT_FILENO));
  return worst(findings) == Verdict::problem ? 1 : 0;
}

}  // namespace tidepool::cli
