// Which frameworks the processes of a command load, watched in /proc while they run.
#include "shim/cli/doctor/libraries.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace tidepool::cli::doctor {
namespace {

constexpr std::pair<std::string_view, Framework> kLibraries[] = {
    {"/jaxlib/libjax_common.so", Framework::jax}, {"/jaxlib/xla_extension.so", Framework::jax},
    {"/xla_cuda_plugin.so", Framework::jax_cuda}, {"/libtensorflow_framework.so", Framework::tensorflow},
    {"/libtorch_cpu.so", Framework::torch},       {"/cupy/cuda/memory", Framework::cupy},
    {"/libcuda.so", Framework::cuda_driver},
};

}  // namespace

void add_loaded(int pid, std::set<Framework>& loaded) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);)
    for (const auto& [part, framework] : kLibraries)
      if (line.find(part) != std::string::npos) loaded.insert(framework);
  std::error_code failed;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", failed)) {
    std::ifstream children(task.path() / "children");
    for (int child = 0; children >> child;) add_loaded(child, loaded);
  }
}

}  // namespace tidepool::cli::doctor
