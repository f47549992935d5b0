// Who a process is, from its entry in /proc: user, command line and start.
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "shim/peers/usage.hpp"

namespace tidepool::peers {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string user_name(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

std::string command_line(const std::string& folder) {
  std::string words = content(folder + "/cmdline");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace(words.begin(), words.end(), '\0', ' ');
  if (words.empty()) words = content(folder + "/comm");
  words.resize(std::min(words.find('\n'), words.size()));
  // It goes to terminals.
  std::replace_if(
      words.begin(), words.end(), [](unsigned char letter) { return letter < 32 || letter == 127; }, '?');
  return words;
}

std::optional<std::time_t> boot_time() {
  std::istringstream lines(content("/proc/stat"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("btime ")) return std::strtoll(line.c_str() + 6, nullptr, 10);
  return std::nullopt;
}

// The 22nd word of stat; the second, the name, is in brackets and may hold anything.
std::optional<std::time_t> start_time(const std::string& folder) {
  const std::string stat = content(folder + "/stat");
  const auto name_end = stat.rfind(')');
  const auto booted = boot_time();
  if (name_end == std::string::npos || !booted) return std::nullopt;
  std::istringstream words(stat.substr(name_end + 1));
  std::string word;
  for (int i = 3; i <= 22; ++i) words >> word;
  return *booted +
         static_cast<std::time_t>(std::strtoull(word.c_str(), nullptr, 10)) / ::sysconf(_SC_CLK_TCK);
}

}  // namespace

void look_up(Holder& holder) {
  const std::string folder = "/proc/" + std::to_string(holder.pid);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return;
  holder.in_sight = true;
  holder.user = user_name(status.st_uid);
  holder.command = command_line(folder);
  holder.since = start_time(folder);
}

}  // namespace tidepool::peers
