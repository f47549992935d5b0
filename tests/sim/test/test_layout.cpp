// Which devices a process sees, MIG instances, and NVML's answers beside the driver's. Every case
// runs in a child that sets its variables before anything is opened.
#include <cstdlib>
#include <cstring>

#include "driver.hpp"

namespace {

struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

// A function of libnvidia-ml.so.1, which lies beside the driver.
template <typename... Arguments>
int nvml(const char* name, Arguments... arguments) {
  static void* const ml = [] {
    std::string path = std::getenv("SIM_TEST_LIBCUDA");
    return dlopen((path.substr(0, path.rfind('/')) + "/libnvidia-ml.so.1").c_str(), RTLD_NOW);
  }();
  const auto function = reinterpret_cast<int (*)(Arguments...)>(ml ? dlsym(ml, name) : nullptr);
  return function ? function(arguments...) : -1;
}

int devices_seen() {
  int count = -1;
  const CUresult result = CU(cuInit)(0);
  if (result == CUDA_ERROR_NO_DEVICE) return 0;
  return result || CU(cuDeviceGetCount)(&count) ? -1 : count;
}

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  CU(cuDeviceGetUuid_v2)(&uuid, device);
  return std::string(uuid.bytes, sizeof uuid.bytes);
}

int with(std::initializer_list<std::pair<const char*, const char*>> variables,
         const std::function<int()>& body) {
  return in_child([&] {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    return body();
  });
}

}  // namespace

TEST_CASE("CUDA_VISIBLE_DEVICES chooses and orders devices, and ends at the first that is none") {
  struct Case {
    const char* listed;
    int seen;
    char first;  // last byte of the first device's UUID
  };
  const Case test = GENERATE(values<Case>({{"0,1", 2, 'a'},
                                           {"1,0", 2, 'b'},
                                           {"1", 1, 'b'},
                                           {"", 0, 0},
                                           {"-1", 0, 0},
                                           {"1,9,0", 1, 'b'},
                                           {"0,0", 0, 0},
                                           {"GPU-74696465-706f-6f6c-2d73-696d2d677062", 1, 'b'},
                                           {"GPU-74696465", 1, 'a'}}));
  CAPTURE(test.listed);
  CHECK(with({{"CUDA_VISIBLE_DEVICES", test.listed}}, [&] {
          if (devices_seen() != test.seen) return 1;
          if (!test.seen) return 0;
          return uuid_of(0).back() == test.first ? 0 : 2;
        }) == 0);
}

TEST_CASE("a MIG instance is one device with its share of the memory, and one is seen at a time") {
  CHECK(with({{"SIM_DEVICES", "2"}, {"SIM_MIG", "4"}, {"SIM_MEMORY", "1GiB"}}, [] {
          std::size_t total = 0;
          if (devices_seen() != 1) return 1;
          if (CU(cuDeviceTotalMem_v2)(&total, 0) || total != gib / 4) return 2;
          return uuid_of(0) == std::string("tidepool-sim-mi") + 'a' ? 0 : 3;
        }) == 0);
  CHECK(with({{"SIM_MIG", "2"}, {"CUDA_VISIBLE_DEVICES", "MIG-74696465-706f-6f6c-2d73-696d2d6d6962"}},
             [] { return devices_seen() == 1 && uuid_of(0).back() == 'b' ? 0 : 1; }) == 0);
}

TEST_CASE("NVML and the driver name the same devices, cut into instances or not") {
  const char* instances = GENERATE("", "2");
  CHECK(with({{"SIM_DEVICES", "2"}, {"SIM_MIG", instances}}, [&] {
          void *gpu = nullptr, *instance = nullptr, *parent = nullptr;
          unsigned mode = 9, pending = 9, id = 9;
          char text[96];
          if (devices_seen() < 1 || nvml("nvmlInit_v2")) return 1;
          if (nvml("nvmlDeviceGetHandleByIndex_v2", 0u, &gpu)) return 2;
          if (nvml("nvmlDeviceGetMigMode", gpu, &mode, &pending) || mode != (*instances ? 1u : 0u)) return 3;
          if (!*instances) {
            if (nvml("nvmlDeviceGetUUID", gpu, text, 96u)) return 4;
            return std::strcmp(text, "GPU-74696465-706f-6f6c-2d73-696d2d677061") ? 5 : 0;
          }
          if (nvml("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 1u, &instance)) return 6;
          if (nvml("nvmlDeviceGetUUID", instance, text, 96u)) return 7;
          if (std::strcmp(text, "MIG-74696465-706f-6f6c-2d73-696d2d6d6962")) return 8;
          if (nvml("nvmlDeviceGetGpuInstanceId", instance, &id) || id != 1) return 9;
          if (nvml("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", instance, &parent)) return 10;
          return parent == gpu && nvml("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 2u, &instance) ? 0 : 11;
        }) == 0);
}

TEST_CASE("NVML shows who holds memory of a shared machine, and of which instance") {
  const std::string machine = "/tmp/sim-test-layout-" + std::to_string(getpid());
  CHECK(with({{"SIM_MACHINE", machine.c_str()}, {"SIM_MIG", "2"}, {"SIM_DEVICES", "1"}}, [] {
          CUcontext context = nullptr;
          CUdeviceptr block = 0;
          if (devices_seen() != 1 || CU(cuCtxCreate_v2)(&context, 0, 0)) return 1;
          if (CU(cuMemAlloc_v2)(&block, 64 * mib)) return 2;
          // Asked by another process, as monitors do.
          return in_child([parent = getpid()] {
            void* gpu = nullptr;
            NvmlMemory memory{};
            NvmlProcess processes[4];
            unsigned count = 4;
            if (nvml("nvmlInit_v2") || nvml("nvmlDeviceGetHandleByIndex_v2", 0u, &gpu)) return 3;
            if (nvml("nvmlDeviceGetMemoryInfo", gpu, &memory) || memory.used != 64 * mib) return 4;
            if (nvml("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, processes) || count != 1)
              return 5;
            if (processes[0].pid != static_cast<unsigned>(parent) || processes[0].used != 64 * mib) return 6;
            return processes[0].gpu_instance == 0 ? 0 : 7;
          });
        }) == 0);
  unlink(machine.c_str());
}
