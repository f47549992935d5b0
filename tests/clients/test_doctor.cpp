// `tidepool doctor -- COMMAND` with real frameworks: each wrong setting is found, and what is said of it is
// what the framework does. The rules alone are in golden/doctor.
#include <catch2/catch.hpp>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;
using Json = nlohmann::json;

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The smallest programs that start a framework's pool.
const std::string kJax =
    "import jax, numpy as np\n"
    "print(jax.device_put(np.ones(1 << 28, np.float32), jax.devices()[0]).devices())";
const std::string kTensorFlow = "import tensorflow as tf\nwith tf.device('/GPU:0'): print(tf.ones(4).device)";
const std::string kTorch =
    "import torch\nprint(torch.zeros(1 << 20, device='cuda').device, torch.cuda.get_allocator_backend())";

struct Examined {
  Outcome outcome;
  Json json;
};

Examined examine(const std::string& environment, const std::string& program, Environment variables,
                 std::vector<std::string> flags = {}) {
  const std::string python = python_of(environment);
  variables.emplace("LD_LIBRARY_PATH", SIMULATOR_LIBRARIES);
  variables.emplace("TF_CPP_MIN_LOG_LEVEL", "1");
  std::vector<std::string> command{TIDEPOOL_COMMAND, "doctor", "--json"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"--", SIMGPU, python, "-c", program});
  Examined found{run(command, variables, std::chrono::minutes(5)), {}};
  found.json = Json::parse(found.outcome.out, nullptr, false);
  INFO(found.outcome.out << found.outcome.err);
  REQUIRE(!found.json.is_discarded());
  return found;
}

std::string said(const Examined& found, const std::string& check) {
  for (const Json& one : found.json.at("findings"))
    if (one.at("check") == check)
      return one.at("verdict").get<std::string>() + ": " + one.at("text").get<std::string>();
  return "";
}

std::uint64_t held(const Examined& found) {
  const Json& devices = found.json.at("run").at("devices");
  return devices.empty() ? 0 : devices.at(0).at("reserved_peak_bytes").get<std::uint64_t>();
}

std::uint64_t calls(const Examined& found, const std::string& entry) {
  const Json& intercepted = found.json.at("run").at("intercepted");
  return intercepted.contains(entry) ? intercepted.at(entry).get<std::uint64_t>() : 0;
}

bool has_problem(const Examined& found) {
  CHECK(found.outcome.exit_code == (found.json.at("verdict") == "problem" ? 1 : 0));
  return found.outcome.exit_code == 1;
}

const std::string kOnCpu = "warning: JAX; no process asked for GPU memory: nothing was computed on a GPU";

}  // namespace

TEST_CASE("JAX with no setting of its own: no problem, and the advice is enough", "[doctor-jax]") {
  const Examined found = examine("jax", kJax, {});
  CHECK_FALSE(has_problem(found));
  CHECK(said(found, "loaded") == "ok: JAX; 1 process had GPU memory");
  CHECK(said(found, "settings")
            .ends_with(
                "set by tidepool: XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async TF_FORCE_GPU_ALLOW_GROWTH=true"));
  REQUIRE(said(found, "advice") ==
          "ok: GPU 0: with a tenth to spare, TIDEPOOL_LIMIT=1152MiB is enough; without tidepool "
          "XLA_PYTHON_CLIENT_MEM_FRACTION=0.02");
  const Examined limited = examine("jax", kJax, {}, {"--limit", "1152MiB"});
  CHECK_FALSE(has_problem(limited));
  CHECK(said(limited, "out-of-memory").empty());
  CHECK(run({SIMGPU, python_of("jax"), "-c", kJax}, {{"XLA_PYTHON_CLIENT_MEM_FRACTION", "0.02"}}).exit_code ==
        0);
}

