// Programs that free what the device still uses, in every mode and under several schedules of the device:
// the referee and the simulator's detector are silent, and the data is right.
//
// That they would not be silent with any of the shim's fences missing is what tests/mutation shows.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;

namespace {

struct Verdict {
  Outcome outcome;
  std::string referee;
};

Verdict play(const std::string& scene, const std::string& mode, Environment more = {}) {
  const ScratchFolder scratch;
  const std::string preload = std::string(REFEREE) + (mode.empty() ? "" : std::string(":") + SHIM);
  more["LD_PRELOAD"] = preload_of(preload);
  more["REFEREE_LOG"] = scratch.path("referee");
  more["SIM_MEMORY"] = "256MiB";
  Outcome outcome = run_on_simulator({FENCE_VICTIM, scene}, mode, more).outcome;
  return {std::move(outcome), read_file(scratch.path("referee"))};
}

// The number after a word of the referee's last line.
long said(const std::string& referee, const std::string& word) {
  const auto at = referee.rfind(word + " ");
  return at == std::string::npos ? -1 : std::stol(referee.substr(at + word.size()));
}

const std::vector<std::string> kScenes{"freed_in_flight",          "freed_in_flight_elsewhere",
                                       "context_ends_in_flight",   "taken_by_another_stream",
                                       "taken_when_short",         "taken_when_short_elsewhere",
                                       "taken_by_the_next_stream", "taken_by_another_thread",
                                       "taken_by_another_context", "taken_in_parts",
                                       "handed_back_in_flight",    "pool_trimmed_in_flight",
                                       "freed_while_waiting",      "captured_beside_frees",
                                       "captured_beside_all",      "storm"};

// Modes, and what stands behind cuMemAlloc there: an arena's pages, or blocks of the driver's.
struct Way {
  std::string mode, backing;
};
const std::vector<Way> kServed{{"ondemand", "native"}, {"ondemand", "vmm"}, {"prealloc", "vmm"}};

void must_be_right(const std::string& scene, const Way& way, Environment more) {
  if (!way.mode.empty()) more["TIDEPOOL_BACKING"] = way.backing;
  const Verdict verdict = play(scene, way.mode, more);
  INFO(scene << " in " << (way.mode.empty() ? "no shim" : way.mode) << ", " << way.backing << ": "
             << verdict.outcome.out << verdict.outcome.err << verdict.referee);
  CHECK(verdict.outcome.exit_code == 0);
  CHECK(verdict.outcome.out == "done\n");
  CHECK(without_screens(verdict.outcome.err).empty());
  CHECK(said(verdict.referee, "handed out") > 0);
  CHECK(said(verdict.referee, "broken") == 0);
}

}  // namespace

TEST_CASE("no memory is given out while the device may still use it") {
  std::vector<Way> ways{{"", ""}, {"passthrough", "auto"}};
  ways.insert(ways.end(), kServed.begin(), kServed.end());
  for (const std::string& scene : kScenes)
    for (const Way& way : ways) must_be_right(scene, way, {});
}

TEST_CASE("nor while a context may use it that is not the block's own") {
  for (const Way& way : kServed)
    for (const std::string fast_free : {"0", "1"})
      must_be_right("used_elsewhere", way, {{"TIDEPOOL_FAST_FREE", fast_free}});
}

TEST_CASE("nor where cuMemFree does not wait, nor under any other order of the device's work") {
  for (const std::string seed : {"1", "2", "3"})
    for (const Way& way : kServed)
      for (const std::string fast_free : {"0", "1"}) {
        must_be_right("storm", way, {{"SIM_SCHED", seed}, {"TIDEPOOL_FAST_FREE", fast_free}});
        must_be_right("freed_in_flight", way, {{"SIM_SCHED", seed}, {"TIDEPOOL_FAST_FREE", fast_free}});
      }
}

TEST_CASE("nor where the driver's cuMemFree does not wait either") {
  for (const Way& way : kServed)
    must_be_right("storm", way, {{"SIM_GUESS", "free_synchronises=0,destroy_waits=0"}});
}
