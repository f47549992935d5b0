// What the arena does for a program, seen from the driver's side.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Run victim(const std::string& scenario, const std::string& mode, const Environment& more = {}) {
  Run run = run_on_simulator({VICTIM, scenario}, mode, more);
  INFO(scenario << " in " << mode << ": " << run.outcome.out << run.outcome.err);
  REQUIRE(run.outcome.exit_code == 0);
  REQUIRE(run.report.is_object());
  return run;
}

std::uint64_t reserved_peak(const Run& run) {
  return run.report.at("devices").at(0).at("reserved_peak_bytes").get<std::uint64_t>();
}

}  // namespace

TEST_CASE("prealloc takes its fraction at the first allocation of 1 MiB, ondemand what is asked") {
  CHECK(reserved_peak(victim("way_dlsym", "prealloc", {{"TIDEPOOL_FRACTION", "0.5"}})) == 40 * kGiB);
  CHECK(reserved_peak(victim("way_dlsym", "prealloc")) == 60 * kGiB);
  CHECK(reserved_peak(victim("way_dlsym", "ondemand")) <= 8 << 20);
}

TEST_CASE("memory of cuMemFree is given out again only after a synchronise") {
  const Run run = victim("barrier", "ondemand");
  CHECK(run.calls.at("cuCtxSynchronize") == 2);
  const Run fast = victim("barrier", "ondemand", {{"TIDEPOOL_FAST_FREE", "1"}});
  // The free does not wait; the reuse does, or takes other memory.
  CHECK(fast.calls.count("cuCtxSynchronize") <= 1);
}

TEST_CASE(
    "what stands behind cuMemAlloc: the driver's own blocks, in a pool that was asked for mapped pages") {
  const auto blocks_of_the_driver = [](const std::string& mode, const Environment& more) {
    const Run run = victim("alloc_free", mode, more);
    CHECK(run.report.at("devices").at(0).at("allocations") == 5);
    CHECK(run.report.at("devices").at(0).at("live_bytes") == 0);
    CHECK((run.calls.count("cuMemAlloc_v2") == 0) == (run.calls.count("cuMemCreate") > 0));
    return run.calls.count("cuMemAlloc_v2") == 0 ? 0 : run.calls.at("cuMemAlloc_v2");
  };
  const Environment native{{"TIDEPOOL_BACKING", "native"}}, mapped{{"TIDEPOOL_BACKING", "vmm"}},
      two{{"SIM_DEVICES", "2"}};
  for (const std::string mode : {"ondemand", "managed", "prealloc"}) {
    CHECK(blocks_of_the_driver(mode, {}) == (mode == "prealloc" ? 0 : 5));
    CHECK(blocks_of_the_driver(mode, two) == 5);
    CHECK(blocks_of_the_driver(mode, native) == 5);
    CHECK(blocks_of_the_driver(mode, mapped) == 0);
  }
}

TEST_CASE("a limit holds for both families and for the application's own cuMemCreate") {
  const Environment limit{{"TIDEPOOL_LIMIT", "1GiB"}};
  for (const std::string mode : {"ondemand", "prealloc"}) {
    CHECK(reserved_peak(victim("stream_order", mode, limit)) <= kGiB);
    const Run refused = run_on_simulator({VICTIM, "out_of_memory"}, mode, limit);
    CHECK(refused.outcome.exit_code != 0);
    CHECK(refused.report.at("devices").at(0).at("oom").at(0).at("requested_bytes") == 50 * kGiB);
    CHECK(refused.report.at("devices").at(0).at("limit_bytes") == kGiB);
  }
}

