// `tidepool doctor -- COMMAND` with a small program on the simulated GPU: its end, its exit codes, the form
// of what it says. What real frameworks make of their settings is in clients/test_doctor.
#include <catch2/catch.hpp>

#include "shim/cli/doctor/names.hpp"
#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/doctor/screen.hpp"
#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using namespace tidepool::cli::doctor;
using Json = nlohmann::json;

namespace {

Outcome examine(std::vector<std::string> command, Environment environment = {},
                std::vector<std::string> flags = {}) {
  environment.emplace("LD_LIBRARY_PATH", SIMULATOR_LIBRARIES);
  std::vector<std::string> whole{TIDEPOOL_COMMAND, "doctor"};
  whole.insert(whole.end(), flags.begin(), flags.end());
  whole.emplace_back("--");
  whole.insert(whole.end(), command.begin(), command.end());
  return run(whole, environment);
}

bool says(const Outcome& outcome, const std::string& text) {
  return outcome.out.find(text) != std::string::npos;
}

Observation quiet_run() {
  Observation run;
  run.report = Json::object();
  run.loaded = {Framework::jax};
  return run;
}

std::string verdict_of(const Observation& run, const std::string& check) {
  for (const Finding& finding : judge(run))
    if (finding.check == check) return verdict_name(finding.verdict);
  return "";
}

}  // namespace

TEST_CASE("a program that fits: peak, room and advice") {
  const Outcome outcome = examine({HOLDER, "2", "/bin/true"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(says(outcome, "ended well after"));
  CHECK(says(outcome,
             "GPU 0: 2.0 GiB asked for at the peak, 2.0 GiB held; 78.0 GiB of the 80.0 GiB that were free "
             "stayed free"));
  CHECK(says(outcome, "TIDEPOOL_LIMIT=2304MiB is enough\n"));
  CHECK(outcome.out.ends_with("0 problems, 0 warnings\n"));
}

TEST_CASE("a program that is refused memory, and fails") {
  const Outcome outcome = examine({HOLDER, "90", "/bin/true"});
  CHECK(outcome.exit_code == 1);
  CHECK(says(outcome, "ended with exit code 120"));
  CHECK(says(outcome, "1 allocation was refused, the first of 90.0 GiB by cuMemAlloc_v2 with 0 B held"));
}

TEST_CASE("a limit above the device and a fraction without prealloc have no effect") {
  const Outcome outcome =
      examine({HOLDER, "2", "/bin/true"}, {{"TIDEPOOL_LIMIT", "100GiB"}, {"TIDEPOOL_FRACTION", "0.5"}});
  CHECK(outcome.exit_code == 0);
  CHECK(says(outcome, "TIDEPOOL_LIMIT allows 100.0 GiB and the device has 80.0 GiB: it has no effect"));
  CHECK(says(outcome, "TIDEPOOL_FRACTION=0.5 has no effect in mode ondemand"));
  CHECK_FALSE(
      says(examine({HOLDER, "2", "/bin/true"}, {{"TIDEPOOL_FRACTION", "0.5"}}, {"--mode", "prealloc"}),
           "has no effect"));
}

TEST_CASE("a program that runs too long is ended, by an interrupt first") {
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = examine({"/bin/sleep", "100"}, {}, {"--seconds", "0.5"});
  CHECK(outcome.exit_code == 0);
  CHECK(says(outcome, "was ended after"));
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));
}

TEST_CASE("for programs: the object alone on stdout, the command's output on stderr") {
  const Outcome outcome = examine({"/bin/echo", "hello"}, {}, {"--json"});
  const Json json = Json::parse(outcome.out);
  CHECK(outcome.err == "hello\n");
  CHECK(json.at("schema") == 1);
  CHECK(json.at("run").at("command") == Json({"/bin/echo", "hello"}));
  CHECK(json.at("run").at("exit_code") == 0);
  CHECK(json.at("run").at("ended_by_doctor") == false);
}

TEST_CASE("commands that cannot be started, and wrong use") {
  CHECK(examine({"no-such-command"}).exit_code == 127);
  CHECK(examine({"no-such-command"}).err == "tidepool: no-such-command: not found in PATH\n");
  CHECK(examine({"/etc/passwd"}).exit_code == 126);
  CHECK(run({TIDEPOOL_COMMAND, "doctor", "--"}).exit_code == 2);
  CHECK(examine({"/bin/true"}, {}, {"--seconds", "soon"}).exit_code == 2);
  CHECK(examine({"/bin/true"}, {}, {"--mode", "fast"}).exit_code == 2);
  CHECK(examine({"/bin/true"}, {{"TIDEPOOL_LIBRARY", "/gone.so"}}).exit_code == 2);
}

