// Complaints that users have made in public about GPU memory, produced with the real frameworks: the cause
// and the culprit that are named, and that the advice, followed, makes the program run. What needs no
// framework is in preload/diagnosis; misspelt and ignored settings are in test_doctor.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "tests/clients/client_run.hpp"

using namespace tidepool::test;
using Json = nlohmann::json;

namespace {

const std::string kJax =
    "import jax.numpy as jnp, sys\n"
    "jnp.zeros((int(sys.argv[1]) << 30,), jnp.uint8).block_until_ready()\n"
    "print('got it')\n";
const std::string kTorch =
    "import torch, sys\n"
    "torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device='cuda')\n"
    "print('got it')\n";
const std::string kTensorFlow =
    "import tensorflow as tf, sys\n"
    "with tf.device('/GPU:0'): tf.zeros((int(sys.argv[1]), 1 << 30), tf.uint8)\n"
    "print('got it')\n";

struct Told {
  ClientRun run;
  std::string screen;
  Json diagnosis;  // null: there is none
  std::string cause() const { return diagnosis.is_null() ? "" : diagnosis.at("cause").get<std::string>(); }
};

Told told_by(ClientRun run) {
  Told told{std::move(run), "", nullptr};
  const std::string& err = told.run.outcome.err;
  if (const auto begin = err.find("tidepool: out of memory: "); begin != std::string::npos)
    told.screen = err.substr(begin, 2000);
  for (const auto& [pid, process] : told.run.processes)
    if (process.report.is_object() && !process.report.at("diagnoses").empty())
      told.diagnosis = process.report.at("diagnoses").at(0);
  return told;
}

struct Need {
  std::string environment, program;
  int gib = 0;
  std::vector<std::string> command() const {
    return {python_of(environment), "-c", program, std::to_string(gib)};
  }
};

Told alone(const Need& need, const std::string& mode, const Environment& more = {}) {
  return told_by(run_command(need.command(), mode, more));
}

// Another process has 79 of the device's 80 GiB, for so many seconds at most.
Told beside(const Need& need, const std::string& mode, Environment more = {}, int seconds = 600) {
  const ScratchFolder scratch;
  more.emplace("SIM_MACHINE", scratch.path("machine"));
  std::vector<std::string> command{NEIGHBOUR, std::to_string(79 << 10), std::to_string(seconds), SIMGPU};
  for (const std::string& word : need.command()) command.push_back(word);
  return told_by(run_command(command, mode, more));
}

Environment with_advice(const Told& told, Environment variables) {
  const std::string advice = told.diagnosis.at("to_do");
  const std::string word = advice.substr(0, advice.find(' '));
  const auto equals = word.find('=');
  REQUIRE(equals != std::string::npos);
  variables[word.substr(0, equals)] = word.substr(equals + 1);
  return variables;
}

void names_the_neighbour(const Need& need, const std::string& mode, const Environment& variables) {
  const Told told = beside(need, mode, variables);
  INFO(mode << "\n" << told.run.outcome.out << told.run.outcome.err.substr(0, 6000));
  CHECK(told.run.outcome.exit_code != 0);
  REQUIRE(told.cause() == "other_processes");
  CHECK(told.screen.find("neighbour hold") != std::string::npos);
  CHECK(told.screen.find("File \"<string>\", line 2 in <module>") != std::string::npos);
  const Told helped = beside(need, mode, with_advice(told, variables), 20);
  INFO(helped.run.outcome.out << helped.run.outcome.err.substr(0, 6000));
  CHECK(helped.run.outcome.exit_code == 0);
  CHECK(helped.run.outcome.out == "got it\n");
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

// jax#15361, jax#1222 and #13330: another task, or one that has ended its work but not itself, has the pool.
TEST_CASE("JAX beside a process that holds the GPU names it, and runs when told to wait",
          "[complaint-jax-neighbour]") {
  for (const std::string mode : {"passthrough", "ondemand"}) names_the_neighbour({"jax", kJax, 2}, mode, {});
}

// The baseline: ten silent seconds for each buffer, or millions of error lines.
TEST_CASE("JAX's own retry loop is not made longer, nor louder", "[complaint-jax-loop]") {
  const auto begin = std::chrono::steady_clock::now();
  const Told told = beside({"jax", kJax, 2}, "passthrough");
  CHECK(lines_of(told.run.outcome.err) < 700);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(90));
}

// vllm#20305, vllm#55827: less is free at the start than was wished for.
TEST_CASE("PyTorch beside a process that holds the GPU names it, and runs when told to wait",
          "[complaint-torch-neighbour]") {
  for (const std::string mode : {"passthrough", "ondemand"})
    names_the_neighbour({"torch", kTorch, 2}, mode, {});
}

// tf#24496, flax#445: the GPU was taken before.
TEST_CASE("TensorFlow on the driver's pool beside a process that holds the GPU names it",
          "[complaint-tensorflow-neighbour]") {
  names_the_neighbour({"tensorflow", kTensorFlow, 2}, "ondemand",
                      {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}});
}

