// What surrounds a process here: environment, container, control group, device nodes, MPS.
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "shim/base/sizes.hpp"
#include "shim/cli/doctor/machine.hpp"

extern char** environ;

namespace tidepool::cli::doctor {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> environment_here() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string container_kind(const Surroundings& around, const std::string& root) {
  std::error_code failed;
  if (around.variable("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  for (const char* name : {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"})
    if (around.variable(name) != nullptr) return "apptainer";
  if (fs::exists(root + "/.dockerenv", failed)) return "docker";
  if (fs::exists(root + "/run/.containerenv", failed)) return "podman";
  const std::string* named = around.variable("container");
  return named == nullptr ? "" : *named;
}

std::optional<Bytes> first_number(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word) || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return parse_size(word);
}

// Each group up to the root may have a limit; the lowest counts.
ControlGroup group_above(const fs::path& top, fs::path path, const char* limit, const char* used) {
  constexpr Bytes kNoLimit = Bytes{1} << 60;  // version 1 says "none" by a number near 2^63
  ControlGroup group;
  for (;; path = path.parent_path()) {
    const fs::path folder = top / path.relative_path();
    const auto number = first_number(folder / limit);
    if (number && *number < kNoLimit && (!group.limit || *number < *group.limit)) {
      group.limit = *number;
      group.used = first_number(folder / used).value_or(0);
    }
    if (!path.has_relative_path()) return group;
  }
}

ControlGroup control_group(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  const fs::path top = root + "/sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    const auto second = line.rfind(':');
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1);
    if (line.starts_with("0::")) return group_above(top, path, "memory.max", "memory.current");
    if (line.find(":memory:") != std::string::npos)
      return group_above(top / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes");
  }
  return {};
}

std::vector<std::string> device_nodes(const std::string& root) {
  std::vector<std::string> nodes;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root + "/dev", failed)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") || name == "dxg") nodes.push_back(name);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

Surroundings look_around(const std::string& root) {
  Surroundings around;
  around.environment = environment_here();
  around.container = container_kind(around, root);
  around.memory = control_group(root);
  struct statvfs shared {};
  if (::statvfs((root + "/dev/shm").c_str(), &shared) == 0)
    around.shared_memory = Bytes{shared.f_blocks} * shared.f_frsize;
  std::error_code failed;
  around.kernel_module = fs::exists(root + "/proc/driver/nvidia/version", failed);
  around.nodes = device_nodes(root);
  const std::string* pipes = around.variable("CUDA_MPS_PIPE_DIRECTORY");
  around.mps_pipes = pipes == nullptr || pipes->empty() ? "/tmp/nvidia-mps" : *pipes;
  around.mps_control = fs::exists(root + around.mps_pipes + "/control", failed);
  return around;
}

}  // namespace tidepool::cli::doctor
