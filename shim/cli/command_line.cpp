// The command line of `tidepool`: what is understood, and the help.
#include "shim/cli/command_line.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "shim/cli/commands.hpp"

namespace tidepool::cli {
namespace {

std::string flag_of(const SettingRow& row) {
  std::string flag = std::string("--") + row.field;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

// Everything from the command on: after `--`, else from the first argument that is neither a flag nor a
// flag's value. Taken out before CLI11 sees it, which would split an argument such as [1,2] at commas.
std::vector<std::string> take_command(std::vector<std::string>& arguments, const CLI::App& run) {
  auto word = arguments.begin() + 1;  // `run` itself
  while (word != arguments.end() && *word != "--" && word->size() > 1 && word->front() == '-') {
    const CLI::Option* option = run.get_option_no_throw(*word);
    ++word;
    if (option != nullptr && option->get_items_expected_max() > 0 && word != arguments.end()) ++word;
  }
  const auto command = word != arguments.end() && *word == "--" ? word + 1 : word;
  std::vector<std::string> taken(command, arguments.end());
  arguments.erase(word, arguments.end());
  return taken;
}

// CLI11 knows nothing of the command, so its own usage line would leave it out.
class CommandHelp : public CLI::Formatter {
 public:
  explicit CommandHelp(std::string usage) : usage_(std::move(usage)) { column_width(26); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: tidepool " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

// One flag for each setting. --report is run's own: one report of all processes, not one of each.
struct SettingFlag {
  std::string value;
  const CLI::Option* option = nullptr;
};
using SettingFlags = std::map<std::string, SettingFlag>;  // by variable

void add_setting_flags(CLI::App& command, SettingFlags& flags) {
  for (const SettingRow& row : setting_rows()) {
    if (std::string_view(row.field) == "report") continue;
    std::string help = std::string(row.meaning) + " (" + row.allowed;
    if (*row.fallback != '\0') help += std::string("; default ") + row.fallback;
    SettingFlag& flag = flags[row.variable];
    flag.option = command.add_option(flag_of(row), flag.value, help + ")")->type_name(upper(row.field));
  }
}

// A flag given with nothing undoes what the environment says.
Variables given_settings(const SettingFlags& flags) {
  Variables given;
  for (const auto& [variable, flag] : flags)
    if (flag.option->count() > 0) given.emplace_back(variable, flag.value);
  return given;
}

CLI::App* add_run(CLI::App& app, RunOptions& options, SettingFlags& flags) {
  CLI::App* run = app.add_subcommand("run", "run a command with its GPU memory from one arena");
  run->formatter(std::make_shared<CommandHelp>("run [OPTIONS] [--] COMMAND [ARGUMENTS...]"));
  run->footer(
      "The exit code is the command's. Reports are kept under ~/.cache/tidepool/reports, the last 50.\n"
      "Example: tidepool run --mode prealloc --fraction 0.5 -- python train.py");
  add_setting_flags(*run, flags);
  run->add_option("--report", options.report_file, "one JSON report of all processes, to this file")
      ->type_name("FILE");
  run->add_flag("--json", options.json, "end with the summary as JSON on stderr");
  run->add_flag("--audit", options.audit,
                "also see a driver that is loaded in a namespace of its own (dlmopen); for when a report "
                "names one as not seen");
  return run;
}

CLI::App* add_env(CLI::App& app, EnvOptions& options) {
  CLI::App* env = app.add_subcommand("env", "every setting: its value here, what is allowed, its meaning");
  env->add_flag("--library", options.library_only, "print where libtidepool.so is, and nothing else");
  env->add_flag("--json", options.json, "for programs");
  env->footer(
      "The exit code is 1 if a value is not understood.\n"
      "Example: LD_PRELOAD=$(tidepool env --library) python train.py");
  return env;
}

CLI::App* add_report(CLI::App& app, ReportOptions& options) {
  CLI::App* report = app.add_subcommand("report", "show reports, several side by side");
  report->add_option("FILE", options.files, "reports of `run`, or of single processes")
      ->required()
      ->type_name("");
  report->add_flag("--diff", options.differences, "of two reports: what differs, and by how much");
  report->add_flag("--json", options.json, "for programs");
  report->footer(
      "The exit code is 1 if a file could not be shown, 2 if none could.\n"
      "Example: tidepool report prealloc.json ondemand.json");
  return report;
}

CLI::App* add_trace(CLI::App& app, TraceOptions& options) {
  CLI::App* trace = app.add_subcommand("trace", "what a trace (TIDEPOOL_TRACE) holds, or in another format");
  trace->add_option("FILE", options.file, "a trace of one process")->required()->type_name("");
  trace
      ->add_option("--to", options.format,
                   "csv; html: a page with a plot of memory over time; perfetto: JSON for ui.perfetto.dev; "
                   "torch-snapshot: a pickle for "
                   "torch.cuda._memory_viz and pytorch.org/memory_viz")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"csv", "html", "perfetto", "torch-snapshot"}));
  trace->add_option("-o,--out", options.out, "write there, not on standard output")->type_name("OUT");
  trace->footer(
      "The exit code is 2 for a file that is no trace, cut off or damaged, 1 if OUT cannot be written.\n"
      "Example: tidepool run --trace /tmp/%p.trace -- python train.py\n"
      "         tidepool trace /tmp/123.trace --to torch-snapshot -o snapshot.pickle");
  return trace;
}

CLI::App* add_doctor(CLI::App& app, DoctorOptions& options, SettingFlags& flags) {
  CLI::App* doctor = app.add_subcommand(
      "doctor", "look at this machine, or at a command: what holds GPU memory, which settings are wrong");
  doctor->formatter(std::make_shared<CommandHelp>("doctor [OPTIONS] [[--] COMMAND [ARGUMENTS...]]"));
  add_setting_flags(*doctor, flags);
  doctor->add_option("--seconds", options.seconds, "end the command after so long (default 60)")
      ->type_name("N")
      ->check(CLI::Range(0.1, 1e6));
  doctor->add_flag("--json", options.json,
                   "for programs (shim/cli/doctor/schema.md); a command's output then goes to stderr");
  doctor->footer(
      "The exit code is 1 if there is a problem, 127 or 126 if the command cannot be started.\n"
      "Example: tidepool doctor; tidepool doctor --seconds 30 -- python train.py");
  return doctor;
}

int refuse(const std::string& complaint, const std::string& command) {
  const std::string one_line = complaint.substr(0, complaint.find('\n'));
  say(one_line + (one_line.ends_with(".") ? "" : ".") + " See tidepool " +
      (command.empty() ? "" : command + " ") + "--help");
  return kRefused;
}

}  // namespace

void say(std::string_view line) {
  std::string whole = "tidepool: ";
  whole.append(line).append("\n");
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, whole.data(), whole.size());
}