TEST_CASE("names that were probably meant") {
  CHECK(probably_meant("XLA_PYTHON_CLIENT_MEM_FRACTON") == "XLA_PYTHON_CLIENT_MEM_FRACTION");
  CHECK(probably_meant("XLA_PYTHON_MEM_FRACTION") == "XLA_PYTHON_CLIENT_MEM_FRACTION");
  CHECK(probably_meant("TIDEPOOL_MDOE") == "TIDEPOOL_MODE");
  CHECK(probably_meant("TF_FORCE_GPU_ALOW_GROWHT") == "TF_FORCE_GPU_ALLOW_GROWTH");
  CHECK(probably_meant("PYTORCH_CUDA_ALLOC_CONFIG") == "PYTORCH_CUDA_ALLOC_CONF");
  for (const char* sound : {"XLA_CLIENT_MEM_FRACTION", "PYTORCH_ALLOC_CONF", "TIDEPOOL_LIBRARY",
                            "TIDEPOOL_RUN", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "CUDA_HOME",
                            "TF_CPP_MIN_LOG_LEVEL", "JAX_COMPILATION_CACHE_DIR", "PYTHONPATH"})
    CHECK(probably_meant(sound) == "");
  CHECK(edit_distance("MDOE", "MODE") == 1);
  CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("sound settings are left alone") {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
           {"XLA_PYTHON_CLIENT_PREALLOCATE", "true"},
           {"XLA_PYTHON_CLIENT_ALLOCATOR", "CUDA_ASYNC"},
           {"XLA_PYTHON_CLIENT_MEM_FRACTION", " .5"},
           {"XLA_PYTHON_CLIENT_MEM_FRACTION", "1"},
           {"JAX_PJRT_CLIENT_CREATE_OPTIONS", "allocator:bfc;preallocate:false"}}) {
    Observation run = quiet_run();
    run.environment[name] = value;
    const Findings findings = judge(run);
    INFO(to_screen(findings, false));
    for (const Finding& finding : findings) CHECK(finding.verdict < Verdict::problem);
    CHECK(verdict_of(run, "misspelt") == "");
  }
}

TEST_CASE("wrong settings by the rules") {
  const auto verdict = [](const std::string& check, const std::map<std::string, std::string>& environment,
                          Framework loaded) {
    Observation run = quiet_run();
    run.loaded = {loaded};
    run.environment = environment;
    return verdict_of(run, check);
  };
  for (const char* word : {"FALSE", "no", "off", "n", "None"})
    CHECK(verdict("jax-preallocate", {{"XLA_PYTHON_CLIENT_PREALLOCATE", word}}, Framework::jax) == "problem");
  CHECK(verdict("jax-fraction", {{"XLA_CLIENT_MEM_FRACTION", "90"}}, Framework::jax) == "problem");
  CHECK(verdict("jax-fraction", {{"XLA_CLIENT_MEM_FRACTION", "0,9"}}, Framework::jax) == "problem");
  CHECK(verdict("jax-create-options", {{"JAX_PJRT_CLIENT_CREATE_OPTIONS", "a:b:c"}}, Framework::jax) ==
        "problem");
  CHECK(verdict("torch-option", {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb=128"}}, Framework::torch) ==
        "problem");
  CHECK(verdict("torch-option", {{"PYTORCH_ALLOC_CONF", "backend:cudamallocasync"}}, Framework::torch) ==
        "problem");
  CHECK(verdict(
            "torch-option",
            {{"PYTORCH_ALLOC_CONF", "roundup_power2_divisions:[256:1,512:2,>:4], expandable_segments:True"}},
            Framework::torch) == "");
  CHECK(verdict("torch-names", {{"PYTORCH_CUDA_ALLOC_CONF", "backend:native"}}, Framework::torch) == "ok");
  CHECK(verdict("tf-growth", {{"TF_FORCE_GPU_ALLOW_GROWTH", "True"}}, Framework::tensorflow) == "problem");
  CHECK(verdict("unused", {{"CUPY_GPU_MEMORY_LIMIT", "50%"}}, Framework::torch) == "warning");
  CHECK(verdict("visible-devices", {{"CUDA_VISIBLE_DEVICES", ""}}, Framework::torch) == "problem");
}

TEST_CASE("set late is too late for certain where one framework alone is loaded") {
  Observation run = quiet_run();
  run.report["set_late"] = {{{"name", "XLA_PYTHON_CLIENT_PREALLOCATE"}, {"value", "false"}}};
  CHECK(verdict_of(run, "set-late") == "problem");
  run.loaded.insert(Framework::torch);  // which may have started CUDA
  CHECK(verdict_of(run, "set-late") == "warning");
  run.loaded = {Framework::torch};
  CHECK(verdict_of(run, "set-late") == "warning");
}
