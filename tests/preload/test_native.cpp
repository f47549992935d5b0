// The driver's own blocks are given out again where nobody can tell, and only there: seen in how often the
// driver is asked for memory. What the programs check themselves is in victims/native.cpp.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Calls for memory that succeed: the program's, those that the driver sees, and frees that it sees; among
// these are questions what it says to a wrong call.
struct Row {
  std::string scenario;
  std::uint64_t asked;
  std::uint64_t allocated;
  std::uint64_t freed;
};

const std::vector<Row> kRows{{"native_cycled", 10, 1, 20},     {"native_small", 6, 3, 0},
                             {"native_pitched", 6, 5, 0},      {"native_claimed", 7, 7, 6},
                             {"native_of_contexts", 4, 3, 2},  {"native_beside_capture", 12, 2, 3},
                             {"native_gives_way", 0, 0, 0},    {"native_of_drawn_sizes", 160, 0, 0},
                             {"native_in_threads", 3600, 0, 0}};

std::uint64_t count(const Run& run, const std::vector<std::string>& entries) {
  std::uint64_t sum = 0;
  for (const std::string& entry : entries)
    if (const auto found = run.calls.find(entry); found != run.calls.end()) sum += found->second;
  return sum;
}

std::uint64_t number(const Run& run, const std::string& name) {
  return run.report.at("devices").at(0).at(name).get<std::uint64_t>();
}

Run victim(const std::string& scenario, const std::string& mode, Environment more = {}) {
  if (scenario == "native_gives_way") more.emplace("SIM_MEMORY", "1GiB");
  Run run = run_on_simulator({VICTIM, scenario}, mode, more);
  INFO(scenario << " in " << mode << ": " << run.outcome.out << run.outcome.err);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.outcome.out == "done\n");
  CHECK(without_screens(run.outcome.err).empty());
  if (mode.empty()) return run;
  REQUIRE(run.report.is_object());
  CHECK(hooked_only(run.report.at("driver_calls").get<Counts>()) == hooked_only(run.calls));
  CHECK(number(run, "live_bytes") == 0);
  CHECK(number(run, "allocations") == number(run, "frees"));
  CHECK(number(run, "cached_bytes") == number(run, "reserved_bytes"));
  return run;
}

const std::vector<std::string> kAllocations{"cuMemAlloc_v2", "cuMemAllocPitch_v2"};

}  // namespace

TEST_CASE("the driver's own blocks are given out again under their conditions, and under no others") {
  for (const Row& row : kRows) {
    INFO(row.scenario);
    victim(row.scenario, "");
    for (const std::string mode : {"ondemand", "managed", "prealloc"}) {
      const Environment backing{{"TIDEPOOL_BACKING", mode == "prealloc" ? "native" : "auto"},
                                {"TIDEPOOL_FRACTION", "0"}};
      const Run run = victim(row.scenario, mode, backing);
      if (row.allocated == 0) continue;
      CHECK(number(run, "allocations") == row.asked);
      const std::uint64_t refused = row.scenario == "native_pitched" ? 2 : 0;
      CHECK(count(run, kAllocations) == row.allocated + refused);
      CHECK(count(run, {"cuMemFree_v2"}) == row.freed);
    }
    const Run observed = victim(row.scenario, "passthrough");
    CHECK(observed.report.at("intercepted").get<Counts>() == hooked_only(observed.calls));
    CHECK(number(observed, "reserved_bytes") == 0);
  }
}

TEST_CASE("what is kept is held and not live, and never more than the program had at once and a little") {
  const Run cycled = victim("native_cycled", "ondemand");
  CHECK(number(cycled, "cached_bytes") == 4 * kMiB);
  CHECK(number(cycled, "reserved_peak_bytes") == 4 * kMiB);
  const Run drawn = victim("native_of_drawn_sizes", "ondemand");
  CHECK(number(drawn, "reserved_peak_bytes") <= number(drawn, "requested_peak_bytes") + 32 * kMiB);
  CHECK(count(drawn, kAllocations) > 40);
}

TEST_CASE("kept blocks give way before anything is refused: to the device's end, to a limit, to the arena") {
  for (const std::string limit : {"1000MiB", "2GiB"}) {
    const Run run = victim("native_gives_way", "ondemand", {{"TIDEPOOL_LIMIT", limit}});
    CHECK(number(run, "reserved_peak_bytes") <= 1000 * kMiB);
    CHECK(run.report.at("devices").at(0).at("oom").empty());
  }
}

TEST_CASE("threads that use each other's kept blocks never share one") {
  const Run run = victim("native_in_threads", "ondemand");
  CHECK(count(run, kAllocations) < 400);
}
