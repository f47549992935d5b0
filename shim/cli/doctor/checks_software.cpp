// Can libtidepool.so be put in front of programs, is it, and what else is installed?
#include <algorithm>
#include <array>

#include "shim/base/settings.hpp"
#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

void check_library(const Machine& machine, Findings& findings) {
  const Software& software = machine.software;
  const std::string version = "tidepool " + software.tidepool + ", " + printable(software.library.path);
  if (!software.library.problem.empty())
    findings.push_back({Verdict::problem, "library", version + " " + software.library.problem,
                        "build it (meson compile -C build), or set TIDEPOOL_LIBRARY to where it is"});
  else if (!software.loader_says.empty())
    findings.push_back({Verdict::problem, "library",
                        version + " is not taken by the loader: " + printable(software.loader_says),
                        "build it on this system; it needs this glibc, " + software.glibc + ", or older"});
  else
    findings.push_back({Verdict::ok, "library", version + "; glibc " + software.glibc, ""});
}

// dlmopen is all that a plain preload cannot reach; libraries loaded with RTLD_DEEPBIND it does.
void check_namespaces(const Machine& machine, Findings& findings) {
  const std::string problem = audit_problem(machine.software.glibc);
  if (problem.empty()) return;
  findings.push_back({Verdict::warning, "namespaces",
                      "drivers loaded by dlmopen cannot be seen here: tidepool run --audit " + problem, ""});
}

bool names_library(const std::string& list) { return list.find("libtidepool") != std::string::npos; }

void check_preload_list(const Machine& machine, Findings& findings) {
  for (const std::string& entry : machine.software.missing)
    findings.push_back(
        {Verdict::problem, "preload",
         "LD_PRELOAD names " + printable(entry) + ", which does not exist: it is left out",
         names_library(entry) ? "export LD_PRELOAD=$(tidepool env --library)" : "take it out of LD_PRELOAD"});
}

// What dropped the variable on its way here, as far as it left a trace.
std::string who_dropped_it(const Surroundings& around) {
  if (around.variable("SUDO_COMMAND") != nullptr) return "sudo drops LD_PRELOAD";
  if (!around.container.empty())
    return "a container takes variables only by -e, and needs the library inside";
  if (around.variable("SSH_CONNECTION") != nullptr) return "ssh does not take variables along";
  return "LD_PRELOAD was not given";
}

void check_preload_lost(const Machine& machine, Findings& findings) {
  const Surroundings& around = machine.around;
  const std::string* preload = around.variable("LD_PRELOAD");
  if (preload != nullptr && names_library(*preload)) return;
  std::string set;
  for (const SettingRow& row : setting_rows())
    if (const std::string* value = around.variable(row.variable); value != nullptr && !value->empty())
      set += (set.empty() ? "" : ", ") + std::string(row.variable);
  if (set.empty()) return;
  findings.push_back({Verdict::warning, "preload",
                      set +
                          " is set and libtidepool.so is not in LD_PRELOAD: it has no effect on programs "
                          "that are not started by tidepool run (" +
                          who_dropped_it(around) + ")",
                      "tidepool run -- COMMAND, behind sudo, ssh or docker exec"});
}

void check_settings(const Machine& machine, Findings& findings) {
  const Settings settings = parse_settings([&](const char* name) -> const char* {
    const std::string* value = machine.around.variable(name);
    return value == nullptr ? nullptr : value->c_str();
  });
  for (const SettingError& error : settings.errors)
    findings.push_back({Verdict::problem, "settings",
                        printable(error.message()) + "; processes pass everything through",
                        "tidepool env shows every setting"});
}

void check_python(const Machine& machine, Findings& findings) {
  const Software& software = machine.software;
  if (software.python.empty()) return;
  std::string found;
  for (const auto& [name, version] : software.frameworks)
    found += (found.empty() ? "" : ", ") + printable(name) + " " + printable(version);
  const std::string text =
      printable(software.python) + ": " + (found.empty() ? "no framework known here" : found);
  if (software.python_problem.empty())
    findings.push_back({Verdict::ok, "python", text, ""});
  else
    findings.push_back({Verdict::warning, "python", text + "; " + software.python_problem,
                        "use a Python that is dynamic, 64-bit and of glibc"});
}

constexpr std::array<MachineCheck, 6> kChecks{check_library,      check_namespaces, check_preload_list,
                                              check_preload_lost, check_settings,   check_python};

}  // namespace

std::span<const MachineCheck> software_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
