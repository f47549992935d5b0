// `tidepool doctor` without a command: one screen about the machine.
#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "shim/cli/commands.hpp"
#include "shim/cli/doctor/as_json.hpp"
#include "shim/cli/doctor/checks.hpp"
#include "shim/cli/doctor/screen.hpp"

namespace tidepool::cli {
namespace doctor {

Findings judge(const Machine& machine) {
  Findings findings;
  for (const auto checks : {driver_checks(), gpu_checks(), surroundings_checks(), software_checks()})
    for (const MachineCheck check : checks) check(machine, findings);
  return findings;
}

namespace {

Machine examine() {
  Machine machine;
  machine.cuda = try_cuda();
  machine.driver = ask_driver();
  // Without a driver, that CUDA does not start either is no news.
  if (!machine.driver.problem.empty()) machine.cuda.tried = false;
  machine.around = look_around("");
  machine.software = look_at_software();
  return machine;
}

}  // namespace
}  // namespace doctor

int examine_machine(const DoctorOptions& options) {
  using namespace doctor;
  const Machine machine = examine();
  const Findings findings = judge(machine);
  const int exit_code = worst(findings) == Verdict::problem ? 1 : 0;
  if (options.json) {
    const nlohmann::ordered_json document{{"schema", kDoctorSchema},
                                          {"tidepool", TIDEPOOL_VERSION},
                                          {"verdict", verdict_name(worst(findings))},
                                          {"findings", to_json(findings)},
                                          {"machine", to_json(machine)}};
    std::cout << document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    std::cout << to_screen(findings, colour_wanted(STDOUT_FILENO));
  }
  return exit_code;
}

}  // namespace tidepool::cli
