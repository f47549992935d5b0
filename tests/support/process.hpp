// Runs another program for a test and keeps what it wrote. Used by the suites that test whole programs.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace tidepool::test {

struct Outcome {
  int exit_code = -1;  // 128 + n when a signal ended it, as a shell says
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// The environment of this process with `changes` applied; an empty value removes a variable. A program
// that runs longer than `patience` is ended: a hang is a failure, with what it wrote until then.
Outcome run(const std::vector<std::string>& command, const Environment& changes = {},
            std::chrono::seconds patience = std::chrono::minutes(2));

// LD_PRELOAD for `library`; a sanitizer's runtime must come before any library built with it.
std::string preload_of(const std::string& library);

// For programs whose own leaks are no concern here (CPython's, a driver that is unloaded): what a leak
// checker's build needs to let them pass. Nothing in other builds.
Environment without_leak_check();

// What a program and the shim wrote, without the shim's screens about memory that could not be had: whether
// there is one to a program that goes on after a refusal is a matter of time.
std::string without_screens(const std::string& err);

std::string read_file(const std::string& path);  // empty if it cannot be read

// A fresh folder, removed with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tidepool::test
