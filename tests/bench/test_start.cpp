// What the preload costs a process that never uses CUDA: its start, and look-ups of other names.
// Pairs are interleaved in one run and compared by medians: the machine's own noise falls on both.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_to_run_true(const std::string& preload) {
  std::string variable = "LD_PRELOAD=" + preload;
  char* environment[] = {variable.data(), nullptr};
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  const auto begin = Clock::now();
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, program, nullptr, nullptr, arguments, environment) == 0);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("a process without CUDA starts less than 200 microseconds slower") {
  std::vector<double> plain;
  std::vector<double> preloaded;
  for (int i = 0; i < 1000; ++i) {
    plain.push_back(microseconds_to_run_true(""));
    preloaded.push_back(microseconds_to_run_true(SHIM));
  }
  const double added = median(preloaded) - median(plain);
  std::cout << "start of /bin/true: " << median(plain) << " us, with the shim " << added << " us more\n";
  CHECK(added < 200);
}

TEST_CASE("a look-up of another name is less than 5 nanoseconds slower") {
  const auto lookup_time = [](const std::string& preload) {
    const auto outcome = tidepool::test::run({LOOKUP_PROGRAM}, {{"LD_PRELOAD", preload}});
    REQUIRE(outcome.exit_code == 0);
    return std::stod(outcome.out);
  };
  std::vector<double> plain;
  std::vector<double> preloaded;
  for (int i = 0; i < 41; ++i) {
    plain.push_back(lookup_time(""));
    preloaded.push_back(lookup_time(SHIM));
  }
  const double added = median(preloaded) - median(plain);
  std::cout << "dlsym: " << median(plain) << " ns, with the shim " << added << " ns more\n";
  CHECK(added < 5);
}
