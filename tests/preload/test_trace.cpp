// A trace tells of a whole program what its report tells, event by event; also of one that is killed, or has
// children.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "shim/trace/reader.hpp"
#include "shim/trace/replay.hpp"
#include "tests/preload/harness.hpp"

using namespace tidepool;
using namespace tidepool::test;

namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

struct Traced {
  Run run;
  trace::Trace trace;
  trace::Replay replay;
};

Traced victim(const std::string& scenario, const std::string& mode, int exit_code = 0,
              Environment more = {}) {
  const ScratchFolder scratch;
  more["TIDEPOOL_TRACE"] = scratch.path("trace");
  if (scenario == "native_gives_way") more.emplace("SIM_MEMORY", "1GiB");
  Traced traced{run_on_simulator({VICTIM, scenario}, mode, more), {}, {}};
  INFO(scenario << " in " << mode << ": " << traced.run.outcome.out << traced.run.outcome.err);
  REQUIRE(traced.run.outcome.exit_code == exit_code);
  traced.trace = trace::read(scratch.path("trace"));
  for (const trace::TracedEvent& event : traced.trace.events) traced.replay.apply(event);
  return traced;
}

}  // namespace

TEST_CASE("a trace comes to the report's figures, by every way to memory and in every mode") {
  const std::vector<std::string> kScenarios{
      "alloc_free",       "wrong_calls",       "stream_order",          "pool_used",    "out_of_memory",
      "several_threads",  "context_death",     "own_virtual_memory",    "dead_stream",  "own_memory_cycled",
      "native_cycled",    "native_pitched",    "native_of_contexts",    "live_at_exit", "native_gives_way",
      "own_memory_reset", "native_in_threads", "own_memory_in_threads", "giant"};
  for (const std::string mode : {"ondemand", "prealloc", "managed", "passthrough"})
    for (const std::string& scenario : kScenarios) {
      // Of memory that is backed where it is touched there is enough.
      if (mode == "managed" && scenario == "out_of_memory") continue;
      const Traced traced = victim(scenario, mode);
      INFO(scenario << " in " << mode);
      REQUIRE(traced.run.report.is_object());
      CHECK(traced.trace.mode == mode);
      CHECK(traced.trace.ended > 0);
      CHECK(traced.trace.missing == 0);
      for (const auto& device : traced.run.report.at("devices")) {
        const int ordinal = device.at("ordinal");
        const auto found = traced.replay.devices().find(ordinal);
        const trace::DeviceState state =
            found == traced.replay.devices().end() ? trace::DeviceState{} : found->second;
        CHECK(state.allocations == device.at("allocations"));
        CHECK(state.frees == device.at("frees"));
        CHECK(state.live == device.at("live_bytes"));
        CHECK(state.live_blocks == state.allocations - state.frees);
        CHECK(state.refusals >= device.at("oom").size());
        // With threads the order of two calls that overlap is anybody's.
        if (scenario.find("threads") != std::string::npos) continue;
        CHECK(state.live_peak == device.at("requested_peak_bytes"));
        CHECK(state.held_peak == device.at("reserved_peak_bytes"));
      }
      CHECK(traced.trace.devices.size() == traced.run.report.at("devices").size());
    }
}

TEST_CASE("without TIDEPOOL_TRACE nothing is recorded") {
  const ScratchFolder scratch;
  const Run run = run_on_simulator({VICTIM, "alloc_free"}, "ondemand");
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.outcome.err.empty());
}

TEST_CASE("a program that is killed by SIGKILL leaves every event until then") {
  for (const std::string mode : {"ondemand", "prealloc", "passthrough"}) {
    const Traced traced = victim("killed", mode, 128 + 9);
    CHECK(traced.trace.ended == 0);
    const trace::DeviceState& state = traced.replay.device(0);
    CHECK(state.allocations == 1000);
    CHECK(state.frees == 500);
    CHECK(state.live == 500 * kMib);
  }
}

TEST_CASE("a forked child writes nothing into its parent's trace") {
  const Traced traced = victim("fork_after_start", "ondemand");
  CHECK(traced.replay.device(0).allocations == 1);
  CHECK(traced.replay.device(0).frees == 1);
  CHECK(traced.replay.device(0).refusals == 0);
  const Traced before = victim("fork_before_start", "ondemand");
  CHECK(before.run.outcome.err.find("written by another process") == std::string::npos);
}

TEST_CASE("a trace that cannot be written is one warning, and the program goes on") {
  const Run run =
      run_on_simulator({VICTIM, "alloc_free"}, "ondemand", {{"TIDEPOOL_TRACE", "/no/such/folder"}});
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.outcome.out == "done\n");
  CHECK_THAT(run.outcome.err,
             Catch::Contains("warning: TIDEPOOL_TRACE /no/such/folder cannot be written (No such "
                             "file or directory); nothing is recorded"));
  CHECK(std::count(run.outcome.err.begin(), run.outcome.err.end(), '\n') == 1);
}
