// The detector's reports, in SIM_STATS. Every case runs in children that have never used the driver before.
#include <fstream>
#include <nlohmann/json.hpp>

#include "timed.hpp"

namespace {

constexpr std::size_t page = 2 * mib;

struct Mapping {
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle handle = 0;

  Mapping() {
    const CUmemAllocationProp prop = on_device(0);
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CU(cuMemCreate)(&handle, page, &prop, 0);
    CU(cuMemAddressReserve)(&base, page, 0, 0, 0);
    CU(cuMemMap)(base, page, 0, handle, 0);
    CU(cuMemSetAccess)(base, page, &access, 1);
  }
};

// Runs a program of its own and gives what the detector wrote in SIM_STATS.
nlohmann::json stats_of(const std::function<void()>& body, const char* guess = nullptr) {
  const std::string path = "/tmp/sim-test-" + std::to_string(getpid()) + "-violations";
  const int code = in_child([&] {
    setenv("SIM_STATS", path.c_str(), 1);
    if (guess) setenv("SIM_GUESS", guess, 1);
    body();
    std::exit(0);
    return 0;
  });
  REQUIRE(code == 0);
  std::ifstream file(path);
  const auto stats = nlohmann::json::parse(file);
  unlink(path.c_str());
  return stats;
}

}  // namespace

TEST_CASE("a right program is not reported") {
  const auto stats = stats_of([] {
    OwnContext context;
    const Kernels kernels("//tidepool-sim\nkernel sim_fill\nkernel slow = sim_spin\n");
    const CUstream stream = new_stream(), other = new_stream();
    const Mapping mapping;
    kernels.fill(stream, mapping.base, 1, 1024);
    const CUdeviceptr block = block_of(4 * kib);
    REQUIRE(kernels.launch("slow", other, {1000}) == CUDA_SUCCESS);
    REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    REQUIRE(kernels.launch("slow", other, {long_time}) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemUnmap)(mapping.base, page) == CUDA_SUCCESS);  // the other kernel does not use it
    CUdeviceptr ordered = 0, again = 0;
    REQUIRE(CU(cuMemAllocAsync)(&ordered, 4 * kib, stream) == CUDA_SUCCESS);
    kernels.fill(stream, ordered, 1);
    REQUIRE(CU(cuMemFreeAsync)(ordered, stream) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemAllocAsync)(&again, 4 * kib, stream) == CUDA_SUCCESS);
    kernels.fill(stream, again, 1);
    kernels.fill(other, block, 1);
    REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);  // waits
  });
  CHECK(stats["violations"].empty());
  CHECK(stats["possible_violations"].empty());
}

TEST_CASE("memory that goes while queued work uses it is reported, by the call and the work") {
  const auto reported = [](const nlohmann::json& stats, const char* call, const char* work) {
    INFO(stats["violations"].dump());
    REQUIRE(stats["violations"].size() >= 1);
    const std::string text = stats["violations"][0];
    CHECK(text.find(call) != std::string::npos);
    CHECK(text.find(work) != std::string::npos);
    CHECK(text.find("queued before") != std::string::npos);
  };
  SECTION("cuMemUnmap under a kernel") {
    reported(stats_of([] {
               OwnContext context;
               const Kernels kernels;
               const CUstream stream = new_stream();
               const Mapping mapping;
               kernels.spin(stream);
               kernels.fill(stream, mapping.base, 1);
               REQUIRE(CU(cuMemUnmap)(mapping.base, page) == CUDA_SUCCESS);
             }),
             "cuMemUnmap", "kernel sim_fill");
  }
  SECTION("cuMemFree without its wait, under a copy") {
    reported(stats_of(
                 [] {
                   OwnContext context;
                   const Kernels kernels;
                   const CUstream stream = new_stream();
                   const CUdeviceptr one = block_of(2 * mib), two = block_of(2 * mib);
                   kernels.spin(stream);
                   REQUIRE(CU(cuMemcpyDtoDAsync_v2)(one, two, 4, stream) == CUDA_SUCCESS);
                   REQUIRE(CU(cuMemFree_v2)(two) == CUDA_SUCCESS);
                 },
                 "free_synchronises=0"),
             "cuMemFree", "a copy");
  }
  SECTION("cuMemFree of a stream-ordered block, which never waits") {
    reported(stats_of([] {
               OwnContext context;
               const Kernels kernels;
               const CUstream stream = new_stream();
               CUdeviceptr block = 0;
               REQUIRE(CU(cuMemAllocAsync)(&block, 4 * kib, stream) == CUDA_SUCCESS);
               kernels.spin(stream);
               REQUIRE(CU(cuMemsetD8Async)(block, 0, 4 * kib, stream) == CUDA_SUCCESS);
               REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
             }),
             "cuMemFree", "a fill");
  }
  SECTION("cuMemFreeAsync on a stream that the user's stream is not ordered with") {
    reported(stats_of([] {
               OwnContext context;
               const Kernels kernels;
               const CUstream stream = new_stream(), other = new_stream();
               CUdeviceptr block = 0;
               REQUIRE(CU(cuMemAllocAsync)(&block, 4 * kib, stream) == CUDA_SUCCESS);
               REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
               kernels.spin(other);
               kernels.fill(other, block, 1);
               REQUIRE(CU(cuMemFreeAsync)(block, stream) == CUDA_SUCCESS);
               REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
             }),
             "cuMemFreeAsync", "kernel sim_fill");
  }
  SECTION("pinned memory, freed without the wait, under a copy") {
    reported(stats_of(
                 [] {
                   OwnContext context;
                   const Kernels kernels;
                   const CUstream stream = new_stream();
                   void* host = nullptr;
                   REQUIRE(CU(cuMemHostAlloc)(&host, 4 * kib, 0) == CUDA_SUCCESS);
                   kernels.spin(stream);
                   REQUIRE(CU(cuMemcpyHtoDAsync_v2)(block_of(4 * kib), host, 4, stream) == CUDA_SUCCESS);
                   REQUIRE(CU(cuMemFreeHost)(host) == CUDA_SUCCESS);
                   REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
                 },
                 "free_host_synchronises=0"),
             "cuMemFreeHost", "a copy");
  }
}

TEST_CASE("a foreign kernel may use anything of its device, and is counted apart") {
  const auto stats = stats_of([] {
    OwnContext context;
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    REQUIRE(CU(cuModuleLoadData)(&module, "cubin") == CUDA_SUCCESS);
    REQUIRE(CU(cuModuleGetFunction)(&kernel, module, "theirs") == CUDA_SUCCESS);
    const CUstream stream = new_stream();
    const Mapping mapping;
    const Kernels kernels;
    kernels.spin(stream);
    REQUIRE(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemUnmap)(mapping.base, page) == CUDA_SUCCESS);
  });
  CHECK(stats["violations"].empty());
  REQUIRE(stats["possible_violations"].size() == 1);
  CHECK(stats["possible_violations"][0].get<std::string>().find("kernel theirs") != std::string::npos);
}
