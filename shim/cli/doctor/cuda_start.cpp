// Tries what every CUDA program does first. NVML may answer where CUDA does not start: a node that is
// missing, a hidden device, libraries of two versions.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

#include "shim/cli/doctor/machine.hpp"
#include "shim/cli/doctor/probe.hpp"

namespace tidepool::cli::doctor {
namespace {

struct Answers {
  int result = 0;
  int devices = 0;
};

std::string start(Answers& answers) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return ::dlerror();
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count == nullptr) return "libcuda.so.1 has no cuInit";
  answers.result = init(0);
  if (answers.result == 0) answers.result = count(&answers.devices);
  return "";
}

}  // namespace

CudaStart try_cuda() {
  const Trial trial = try_in_child(
      [](int report_to) {
        // Not to be taken for a program of the user's: no report, no trace.
        ::setenv("TIDEPOOL_MODE", "off", 1);
        Answers answers;
        const std::string problem = start(answers);
        [[maybe_unused]] auto written = ::write(report_to, &answers, sizeof answers);
        written = ::write(report_to, problem.data(), problem.size());
        ::_exit(0);
      },
      std::chrono::seconds(20));
  CudaStart found;
  found.tried = true;
  Answers answers;
  if (!trial.ended || trial.output.size() < sizeof answers) {
    found.problem = "a process that calls cuInit does not come back";
    return found;
  }
  std::memcpy(&answers, trial.output.data(), sizeof answers);
  found.problem = trial.output.substr(sizeof answers);
  found.result = answers.result;
  found.devices = answers.devices;
  return found;
}

}  // namespace tidepool::cli::doctor
