// What the preload costs a process that never uses CUDA (its start, and look-ups of other names), and one
// that launches kernels.
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

double microseconds_to_run_true(const std::string& preload, const std::string& audit = "") {
  std::string variable = "LD_PRELOAD=" + preload;
  std::string auditor = "LD_AUDIT=" + audit;
  char* environment[] = {variable.data(), audit.empty() ? nullptr : auditor.data(), nullptr};
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

// What a program that prints a time of its own prints more with the shim than without.
double nanoseconds_added(const std::string& what, const std::vector<std::string>& program, int repeats) {
  const auto time_of = [&](const std::string& preload) {
    const auto outcome =
        tidepool::test::run(program, {{"LD_PRELOAD", preload}, {"LD_LIBRARY_PATH", MINIDRIVER}});
    REQUIRE(outcome.exit_code == 0);
    return std::stod(outcome.out);
  };
  std::vector<double> plain;
  std::vector<double> preloaded;
  for (int i = 0; i < repeats; ++i) {
    plain.push_back(time_of(""));
    preloaded.push_back(time_of(SHIM));
  }
  const double added = median(preloaded) - median(plain);
  std::cout << what << ": " << median(plain) << " ns, with the shim " << added << " ns more\n";
  return added;
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

TEST_CASE("with the audit companion a process without CUDA starts less than 300 microseconds slower") {
  std::vector<double> plain;
  std::vector<double> audited;
  for (int i = 0; i < 1000; ++i) {
    plain.push_back(microseconds_to_run_true(""));
    audited.push_back(microseconds_to_run_true(SHIM, COMPANION));
  }
  const double added = median(audited) - median(plain);
  std::cout << "start of /bin/true: " << median(plain) << " us, with shim and companion " << added
            << " us more\n";
  CHECK(added < 300);
}

TEST_CASE("a look-up of another name is less than 5 nanoseconds slower") {
  CHECK(nanoseconds_added("dlsym", {LOOKUP_PROGRAM}, 41) < 5);
}

// One atomic counter. A launch takes a microsecond or two: any more would be felt.
TEST_CASE("a launch is less than 30 nanoseconds slower") {
  CHECK(nanoseconds_added("a launch", {LAUNCH_PROGRAM}, 41) < 30);
}

TEST_CASE("the first library opened with RTLD_DEEPBIND is opened less than 500 microseconds slower") {
  CHECK(nanoseconds_added("the first RTLD_DEEPBIND", {DEEPBIND_PROGRAM}, 201) < 500'000);
}
