// Small trials in child processes, so that what hangs or dies does so there.
#include "shim/cli/doctor/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace tidepool::cli::doctor {
namespace {

constexpr std::size_t kMost = 1 << 16;

void read_until(int from, std::chrono::steady_clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = deadline - std::chrono::steady_clock::now();
    pollfd end{from, POLLIN, 0};
    const int wait = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count());
    if (wait <= 0 || ::poll(&end, 1, wait) <= 0) return;
    char piece[4096];
    const ssize_t length = ::read(from, piece, sizeof piece);
    if (length <= 0 || text.size() > kMost) return;
    text.append(piece, static_cast<std::size_t>(length));
  }
}

// True if it ends by itself with 0 before the deadline; afterwards it has ended in any case.
bool reap(pid_t child, std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (std::chrono::steady_clock::now() >= deadline) break;
    ::usleep(2000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return false;
}

}  // namespace

Trial try_in_child(const std::function<void(int)>& work, std::chrono::seconds patience) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    work(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  Trial trial;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  if (child > 0) {
    read_until(ends[0], deadline, trial.output);
    trial.ended = reap(child, deadline);
  }
  ::close(ends[0]);
  return trial;
}

Trial try_command(const std::vector<std::string>& command, const Variables& environment, Stream stream,
                  std::chrono::seconds patience) {
  return try_in_child(
      [&](int report_to) {
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
          ::dup2(standard == static_cast<int>(stream) ? report_to : nothing, standard);
        for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        ::_exit(127);
      },
      patience);
}

}  // namespace tidepool::cli::doctor
