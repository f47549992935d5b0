// Runs a command as a child of this process and stands between it and whoever sends signals.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tidepool::cli {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct ChildEnd {
  int exit_code = 0;  // as a shell's: 128+n after signal n, 127 not found, 126 not executable
  std::string error;  // why it could not be started; empty: it was
};

// Returns when the command has ended. Signals that end a process by default stay blocked afterwards: a
// second Ctrl-C must not cost the caller the command's exit code.
ChildEnd run_child(const std::vector<std::string>& command, const Variables& environment);

// The same, and every so often `look` is called with the command's process id; what it returns is sent to
// the command as a signal, 0 is none.
struct Watch {
  std::chrono::milliseconds every{100};
  std::function<int(int pid)> look;
};
ChildEnd run_child(const std::vector<std::string>& command, const Variables& environment, const Watch& watch);

}  // namespace tidepool::cli
