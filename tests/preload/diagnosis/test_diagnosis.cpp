// What a user reads when memory cannot be had, at the level of the driver: the cause, the named culprit, the
// advice, and that the advice helps.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Json = nlohmann::json;

namespace {

struct Told {
  Run run;
  std::string screen;  // empty: none
  Json diagnosis;      // the first, null if there is none
  std::string cause() const { return diagnosis.is_null() ? "" : diagnosis.at("cause").get<std::string>(); }
  std::string advice() const { return diagnosis.is_null() ? "" : diagnosis.at("to_do").get<std::string>(); }
};

std::size_t screens_in(const std::string& err) {
  std::size_t count = 0;
  for (auto at = err.find("tidepool: out of memory: "); at != std::string::npos;
       at = err.find("tidepool: out of memory: ", at + 1))
    ++count;
  return count;
}

Told tell(const std::string& mode, const std::vector<std::string>& steps, Environment more = {},
          std::vector<std::string> before = {}) {
  before.emplace_back(NEEDY);
  before.insert(before.end(), steps.begin(), steps.end());
  Told told{run_on_simulator(before, mode, more), "", nullptr};
  const std::string& err = told.run.outcome.err;
  if (const auto begin = err.find("tidepool: "); begin != std::string::npos) told.screen = err.substr(begin);
  if (told.run.report.is_object() && !told.run.report.at("diagnoses").empty())
    told.diagnosis = told.run.report.at("diagnoses").at(0);
  return told;
}

// Another process that holds 79 of the device's 80 GiB, for so many seconds at most.
Told tell_beside(const std::string& mode, const std::vector<std::string>& steps, Environment more = {},
                 int seconds = 600) {
  const ScratchFolder scratch;
  more.emplace("SIM_MACHINE", scratch.path("machine"));
  return tell(mode, steps, more, {NEIGHBOUR, std::to_string(79 << 10), std::to_string(seconds)});
}

// VARIABLE=value at the front of the advice.
Environment followed(const std::string& advice) {
  const std::string word = advice.substr(0, advice.find(' '));
  const auto equals = word.find('=');
  REQUIRE(equals != std::string::npos);
  return {{word.substr(0, equals), word.substr(equals + 1)}};
}

const std::vector<std::string> kModes{"passthrough", "ondemand", "prealloc", "managed"};
const std::vector<std::string> kServing{"ondemand", "prealloc", "managed"};

}  // namespace

TEST_CASE(
    "more than the device has is told as such, in every mode and family, in a screen and in the report") {
  for (const std::string& mode : kModes)
    for (const std::string step : {"alloc:100000", "async:100000", "create:100000"}) {
      const Told told = tell(mode, {"start", step});
      INFO(mode << " " << step << "\n" << told.run.outcome.out << told.run.outcome.err);
      CHECK(told.run.outcome.exit_code == 1);
      CHECK(screens_in(told.run.outcome.err) == 1);
      CHECK(told.cause() == "capacity");
      CHECK(told.screen.find("more was asked for at once than this GPU has") != std::string::npos);
      CHECK(told.diagnosis.at("screen") == told.screen);
      CHECK(std::count(told.screen.begin(), told.screen.end(), '\n') <= 40);
      CHECK(told.screen.find('\x1b') == std::string::npos);
    }
}

TEST_CASE("another process that holds the memory is named, and waiting for its end helps") {
  for (const std::string& mode : kModes) {
    const Told told = tell_beside(mode, {"start", "alloc:2048"});
    INFO(mode << "\n" << told.run.outcome.out << told.run.outcome.err);
    CHECK(told.cause() == "other_processes");
    REQUIRE(told.diagnosis.at("holders").size() == 1);
    CHECK(told.diagnosis.at("holders").at(0).at("bytes") >= std::uint64_t{79} << 30);
    CHECK(told.screen.find("neighbour hold 80896") != std::string::npos);
    CHECK(told.advice().find("TIDEPOOL_WAIT=600") == 0);
    // The neighbour leaves after two seconds.
    const Told waited = tell_beside(mode, {"start", "alloc:2048"}, followed(told.advice()), 2);
    INFO(waited.run.outcome.out << waited.run.outcome.err);
    CHECK(waited.run.outcome.exit_code == 0);
    CHECK(waited.run.outcome.out == "done\n");
  }
}

TEST_CASE("processes that are out of sight are said to be, never to be nobody") {
  for (const std::string& mode : kModes) {
    const Told told = tell_beside(mode, {"start", "alloc:2048"}, {{"SIM_NVML", "hide-processes"}});
    INFO(mode << "\n" << told.run.outcome.err);
    CHECK(told.cause() == "other_processes");
    CHECK(told.screen.find("no process in sight explains") != std::string::npos);
    CHECK(told.diagnosis.at("unattributed_bytes") >= std::uint64_t{78} << 30);
  }
}

TEST_CASE("without NVML the driver's own count is shown, and that nobody can be named") {
  const Told told = tell_beside("ondemand", {"start", "alloc:2048"}, {{"SIM_NVML", "nvmlInit_v2=9"}});
  INFO(told.run.outcome.err);
  CHECK(told.screen.find("who they are cannot be told: the driver's kernel module is not loaded") !=
        std::string::npos);
  CHECK(told.cause() == "other_processes");
}

