// TIDEPOOL_FRAMEWORKS with the real frameworks: what they are told, that they heard it, and that whatever a
// user set is left to the user. The rules alone, without a framework, are tested in unit/test_frameworks.
#include <catch2/catch.hpp>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;

namespace {

const Client kJax{"jax", "../questions/jax_limit.py"};
const Client kJaxExhausted{"jax", "../questions/jax_exhaustion.py"};
const Client kTensorFlow{"tensorflow", "../questions/tensorflow_limit.py"};
const Client kTorch{"torch", "../questions/torch_backend.py"};

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// What the shim set for the process, as its report has it: "NAME=VALUE NAME=VALUE".
std::string told(const ClientRun& run) {
  std::string text;
  for (const auto& variable : run.only().report.at("frameworks"))
    text += (text.empty() ? "" : " ") + variable.at("name").get<std::string>() + "=" +
            variable.at("value").get<std::string>();
  return text;
}

bool told_of(const ClientRun& run, const std::string& framework) {
  return told(run).find(framework) != std::string::npos;
}

std::uint64_t asked(const ClientRun& run, const std::string& entry) {
  const auto& intercepted = run.only().report.at("intercepted");
  return intercepted.contains(entry) ? intercepted.at(entry).get<std::uint64_t>() : 0;
}

std::string limit_of(std::uint64_t bytes) { return "limit " + std::to_string(bytes) + "\n"; }

}  // namespace

TEST_CASE("JAX keeps the limit that its memory_stats tell of, while the arena is its pool", "[jax-told]") {
  CHECK(run_client(kJax, "").outcome.out == limit_of(60 * kGiB));
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const ClientRun run = run_client(kJax, mode);
    INFO(mode);
    CHECK(told(run) == "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async TF_FORCE_GPU_ALLOW_GROWTH=true");
    CHECK(run.outcome.out == limit_of(60 * kGiB));
    CHECK(asked(run, "cuMemAllocFromPoolAsync") > 0);
    CHECK(run.only().calls.count("cuMemAllocFromPoolAsync") == 0);
  }
}

TEST_CASE("JAX stops where its own pool would have", "[jax-share]") {
  const std::string plain = run_client(kJaxExhausted, "").outcome.out;
  CHECK(plain == "14 arrays, then RESOURCE_EXHAUSTED\n");
  for (const std::string mode : {"ondemand", "prealloc"})
    CHECK(run_client(kJaxExhausted, mode).outcome.out == plain);
  // Who asked for a larger pool gets it.
  CHECK(run_client(kJaxExhausted, "prealloc", {{"TIDEPOOL_FRACTION", "0.9"}}).outcome.out ==
        "17 arrays, then RESOURCE_EXHAUSTED\n");
}

TEST_CASE("with any memory setting of the user's JAX is left alone", "[jax-settings]") {
  const std::vector<std::pair<std::string, std::string>> settings{
      {"XLA_PYTHON_CLIENT_ALLOCATOR", "bfc"},
      {"XLA_PYTHON_CLIENT_PREALLOCATE", "true"},
      {"XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5"},
      {"XLA_CLIENT_MEM_FRACTION", "0.4"},
      {"XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB", "64"},
      {"JAX_PJRT_CLIENT_CREATE_OPTIONS", "allocator:platform"},
      {"TF_FORCE_UNIFIED_MEMORY", "1"},
      {"TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC", "0"},
      {"XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB", "1"},
      {"XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE", "false"},
  };
  for (const auto& [name, value] : settings) {
    Client client = kJax;
    client.variables[name] = value;
    // This one has no statistics to ask for, in any mode.
    if (value == "allocator:platform") client.program = "../questions/jax_array.py";
    const ClientRun plain = run_client(client, "");
    const ClientRun run = run_client(client, "ondemand");
    INFO(name << "=" << value);
    CHECK(!told_of(run, "XLA_"));
    CHECK(run.outcome.out == plain.outcome.out);
    // The same ways of allocating, as often.
    for (const char* entry : {"cuMemCreate", "cuMemAllocManaged", "cuMemAllocFromPoolAsync"}) {
      const auto before = plain.only().calls.find(entry);
      CHECK(asked(run, entry) == (before == plain.only().calls.end() ? 0 : before->second));
    }
  }
}

TEST_CASE("unified memory stays on", "[jax-unified]") {
  const ClientRun run = run_client(kJax, "ondemand", {{"TF_FORCE_UNIFIED_MEMORY", "1"}});
  CHECK(run.only().calls.at("cuMemAllocManaged") == 1);
  CHECK(run.outcome.out == limit_of(80 * kGiB));
}

