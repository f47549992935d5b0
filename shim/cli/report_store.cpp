// Where reports lie: the folder of a running command, and the user's folder of gathered ones.
#include "shim/cli/report_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "shim/cli/reports.hpp"

namespace tidepool::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> json_files(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed))
    if (entry->path().extension() == ".json") found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

[[noreturn]] void cannot_write(const std::string& path, int cause) {
  throw std::runtime_error(path + " cannot be written (" + std::strerror(cause) + ")");
}

}  // namespace

RunFolder::RunFolder() {
  const char* temporary = variable("TMPDIR");
  std::string name = std::string(temporary != nullptr ? temporary : "/tmp") + "/tidepool-run-XXXXXX";
  if (::mkdtemp(name.data()) != nullptr) {
    path_ = name;
  } else {
    problem_ = name + " cannot be made (" + std::strerror(errno) + ")";
  }
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

RunFolder::Content RunFolder::read() const {
  Content content;
  if (path_.empty()) return content;
  for (const fs::path& file : json_files(path_)) {
    try {
      content.reports.push_back(read_report(file.string()));
    } catch (const std::runtime_error& error) {
      content.unreadable.push_back(file.filename().string() + " " + error.what());
    }
  }
  return content;
}

void RunFolder::copy_to(const std::string& outer) const {
  std::error_code ignored;
  if (path_.empty() || !fs::is_directory(outer, ignored)) return;
  for (const fs::path& file : json_files(path_))
    fs::copy_file(file, fs::path(outer) / file.filename(), ignored);
}

std::string kept_reports_folder() {
  if (const char* cache = variable("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/tidepool/reports";
  if (const char* home = variable("HOME")) return std::string(home) + "/.cache/tidepool/reports";
  throw std::runtime_error("neither XDG_CACHE_HOME nor HOME is set");
}

std::string keep_report(const std::string& folder, const nlohmann::json& report, std::size_t most) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) cannot_write(folder, failed.value());
  std::string name = timestamp();
  name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == '-' || c == ':'; }),
             name.end());
  const std::string path = folder + "/" + name + "-" + std::to_string(::getpid()) + ".json";
  write_report(path, report);
  const std::vector<fs::path> kept = json_files(folder);
  for (std::size_t i = 0; i + most < kept.size(); ++i) fs::remove(kept[i], failed);
  return path;
}

void write_report(const std::string& path, const nlohmann::json& report) {
  const std::string text = to_text(report, 2) + "\n";
  std::error_code failed;
  // Something like /dev/stderr or a pipe is written to, not replaced.
  const bool special = fs::exists(path, failed) && !fs::is_regular_file(path, failed);
  const std::string draft = special ? path : path + ".part" + std::to_string(::getpid());
  errno = 0;
  std::ofstream file(draft, std::ios::binary);
  file << text;
  file.close();
  const int cause = errno;
  if (!file) {
    if (!special) fs::remove(draft, failed);
    cannot_write(path, cause);
  }
  if (special) return;
  fs::rename(draft, path, failed);
  if (!failed) return;
  const int why = failed.value();
  fs::remove(draft, failed);
  cannot_write(path, why);
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
  char whole[48];
  std::snprintf(whole, sizeof whole, "%s.%03dZ", day, static_cast<int>(milliseconds % 1000));
  return whole;
}

}  // namespace tidepool::cli
