// The application's own memory (cuMemCreate) is used again where nobody can tell, and only there: seen in how
// often the driver is asked for memory. What the programs check themselves is in victims/own_memory.cpp.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

namespace {

struct Row {
  std::string scenario;
  std::uint64_t asked;    // cuMemCreate calls of the program that can succeed or fail
  std::uint64_t created;  // those that the driver sees
  Environment more = {};
};

const Environment kTwoDevices{{"SIM_DEVICES", "2"}};

const std::vector<Row> kRows{
    {"own_memory_cycled", 10, 1},        {"own_memory_never_mapped", 2, 2},
    {"own_memory_exported", 3, 2},       {"own_memory_retained", 4, 3},
    {"own_memory_bound", 3, 3},          {"own_memory_mapped_twice", 4, 3},
    {"own_memory_mapped_in_part", 2, 2}, {"own_memory_of_other_kinds", 7, 6, kTwoDevices},
    {"own_memory_released_twice", 2, 1}, {"own_memory_in_bulk", 10, 9},
    {"own_memory_reset", 2, 2},
};

Run victim(const std::string& scenario, const std::string& mode, const Environment& more) {
  Run run = run_on_simulator({VICTIM, scenario}, mode, more);
  INFO(scenario << " in " << mode << ": " << run.outcome.out << run.outcome.err);
  REQUIRE(run.outcome.exit_code == 0);
  CHECK(run.outcome.out == "done\n");
  CHECK(without_screens(run.outcome.err).empty());
  if (mode.empty()) return run;
  REQUIRE(run.report.is_object());
  CHECK(hooked_only(run.report.at("driver_calls").get<Counts>()) == hooked_only(run.calls));
  const auto& device = run.report.at("devices").at(0);
  CHECK(device.at("live_bytes") == 0);
  CHECK(device.at("allocations") == device.at("frees"));
  return run;
}

}  // namespace

TEST_CASE("the application's own memory is used again under its conditions, and under no others") {
  for (const Row& row : kRows) {
    INFO(row.scenario);
    REQUIRE(victim(row.scenario, "", row.more).calls.at("cuMemCreate") == row.asked);
    for (const std::string mode : {"ondemand", "prealloc"}) {
      const Run run = victim(row.scenario, mode, row.more);
      CHECK(run.calls.at("cuMemCreate") == row.created);
      CHECK(run.report.at("intercepted").at("cuMemCreate") == row.asked);
    }
    const Run observed = victim(row.scenario, "passthrough", row.more);
    CHECK(observed.report.at("intercepted").get<Counts>() == hooked_only(observed.calls));
    CHECK(observed.report.at("devices").at(0).at("reserved_bytes") == 0);
  }
}

TEST_CASE("idle memory is held and not live, and no more of it is kept than a small part of the device") {
  const Run cycled = victim("own_memory_cycled", "ondemand", {});
  CHECK(cycled.report.at("devices").at(0).at("reserved_bytes") == 4 << 20);
  CHECK(cycled.report.at("devices").at(0).at("reserved_peak_bytes") == 4 << 20);
  CHECK(cycled.calls.count("cuMemRelease") == 0);
  const Run bulk = victim("own_memory_in_bulk", "ondemand", {});
  CHECK(bulk.report.at("devices").at(0).at("reserved_bytes") == 600 << 20);
  CHECK(victim("own_memory_cycled", "ondemand", {{"SIM_MEMORY", "32MiB"}}).calls.at("cuMemCreate") == 10);
}

TEST_CASE("idle memory gives way before anything is refused: to the device's end, a limit, a trim") {
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Environment tight{{"SIM_MEMORY", "256MiB"}, {"TIDEPOOL_FRACTION", "0"}};
    const Run run = victim("own_memory_gives_way", mode, tight);
    CHECK(run.report.at("devices").at(0).at("reserved_bytes") == 0);
    const Run limited =
        victim("own_memory_gives_way", mode,
               {{"SIM_MEMORY", "1GiB"}, {"TIDEPOOL_LIMIT", "256MiB"}, {"TIDEPOOL_FRACTION", "0"}});
    CHECK(limited.report.at("devices").at(0).at("reserved_bytes") == 0);
    CHECK(limited.report.at("devices").at(0).at("reserved_peak_bytes") <= 256 << 20);
  }
}

TEST_CASE("threads that use each other's idle memory never share it") {
  const Run plain = victim("own_memory_in_threads", "", {});
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Run run = victim("own_memory_in_threads", mode, {{"TIDEPOOL_FRACTION", "0"}});
    CHECK(run.calls.at("cuMemCreate") < plain.calls.at("cuMemCreate") / 10);
  }
}
