// `tidepool doctor` on the simulated GPU: what it asks of NVML, and what it says of the answers.
#include <catch2/catch.hpp>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Json = nlohmann::json;

namespace {

// A small environment: the answers must not depend on that of the tests.
struct Examined {
  Outcome outcome;
  Json json;
};

Examined examine(Environment environment = {}, std::vector<std::string> before = {}) {
  const ScratchFolder scratch;
  environment.emplace("LD_LIBRARY_PATH", SIMULATOR_LIBRARIES);
  environment.emplace("SIM_MACHINE", scratch.path("machine"));
  environment.emplace("PATH", "/usr/bin:/bin");
  before.insert(before.end(), {TIDEPOOL_COMMAND, "doctor", "--json"});
  Examined found{run(before, environment), {}};
  found.json = Json::parse(found.outcome.out, nullptr, false);
  return found;
}

// The first finding of a check, as "verdict: text"; empty if there is none.
std::string finding(const Json& examined, const std::string& check) {
  for (const Json& one : examined.at("findings"))
    if (one.at("check") == check)
      return one.at("verdict").get<std::string>() + ": " + one.at("text").get<std::string>();
  return "";
}

const std::string kUuid = "GPU-74696465-706f-6f6c-2d73-696d2d677061";

}  // namespace

TEST_CASE("an idle machine has no problem") {
  const Examined found = examine();
  INFO(found.outcome.out << found.outcome.err);
  CHECK(found.outcome.exit_code == 0);
  CHECK(found.json.at("schema") == 1);
  CHECK(finding(found.json, "driver") == "ok: 580.65.06, CUDA 13.0, 1 GPU");
  CHECK(finding(found.json, "cuda") == "ok: starts and sees 1 device");
  CHECK(finding(found.json, "memory") ==
        "ok: GPU 0 Simulated H100 80GB (" + kUuid + "): 80.0 GiB, 0 B used, 80.0 GiB free");
  CHECK(finding(found.json, "holders") == "ok: GPU 0: 0 processes listed");
  CHECK(found.json.at("machine").at("gpus").at(0).at("unattributed_bytes") == 0);
}

TEST_CASE("a machine without a driver is a problem of its own") {
  const Examined found = examine({{"LD_LIBRARY_PATH", "/nonexistent"}});
  CHECK(found.outcome.exit_code == 1);
  CHECK(finding(found.json, "driver").starts_with("problem: no NVIDIA driver here: libnvidia-ml.so.1"));
  CHECK(finding(found.json, "cuda").empty());
  CHECK(found.json.at("machine").at("gpus").empty());
}

TEST_CASE("who holds the memory is named, with pid, user, amount and command") {
  const Examined found = examine({}, {HOLDER, "77"});
  INFO(found.outcome.out);
  CHECK(found.outcome.exit_code == 1);
  CHECK(finding(found.json, "memory")
            .ends_with("77.0 GiB used, 3.0 GiB free: what starts here runs out of memory"));
  CHECK(finding(found.json, "holders") == "ok: GPU 0: 1 process listed");
  const Json& holder = found.json.at("machine").at("gpus").at(0).at("processes").at(0);
  CHECK(holder.at("used_bytes") == std::uint64_t{77} << 30);
  CHECK(holder.at("in_sight") == true);
  CHECK(holder.at("user").is_string());
  CHECK(holder.at("command").get<std::string>().starts_with(HOLDER " 77"));
  CHECK(holder.at("started").is_number());
}

TEST_CASE("memory of processes that NVML does not list is said to be held, not attributed") {
  const Examined found = examine({{"SIM_NVML", "hide-processes"}, {"container", "lxc"}}, {HOLDER, "41"});
  CHECK(finding(found.json, "holders")
            .starts_with("warning: GPU 0: 0 processes listed; 41.0 GiB held outside"));
  CHECK(found.json.at("machine").at("gpus").at(0).at("unattributed_bytes") == std::uint64_t{41} << 30);
}

TEST_CASE("where NVML does not say how much a process holds, nothing is made up") {
  const Examined found = examine({{"SIM_NVML", "process-memory=unavailable"}}, {HOLDER, "8"});
  CHECK(finding(found.json, "holders") ==
        "warning: GPU 0: 1 process listed; NVML does not say here how much each holds (of 8.0 GiB in all)");
  CHECK(found.json.at("machine").at("gpus").at(0).at("unattributed_bytes").is_null());
}

TEST_CASE("a question that NVML does not support is said to be that") {
  const Examined found = examine({{"SIM_NVML",
                                   "nvmlDeviceGetComputeRunningProcesses_v3=3,nvmlDeviceGetMemoryInfo=3,"
                                   "nvmlDeviceGetMemoryInfo_v2=3"}});
  CHECK(finding(found.json, "memory").ends_with("memory cannot be asked: not supported on this device"));
  CHECK(finding(found.json, "holders").ends_with("does not list: not supported on this device"));
  CHECK(finding(found.json, "holders").starts_with("warning"));
}