int run_command_line(std::vector<std::string> arguments) {
  CLI::App app("GPU memory of unmodified programs from one arena", "tidepool");
  app.set_version_flag("--version", "tidepool " TIDEPOOL_VERSION);
  app.require_subcommand(1);
  RunOptions run_options;
  EnvOptions env_options;
  ReportOptions report_options;
  DoctorOptions doctor_options;
  SettingFlags flags;
  CLI::App* run_command = add_run(app, run_options, flags);
  CLI::App* env_command = add_env(app, env_options);
  add_report(app, report_options);
  TraceOptions trace_options;
  CLI::App* trace_command = add_trace(app, trace_options);
  SettingFlags doctor_flags;
  CLI::App* doctor_command = add_doctor(app, doctor_options, doctor_flags);
  app.footer("tidepool COMMAND --help says more.\nExample: tidepool run -- python train.py");

  const std::string name = arguments.empty() ? "" : arguments.front();
  const bool command_named = std::find(arguments.begin(), arguments.end(), "--") != arguments.end();
  if (name == "run") run_options.command = take_command(arguments, *run_command);
  if (name == "doctor") doctor_options.command = take_command(arguments, *doctor_command);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const auto commands = app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
    return refuse(error.what(), commands.empty() ? "" : name);
  }
  if (app.got_subcommand(run_command)) {
    if (run_options.command.empty()) return refuse("run needs a command", "run");
    run_options.settings = given_settings(flags);
    return run(run_options);
  }
  if (app.got_subcommand(doctor_command)) {
    if (doctor_options.command.empty() && command_named) return refuse("no command after --", "doctor");
    doctor_options.settings = given_settings(doctor_flags);
    return doctor_options.command.empty() ? examine_machine(doctor_options) : examine_command(doctor_options);
  }
  if (app.got_subcommand(trace_command)) return show_trace(trace_options);
  if (report_options.differences && report_options.files.size() != 2)
    return refuse("--diff needs two reports", "report");
  return app.got_subcommand(env_command) ? show_environment(env_options) : show_reports(report_options);
}

}  // namespace tidepool::cli
