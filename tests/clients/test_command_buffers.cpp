// JAX with command buffers on: a step that repeats finds its addresses where they were. XLA updates a node of
// its CUDA graph whenever an address in it moved, so the simulator's log of graph calls counts the moves.
#include <catch2/catch.hpp>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;

namespace {

// What XLA has on by default, and the simulator's launcher turns off.
const std::string kCommandBuffers =
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION";
constexpr int kWarmUp = 20;
constexpr int kCounted = 60;

struct Graphs {
  std::string out;
  double launches = 0;  // a step, between the warm-up and the end
  double updates = 0;
};

struct Calls {
  std::string out;
  nlohmann::json entries;
};

Calls calls_of(int steps, const std::string& mode) {
  const ScratchFolder scratch;
  const Client loop{"jax", "jax_repeats.py", {"--steps", std::to_string(steps)}};
  const ClientRun run =
      run_client(loop, mode, {{"XLA_FLAGS", kCommandBuffers}, {"SIM_STATS", scratch.path("stats")}});
  return {run.outcome.out, nlohmann::json::parse(read_file(scratch.path("stats"))).at("calls")};
}

double counted(const Calls& calls, bool (*wanted)(const std::string&)) {
  double sum = 0;
  for (const auto& [entry, count] : calls.entries.items())
    if (wanted(entry)) sum += count.get<double>();
  return sum;
}

Graphs graphs_in(const std::string& mode) {
  const Calls brief = calls_of(kWarmUp, mode);
  const Calls whole = calls_of(kWarmUp + kCounted, mode);
  const auto a_step = [&](auto wanted) {
    return (counted(whole, wanted) - counted(brief, wanted)) / kCounted;
  };
  return {whole.out, a_step([](const std::string& entry) { return entry == "cuGraphLaunch"; }),
          a_step([](const std::string& entry) { return entry.find("NodeSetParams") != entry.npos; })};
}

}  // namespace

TEST_CASE("a donated training step under the arena updates few nodes of JAX's graphs, JAX's own pool most",
          "[jax-command-buffers]") {
  const Graphs own = graphs_in("");
  // Without graphs there would be nothing to prove.
  REQUIRE(own.launches >= 1);
  REQUIRE(own.updates > 12);
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const Graphs served = graphs_in(mode);
    INFO(mode << ": " << served.updates << " updates a step, JAX's own pool " << own.updates);
    CHECK(served.out == own.out);
    CHECK(served.launches == own.launches);
    // The new batch is there before the old one is gone, so that two addresses take turns; 12 nodes read it.
    CHECK(served.updates <= 12);
    CHECK(served.updates <= own.updates / 5);
  }
}