TEST_CASE("with several visible GPUs JAX grows a pool of its own", "[jax-several]") {
  const Environment two{{"SIM_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", "0,1"}};
  const ClientRun ondemand = run_client(kJax, "ondemand", two);
  CHECK(told(ondemand) == "XLA_PYTHON_CLIENT_PREALLOCATE=false TF_FORCE_GPU_ALLOW_GROWTH=true");
  CHECK(asked(ondemand, "cuMemCreate") > 0);
  CHECK(asked(ondemand, "cuMemAllocFromPoolAsync") == 0);
  CHECK(ondemand.only().report.at("devices").at(0).at("reserved_peak_bytes") < kGiB);
  CHECK(!told_of(run_client(kJax, "prealloc", two), "XLA_"));
}

TEST_CASE("a rank of several is left alone", "[jax-ranks]") {
  const std::vector<std::pair<std::string, std::string>> ranks{
      {"SLURM_NTASKS", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"JAX_COORDINATOR_ADDRESS", "127.0.0.1:1"}};
  for (const auto& [name, value] : ranks) {
    const ClientRun run = run_client(kJax, "ondemand", {{name, value}});
    INFO(name);
    CHECK(told(run).empty());
    CHECK(run.outcome.out == limit_of(60 * kGiB));
    CHECK(asked(run, "cuMemCreate") == 1);
  }
}

TEST_CASE("keep tells no framework anything", "[jax-keep]") {
  const ClientRun run = run_client(kJax, "ondemand", {{"TIDEPOOL_FRAMEWORKS", "keep"}});
  CHECK(told(run).empty());
  CHECK(asked(run, "cuMemCreate") == 1);
}

TEST_CASE("a child decides afresh and undoes what is not its own", "[told-children]") {
  const ClientRun run = run_client({"jax", "../questions/children.py"}, "ondemand");
  const std::string all =
      " TF_FORCE_GPU_ALLOW_GROWTH TIDEPOOL_FRAMEWORK_VARIABLES XLA_PYTHON_CLIENT_ALLOCATOR\n";
  CHECK(run.outcome.out ==
        "itself:" + all + "child:" + all +
            "child that keeps: \nchild that only observes: \nchild that is switched off: \n"
            "child with a setting of its own: TF_FORCE_GPU_ALLOW_GROWTH TIDEPOOL_FRAMEWORK_VARIABLES "
            "XLA_PYTHON_CLIENT_MEM_FRACTION\nchild without the preload: \n");
}

TEST_CASE("TensorFlow grows, and obeys the limit that Python sets", "[tensorflow-told]") {
  const std::string plain = run_client(kTensorFlow, "").outcome.out;
  CHECK(plain.find(" tensors, then exhausted\n") != std::string::npos);
  for (const std::string mode : {"ondemand", "prealloc"}) {
    const ClientRun run = run_client(kTensorFlow, mode);
    CHECK(told_of(run, "TF_FORCE_GPU_ALLOW_GROWTH=true"));
    CHECK(run.outcome.out == plain);
  }
}

TEST_CASE("with TF_FORCE_GPU_ALLOW_GROWTH=false or an allocator of the user's TensorFlow is left alone",
          "[tensorflow-settings]") {
  const Client classifier{"tensorflow", "tensorflow_classifier.py", {"--steps", "1"}};
  const ClientRun whole = run_client(classifier, "ondemand", {{"TF_FORCE_GPU_ALLOW_GROWTH", "false"}});
  CHECK(!told_of(whole, "TF_"));
  CHECK(whole.only().report.at("devices").at(0).at("requested_peak_bytes") > 70 * kGiB);
  const ClientRun pool = run_client(classifier, "ondemand", {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}});
  CHECK(!told_of(pool, "TF_"));
  CHECK(asked(pool, "cuMemAllocFromPoolAsync") > 0);
}

TEST_CASE("PyTorch keeps its pool, unless all are told", "[torch-told]") {
  const ClientRun keeps = run_client(kTorch, "ondemand");
  CHECK(keeps.outcome.out == "native\n");
  CHECK(!told_of(keeps, "PYTORCH"));
  const Environment all{{"TIDEPOOL_FRAMEWORKS", "all"}};
  const ClientRun pool = run_client(kTorch, "ondemand", all);
  CHECK(pool.outcome.out == "cudaMallocAsync\n");
  CHECK(asked(pool, "cuMemAllocAsync") > 0);
  CHECK(pool.only().calls.count("cuMemAllocAsync") == 0);
  Client own = kTorch;
  own.variables["PYTORCH_CUDA_ALLOC_CONF"] = "backend:native";
  CHECK(run_client(own, "ondemand", all).outcome.out == "native\n");
}

TEST_CASE("all tells TensorFlow of the driver's pool", "[tensorflow-all]") {
  const Client classifier{"tensorflow", "tensorflow_classifier.py", {"--steps", "1"}};
  const ClientRun run = run_client(classifier, "ondemand", {{"TIDEPOOL_FRAMEWORKS", "all"}});
  CHECK(told_of(run, "TF_GPU_ALLOCATOR=cuda_malloc_async"));
  CHECK(asked(run, "cuMemAllocFromPoolAsync") > 0);
  CHECK(run.only().calls.count("cuMemAllocFromPoolAsync") == 0);
}