// jax#788, and what XLA_PYTHON_CLIENT_MEM_FRACTION means to those who hit it.
TEST_CASE("JAX that wants more than its share is told which fraction would do, and it does",
          "[complaint-jax-share]") {
  const Need need{"jax", kJax, 66};
  const Told told = alone(need, "ondemand");
  INFO(told.run.outcome.err.substr(0, 6000));
  REQUIRE(told.cause() == "framework_share");
  const Told helped = alone(need, "ondemand", with_advice(told, {}));
  INFO(helped.run.outcome.err.substr(0, 6000));
  CHECK(helped.run.outcome.out == "got it\n");
}

TEST_CASE("a limit that a framework hits is named, and the limit that is advised is enough",
          "[complaint-limit]") {
  for (const Need& need : {Need{"jax", kJax, 4}, Need{"torch", kTorch, 4}}) {
    const Told told = alone(need, "ondemand", {{"TIDEPOOL_LIMIT", "2GiB"}});
    INFO(told.run.outcome.err.substr(0, 6000));
    REQUIRE(told.cause() == "own_limit");
    const Told helped = alone(need, "ondemand", with_advice(told, {}));
    CHECK(helped.run.outcome.out == "got it\n");
  }
}

TEST_CASE("more than the GPU has is told as that by every framework's way to memory",
          "[complaint-capacity]") {
  for (const std::string mode : {"passthrough", "ondemand"}) {
    const Told told = alone({"torch", kTorch, 100}, mode);
    INFO(told.run.outcome.err.substr(0, 6000));
    CHECK(told.cause() == "capacity");
    CHECK(told.diagnosis.at("framework") == "PyTorch");
  }
}

// keras PR 1539: a scary message of a series that ended well.
TEST_CASE("a batch-size finder that ends well has no screen", "[complaint-recovered]") {
  const std::string finder =
      "import torch\n"
      "for gib in (200, 100, 50):\n"
      "  try: torch.empty(gib << 30, dtype=torch.uint8, device='cuda'); print('got', gib)\n"
      "  except torch.OutOfMemoryError: print('not', gib)\n";
  for (const std::string mode : {"passthrough", "ondemand"}) {
    const Told told = told_by(run_command({python_of("torch"), "-c", finder}, mode, {}));
    CHECK(told.run.outcome.out == "not 200\nnot 100\ngot 50\n");
    CHECK(told.screen.empty());
    CHECK(told.diagnosis.is_null());
  }
}

// XLA's backpedal beside a neighbour with room left is a recovered series too.
TEST_CASE("XLA's backpedal that ends well has no screen", "[complaint-backpedal]") {
  const ScratchFolder scratch;
  std::vector<std::string> command{NEIGHBOUR, std::to_string(70 << 10), "600", SIMGPU};
  for (const std::string& word : Need{"jax", kJax, 2}.command()) command.push_back(word);
  const Told told = told_by(run_command(command, "passthrough", {{"SIM_MACHINE", scratch.path("machine")}}));
  INFO(told.run.outcome.err.substr(0, 6000));
  CHECK(told.run.outcome.out == "got it\n");
  CHECK(told.screen.empty());
}
