// A process beside another on the device: neighbour MIB SECONDS COMMAND… holds so much memory for so long, at
// most for as long as the command runs, and ends with its exit code. The shim is the command's alone.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/preload/victims/driver.hpp"

namespace {

int hold(const char* mebibytes, const char* seconds) {
  start_driver();
  CUdeviceptr pointer = 0;
  OK(CU(cuMemAlloc_v2)(&pointer, std::strtoull(mebibytes, nullptr, 10) * kMiB));
  // Whoever waits for the descriptor's end may go on.
  ::close(STDIN_FILENO);
  std::this_thread::sleep_for(std::chrono::seconds(std::atoi(seconds)));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count == 4 && words[1] == std::string("hold")) return hold(words[2], words[3]);
  if (count < 4) return 120;
  int ready[2];
  if (::pipe(ready) != 0) return 121;
  const pid_t holder = ::fork();
  if (holder == 0) {
    ::dup2(ready[1], STDIN_FILENO);
    ::close(ready[0]);
    ::close(ready[1]);
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("SIM_LOG");
    char verb[] = "hold";
    char* arguments[] = {words[0], verb, words[1], words[2], nullptr};
    ::execv(words[0], arguments);
    ::_exit(122);
  }
  ::close(ready[1]);
  char byte = 0;
  while (::read(ready[0], &byte, 1) > 0) {
  }
  const pid_t command = ::fork();
  if (command == 0) {
    ::execv(words[3], words + 3);
    ::_exit(123);
  }
  int status = 0;
  ::waitpid(command, &status, 0);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
}
