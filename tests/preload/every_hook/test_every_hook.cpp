// Every entry of the table is intercepted, whichever way it is found; and where the driver may run out of
// memory, what we cache is handed back first.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/preload/harness.hpp"

using namespace tidepool::test;
using Counts = std::map<std::string, std::uint64_t>;

TEST_CASE("every entry of the table is counted, by dlsym and by cuGetProcAddress") {
  const Run plain = run_on_simulator({EVERY_HOOK}, "");
  REQUIRE(plain.outcome.out == "done\n");
  for (const std::string& name : hook_names()) {
    INFO(name);
    CHECK(plain.calls.count(name) == 1);
  }
  const Run run = run_on_simulator({EVERY_HOOK}, "passthrough");
  INFO(run.outcome.out << run.outcome.err);
  CHECK(run.outcome.exit_code == 0);
  CHECK(run.outcome.out == "done\n");
  REQUIRE(run.report.is_object());
  CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
  CHECK(hooked_only(run.calls) == hooked_only(plain.calls));
}

TEST_CASE("a process that ends without exit handlers has its report, and a child of vfork leaves it alone") {
  std::vector<std::string> ways{"_exit", "_Exit", "handler", "vfork", "quick_exit"};
  // ThreadSanitizer has a thread of its own, so that no program at all ends with its last thread.
  if (!THREAD_SANITIZED) ways.emplace_back("pthread_exit");
  for (int i = 0; i < 10; ++i) ways.insert(ways.end(), {"signals", "threads"});
  for (const std::string& way : ways) {
    const Run run = run_on_simulator({EVERY_HOOK, "end", way}, "passthrough");
    INFO(way << ": " << run.outcome.out << run.outcome.err);
    CHECK(run.outcome.exit_code == 0);
    CHECK(run.outcome.out == "done\n");
    REQUIRE(run.report.is_object());
    CHECK(run.report.at("intercepted").get<Counts>() == hooked_only(run.calls));
    CHECK(run.calls.count("cuMemFree_v2") == (way == "vfork" ? 1 : 0));
  }
}

TEST_CASE(
    "a program that is started without the shim gets no variable that the shim had set, and all others") {
  const Environment set{{"TIDEPOOL_FRAMEWORK_VARIABLES", "OURS=1;OURS_CHANGED=2"},
                        {"OURS", "1"},
                        {"OURS_CHANGED", "3"},
                        {"THEIRS", "4"}};
  for (const std::string way : {"execve", "execv", "execvp", "execvpe", "posix_spawn", "posix_spawnp"})
    for (const std::string preload : {"with", "without"}) {
      const Run run = run_on_simulator({EVERY_HOOK, "start", preload, way}, "passthrough", set);
      INFO(way << " " << preload << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      CHECK((run.outcome.out.find("\nOURS=1\n") == std::string::npos) == (preload == "without"));
      CHECK((run.outcome.out.find("TIDEPOOL_FRAMEWORK_VARIABLES") == std::string::npos) ==
            (preload == "without"));
      CHECK(run.outcome.out.find("OURS_CHANGED=3\n") != std::string::npos);
      CHECK(run.outcome.out.find("THEIRS=4\n") != std::string::npos);
    }
}

// cuda.h lets these answer that there is no memory; those that only look at memory or give it back are left
// out, and so is the arena's own family, which has tests of its own.
const std::vector<std::string> kMayRunOut{"cuModuleLoad",
                                          "cuModuleLoadData",
                                          "cuModuleLoadDataEx",
                                          "cuModuleLoadFatBinary",
                                          "cuModuleGetFunction",
                                          "cuModuleGetGlobal_v2",
                                          "cuLibraryLoadData",
                                          "cuLibraryLoadFromFile",
                                          "cuLibraryGetModule",
                                          "cuLibraryGetGlobal",
                                          "cuLibraryGetManaged",
                                          "cuKernelGetFunction",
                                          "cuFuncLoad",
                                          "cuCtxCreate_v2",
                                          "cuCtxCreate_v3",
                                          "cuCtxCreate_v4",
                                          "cuCtxSetLimit",
                                          "cuStreamCreate",
                                          "cuStreamCreateWithPriority",
                                          "cuEventCreate",
                                          "cuGraphInstantiate",
                                          "cuGraphInstantiate_v2",
                                          "cuGraphInstantiateWithFlags",
                                          "cuGraphInstantiateWithParams",
                                          "cuGraphInstantiateWithParams_ptsz",
                                          "cuGraphUpload",
                                          "cuGraphUpload_ptsz",
                                          "cuGraphAddMemAllocNode",
                                          "cuGraphAddNode",
                                          "cuGraphAddNode_v2",
                                          "cuGreenCtxCreate",
                                          "cuDevicePrimaryCtxRetain",
                                          "cuArrayCreate_v2",
                                          "cuArray3DCreate_v2",
                                          "cuMipmappedArrayCreate",
                                          "cuMemHostAlloc",
                                          "cuMemAllocHost_v2",
                                          "cuMemHostRegister_v2",
                                          "cuMemAllocManaged",
                                          "cuMemPoolCreate",
                                          "cuMulticastCreate",
                                          "cuIpcOpenMemHandle_v2",
                                          "cuImportExternalMemory"};

TEST_CASE(
    "a driver that is out of memory is given what we cache and asked once more, whatever it was asked for") {
  std::vector<std::string> names = kMayRunOut;
  names.insert(names.end(), launch_names().begin(), launch_names().end());
  for (const std::string& name : names) {
    // start_driver() has called this one once.
    const std::string number = name == "cuDevicePrimaryCtxRetain" ? "2" : "1";
    for (const std::string backing : {"native", "vmm"}) {
      const Run run = run_on_simulator(
          {EVERY_HOOK, name}, "ondemand",
          {{"SIM_FAULTS", name + "@" + number + "=CUDA_ERROR_OUT_OF_MEMORY"}, {"TIDEPOOL_BACKING", backing}});
      INFO(name << ", " << backing << ": " << run.outcome.out << run.outcome.err);
      CHECK(run.outcome.exit_code == 0);
      CHECK(run.calls.at(name) == std::stoul(number) + 1);
      if (backing == "native") {
        CHECK(run.calls.count("cuMemFree_v2") == 1);
        continue;
      }
      CHECK(run.calls.count("cuMemUnmap") == 1);
      CHECK(run.calls.count("cuMemRelease") == 1);
    }
  }
}
