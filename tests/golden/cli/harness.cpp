// Starts the built command as a user would, and holds what it wrote.
#include "harness.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace golden {
namespace {

std::string fresh_folder() {
  std::string name = std::filesystem::temp_directory_path() / "tidepool-golden-XXXXXX";
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  return name;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void become_tidepool(const Start& start, const std::string& home) {
  std::vector<std::string> words{TIDEPOOL_COMMAND};
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  std::vector<std::string> environment{std::string("PATH=") + ::getenv("PATH"), "HOME=" + home};
  bool library_named = false;
  for (const auto& [name, value] : start.environment) {
    environment.push_back(name + "=" + value);
    library_named = library_named || name == "TIDEPOOL_LIBRARY";
  }
  if (!library_named) environment.push_back("TIDEPOOL_LIBRARY=" HARMLESS_LIBRARY);
  // A sanitizer's settings, where there are any. A `tidepool` that is itself run with a preload has the
  // sanitizer's library second, which that would refuse.
  const char* address = ::getenv("ASAN_OPTIONS");
  environment.push_back(std::string("ASAN_OPTIONS=verify_asan_link_order=0:") + (address ? address : ""));
  for (const char* name : {"UBSAN_OPTIONS", "TSAN_OPTIONS"})
    if (const char* value = ::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  ::execve(TIDEPOOL_COMMAND, pointers(words).data(), pointers(environment).data());
  ::_exit(125);
}

int exit_code_of(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void redirect(int descriptor, const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0600);
  ::dup2(file, descriptor);
  ::close(file);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

Process::Process(const Start& start) : folder_(fresh_folder()) {
  std::ofstream(folder_ + "/in", std::ios::binary) << start.input;
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ > 0) return;
  redirect(STDIN_FILENO, folder_ + "/in", O_RDONLY);
  redirect(STDOUT_FILENO, folder_ + "/out", O_WRONLY | O_CREAT);
  redirect(STDERR_FILENO, folder_ + "/err", O_WRONLY | O_CREAT | O_APPEND);
  become_tidepool(start, folder_);
}

Process::~Process() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Process::out() const { return read_file(folder_ + "/out"); }

void Process::wait_for_output(const std::string& text) const {
  for (int i = 0; i < 1000; ++i) {
    if (out().find(text) != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("no '" << text << "' within ten seconds; stderr: " << read_file(folder_ + "/err"));
}

Result Process::wait() {
  Result result;
  result.exit_code = exit_code_of(pid_);
  result.out = out();
  result.err = read_file(folder_ + "/err");
  return result;
}

Result run(const Start& start) { return Process(start).wait(); }

Result run_at_terminal(const Start& start, const std::string& after, const std::string& typed) {
  const std::string home = fresh_folder();
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(pid >= 0);
  if (pid == 0) become_tidepool(start, home);
  Result result;
  bool sent = typed.empty();
  char piece[4096];
  for (ssize_t length = 0; (length = ::read(terminal, piece, sizeof piece)) > 0;) {
    result.out.append(piece, static_cast<std::size_t>(length));
    if (sent || result.out.find(after) == std::string::npos) continue;
    sent = ::write(terminal, typed.data(), typed.size()) > 0;
  }
  ::close(terminal);
  result.exit_code = exit_code_of(pid);
  std::filesystem::remove_all(home);
  return result;
}

}  // namespace golden