TEST_CASE("PREALLOCATE=FALSE is on, =false is off", "[doctor-jax-preallocate]") {
  const Examined wrong = examine("jax", kJax, {{"XLA_PYTHON_CLIENT_PREALLOCATE", "FALSE"}});
  CHECK(has_problem(wrong));
  CHECK(said(wrong, "jax-preallocate") ==
        "problem: XLA_PYTHON_CLIENT_PREALLOCATE=FALSE means on: off is only false, False or 0");
  CHECK(held(wrong) == 60 * kGiB);
  CHECK(said(wrong, "pool").find("JAX took 60.0 GiB for a pool of its own") != std::string::npos);
  const Examined right = examine("jax", kJax, {{"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}});
  CHECK(said(right, "jax-preallocate").empty());
  CHECK(held(right) < 4 * kGiB);
}

TEST_CASE("both names of the fraction, and JAX is without CUDA", "[doctor-jax-fractions]") {
  const Examined found =
      examine("jax", kJax, {{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"}, {"XLA_CLIENT_MEM_FRACTION", ".5"}});
  CHECK(has_problem(found));
  CHECK(said(found, "jax-two-fractions").find("goes on without CUDA") != std::string::npos);
  CHECK(said(found, "loaded") == kOnCpu);
}

TEST_CASE("an allocator that does not exist, and JAX is without CUDA", "[doctor-jax-allocator]") {
  const Examined found = examine("jax", kJax, {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda-async"}});
  CHECK(has_problem(found));
  CHECK(said(found, "jax-allocator").find("names no allocator") != std::string::npos);
  CHECK(said(found, "loaded") == kOnCpu);
}

TEST_CASE("a fraction of 75 is 75 times the device, of 75% no number", "[doctor-jax-percent]") {
  const Examined times = examine("jax", kJax, {{"XLA_PYTHON_CLIENT_MEM_FRACTION", "75"}});
  CHECK(has_problem(times));
  CHECK(said(times, "jax-fraction").find("means 75 times the device's memory") != std::string::npos);
  CHECK(said(times, "out-of-memory").find("the first of 5.9 TiB") != std::string::npos);
  CHECK(held(times) > 79 * kGiB);
  const Examined percent = examine("jax", kJax, {{"XLA_PYTHON_CLIENT_MEM_FRACTION", "75%"}});
  CHECK(said(percent, "jax-fraction").find("is no number") != std::string::npos);
  CHECK(said(percent, "loaded") == kOnCpu);
}

TEST_CASE("misspelt names are read by nobody", "[doctor-misspelt]") {
  const Examined found = examine("jax", kJax,
                                 {{"XLA_PYTHON_CLIENT_MEM_FRACTON", ".01"},
                                  {"XLA_PYTHON_MEM_FRACTION", ".01"},
                                  {"TIDEPOOL_MDOE", "off"}});
  CHECK(has_problem(found));
  std::string meant;
  for (const Json& one : found.json.at("findings"))
    if (one.at("check") == "misspelt") meant += one.at("advice").get<std::string>() + " ";
  CHECK(meant ==
        "did you mean TIDEPOOL_MODE? did you mean XLA_PYTHON_CLIENT_MEM_FRACTION? "
        "did you mean XLA_PYTHON_CLIENT_MEM_FRACTION? ");
  CHECK(held(found) > kGiB);  // more than a hundredth of the device
}

TEST_CASE("the client's options beat the allocator's variable", "[doctor-jax-options]") {
  const Examined found = examine("jax", kJax,
                                 {{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"},
                                  {"JAX_PJRT_CLIENT_CREATE_OPTIONS", "allocator:cuda_async"}});
  CHECK(said(found, "jax-create-options") ==
        "warning: XLA_PYTHON_CLIENT_ALLOCATOR=platform has no effect: JAX_PJRT_CLIENT_CREATE_OPTIONS says "
        "allocator:cuda_async, which wins");
  CHECK(calls(found, "cuMemAllocFromPoolAsync") > 0);
}

TEST_CASE("the platform allocator keeps to no fraction", "[doctor-jax-platform]") {
  const Examined found = examine(
      "jax", kJax, {{"XLA_PYTHON_CLIENT_ALLOCATOR", "platform"}, {"XLA_PYTHON_CLIENT_MEM_FRACTION", ".01"}});
  CHECK(said(found, "jax-inert").find("which has no pool") != std::string::npos);
  CHECK(held(found) >= kGiB);
  CHECK(found.json.at("run").at("exit_code") == 0);
}

TEST_CASE("JAX's own fraction wins over the arena's mode", "[doctor-jax-pool]") {
  const Examined found =
      examine("jax", kJax, {{"XLA_PYTHON_CLIENT_MEM_FRACTION", ".5"}, {"TIDEPOOL_FRACTION", ".9"}});
  CHECK(said(found, "jax-own-pool").find("wins over TIDEPOOL_MODE=ondemand") != std::string::npos);
  CHECK(said(found, "fraction").find("has no effect in mode ondemand") != std::string::npos);
  CHECK(held(found) == 40 * kGiB);
}

TEST_CASE("TF_GPU_ALLOCATOR does nothing for JAX", "[doctor-jax-tf]") {
  const Examined found =
      examine("jax", kJax, {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}, {"--mode", "passthrough"});
  CHECK(said(found, "jax-tf-allocator").find("JAX does not read it") != std::string::npos);
  CHECK(calls(found, "cuMemAllocFromPoolAsync") == 0);
  CHECK(held(found) == 60 * kGiB);
}

TEST_CASE("TensorFlow reads true and false alone, and passes over an allocator it does not know",
          "[doctor-tensorflow]") {
  const Examined found = examine("tensorflow", kTensorFlow,
                                 {{"TF_FORCE_GPU_ALLOW_GROWTH", "1"}, {"TF_GPU_ALLOCATOR", "cuda_async"}});
  CHECK(has_problem(found));
  CHECK(said(found, "tf-growth").find("has no effect: TensorFlow reads only true and false") !=
        std::string::npos);
  CHECK(said(found, "tf-allocator").find("knows only cuda_malloc_async") != std::string::npos);
  CHECK(held(found) > 70 * kGiB);
  CHECK(calls(found, "cuMemAllocFromPoolAsync") == 0);
}

TEST_CASE("an option that PyTorch does not know keeps it from CUDA", "[doctor-torch-option]") {
  const Examined found = examine("torch", kTorch, {{"PYTORCH_ALLOC_CONF", "expandable_segment:True"}});
  CHECK(has_problem(found));
  CHECK(said(found, "torch-option").find("'expandable_segment' is no option") != std::string::npos);
  CHECK(said(found, "command").starts_with("problem: ended with exit code 1"));
  CHECK(found.outcome.err.find("Unrecognized key 'expandable_segment'") != std::string::npos);
}

TEST_CASE("of PyTorch's two names the older one decides", "[doctor-torch-names]") {
  const Examined found = examine("torch", kTorch,
                                 {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"},
                                  {"PYTORCH_ALLOC_CONF", "backend:native"},
                                  {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}});
  CHECK(said(found, "torch-names").find("are read from the first, and those of the second are lost") !=
        std::string::npos);
  CHECK(found.outcome.err.find("cuda:0 cudaMallocAsync") != std::string::npos);
  CHECK(said(found, "unused") ==
        "warning: XLA_PYTHON_CLIENT_PREALLOCATE=false has no effect: JAX was not loaded");
}

TEST_CASE("no visible device is no GPU", "[doctor-torch-visible]") {
  const Examined found = examine("torch", kTorch, {{"CUDA_VISIBLE_DEVICES", "-1"}});
  CHECK(has_problem(found));
  CHECK(said(found, "visible-devices").find("leaves no GPU to the command") != std::string::npos);
}

TEST_CASE("what a program sets after JAX has started CUDA is too late, and before it is not",
          "[doctor-jax-late]") {
  const std::string set = "os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '.1'\n";
  const std::string allocate = "jax.device_put(np.ones(1 << 20, np.float32), jax.devices()[0])\n";
  const std::string imports = "import jax, os, numpy as np\n";
  const Environment keep{{"TIDEPOOL_FRAMEWORKS", "keep"}};
  const Examined late = examine("jax", imports + allocate + set, keep);
  CHECK(has_problem(late));
  CHECK(said(late, "set-late") ==
        "problem: XLA_PYTHON_CLIENT_MEM_FRACTION=.1 was set by the program after it had started CUDA: too "
        "late, it "
        "has no effect");
  CHECK(held(late) == 60 * kGiB);
  const Examined in_time = examine("jax", imports + set + allocate, keep);
  CHECK(said(in_time, "set-late").empty());
  CHECK(held(in_time) < 9 * kGiB);
}

TEST_CASE("what a program sets after PyTorch has started CUDA is too late", "[doctor-torch-late]") {
  const Examined found =
      examine("torch",
              "import os, torch\ntorch.zeros(4, device='cuda')\n"
              "os.environ['PYTORCH_ALLOC_CONF'] = 'backend:cudaMallocAsync'\n"
              "print(torch.ones(4, device='cuda').device, torch.cuda.get_allocator_backend())",
              {});
  CHECK(has_problem(found));
  CHECK(said(found, "set-late").find("too late, it has no effect") != std::string::npos);
  CHECK(found.outcome.err.find("cuda:0 native") != std::string::npos);
}