TEST_CASE("JAX on the driver's pool stops at the share of its own pool, and nothing else does") {
  const Environment chosen{{"TIDEPOOL_FRAMEWORK_VARIABLES", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"},
                           {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
                           {"TIDEPOOL_LOG", "info"}};
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Run run = victim("pool_exhausted", mode, chosen);
    CHECK(run.outcome.out == "6 blocks of 10 GiB, then error 2\ndone\n");
    CHECK(run.report.at("devices").at(0).at("oom").at(0).at("requested_bytes") == 10 * kGiB);
    CHECK(run.outcome.err.find("cause: framework_share") != std::string::npos);
  }
  // A larger pool was asked for.
  Environment larger = chosen;
  larger["TIDEPOOL_FRACTION"] = "0.8";
  CHECK(run_on_simulator({VICTIM, "pool_exhausted"}, "prealloc", larger)
            .outcome.err.find("framework_share") != std::string::npos);
  // Who chose the driver's pool for himself has all of it.
  CHECK(run_on_simulator({VICTIM, "pool_exhausted"}, "ondemand", {}).outcome.err.find("share") ==
        std::string::npos);
}

TEST_CASE("a pool's warm-up by JAX takes no memory, and gets it if it is used after all") {
  // As in a process for which the shim chose JAX's allocator.
  const Environment chosen{{"TIDEPOOL_FRAMEWORK_VARIABLES", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"},
                           {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"}};
  const Run unused = victim("pool_warm_up", "ondemand", chosen);
  CHECK(reserved_peak(unused) <= 16 << 20);
  CHECK(unused.report.at("devices").at(0).at("unbacked_reservation_bytes") == 60 * kGiB);
  CHECK(reserved_peak(victim("pool_warm_up", "prealloc", {chosen})) == 60 * kGiB);
  Environment half = chosen;
  half["TIDEPOOL_FRACTION"] = "0.5";
  CHECK(reserved_peak(victim("pool_warm_up", "prealloc", half)) == 40 * kGiB);
  for (const std::string mode : {"ondemand", "prealloc"}) {
    Environment less = chosen;
    less["TIDEPOOL_FRACTION"] = "0.1";
    const Run used = victim("pool_used", mode, less);
    CHECK(reserved_peak(used) >= 60 * kGiB);
    CHECK(used.report.at("devices").at(0).at("reserved_bytes").get<std::uint64_t>() < 20 * kGiB);
  }
  // A program of its own choice is served as it asks.
  CHECK(reserved_peak(victim("pool_warm_up", "ondemand")) >= 60 * kGiB);
}

TEST_CASE("what is cached gives way to the program's own memory before a limit refuses it") {
  const Run run = victim("limit_filled_by_cache", "ondemand", {{"TIDEPOOL_LIMIT", "1GiB"}});
  CHECK(reserved_peak(run) <= kGiB);
}

TEST_CASE(
    "with two devices, memory comes from the pool's own, and a pool shared with the other is the driver's") {
  const Environment two{{"SIM_DEVICES", "2"}};
  REQUIRE(run_on_simulator({VICTIM, "two_devices"}, "", two).outcome.exit_code == 0);
  for (const std::string mode : {"passthrough", "ondemand", "prealloc"}) {
    const Run run = victim("two_devices", mode, two);
    CHECK(run.report.at("devices").size() == 2);
    if (mode != "passthrough") CHECK(run.calls.at("cuMemAllocFromPoolAsync") == 1);
  }
}

// The race that it is about only ThreadSanitizer sees.
TEST_CASE("a pool is shared and ends while a thread uses it and asks about its blocks") {
  const Environment two{{"SIM_DEVICES", "2"}};
  REQUIRE(run_on_simulator({VICTIM, "pools_change_under_use"}, "", two).outcome.exit_code == 0);
  for (const std::string mode : {"passthrough", "ondemand"}) victim("pools_change_under_use", mode, two);
}

TEST_CASE("a program that empties its pool all the time runs out of addresses, and is told so once") {
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Run run = victim("emptied_each_step", mode, {{"SIM_MEMORY", "256MiB"}});
    CHECK(std::count(run.outcome.err.begin(), run.outcome.err.end(), '\n') == 1);
    CHECK(run.outcome.err.find("passed on to the driver") != std::string::npos);
  }
}

TEST_CASE("managed backs a giant where it is touched, and serves the rest as ever") {
  const Run run = victim("giant", "managed", {{"TIDEPOOL_BACKING", "vmm"}});
  CHECK(run.outcome.err.empty());
  CHECK(run.report.at("mode") == "managed");
  CHECK(run.calls.at("cuMemAllocManaged") == 1);
  CHECK(run.calls.count("cuMemAlloc_v2") == 0);
  CHECK(reserved_peak(run) < 64 * kMiB);
  const auto& device = run.report.at("devices").at(0);
  CHECK(device.at("requested_peak_bytes").get<std::uint64_t>() == 60 * kGiB + 3 * kMiB);
  CHECK(device.at("lazily_backed_bytes") == 0);  // freed
  // The limit is one for both.
  const Run limited = run_on_simulator({VICTIM, "giant"}, "managed", {{"TIDEPOOL_LIMIT", "32GiB"}});
  CHECK(limited.outcome.exit_code != 0);
  CHECK(limited.calls.count("cuMemAllocManaged") == 0);
  // Without faults while the device computes it is no use.
  CHECK(reserved_peak(victim("giant", "ondemand")) >= 60 * kGiB);
}

TEST_CASE("a limit names a MIG instance by its UUID as well") {
  const Run run = victim("alloc_free", "ondemand");
  std::string uuid = run.report.at("devices").at(0).at("uuid").get<std::string>();
  uuid.replace(0, 3, "MIG");
  CHECK(victim("alloc_free", "ondemand", {{"TIDEPOOL_LIMIT", uuid + "=2GiB"}})
            .report.at("devices")
            .at(0)
            .at("limit_bytes") == 2 * kGiB);
}

TEST_CASE("the books are empty when everything was freed") {
  for (const std::string scenario :
       {"alloc_free", "stream_order", "own_virtual_memory", "several_threads", "out_of_memory"})
    for (const std::string mode : {"passthrough", "ondemand", "prealloc"}) {
      const Run run = victim(scenario, mode);
      const auto& device = run.report.at("devices").at(0);
      INFO(scenario << " in " << mode << ": " << device.dump());
      CHECK(device.at("live_bytes") == 0);
      CHECK(device.at("allocations") == device.at("frees"));
      CHECK(device.at("requested_peak_bytes") <= device.at("reserved_peak_bytes"));
    }
}

TEST_CASE("an out-of-memory is in the report with what was asked, also of a process that dies of it") {
  for (const std::string mode : {"passthrough", "ondemand", "prealloc"}) {
    const Run run = victim("out_of_memory", mode);
    const auto& events = run.report.at("devices").at(0).at("oom");
    REQUIRE(events.size() == 1);
    CHECK(events.at(0).at("entry") == "cuMemAlloc_v2");
    CHECK(events.at(0).at("requested_bytes") == 50 * kGiB);
  }
}
