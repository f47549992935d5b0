// From load to exit: before cuInit, in children, after exit, the log and the shared budget. Every
// case runs in a child that has never used the driver before.
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "driver.hpp"

namespace {

std::string scratch(const std::string& name) {
  const std::string path = "/tmp/sim-test-" + std::to_string(getpid()) + "-" + name;
  unlink(path.c_str());
  return path;
}

// Needs no answer of its own: what the last exit handler saw of the driver.
int* exit_answer;

}  // namespace

TEST_CASE("before cuInit everything but the timeless entries is refused") {
  CHECK(in_child([] {
          int count = 0, version = 0;
          CUdeviceptr block = 0;
          if (CU(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED) return 1;
          if (CU(cuMemAlloc_v2)(&block, 1) != CUDA_ERROR_NOT_INITIALIZED) return 2;
          if (CU(cuDriverGetVersion)(&version) != CUDA_SUCCESS || version != CUDA_VERSION) return 3;
          if (CU(cuInit)(1) != CUDA_ERROR_INVALID_VALUE) return 4;
          return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuDeviceGetCount)(&count) == CUDA_SUCCESS ? 0 : 5;
        }) == 0);
}

TEST_CASE("entries without an implementation say so") {
  CHECK(in_child([] {
          CU(cuInit)(0);
          CUmemGenericAllocationHandle handle = 0;
          CUmulticastObjectProp properties{};
          return static_cast<int>(CU(cuMulticastCreate)(&handle, &properties));
        }) == static_cast<int>(CUDA_ERROR_NOT_SUPPORTED) % 256);
}

TEST_CASE("a child of a process that used the driver cannot use it") {
  CHECK(in_child([] {
          if (CU(cuInit)(0)) return 1;
          return in_child([] {
            int count = 0;
            return CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
                           CU(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED
                       ? 0
                       : 2;
          });
        }) == 0);
}

TEST_CASE("after the exit handlers the driver is deinitialized") {
  int result[2];
  REQUIRE(pipe(result) == 0);
  const pid_t child = fork();
  if (!child) {
    exit_answer = &result[1];
    // Registered before cuInit's own handler, so it runs after it.
    std::atexit([] {
      int count = 0;
      const int answer = CU(cuDeviceGetCount)(&count);
      [[maybe_unused]] const auto written = write(*exit_answer, &answer, sizeof answer);
      _exit(0);
    });
    CU(cuInit)(0);
    std::exit(0);
  }
  int answer = -1;
  REQUIRE(read(result[0], &answer, sizeof answer) == sizeof answer);
  waitpid(child, nullptr, 0);
  CHECK(answer == CUDA_ERROR_DEINITIALIZED);
}

TEST_CASE("the log has one line for every call, by its exact name, and none for inner calls") {
  const std::string path = scratch("log");
  CHECK(in_child([&] {
          setenv("SIM_LOG", path.c_str(), 1);
          CUcontext context = nullptr;
          CUdeviceptr block = 0;
          CU(cuMemAlloc_v2)(&block, 77);  // before cuInit: refused, and logged
          CU(cuInit)(0);
          CU(cuCtxCreate_v2)(&context, 0, 0);
          CU(cuMemAlloc_v2)(&block, 64 * kib);
          CU(cuStreamSynchronize_ptsz)(nullptr);
          CU(cuMemFree_v2)(block);
          CU(cuCtxSynchronize_v2)(nullptr);  // implemented by cuCtxSynchronize
          CUmemGenericAllocationHandle handle = 0;
          CUmulticastObjectProp properties{};
          CU(cuMulticastCreate)(&handle, &properties);
          return 0;
        }) == 0);
  std::ifstream file(path);
  std::vector<std::string> entries;
  for (std::string line; std::getline(file, line);) {
    const auto call = nlohmann::json::parse(line);
    entries.push_back(call["entry"]);
    if (entries.size() == 1) CHECK(call["result"] == CUDA_ERROR_NOT_INITIALIZED);
    if (entries.size() == 4) {
      CHECK(call["args"]["bytesize"] == 64 * kib);
      CHECK(call["args"]["dptr"].get<std::uint64_t>() % 512 == 0);
      CHECK(call["result"] == 0);
    }
    if (call["entry"] == "cuMulticastCreate") CHECK(call["implemented"] == false);
  }
  CHECK(entries == std::vector<std::string>{"cuMemAlloc_v2", "cuInit", "cuCtxCreate_v2", "cuMemAlloc_v2",
                                            "cuStreamSynchronize_ptsz", "cuMemFree_v2", "cuCtxSynchronize_v2",
                                            "cuMulticastCreate"});
  unlink(path.c_str());
}

TEST_CASE("processes of one machine share its budget, and a killed one gives its part back") {
  const std::string machine = scratch("machine");
  setenv("SIM_MACHINE", machine.c_str(), 1);
  int ready[2], wait[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(wait) == 0);
  const pid_t neighbour = fork();
  if (!neighbour) {
    CUcontext context = nullptr;
    CUdeviceptr block = 0;
    CU(cuInit)(0);
    CU(cuCtxCreate_v2)(&context, 0, 0);
    const char byte = CU(cuMemAlloc_v2)(&block, 600 * mib) == CUDA_SUCCESS ? 'y' : 'n';
    [[maybe_unused]] const auto written = write(ready[1], &byte, 1);
    pause();
    _exit(0);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  CHECK(in_child([&] {
          CUcontext context = nullptr;
          CUdeviceptr block = 0;
          std::size_t free = 0, total = 0;
          CU(cuInit)(0);
          CU(cuCtxCreate_v2)(&context, 0, 0);
          CU(cuMemGetInfo_v2)(&free, &total);
          if (total != 1 * gib || free != total - 600 * mib) return 1;
          if (CU(cuMemAlloc_v2)(&block, 600 * mib) != CUDA_ERROR_OUT_OF_MEMORY) return 2;
          kill(neighbour, SIGKILL);
          waitpid(neighbour, nullptr, 0);
          for (int i = 0; i < 100 && CU(cuMemAlloc_v2)(&block, 600 * mib); ++i) usleep(20000);
          return block ? 0 : 3;
        }) == 0);
  waitpid(neighbour, nullptr, 0);
  unsetenv("SIM_MACHINE");
  unlink(machine.c_str());
}
