// Scripted faults and modelled costs. Every case runs in a child that sets the variables before it
// opens the driver for the first time.
#include <csignal>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver.hpp"

namespace {

// The child's answer with SIM_FAULTS set; the driver is initialised and a context is current.
int with_faults(const char* faults, const std::function<int()>& body) {
  return in_child([&] {
    signal(SIGABRT, SIG_DFL);  // Catch2 would report the child's end as a failure of its own
    setenv("SIM_FAULTS", faults, 1);
    if (CU(cuInit)(0)) return 100;
    CUcontext context = nullptr;
    if (CU(cuCtxCreate_v2)(&context, 0, 0)) return 101;
    return body();
  });
}

// Results of four allocations as digits, so that a failed test shows which.
int four_allocations() {
  int results = 0;
  for (int i = 0; i < 4; ++i) {
    CUdeviceptr block = 7;
    const CUresult result = CU(cuMemAlloc_v2)(&block, 512);
    if (result && block != 7) return 99;
    results = results * 3 + static_cast<int>(result);
  }
  return results;
}

int as_digits(int a, int b, int c, int d) { return ((a * 3 + b) * 3 + c) * 3 + d; }

}  // namespace

TEST_CASE("the named call of an entry fails with the named code, and leaves what it should not write") {
  CHECK(with_faults("cuMemAlloc_v2@2=2", four_allocations) == as_digits(0, 2, 0, 0));
  CHECK(with_faults("cuMemAlloc_v2@3+=CUDA_ERROR_OUT_OF_MEMORY", four_allocations) == as_digits(0, 0, 2, 2));
  CHECK(with_faults("cuMemAlloc_v2@*=1", four_allocations) == as_digits(1, 1, 1, 1));
  CHECK(with_faults("cuMemAlloc_v2@1=2,cuMemAlloc_v2@4=1", four_allocations) == as_digits(2, 0, 0, 1));
  CHECK(with_faults("cuMemFree_v2@1=1", four_allocations) == 0);
}

TEST_CASE("a named call kills its process or makes it wait") {
  CHECK(with_faults("cuMemAlloc_v2@3=kill", four_allocations) == -SIGKILL);
  CHECK(with_faults("cuMemAlloc_v2@2=pause:50", [] {
          timespec before{}, after{};
          clock_gettime(CLOCK_MONOTONIC, &before);
          const int results = four_allocations();
          clock_gettime(CLOCK_MONOTONIC, &after);
          const long ms =
              (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000;
          return results || ms < 50;
        }) == 0);
}

TEST_CASE("a hidden entry is found in no way, its neighbours are") {
  CHECK(with_faults("hide:cuMemFreeAsync", [] {
          void* address = nullptr;
          if (dlsym(library(), "cuMemFreeAsync") || !dlsym(library(), "cuMemAllocAsync")) return 1;
          if (CU(cuGetProcAddress_v2)("cuMemFreeAsync", &address, 12000, 0, nullptr) || address) return 2;
          if (CU(cuGetProcAddress_v2)("cuMemAllocAsync", &address, 12000, 0, nullptr) || !address) return 3;
          return 0;
        }) == 0);
}

TEST_CASE("an older driver has its version and none of the later entries") {
  CHECK(with_faults("version:12020", [] {
          int version = 0;
          void* address = nullptr;
          if (CU(cuDriverGetVersion)(&version) || version != 12020) return 1;
          if (dlsym(library(), "cuCtxRecordEvent") || dlsym(library(), "cuCtxCreate_v4")) return 2;
          if (CU(cuGetProcAddress_v2)("cuCtxRecordEvent", &address, 13000, 0, nullptr) || address) return 3;
          if (CU(cuGetProcAddress_v2)("cuCtxCreate", &address, 13000, 0, nullptr)) return 4;
          return address == dlsym(library(), "cuCtxCreate_v3") ? 0 : 5;
        }) == 0);
}

TEST_CASE("a fault that cannot be understood ends the process") {
  const char* wrong =
      GENERATE("cuMemAlloc_v2", "cuNoSuch@1=2", "cuMemAlloc_v2@0=2", "cuMemAlloc_v2@x=2", "cuMemAlloc_v2@1=0",
               "cuMemAlloc_v2@1=CUDA_ERROR_OF_NOBODY", "cuMemAlloc_v2@1=5000", "cuMemAlloc_v2@1=pause:long",
               "hide:cuNoSuch", "version:1", "version:99999");
  CAPTURE(wrong);
  CHECK(with_faults(wrong, [] { return 0; }) == -SIGABRT);
}

TEST_CASE("modelled costs are the sum over the calls that succeeded, and no call is slower for them") {
  const std::string stats = "/tmp/sim-test-costs-" + std::to_string(getpid());
  CHECK(in_child([&] {
          setenv("SIM_COST", "h200", 1);
          setenv("SIM_STATS", stats.c_str(), 1);
          if (CU(cuInit)(0)) return 1;
          CUmemGenericAllocationHandle handle = 0;
          const CUmemAllocationProp prop = on_device(0);
          for (int i = 0; i < 3; ++i)
            if (CU(cuMemCreate)(&handle, 2 * mib, &prop, 0)) return 2;
          if (CU(cuMemCreate)(&handle, 1, &prop, 0) != CUDA_ERROR_INVALID_VALUE) return 3;
          std::exit(0);
        }) == 0);
  std::ifstream file(stats);
  const auto modelled = nlohmann::json::parse(file).at("modelled");
  CHECK(modelled.at("profile") == "h200");
  // 7.6 us for 2 MiB were measured.
  CHECK(modelled.at("entries").at("cuMemCreate") == 3 * 7600);
  CHECK(modelled.at("total_ns") == 3 * 7600);
  unlink(stats.c_str());
}
