// Programs that have nothing to do with CUDA, and bad input: as before, or one clear line.
#include <algorithm>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;

namespace {

std::size_t lines_of(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

}  // namespace

TEST_CASE("programs without CUDA run as before") {
  const std::vector<std::vector<std::string>> commands{
      {"/bin/true"},
      {"/bin/false"},
      {"/bin/bash", "-c", "echo $((6 * 7)); env | grep -c . > /dev/null; exit 5"},
      {"/usr/bin/python3", "-c", "import os, subprocess; print(subprocess.run(['/bin/echo', 'x']).returncode)"},
  };
  for (const auto& command : commands)
    for (const std::string mode : {"ondemand", "prealloc", "passthrough", "off", "nonsense"}) {
      const Outcome plain = run(command);
      Environment preloaded = without_leak_check();
      preloaded.insert({{"LD_PRELOAD", preload_of(SHIM)}, {"TIDEPOOL_MODE", mode}});
      const Outcome with = run(command, preloaded);
      INFO(command[0] << " in " << mode << ": " << with.err);
      CHECK(with.exit_code == plain.exit_code);
      CHECK(with.out == plain.out);
      CHECK(with.err == plain.err);
    }
}

TEST_CASE("a program whose libcuda is missing runs as before") {
  for (const std::string mode : {"ondemand", "passthrough", "off"}) {
    const Environment nowhere{{"LD_LIBRARY_PATH", "/nonexistent"}};
    const Run plain = run_on_simulator({VICTIM, "no_driver_in_process"}, "", nowhere);
    const Run with = run_on_simulator({VICTIM, "no_driver_in_process"}, mode, nowhere);
    CHECK(plain.outcome.out.find("cuInit absent") != std::string::npos);
    CHECK(with.outcome.out == plain.outcome.out);
    CHECK(with.outcome.err == plain.outcome.err);
    CHECK(with.outcome.exit_code == plain.outcome.exit_code);
  }
}

TEST_CASE("a value that is not understood: one line that names it, and passthrough") {
  for (const auto& [variable, value] :
       Environment{{"TIDEPOOL_MODE", "turbo"}, {"TIDEPOOL_FRACTION", "2"}, {"TIDEPOOL_LIMIT", "lots"}}) {
    const Run plain = run_on_simulator({VICTIM, "alloc_free"}, "");
    const Run run = run_on_simulator({VICTIM, "alloc_free"}, "ondemand", {{variable, value}});
    INFO(run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    CHECK(run.outcome.out == plain.outcome.out);
    CHECK(lines_of(run.outcome.err) == 1);
    CHECK(run.outcome.err.find(variable + "=" + value) != std::string::npos);
    CHECK(run.report.at("mode") == "passthrough");
    CHECK(run.calls.at("cuMemAlloc_v2") == 5);
  }
}

TEST_CASE("a report or log that cannot be written: one line, the program runs on") {
  for (const std::string variable : {"TIDEPOOL_REPORT", "TIDEPOOL_LOG_FILE"}) {
    const Run run = run_on_simulator({VICTIM, "alloc_free"}, "ondemand", {{variable, "/nonexistent/folder/file"}});
    INFO(run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    CHECK(run.outcome.out == "done\n");
    CHECK(lines_of(run.outcome.err) == 1);
    CHECK(run.outcome.err.find("/nonexistent/folder/file") != std::string::npos);
  }
}

TEST_CASE("a report path that leads to a device is written to, not replaced") {
  const ScratchFolder folder;
  const std::string path = folder.path("nowhere");
  std::filesystem::create_symlink("/dev/null", path);
  const Run run = run_on_simulator({VICTIM, "alloc_free"}, "ondemand", {{"TIDEPOOL_REPORT", path}});
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.outcome.err == "");
  CHECK(std::filesystem::is_symlink(path));
}

TEST_CASE("a line that nobody reads does not end the program") {
  const std::string script = std::string("{ sleep 0.2; exec ") + VICTIM +
                             " alloc_free; } 2>&1 >/dev/null | true; exit ${PIPESTATUS[0]}";
  Environment unread = without_leak_check();
  unread.insert({{"TIDEPOOL_REPORT", "stderr"}, {"TIDEPOOL_FRACTION", "nonsense"}});
  CHECK(run_on_simulator({"/bin/bash", "-c", script}, "ondemand", unread).outcome.exit_code == 0);
}

TEST_CASE("an unreadable shim is the loader's one line, and the program runs on") {
  const Run run = run_on_simulator({VICTIM, "alloc_free"}, "ondemand", {{"LD_PRELOAD", preload_of("/nonexistent/libtidepool.so")}});
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.outcome.out == "done\n");
}
