// Memory that others see: other processes, and whoever asks the driver about a pointer.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;

namespace {

const std::vector<std::pair<std::string, std::string>> kWays{
    {"passthrough", "auto"}, {"ondemand", "auto"}, {"managed", "auto"}, {"prealloc", "native"}};

}  // namespace

TEST_CASE("a block is exported to another process, which has the shim or not") {
  for (const Environment& opener : {Environment{}, Environment{{"IPC_BARE", "1"}}}) {
    REQUIRE(run_on_simulator({VICTIM, "ipc_exporter"}, "", opener).outcome.exit_code == 0);
    for (const auto& [mode, backing] : kWays) {
      Environment more = opener;
      more["TIDEPOOL_BACKING"] = backing;
      const Run run = run_on_simulator({VICTIM, "ipc_exporter"}, mode, more);
      INFO(mode << ", " << backing << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      CHECK(run.outcome.err.empty());
      // Whoever has the handle keeps it: the driver's free is the end of the block.
      CHECK(run.calls.at("cuMemAlloc_v2") == 2);
      CHECK(run.calls.at("cuMemFree_v2") == 2);
    }
  }
}

TEST_CASE("memory of an arena is not exported, and one line says what helps") {
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Run run = run_on_simulator({VICTIM, "ipc_exporter"}, mode, {{"TIDEPOOL_BACKING", "vmm"}});
    INFO(run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 4);
    CHECK(run.outcome.err.find("set TIDEPOOL_BACKING=native") != std::string::npos);
  }
}

TEST_CASE("every question about a pointer has the answer that it has without the shim") {
  const Run plain = run_on_simulator({VICTIM, "attributes_of_blocks"}, "");
  REQUIRE(plain.outcome.exit_code == 0);
  const auto told_in = [](const std::string& mode, const std::string& backing) {
    const Run run = run_on_simulator({VICTIM, "attributes_of_blocks"}, mode, {{"TIDEPOOL_BACKING", backing}});
    INFO(mode << ", " << backing << ": " << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    return run.outcome.out;
  };
  for (const auto& [mode, backing] : kWays) CHECK(told_in(mode, backing) == plain.outcome.out);
  // Of a block that cannot be exported it would be a lie that it can (IS_LEGACY_CUDA_IPC_CAPABLE).
  std::string truth = plain.outcome.out;
  for (const std::string way : {"alone", "in plural"})
    for (std::size_t at = 0; (at = truth.find(way + " 10: 0, 1", at)) != std::string::npos;)
      truth.replace(at, way.size() + 9, way + " 10: 0, 0");
  REQUIRE(truth != plain.outcome.out);
  CHECK(told_in("ondemand", "vmm") == truth);
  CHECK(told_in("prealloc", "auto") == truth);
}
