// Runs another program for a test and keeps what it wrote.
#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

extern char** environ;

namespace tidepool::test {
namespace {

using Clock = std::chrono::steady_clock;

class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
  ~Pipe() {
    close_write();
    close_read();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() { close_end(ends_[1]); }
  void close_read() { close_end(ends_[0]); }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

std::vector<std::string> environment_with(const Environment& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Reads both pipes until both are closed or the time is up; false for the latter.
bool collect(Pipe& out, Pipe& err, std::chrono::seconds patience, Outcome& outcome) {
  const auto deadline = Clock::now() + patience;
  while (out.read_end() >= 0 || err.read_end() >= 0) {
    std::array<pollfd, 2> ends{pollfd{out.read_end(), POLLIN, 0}, pollfd{err.read_end(), POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || ::poll(ends.data(), ends.size(), static_cast<int>(left)) < 0) return false;
    const auto drain = [](const pollfd& end, Pipe& pipe, std::string& text) {
      if ((end.revents & (POLLIN | POLLHUP)) == 0) return;
      std::array<char, 65536> chunk;
      const ssize_t size = ::read(end.fd, chunk.data(), chunk.size());
      if (size > 0)
        text.append(chunk.data(), static_cast<std::size_t>(size));
      else
        pipe.close_read();
    };
    drain(ends[0], out, outcome.out);
    drain(ends[1], err, outcome.err);
  }
  return true;
}

}  // namespace

Outcome run(const std::vector<std::string>& command, const Environment& changes,
            std::chrono::seconds patience) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(changes);
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr,
                                   pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::runtime_error("cannot run " + command[0]);
  out.close_write();
  err.close_write();

  Outcome outcome;
  if (!collect(out, err, patience, outcome)) {
    ::kill(child, SIGKILL);
    outcome.err += "\n(ended by the test: it ran longer than " + std::to_string(patience.count()) + " s)\n";
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

std::string preload_of(const std::string& library) {
  const std::string runtime = SANITIZER_RUNTIME;
  return runtime.empty() ? library : runtime + ":" + library;
}

Environment without_leak_check() {
  const char* options = std::getenv("ASAN_OPTIONS");
  return {{"ASAN_OPTIONS", (options == nullptr ? "" : std::string(options) + ":") + "detect_leaks=0"}};
}

std::string without_screens(const std::string& err) {
  std::istringstream lines(err);
  std::string rest;
  bool within = false;
  for (std::string line; std::getline(lines, line);) {
    const bool begins = line.starts_with("tidepool: out of memory: ");
    within = begins || (within && line.starts_with("  "));
    if (!within) rest += line + "\n";
  }
  return rest;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tidepool-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tidepool::test
