// Every client in every mode, each a test case of its own: the same output and exit code as without the
// shim, counts that agree with the simulator's log in both directions, process by process, and memory that
// comes from where README.md says it does.
#include <catch2/catch.hpp>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;

namespace {

const std::string kSynchronous = "bytes by cuMemAlloc ";
const std::vector<std::string> kSmallGpt{"--steps", "6", "--width", "128", "--layers", "1"};

// What the simulator saw of a process is what the shim says of it.
void check_counts(const std::string& mode, const ClientRun& run) {
  REQUIRE(!run.processes.empty());
  for (const auto& [pid, process] : run.processes) {
    INFO("process " << pid);
    REQUIRE(process.report.is_object());
    CHECK(hooked_only(process.report.at("driver_calls").get<Counts>()) == process.calls);
    if (mode == "passthrough") CHECK(process.report.at("intercepted").get<Counts>() == process.calls);
    CHECK(process.report.at("uncovered").empty());
  }
}

// A mode, and what stands behind cuMemAlloc there.
struct Way {
  std::string mode;
  std::string backing = "";  // as it is by default
  Environment environment() const {
    return backing.empty() ? Environment{} : Environment{{"TIDEPOOL_BACKING", backing}};
  }
  bool serves() const { return mode != "off" && mode != "passthrough"; }
  bool maps_synchronous() const { return mode == "prealloc" || backing == "vmm"; }
};

// Why the arena serves less than it does elsewhere, by what a program allocates.
enum class Unserved {
  nothing,
  own_mappings,  // by cuMemCreate: its handles map only whole, so they stay the driver's and are charged
  a_giant,       // one request for most of the device, which managed mode backs where it is touched
};

// What the program asked cuMemAlloc for, as the referee in front of the shim has it.
double synchronous_bytes(const ClientRun& run) {
  double sum = 0;
  for (const auto& [pid, process] : run.processes)
    if (const auto at = process.verdict.rfind(kSynchronous); at != std::string::npos)
      sum += std::stod(process.verdict.substr(at + kSynchronous.size()));
  return sum;
}

// The arena serves what is ordered by streams, and what cuMemAlloc asks for where that is not left to the
// driver's own blocks; nothing of what is.
void check_served(const Way& way, const ClientRun& run, Unserved unserved) {
  double requested = 0;
  double served = 0;
  for (const auto& [pid, process] : run.processes)
    for (const auto& device : process.report.at("devices")) {
      requested += device.at("requested_bytes").get<double>();
      served += device.at("served_bytes").get<double>();
    }
  const double by_driver = way.maps_synchronous() ? 0 : synchronous_bytes(run);
  INFO("asked for " << requested << " bytes, " << by_driver << " of the driver's own blocks, served "
                    << served);
  REQUIRE(requested > 0);
  if (unserved == Unserved::nothing) {
    CHECK(served + by_driver >= 0.95 * requested);
    CHECK(served + by_driver <= requested);
  } else {
    CHECK(served < 0.05 * requested);
  }
  if (unserved == Unserved::a_giant)
    for (const auto& [pid, process] : run.processes) {
      CHECK(process.calls.at("cuMemAllocManaged") == 1);
      CHECK(process.calls.count("cuMemAlloc_v2") == 0);
    }
}

// The referee saw no memory handed out that the device could still use, and it did look. A program that makes
// its own mappings may be handed nothing.
void check_verdict(const ClientRun& run, Unserved unserved) {
  CHECK(run.outcome.err.find("sim: ") == std::string::npos);
  unsigned long handed_out = 0;
  int verdicts = 0;
  for (const auto& [pid, process] : run.processes) {
    INFO("process " << pid << ": " << process.verdict);
    CHECK(process.verdict.find("broken: ") == std::string::npos);
    if (const auto sum = process.verdict.rfind("handed out "); sum != std::string::npos) {
      handed_out += std::stoul(process.verdict.substr(sum + 11));
      ++verdicts;
    }
  }
  CHECK(verdicts > 0);
  CHECK((handed_out > 0 || unserved == Unserved::own_mappings));
}

// Returns what the program asked cuMemAlloc for, where the shim serves.
double check_way(const Client& client, const Way& way, const ClientRun& plain, Unserved unserved) {
  const ClientRun run = run_client(client, way.mode, way.environment());
  INFO(client.name << " in " << way.mode << " " << way.backing
                   << ", which wrote on stderr: " << run.outcome.err.substr(0, 4000));
  CHECK(run.outcome.out == plain.outcome.out);
  CHECK(run.processes.size() == plain.processes.size());
  if (way.mode == "off") return 0;
  check_counts(way.mode, run);
  if (!way.serves()) return 0;
  check_served(way, run, unserved);
  check_verdict(run, unserved);
  return synchronous_bytes(run);
}

// In managed mode frameworks are told nothing, so one that takes most of the device does.
void check_every_mode(const Client& client, Unserved unserved, Unserved in_managed) {
  const ClientRun plain = run_client(client, "");
  REQUIRE(!plain.outcome.out.empty());
  REQUIRE(!plain.processes.empty());
  for (const std::string mode : {"off", "passthrough", "prealloc", "managed"})
    check_way(client, {mode}, plain, mode == "managed" ? in_managed : unserved);
  // What stands behind cuMemAlloc makes a difference to who calls it.
  if (check_way(client, {"ondemand"}, plain, unserved) > 0)
    check_way(client, {"ondemand", "vmm"}, plain, unserved);
}

void check_every_mode(const Client& client, Unserved unserved = Unserved::nothing) {
  check_every_mode(client, unserved, unserved);
}

}  // namespace

