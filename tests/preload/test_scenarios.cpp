// Every scenario of the victim in every mode: same answers as without the shim, and exact counts.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

namespace {

const std::vector<std::string> kScenarios{
    "way_dlsym",          "way_procaddress",      "way_procaddress_versions",
    "way_default_scope",  "way_reload",           "no_driver_in_process",
    "alloc_free",         "wrong_calls",          "wrong_call_table",
    "stream_order",       "pool_warm_up",         "pool_used",
    "address_answers",    "out_of_memory",        "memory_handed_to_the_driver",
    "own_virtual_memory", "several_threads",      "barrier",
    "context_death",      "capture_beside_frees", "fork_before_start",
    "fork_after_start",   "live_at_exit",         "calls_from_last_destructor",
    "probe_only",         "dead_stream",          "no_mapping",
    "behind_the_end",     "free_in_callback",     "capture_dies_with_context",
    "constructor_thread"};

Run victim(const std::string& scenario, const std::string& mode, Environment more = {}) {
  if (scenario == "way_reload" || scenario == "mini_driver") more.merge(without_leak_check());
  return run_on_simulator({VICTIM, scenario}, mode, more);
}

// The modes with an arena, and what stands behind cuMemAlloc there.
struct Served {
  std::string mode, backing;
  Environment environment() const { return {{"TIDEPOOL_BACKING", backing}}; }
};
const std::vector<Served> kServed{{"ondemand", "auto"}, {"ondemand", "vmm"}, {"prealloc", "auto"}};

// A forked child's calls are in the simulator's log and in no report of the parent; a program that
// never starts the driver has no report.
bool is_counted(const std::string& scenario) {
  return !scenario.starts_with("fork_") && scenario != "no_driver_in_process";
}

}  // namespace

TEST_CASE("a program behaves in every mode as it does without the shim") {
  for (const std::string& scenario : kScenarios) {
    const Run plain = victim(scenario, "");
    INFO(scenario << " without the shim: " << plain.outcome.out << plain.outcome.err);
    REQUIRE(plain.outcome.exit_code == 0);
    std::vector<Served> ways{{"off", "auto"}, {"passthrough", "auto"}};
    ways.insert(ways.end(), kServed.begin(), kServed.end());
    for (const Served& way : ways) {
      const Run run = victim(scenario, way.mode, way.environment());
      INFO(scenario << " in " << way.mode << ", " << way.backing << ": " << run.outcome.out
                    << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      CHECK(run.outcome.out == plain.outcome.out);
      CHECK(without_screens(run.outcome.err) == plain.outcome.err);
    }
  }
}

TEST_CASE(
    "a wrong call is answered in managed mode, and beside blocks of the driver's, as without the shim") {
  const std::string plain = victim("wrong_call_table", "").outcome.out;
  CHECK(victim("wrong_call_table", "managed").outcome.out == plain);
  CHECK(victim("wrong_call_table", "ondemand", {{"TIDEPOOL_BACKING", "native"}}).outcome.out == plain);
  CHECK(victim("wrong_call_table", "ondemand", {{"TIDEPOOL_FAST_FREE", "1"}}).outcome.out == plain);
}

TEST_CASE("passthrough counts exactly the calls that the driver received") {
  for (const std::string& scenario : kScenarios) {
    if (!is_counted(scenario)) continue;
    const Run run = victim(scenario, "passthrough");
    INFO(scenario << ": " << run.outcome.out << run.outcome.err);
    REQUIRE(!run.calls.empty());
    REQUIRE(run.report.is_object());
    CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
  }
}

TEST_CASE("driver_calls is what the driver received, in the modes with an arena too") {
  for (const std::string& scenario : kScenarios) {
    if (!is_counted(scenario)) continue;
    for (const Served& way : kServed) {
      const Run run = victim(scenario, way.mode, way.environment());
      INFO(scenario << " in " << way.mode << ", " << way.backing << ": " << run.outcome.out
                    << run.outcome.err);
      REQUIRE(!run.calls.empty());
      REQUIRE(run.report.is_object());
      CHECK(hooked_only(run.report.at("driver_calls").get<Counts>()) == hooked_only(run.calls));
    }
  }
}

TEST_CASE("a program linked to the driver is seen, by PLT, without one, and by stubs of its own") {
  for (const std::string program : {LINKED_PLT, LINKED_NOPLT, LINKED_STUBS})
    for (const std::string mode : {"", "off", "passthrough", "ondemand", "prealloc"}) {
      const Run run = run_on_simulator({program}, mode);
      INFO(program << " in " << mode << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      CHECK(run.outcome.out == "done\n");
      if (mode == "" || mode == "off") continue;
      REQUIRE(run.report.is_object());
      CHECK(run.report.at("intercepted") ==
            nlohmann::json{
                {"cuInit", 1}, {"cuDevicePrimaryCtxRetain", 1}, {"cuMemAlloc_v2", 1}, {"cuMemFree_v2", 1}});
      CHECK(hooked_only(run.report.at("driver_calls").get<Counts>()) == hooked_only(run.calls));
    }
}

TEST_CASE("a driver that can be unloaded, and answers with addresses it does not export, is seen") {
  const Environment mini{{"LD_LIBRARY_PATH", MINIDRIVER}};
  REQUIRE(victim("mini_driver", "", mini).outcome.exit_code == 0);
  for (const std::string mode : {"off", "passthrough", "ondemand", "prealloc"}) {
    const Run run = victim("mini_driver", mode, mini);
    INFO(mode << ": " << run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    if (mode == "off") continue;
    REQUIRE(run.report.is_object());
    CHECK(
        run.report.at("intercepted") ==
        nlohmann::json{{"cuInit", 3}, {"cuGetProcAddress_v2", 6}, {"cuMemAlloc_v2", 3}, {"cuMemFree_v2", 3}});
  }
}

TEST_CASE("a thread that is cancelled inside the driver ends as without the shim") {
  const Environment mini{{"LD_LIBRARY_PATH", MINIDRIVER}};
  for (const std::string mode : {"", "off", "passthrough", "ondemand"}) {
    const Run run = victim("mini_cancel", mode, mini);
    INFO(mode << ": " << run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
  }
}

TEST_CASE("a driver that lacks what came later serves as it does without the shim") {
  for (const std::string version : {"11000", "11020", "11030", "12040"})
    for (const std::string mode : {"", "passthrough", "ondemand", "prealloc"}) {
      const Run run = victim("alloc_free", mode, {{"SIM_FAULTS", "version:" + version}});
      INFO(version << " in " << mode << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
    }
}

TEST_CASE("off does not count, report or change a look-up") {
  const Run run = victim("alloc_free", "off");
  CHECK(run.report.is_null());
  CHECK(run.calls == victim("alloc_free", "").calls);
}

TEST_CASE("bare cuInit takes no memory and builds no arena") {
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Run run = victim("probe_only", mode);
    CHECK(run.calls.count("cuMemCreate") == 0);
    CHECK(run.calls.count("cuMemAddressReserve") == 0);
    CHECK(run.report.at("devices").empty());
  }
}

TEST_CASE("what a framework was told after the driver had started is reported, and nothing told before is") {
  for (const std::string mode : {"passthrough", "ondemand"}) {
    const Run run = victim("told_late", mode);
    INFO(mode << ": " << run.report.dump());
    CHECK(run.report.at("set_late") ==
          nlohmann::json::parse(R"([{"name": "PYTORCH_ALLOC_CONF", "value": "backend:cudaMallocAsync"}])"));
  }
}