TEST_CASE("a limit that was reached is named, and the limit that is advised is enough") {
  for (const std::string& mode : kServing)
    for (const std::string step : {"alloc:1536", "async:1536", "create:1536"}) {
      const Told told = tell(mode, {"start", "alloc:512", step}, {{"TIDEPOOL_LIMIT", "1GiB"}});
      INFO(mode << " " << step << "\n" << told.run.outcome.err);
      CHECK(told.cause() == "own_limit");
      const Told again = tell(mode, {"start", "alloc:512", step}, followed(told.advice()));
      CHECK(again.run.outcome.out == "done\n");
      CHECK(again.run.outcome.err.empty());
    }
}

TEST_CASE("a program that has filled the device itself is told so, and what of it is live") {
  for (const std::string mode : {"passthrough", "ondemand", "prealloc"}) {
    const Told told = tell(mode, {"start", "alloc:40000", "async:40000", "alloc:4096"});
    INFO(mode << "\n" << told.run.outcome.err);
    CHECK(told.cause() == "own_use");
    CHECK(told.screen.find("78.12 GiB live") != std::string::npos);
    CHECK(told.screen.find("trimming: ") != std::string::npos);
  }
}

TEST_CASE("a library that starves of this process's own pool is named, and the pool") {
  for (const std::string& mode : kModes) {
    const Told told = tell(mode, {"start", "create:80000", "cudnn:4096"});
    INFO(mode << "\n" << told.run.outcome.err);
    CHECK(told.cause() == "own_pool");
    CHECK(told.screen.find("cuDNN finds nothing left: this process's own pool is one block of 78.12 GiB") !=
          std::string::npos);
    CHECK(told.advice().find("make the pool smaller, 77.12 GiB at the most") == 0);
  }
}

TEST_CASE(
    "what fails for want of a context or of host memory, or not for memory at all, is not called GPU "
    "memory") {
  for (const std::string& mode : kModes) {
    const Told context = tell(mode, {"start"}, {{"SIM_FAULTS", "cuDevicePrimaryCtxRetain@1=2"}});
    INFO(mode << "\n" << context.run.outcome.err);
    CHECK(context.cause() == "context");
    const Told exclusive = tell(mode, {"start"}, {{"SIM_FAULTS", "cuDevicePrimaryCtxRetain@*=46"}});
    INFO(exclusive.run.outcome.err);
    CHECK(exclusive.cause() == "not_memory");
    CHECK(exclusive.screen.find("exclusive mode") != std::string::npos);
    CHECK(exclusive.run.outcome.out.find("error 46") == 0);
    const Told host = tell(mode, {"start", "host:64"}, {{"SIM_FAULTS", "cuMemHostAlloc@*=2"}});
    INFO(host.run.outcome.err);
    CHECK(host.cause() == "host_memory");
    CHECK(host.screen.find("the GPU is not to blame") != std::string::npos);
  }
}

TEST_CASE("several threads that fail at once have one screen, and a first refusal costs little") {
  for (const std::string& mode : kModes) {
    const Told told = tell(mode, {"start", "threads:8:100000"});
    INFO(mode << "\n" << told.run.outcome.err);
    CHECK(screens_in(told.run.outcome.err) == 1);
    const Told one = tell(mode, {"start", "alloc:2", "alloc:100000"});
    const double work = std::atof(one.run.outcome.out.c_str() + std::string("error 2 after ").size());
    INFO(one.run.outcome.out);
    CHECK(work < 50);
  }
}

TEST_CASE(
    "a program that goes on after a refusal and ends well has no screen; one that lingers has it in a "
    "second") {
  for (const std::string& mode : kModes) {
    const Told got_over = tell(mode, {"start", "alloc:100000", "alloc:60000"}, {{"NEEDY_IGNORES", "1"}});
    INFO(mode << "\n" << got_over.run.outcome.err);
    CHECK(got_over.run.outcome.err.empty());
    const Told lingers = tell(mode, {"start", "alloc:100000", "sleep:2000", "_exit"});
    CHECK(screens_in(lingers.run.outcome.err) == 1);
  }
}

TEST_CASE(
    "a process that ends by _exit, and a child that was forked before the driver started, have their "
    "screens") {
  for (const std::string& mode : kModes) {
    const Told told = tell(mode, {"start", "alloc:100000", "_exit"});
    INFO(mode << "\n" << told.run.outcome.err);
    CHECK(screens_in(told.run.outcome.err) == 1);
    const Told child = tell(mode, {"fork", "start", "alloc:100000"});
    CHECK(screens_in(child.run.outcome.err) == 1);
  }
}

TEST_CASE("a host without memory does not keep the screen from being shown") {
  for (const std::string& mode : kModes)
    for (const std::string step : {"alloc:100000", "create:100000"}) {
      const Told told = tell(mode, {"start", "alloc:1", "broke", step});
      INFO(mode << " " << step << "\n" << told.run.outcome.out << told.run.outcome.err);
      CHECK(told.run.outcome.exit_code == 1);
      CHECK(screens_in(told.run.outcome.err) == 1);
      CHECK(told.screen.find("more was asked for at once") != std::string::npos);
    }
}

TEST_CASE("TIDEPOOL_WAIT bounds the wait, and the hopeless is not waited for") {
  const auto timed = [](const std::string& wait, const std::string& step) {
    const auto begin = std::chrono::steady_clock::now();
    const Told told = tell_beside("ondemand", {"start", step}, {{"TIDEPOOL_WAIT", wait}});
    CHECK(told.run.outcome.out.find("error 2") == 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  CHECK(timed("2", "alloc:2048") >= 2);
  CHECK(timed("forever", "alloc:100000") < 30);
}