TEST_CASE("a driver that NVML does not reach, in its words") {
  const Examined unloaded = examine({{"SIM_NVML", "nvmlInit_v2=9"}});
  CHECK(unloaded.outcome.exit_code == 1);
  CHECK(finding(unloaded.json, "driver") ==
        "problem: NVML does not start: the driver's kernel module is not loaded");
  CHECK(finding(examine({{"SIM_NVML", "nvmlInit_v2=18"}}).json, "driver").find("different versions") !=
        std::string::npos);
  CHECK(finding(examine({{"SIM_DEVICES", "0"}}).json, "driver") == "problem: NVML 580.65.06 finds no GPU");
}

TEST_CASE("CUDA that does not start is a problem though NVML answers") {
  const Examined found = examine({{"SIM_FAULTS", "cuInit@*=999"}});
  CHECK(found.outcome.exit_code == 1);
  CHECK(finding(found.json, "cuda").starts_with("problem: CUDA does not start: error 999, unknown error"));
}

TEST_CASE("visible devices that name none") {
  const auto said = [](const std::string& list) {
    return finding(examine({{"CUDA_VISIBLE_DEVICES", list}, {"SIM_DEVICES", "2"}}).json, "visible-devices");
  };
  CHECK(said("1,0") == "ok: CUDA_VISIBLE_DEVICES=1,0");
  CHECK(said(kUuid.substr(0, 12)) == "ok: CUDA_VISIBLE_DEVICES=" + kUuid.substr(0, 12));
  CHECK(said("0,2") ==
        "problem: CUDA_VISIBLE_DEVICES=0,2: 2 is out of range: there are 2 GPUs, so CUDA sees only the 1 "
        "device "
        "named before it");
  CHECK(said("GPU-0000").find("is the UUID of no device here") != std::string::npos);
  CHECK(said("-1").starts_with("problem"));
  CHECK(said("zero").find("'zero' names no device") != std::string::npos);
}

TEST_CASE("MIG: each instance with its own memory and processes") {
  const Examined found = examine({{"SIM_MIG", "2"}});
  CHECK(finding(found.json, "mig").starts_with("ok: GPU 0: MIG is on, 2 instances"));
  const Json& instances = found.json.at("machine").at("gpus").at(0).at("instances");
  REQUIRE(instances.size() == 2);
  CHECK(instances.at(0).at("memory").at("total_bytes") == std::uint64_t{40} << 30);
  CHECK(finding(found.json, "memory").find(instances.at(0).at("uuid").get<std::string>()) !=
        std::string::npos);
}

TEST_CASE("a compute mode that keeps programs off is a problem once somebody is there") {
  CHECK(finding(examine({{"SIM_NVML", "compute-mode=3"}}).json, "compute-mode").starts_with("warning"));
  CHECK(finding(examine({{"SIM_NVML", "compute-mode=3"}}, {HOLDER, "1"}).json, "compute-mode")
            .starts_with(
                "problem: GPU 0: compute mode EXCLUSIVE_PROCESS: one program at a time, and one has it"));
  CHECK(finding(examine({{"SIM_NVML", "compute-mode=2"}}).json, "compute-mode").starts_with("problem"));
}

TEST_CASE("a library that the loader does not take is found by asking the loader") {
  const ScratchFolder scratch;
  // An ELF header of a 64-bit shared object, and nothing after it.
  std::string header = read_file(SHIM).substr(0, 64);
  std::string path = scratch.path("libtidepool.so");
  REQUIRE(run({"/bin/sh", "-c", "head -c 64 '" SHIM "' > " + path}).exit_code == 0);
  const Examined cut = examine({{"TIDEPOOL_LIBRARY", path}});
  CHECK(cut.outcome.exit_code == 1);
  CHECK(finding(cut.json, "library").find("is not taken by the loader: ERROR: ld.so") != std::string::npos);
  const Examined gone = examine({{"TIDEPOOL_LIBRARY", scratch.path("gone.so")}});
  CHECK(finding(gone.json, "library").find("cannot be read") != std::string::npos);
}

TEST_CASE("settings that no preload makes true, and a preload that does not exist") {
  CHECK(finding(examine({{"TIDEPOOL_LIMIT", "8GiB"}, {"SUDO_COMMAND", "/bin/bash"}}).json, "preload")
            .find("sudo drops LD_PRELOAD") != std::string::npos);
  CHECK(finding(examine({{"TIDEPOOL_MODE", "fast"}}).json, "settings")
            .starts_with("problem: TIDEPOOL_MODE=fast"));
  CHECK(finding(examine({{"LD_PRELOAD", "/nowhere/libtidepool.so"}}).json, "preload")
            .starts_with("problem: LD_PRELOAD names /nowhere/libtidepool.so, which does not exist"));
}

TEST_CASE("wrong use is refused") {
  const Outcome outcome = run({TIDEPOOL_COMMAND, "doctor", "--fast"});
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.ends_with("See tidepool doctor --help\n"));
}
