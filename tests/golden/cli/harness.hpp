// Starts the built command as a user would, and holds what it wrote.
#pragma once

#include <sys/types.h>
#include <string>
#include <utility>
#include <vector>

namespace golden {

struct Result {
  int exit_code = 0;  // 128+n after signal n
  std::string out;
  std::string err;
};

struct Start {
  std::vector<std::string> arguments;  // of tidepool
  // Added to a small environment: PATH, a fresh HOME, a library that does nothing.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string input;
};

// A process of the command, with its output in files of a fresh folder, which is its HOME too.
class Process {
 public:
  explicit Process(const Start& start);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& folder() const { return folder_; }
  std::string out() const;
  void wait_for_output(const std::string& text) const;  // up to ten seconds, then fails the test
  Result wait();

 private:
  std::string folder_;
  pid_t pid_ = -1;
};

Result run(const Start& start);

// The same at a terminal of its own; `typed` is sent once `after` was printed. Everything printed is in
// `out`.
Result run_at_terminal(const Start& start, const std::string& after, const std::string& typed);

std::string read_file(const std::string& path);

}  // namespace golden
