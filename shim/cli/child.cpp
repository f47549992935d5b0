// Runs a command as a child of this process and stands between it and whoever sends signals.
#include "shim/cli/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tidepool::cli {
namespace {

// Batch systems announce the end of a job by one of these.
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

int start_failure(int cause) { return cause == ENOENT || cause == ENOTDIR ? 127 : 126; }

[[noreturn]] void become(const std::vector<std::string>& command, const Variables& environment,
                         int report_to) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int cause = errno;
  [[maybe_unused]] const auto written = ::write(report_to, &cause, sizeof cause);
  ::_exit(start_failure(cause));
}

// A signal typed at the terminal reaches the command by itself, as one process group has it.
bool sent_by_a_process(const siginfo_t& signal) { return signal.si_code <= 0; }

// The next signal; nothing when it is time to look.
int next_signal(const sigset_t& watched, siginfo_t& signal, const Watch& watch) {
  if (!watch.look) return ::sigwaitinfo(&watched, &signal);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(watch.every);
  const std::chrono::nanoseconds rest = watch.every - seconds;
  const timespec patience{static_cast<time_t>(seconds.count()), static_cast<long>(rest.count())};
  return ::sigtimedwait(&watched, &signal, &patience);
}

int wait_and_forward(pid_t child, const sigset_t& watched, const Watch& watch) {
  auto next_look = std::chrono::steady_clock::now();
  for (;;) {
    siginfo_t signal{};
    const bool got = next_signal(watched, signal, watch) >= 0;  // else time is up, or stopped and continued
    if (watch.look && std::chrono::steady_clock::now() >= next_look) {
      next_look = std::chrono::steady_clock::now() + watch.every;
      if (const int send = watch.look(child); send != 0) ::kill(child, send);
    }
    if (!got) continue;
    if (signal.si_signo != SIGCHLD) {
      if (sent_by_a_process(signal)) ::kill(child, signal.si_signo);
      continue;
    }
    int status = 0;
    if (::waitpid(child, &status, WNOHANG) != child) continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command, const Variables& environment) {
  return run_child(command, environment, {});
}

ChildEnd run_child(const std::vector<std::string>& command, const Variables& environment,
                   const Watch& watch) {
  sigset_t watched{};
  sigset_t before{};
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGCHLD);
  for (const int signal : kForwarded) ::sigaddset(&watched, signal);
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  // Whoever started us may have it ignored, and then there would be nothing to wait for.
  struct sigaction on_child {};
  struct sigaction on_child_before {};
  on_child.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &on_child, &on_child_before);

  int start[2] = {-1, -1};  // closed by a successful exec
  if (::pipe2(start, O_CLOEXEC) != 0) return {126, std::strerror(errno)};
  const pid_t child = ::fork();
  if (child < 0) return {126, std::strerror(errno)};
  if (child == 0) {
    ::sigaction(SIGCHLD, &on_child_before, nullptr);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    become(command, environment, start[1]);
  }
  ::close(start[1]);
  int cause = 0;
  ssize_t length = 0;
  while ((length = ::read(start[0], &cause, sizeof cause)) < 0 && errno == EINTR) {
  }
  ::close(start[0]);
  const int exit_code = wait_and_forward(child, watched, watch);
  if (length != static_cast<ssize_t>(sizeof cause)) return {exit_code, ""};
  const bool named = command[0].find('/') == std::string::npos;
  return {exit_code, cause == ENOENT && named ? "not found in PATH" : std::strerror(cause)};
}

}  // namespace tidepool::cli
