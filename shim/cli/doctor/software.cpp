// The versions that meet here, and whether libtidepool.so can be put in front of programs.
#include <gnu/libc-version.h>

#include <filesystem>
#include <sstream>

#include "shim/cli/command_file.hpp"
#include "shim/cli/doctor/machine.hpp"
#include "shim/cli/doctor/probe.hpp"

namespace tidepool::cli::doctor {
namespace {

constexpr const char* kListFrameworks = R"(
import importlib.metadata as metadata
for name in ("jax", "jaxlib", "tensorflow", "torch", "cupy-cuda12x", "cupy-cuda13x", "numba", "numba-cuda"):
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
)";

std::vector<std::pair<std::string, std::string>> frameworks_of(const std::string& python) {
  const Trial trial = try_command({python, "-c", kListFrameworks}, {{"LD_PRELOAD", ""}}, Stream::out,
                                  std::chrono::seconds(10));
  std::vector<std::pair<std::string, std::string>> found;
  if (!trial.ended) return found;
  std::istringstream lines(trial.output);
  for (std::string name, version; lines >> name >> version;) found.emplace_back(name, version);
  return found;
}

// The loader says on stderr what it leaves out, and goes on without it.
std::string ask_loader(const std::string& library) {
  const Trial trial =
      try_command({"/proc/self/exe", "--version"}, {{"LD_PRELOAD", library}, {"TIDEPOOL_MODE", "off"}},
                  Stream::error, std::chrono::seconds(10));
  return trial.output.substr(0, trial.output.find('\n'));
}

std::vector<std::string> missing_preloads() {
  std::vector<std::string> missing;
  const char* list = std::getenv("LD_PRELOAD");
  std::string entries = list == nullptr ? "" : list;
  for (char& letter : entries)
    if (letter == ':') letter = ' ';
  std::istringstream words(entries);
  std::error_code failed;
  // A bare name is looked for where libraries are; the loader alone knows.
  for (std::string entry; words >> entry;)
    if (entry.find('/') != std::string::npos && !std::filesystem::exists(entry, failed))
      missing.push_back(entry);
  return missing;
}

}  // namespace

Software look_at_software() {
  Software software;
  software.tidepool = TIDEPOOL_VERSION;
  software.glibc = ::gnu_get_libc_version();
  software.library = find_library();
  if (software.library.problem.empty()) software.loader_says = ask_loader(software.library.path);
  software.missing = missing_preloads();
  for (const char* name : {"python3", "python"}) {
    const std::string path = find_in_path(name);
    if (path == name) continue;
    software.python = path;
    software.python_problem = why_out_of_reach(path);
    software.frameworks = frameworks_of(path);
    break;
  }
  return software;
}

}  // namespace tidepool::cli::doctor