TEST_CASE("JAX 0.10.2 is the same in every mode", "[jax]") {
  check_every_mode({"jax", "jax_gpt.py", kSmallGpt}, Unserved::nothing, Unserved::own_mappings);
}
TEST_CASE("JAX 0.10.2 that grows is the same in every mode", "[jax-growing]") {
  check_every_mode({"jax", "jax_gpt.py", kSmallGpt, {{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}}},
                   Unserved::own_mappings);
}
TEST_CASE("JAX 0.10.2 on the driver's pool is the same in every mode", "[jax-cuda-async]") {
  check_every_mode({"jax", "jax_gpt.py", kSmallGpt, {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"}}});
}
TEST_CASE("JAX 0.10.2 without a pool is the same in every mode", "[jax-platform]") {
  check_every_mode({"jax", "jax_gpt.py", kSmallGpt, {{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}}},
                   Unserved::own_mappings);
}
TEST_CASE("JAX 0.10.1 is the same in every mode", "[jax-0.10.1]") {
  // Its autotuner compiles all that a Triton kernel could be, for minutes, although it is told not to.
  const Environment no_triton{{"XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false"}};
  check_every_mode({"jax-0.10.1", "jax_gpt.py", kSmallGpt, no_triton}, Unserved::nothing, Unserved::a_giant);
}
TEST_CASE("TensorFlow is the same in every mode", "[tensorflow]") {
  check_every_mode({"tensorflow", "tensorflow_classifier.py"}, Unserved::nothing, Unserved::a_giant);
}
TEST_CASE("TensorFlow that grows is the same in every mode", "[tensorflow-growing]") {
  check_every_mode({"tensorflow", "tensorflow_classifier.py", {}, {{"TF_FORCE_GPU_ALLOW_GROWTH", "true"}}});
}
TEST_CASE("TensorFlow on the driver's pool is the same in every mode", "[tensorflow-cuda-async]") {
  check_every_mode(
      {"tensorflow", "tensorflow_classifier.py", {}, {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}});
}
TEST_CASE("PyTorch is the same in every mode", "[torch]") {
  check_every_mode({"torch", "torch_transformer.py"});
}
TEST_CASE("PyTorch on the driver's pool is the same in every mode", "[torch-cuda-async]") {
  check_every_mode(
      {"torch", "torch_transformer.py", {}, {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}});
}
TEST_CASE("PyTorch with expandable segments is the same in every mode", "[torch-expandable]") {
  check_every_mode(
      {"torch", "torch_transformer.py", {}, {{"PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"}}},
      Unserved::own_mappings);
}
TEST_CASE("numba-cuda is the same in every mode", "[numba]") {
  check_every_mode({"numba", "numba_arrays.py"});
}
TEST_CASE("cuda-python is the same in every mode", "[cuda-python]") {
  check_every_mode({"cuda-python", "cuda_python_calls.py"});
}
TEST_CASE("tinygrad is the same in every mode", "[tinygrad]") {
  check_every_mode({"tinygrad", "tinygrad_tensors.py"});
}
TEST_CASE("taichi, loaded with RTLD_DEEPBIND, is the same in every mode", "[taichi]") {
  check_every_mode({"taichi", "taichi_fields.py"});
}
TEST_CASE("JAX in a Jupyter kernel is the same in every mode", "[jupyter]") {
  check_every_mode({"jupyter", "notebook.py"}, Unserved::nothing, Unserved::own_mappings);
}
TEST_CASE("workers of multiprocessing by fork, which end by _exit, are the same in every mode", "[fork]") {
  const Client workers{"cuda-python", "processes.py", {"--start", "fork"}};
  check_every_mode(workers);
  const ClientRun run = run_client(workers, "ondemand", {{"TIDEPOOL_BACKING", "vmm"}});
  for (const auto& [pid, process] : run.processes) {
    INFO("process " << pid);
    CHECK(process.calls.count("cuMemCreate") == 1);
    CHECK(process.calls.count("cuMemAlloc_v2") == 0);
  }
}
TEST_CASE("workers of multiprocessing by spawn are the same in every mode", "[spawn]") {
  check_every_mode({"cuda-python", "processes.py", {"--start", "spawn"}});
}
TEST_CASE("JAX and TensorFlow in one process are the same in every mode", "[jax-tensorflow]") {
  check_every_mode({"jax-tensorflow", "jax_and_tensorflow.py"}, Unserved::nothing, Unserved::own_mappings);
}
